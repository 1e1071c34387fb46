package io.github.nccl4j.internal.failure;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.testing.Waiting;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.function.IntSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Calls whose caller waits to the end, or no longer. */
@Timeout(value = 300, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class AbandonedCallTest {
    private final CountDownLatch mayReturn = new CountDownLatch(1);
    private final CountDownLatch begun = new CountDownLatch(1);
    private final LinkedBlockingQueue<Integer> late = new LinkedBlockingQueue<>();

    @AfterEach
    void endCalls() {
        mayReturn.countDown();
        Thread.interrupted();
    }

    /** A call that returns 7 when the test lets it. */
    private int call() {
        begun.countDown();
        Waiting.until("the call may return", () -> mayReturn.getCount() == 0);
        return 7;
    }

    private int run(Duration limit, IntSupplier call, BooleanSupplier rankLost) throws BlockingCall.AbandonedException {
        return BlockingCall.run("call", limit, call, rankLost, late::add);
    }

    private void assertAbandoned(Reason reason, Duration limit, BooleanSupplier rankLost) throws InterruptedException {
        BlockingCall.AbandonedException thrown =
                assertThrows(BlockingCall.AbandonedException.class, () -> run(limit, this::call, rankLost));
        assertEquals(reason, thrown.reason());
        boolean interrupted = Thread.interrupted();
        assertEquals(reason == Reason.INTERRUPTED, interrupted);
        assertNull(late.peek());
        mayReturn.countDown();
        assertEquals(7, late.poll(Waiting.LONG.toSeconds(), TimeUnit.SECONDS));
    }

    /** Interrupts this thread when the call has begun. */
    private Thread interrupter() {
        Thread caller = Thread.currentThread();
        Thread interrupter = new Thread(() -> {
            Waiting.until("the call has begun", () -> begun.getCount() == 0);
            caller.interrupt();
        });
        interrupter.start();
        return interrupter;
    }

    @Test
    void theCallerGetsTheResultInTime() throws BlockingCall.AbandonedException {
        mayReturn.countDown();
        assertEquals(7, run(Waiting.LONG, this::call, () -> false));
        assertNull(late.peek());
        assertFalse(Thread.currentThread().isInterrupted());
    }

    @Test
    void aCallThatIsLateIsGivenUp() throws InterruptedException {
        assertAbandoned(Reason.LATE, Duration.ofMillis(30), () -> false);
    }

    @Test
    void aCallThatMayWaitForALostRankIsGivenUp() throws InterruptedException {
        assertAbandoned(Reason.RANK_LOST, Waiting.LONG, () -> begun.getCount() == 0);
    }

    @Test
    void aCallIsGivenUpWhenItsCallerIsInterrupted() throws InterruptedException {
        Thread interrupter = interrupter();
        assertAbandoned(Reason.INTERRUPTED, Waiting.LONG, () -> false);
        interrupter.join();
    }

    @Test
    void anInterruptDoesNotEndTheWaitForACallThatFrees() throws Exception {
        Thread caller = Thread.currentThread();
        caller.interrupt();
        assertEquals(7, BlockingCall.runUninterruptibly("call", Waiting.LONG, () -> {
            // The caller has seen the interrupt, and waits again.
            Waiting.until("the caller waits", () -> caller.getState() == Thread.State.TIMED_WAITING);
            return 7;
        }));
        assertTrue(Thread.interrupted());
    }

    @Test
    void aCallThatFreesIsGivenUpAtItsLimit() {
        BlockingCall.AbandonedException thrown = assertThrows(
                BlockingCall.AbandonedException.class,
                () -> BlockingCall.runUninterruptibly("call", Duration.ofMillis(30), this::call));
        assertEquals(Reason.LATE, thrown.reason());
    }

    @Test
    void aCallOfAVirtualThreadIsEndedAfterAnInterrupt() throws InterruptedException {
        AtomicInteger endings = new AtomicInteger();
        Thread interrupter = interrupter();
        long start = System.nanoTime();
        int result = BlockingCall.runToCompletion(this::call, () -> {
            endings.incrementAndGet();
            mayReturn.countDown();
        });
        long nanos = System.nanoTime() - start;
        assertEquals(7, result);
        assertTrue(Thread.interrupted());
        assertEquals(1, endings.get());
        assertTrue(nanos >= 100_000_000, nanos + " ns after the interrupt");
        interrupter.join();
    }

    @Test
    void theCallerGetsWhatTheCallThrows() {
        RuntimeException exception = new IllegalStateException();
        Error error = new AssertionError();
        assertSame(
                exception,
                assertThrows(
                        RuntimeException.class,
                        () -> run(
                                Waiting.LONG,
                                () -> {
                                    throw exception;
                                },
                                () -> false)));
        assertSame(
                error,
                assertThrows(
                        Error.class,
                        () -> BlockingCall.runToCompletion(
                                () -> {
                                    throw error;
                                },
                                () -> {})));
    }

    @Test
    void theTextOfAFailedCallIsTakenOnce() throws BlockingCall.AbandonedException {
        IntSupplier wrong = () -> nccl.ncclMemAlloc(0L, 8);
        assertEquals(nccl.ncclInvalidArgument, run(Waiting.LONG, wrong, () -> false));
        String text = BlockingCall.takeLastError();
        assertTrue(text != null && text.contains("MemAlloc"), text);
        assertNull(BlockingCall.takeLastError());
        // A text that nobody took must not belong to the next call.
        run(Waiting.LONG, wrong, () -> false);
        run(Waiting.LONG, () -> nccl.ncclSuccess, () -> false);
        assertNull(BlockingCall.takeLastError());
        run(Waiting.LONG, wrong, () -> false);
        BlockingCall.runToCompletion(() -> nccl.ncclInProgress, () -> {});
        assertNull(BlockingCall.takeLastError());
    }
}
