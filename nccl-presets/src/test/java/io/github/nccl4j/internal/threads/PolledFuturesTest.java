package io.github.nccl4j.internal.threads;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Futures whose conditions one thread polls, and that an executor completes. */
@Timeout(value = 2, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class PolledFuturesTest {
    /** Each test has a name of its own, because the threads of earlier tests linger. */
    private final String thread = "polled futures " + System.identityHashCode(this);

    private final PolledFutures futures = new PolledFutures(thread);

    /** A future whose condition is due with each poll, completed by the thread that polls. */
    private CompletableFuture<Void> when(BooleanSupplier condition) {
        return futures.when(() -> true, condition, Runnable::run);
    }

    @Test
    void aTrueConditionNeedsNoThread() {
        assertTrue(when(() -> true).isDone());
        assertTrue(Thread.getAllStackTraces().keySet().stream()
                .noneMatch(one -> one.getName().equals(thread)));
    }

    @Test
    void theThreadCompletesAFutureWhenItsConditionIsTrue() throws Exception {
        AtomicReference<Thread> asked = new AtomicReference<>();
        AtomicInteger left = new AtomicInteger(3);
        CompletableFuture<Void> future = when(() -> {
            asked.set(Thread.currentThread());
            return left.decrementAndGet() == 0;
        });
        future.get();
        assertEquals(thread, asked.get().getName());
        assertEquals(0, left.get(), "polled after its completion");
    }

    /** Pauses of 0.2 ms. The first poll is that of the caller. */
    @Test
    void theThreadPausesBetweenPolls() throws Exception {
        List<Long> polls = Collections.synchronizedList(new ArrayList<>());
        when(() -> polls.add(System.nanoTime()) && polls.size() == 100).get();
        assertTrue(polls.get(99) - polls.get(1) > 10_000_000, "the thread has polled without pauses");
    }

    @Test
    void anExceptionOfTheConditionCompletesTheFuture() {
        RuntimeException planted = new IllegalStateException("planted");
        AtomicInteger asked = new AtomicInteger();
        CompletableFuture<Void> atOnce = when(() -> {
            asked.incrementAndGet();
            throw planted;
        });
        assertTrue(atOnce.isCompletedExceptionally());
        AtomicInteger left = new AtomicInteger(2);
        CompletableFuture<Void> later = when(() -> {
            if (left.decrementAndGet() == 0) {
                throw planted;
            }
            return false;
        });
        assertSame(planted, assertThrows(ExecutionException.class, later::get).getCause());
        assertEquals(1, asked.get(), "polled after its failure");
    }

    @Test
    void oneFailureDoesNotAffectTheOthers() throws Exception {
        AtomicInteger left = new AtomicInteger(20);
        CompletableFuture<Void> good = when(() -> left.decrementAndGet() == 0);
        AtomicInteger rest = new AtomicInteger(2);
        CompletableFuture<Void> bad = when(() -> {
            if (rest.decrementAndGet() == 0) {
                throw new IllegalStateException("planted");
            }
            return false;
        });
        assertThrows(ExecutionException.class, bad::get);
        assertFalse(good.isCompletedExceptionally());
        good.get();
    }
}
