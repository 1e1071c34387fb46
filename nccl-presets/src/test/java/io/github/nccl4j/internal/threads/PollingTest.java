package io.github.nccl4j.internal.threads;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class PollingTest {
    @Test
    void aWaitEndsWithTheConditionOrTheTime() {
        AtomicInteger asked = new AtomicInteger();
        assertTrue(Polling.until(() -> asked.incrementAndGet() == 200, Polling.FOREVER));
        assertEquals(200, asked.get());
        assertFalse(Polling.until(() -> false, Duration.ofMillis(2)));
        assertFalse(Polling.until(() -> asked.incrementAndGet() == 0, Duration.ZERO));
        assertEquals(201, asked.get());
    }

    @Test
    void anInterruptDoesNotEndTheWait() {
        Thread.currentThread().interrupt();
        AtomicInteger asked = new AtomicInteger();
        assertTrue(Polling.until(() -> asked.incrementAndGet() == 200, Polling.FOREVER));
        assertTrue(Thread.interrupted());
    }
}
