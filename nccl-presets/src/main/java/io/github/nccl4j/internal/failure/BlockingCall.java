package io.github.nccl4j.internal.failure;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.internal.threads.DaemonThreads;
import io.github.nccl4j.internal.threads.ExitWait;
import io.github.nccl4j.internal.threads.Suppressed;
import io.github.nccl4j.internal.threads.Timeouts;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.library.NativeLibrary;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.IntConsumer;
import java.util.function.IntSupplier;

/**
 * A native call that may never return. A thread of its own makes the call, so that the caller can stop waiting. The
 * thread is blocked until the call returns; NCCL has no function to end the call.
 */
public final class BlockingCall {
    /**
     * Last error of the library for the failed call that this thread waited for last; taken by {@link #takeLastError}.
     */
    private static final ThreadLocal<String> LAST_ERROR = new ThreadLocal<>();

    /** Nanoseconds from an interrupt of the caller to the end of the call, the same as the watchdog's. */
    private static final long INTERRUPT_PATIENCE = 100_000_000;

    private static final long POLL_NANOSECONDS = 10_000_000;

    /** The longest time that the end of the process waits for a call. */
    private static final Duration EXIT_PATIENCE = Duration.ofSeconds(1);

    private int result;
    private String lastError = "";
    private Throwable thrown;
    private boolean abandoned;
    private final CountDownLatch finished = new CountDownLatch(1);

    /**
     * Closed when the call has returned, or its caller has stopped waiting. Empty with the host engine, whose threads do
     * not use what the end of the process frees.
     */
    private Optional<ExitWait> exit = Optional.empty();

    private BlockingCall() {}

    /** A class of its own, because most programs have no virtual threads. */
    private static final class CachedThreads {
        private static final ExecutorService EXECUTOR =
                Executors.newCachedThreadPool(DaemonThreads.factory("nccl4j call"));

        private CachedThreads() {}
    }

    /** The caller has stopped waiting. */
    public static final class AbandonedException extends Exception {
        private static final long serialVersionUID = 1L;

        private final Reason reason;

        private AbandonedException(Reason reason) {
            super(null, null, false, false);
            this.reason = reason;
        }

        public Reason reason() {
            return reason;
        }
    }

    /**
     * Makes the call and waits for its result. An interrupt ends the wait and leaves the thread's interrupt status set.
     *
     * @param name the name of the thread
     * @param waitsForLostRank true once the call may wait for a rank that is lost, which ends the wait; polled
     * @param late gets the result of a call that returns after the caller stopped waiting
     */
    public static int run(
            String name, Duration timeout, IntSupplier call, BooleanSupplier waitsForLostRank, IntConsumer late)
            throws AbandonedException {
        return run(name, timeout, call, waitsForLostRank, late, true);
    }

    /**
     * As {@link #run}, for calls that free resources: an interrupt does not end the wait; the interrupt status is
     * restored. If the system has no thread for this process, this thread makes the call, without a limit.
     */
    public static int runUninterruptibly(String name, Duration timeout, IntSupplier call) throws AbandonedException {
        return run(name, timeout, call, () -> false, late -> {}, false);
    }

    private static int run(
            String name,
            Duration timeout,
            IntSupplier call,
            BooleanSupplier waitsForLostRank,
            IntConsumer late,
            boolean interruptibly)
            throws AbandonedException {
        LAST_ERROR.remove();
        BlockingCall one = new BlockingCall();
        Runnable here = () -> one.runHere(call, late);
        if (interruptibly) {
            DaemonThreads.start("nccl4j " + name, here);
        } else {
            DaemonThreads.startOrRun("nccl4j " + name, here);
        }
        if (!one.await(Timeouts.nanoseconds(timeout), waitsForLostRank, interruptibly) && one.abandon()) {
            throw new AbandonedException(Reason.of(
                    interruptibly && Thread.currentThread().isInterrupted(), waitsForLostRank.getAsBoolean()));
        }
        return one.outcome();
    }

    /**
     * Makes the call and waits until it has returned, without a limit: for a virtual thread, which would pin its
     * carrier during the call. Threads are cached for later calls.
     *
     * @param interrupted ends the call if the caller is interrupted and the call does not return soon; the interrupt
     *     status is restored
     */
    public static int runToCompletion(IntSupplier call, Runnable interrupted) {
        LAST_ERROR.remove();
        BlockingCall one = new BlockingCall();
        CachedThreads.EXECUTOR.execute(() -> one.runHere(call, late -> {}));
        one.awaitEnd(interrupted);
        return one.outcome();
    }

    private int outcome() {
        if (thrown instanceof RuntimeException exception) {
            throw exception;
        }
        if (thrown instanceof Error error) {
            throw error;
        }
        if (!lastError.isEmpty()) {
            LAST_ERROR.set(lastError);
        }
        return result;
    }

    private void awaitEnd(Runnable interrupted) {
        boolean isInterrupted = false;
        long patience = Long.MAX_VALUE;
        while (true) {
            try {
                if (finished.await(patience, TimeUnit.NANOSECONDS)) {
                    break;
                }
                patience = Long.MAX_VALUE;
                interrupted.run();
            } catch (InterruptedException e) {
                // Delayed, as the watchdog does for platform threads.
                patience = isInterrupted ? patience : INTERRUPT_PATIENCE;
                isInterrupted = true;
            }
        }
        if (isInterrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /**
     * Returns and clears the last error of the library for the failed call that this thread has just made; null if
     * there is none.
     */
    public static String takeLastError() {
        String taken = LAST_ERROR.get();
        if (taken != null) {
            LAST_ERROR.remove();
        }
        return taken;
    }

    /** Runs several actions in parallel and waits for all of them; the interrupt status is restored. */
    public static void runAll(String name, List<Runnable> actions) {
        Throwable[] problems = new Throwable[actions.size()];
        CountDownLatch all = new CountDownLatch(problems.length);
        for (int i = 0; i < problems.length; i++) {
            int index = i;
            DaemonThreads.startOrRun("nccl4j " + name, () -> {
                try {
                    actions.get(index).run();
                } catch (RuntimeException | Error e) {
                    problems[index] = e;
                } finally {
                    all.countDown();
                }
            });
        }
        boolean interrupted = false;
        while (all.getCount() > 0) {
            try {
                all.await();
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        RuntimeException first = null;
        for (Throwable problem : problems) {
            if (problem instanceof Error error) {
                throw error;
            }
            if (problem != null) {
                first = Suppressed.first(first, (RuntimeException) problem);
            }
        }
        Suppressed.rethrow(first);
    }

    private synchronized void beginExitWait() {
        if (!abandoned && NativeLibrary.engine() != Engine.HOST) {
            exit = Optional.of(ExitWait.begin(EXIT_PATIENCE));
        }
    }

    private void runHere(IntSupplier call, IntConsumer late) {
        try {
            beginExitWait();
            result = call.getAsInt();
            if (result != nccl.ncclSuccess && result != nccl.ncclInProgress) {
                // Read here: the host engine has one text per thread.
                lastError = LastError.current(0);
            }
        } catch (RuntimeException | Error e) {
            thrown = e;
        }
        synchronized (this) {
            finished.countDown();
            exit.ifPresent(ExitWait::close);
            if (!abandoned) {
                return;
            }
        }
        if (thrown == null) {
            late.accept(result);
        }
    }

    private boolean await(long nanoseconds, BooleanSupplier waitsForLostRank, boolean interruptibly) {
        long start = System.nanoTime();
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    long left = nanoseconds - (System.nanoTime() - start);
                    if (finished.await(Math.min(left, POLL_NANOSECONDS), TimeUnit.NANOSECONDS)) {
                        return true;
                    }
                    if (left <= POLL_NANOSECONDS || waitsForLostRank.getAsBoolean()) {
                        return false;
                    }
                } catch (InterruptedException e) {
                    interrupted = true;
                    if (interruptibly) {
                        return false;
                    }
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** Stops waiting; returns false if the call returned at the last moment. */
    private synchronized boolean abandon() {
        abandoned = finished.getCount() > 0;
        exit.ifPresent(ExitWait::close);
        return abandoned;
    }
}
