package io.github.nccl4j.tools.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(20)
class ThreadsTest {
    @Test
    void runsPartsConcurrently() throws Exception {
        CyclicBarrier all = new CyclicBarrier(2);
        Callable<Thread> part = () -> {
            all.await();
            return Thread.currentThread();
        };
        assertEquals(2, Set.copyOf(Threads.run(List.of(part, part), () -> {})).size());
    }

    @Test
    void runsASinglePartInTheCallingThread() throws Exception {
        Thread[] ran = new Thread[1];
        Callable<Void> part = () -> {
            ran[0] = Thread.currentThread();
            return null;
        };
        Threads.run(List.of(part), () -> {});
        assertSame(Thread.currentThread(), ran[0]);
    }

    /** One part waits until {@code end} is called, one until it is interrupted. */
    @Test
    void failureEndsOtherPartsFirst() {
        CountDownLatch ended = new CountDownLatch(1);
        AtomicBoolean leftByEnd = new AtomicBoolean();
        AtomicBoolean leftByInterrupt = new AtomicBoolean();
        Callable<Void> fails = () -> {
            throw new PerfException("first");
        };
        Callable<Void> waits = () -> {
            while (ended.getCount() > 0) {
                Thread.onSpinWait();
            }
            leftByEnd.set(true);
            throw new PerfException("second");
        };
        Callable<Void> sleeps = () -> {
            try {
                new CountDownLatch(1).await();
            } finally {
                leftByInterrupt.set(true);
            }
            return null;
        };
        assertEquals(
                "first",
                assertThrows(PerfException.class, () -> Threads.run(List.of(waits, sleeps, fails), ended::countDown))
                        .getMessage());
        assertTrue(leftByEnd.get());
        assertTrue(leftByInterrupt.get());
    }
}
