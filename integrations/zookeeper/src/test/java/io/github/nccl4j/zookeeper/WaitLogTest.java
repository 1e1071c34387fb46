package io.github.nccl4j.zookeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.testing.TestLog;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class WaitLogTest {
    @Test
    void aWaitIsNotLoggedBeforeTheIntervalIsOver() {
        long before = System.nanoTime();
        WaitLog log = new WaitLog(TimeUnit.HOURS.toNanos(1));
        long after = System.nanoTime();
        try (TestLog lines = new TestLog()) {
            log.logIfDue(nanos -> "early");
            assertEquals(List.of(), lines.lines());
        }
        assertTrue(log.due() - TimeUnit.HOURS.toNanos(1) - before >= 0);
        assertTrue(after - (log.due() - TimeUnit.HOURS.toNanos(1)) >= 0);
    }

    /** The line names the interval, not the time at which the thread has come to log it. */
    @Test
    void theNextLineIsDueWhenTheWaitHasDoubled() {
        WaitLog log = new WaitLog(1);
        long begin = log.due() - 1;
        try (TestLog lines = new TestLog()) {
            while (System.nanoTime() - begin < 1_000_000) {
                Thread.onSpinWait();
            }
            long before = System.nanoTime();
            log.logIfDue(nanos -> "waits " + nanos + " ns");
            long after = System.nanoTime();
            assertEquals(List.of("WARNING: waits 1 ns"), lines.lines());
            long next = log.due() - begin;
            assertTrue(next >= 2 * (before - begin), next + " ns after " + (before - begin) + " ns");
            assertTrue(next <= 2 * (after - begin), next + " ns after " + (after - begin) + " ns");
        }
    }
}
