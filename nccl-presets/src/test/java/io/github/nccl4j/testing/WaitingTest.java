package io.github.nccl4j.testing;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class WaitingTest {
    private static String failure(Runnable waiting) {
        return assertThrows(AssertionError.class, waiting::run).getMessage();
    }

    @Test
    void wantedValueIsReturned() {
        AtomicInteger looks = new AtomicInteger();
        assertEquals(3, Waiting.value("three looks", looks::incrementAndGet, look -> look == 3));
        assertEquals(3, looks.get());
        // Looks once, however short the limit is.
        Waiting.until("true", () -> true, Duration.ZERO);
    }

    @Test
    void failureNamesTheState() {
        Duration soon = Duration.ofMillis(5);
        assertEquals(
                "not reached within PT0.005S: a wonder", failure(() -> Waiting.until("a wonder", () -> false, soon)));
        assertEquals(
                "not reached within PT0.005S: a two; last: 1",
                failure(() -> Waiting.value("a two", () -> 1, value -> value == 2, soon)));
    }

    @Test
    void interruptAndFailuresOfTheConditionEndIt() {
        Thread.currentThread().interrupt();
        assertEquals("interrupted while waiting for: a wonder", failure(() -> Waiting.until("a wonder", () -> false)));
        assertTrue(Thread.interrupted());
        IllegalStateException unchecked = new IllegalStateException();
        assertSame(
                unchecked,
                assertThrows(
                        IllegalStateException.class,
                        () -> Waiting.until("a wonder", () -> {
                            throw unchecked;
                        })));
        assertEquals(
                "failed while waiting for: a wonder",
                failure(() -> Waiting.until("a wonder", () -> {
                    throw new IOException();
                })));
    }
}
