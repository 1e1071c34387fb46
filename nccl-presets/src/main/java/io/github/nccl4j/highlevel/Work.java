package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.LockSupport;

/**
 * What a communicator had put into a stream when {@link Communicator#work} was called: to be waited for with a deadline,
 * while other ranks may fail.
 *
 * <pre>{@code
 * communicator.allReduce(gradients, ReduceOp.SUM, stream);
 * communicator.work(stream).await(Duration.ofSeconds(10));
 * }</pre>
 *
 * <p>Waiting asks the device whether the work is done, and NCCL whether it has failed. If it has, or the deadline has
 * passed, the communicator's {@link FailurePolicy} is asked and an exception says which operation was the last, of which
 * rank, and what NCCL wrote. The work itself goes on then, unless the policy aborts the communicator.
 *
 * <p>Work need not be closed; what it holds goes with the communicator.
 *
 * <p><b>Threads.</b> Work may be waited for in any thread, also in several.
 */
public final class Work {
    private static final long ERROR_CHECK_NANOSECONDS = 1_000_000;
    private static final long LONGEST_PAUSE = 1_000_000;
    private static final int SPINS = 1_000;

    private enum Progress {
        PENDING,
        DONE,
        LOST
    }

    private final Communicator communicator;
    private final Streams streams;
    private final long stream;
    /** The last operation before it. */
    private final OperationLog.Entry last;

    private CudaEvent event;
    private Progress progress;
    private boolean late;
    /** When the watchdog has seen it first, or 0. */
    private long firstSeen;

    Work(Communicator communicator, Streams streams, CudaEvent event, long stream, OperationLog.Entry last) {
        this.communicator = communicator;
        this.streams = streams;
        this.event = event;
        this.stream = stream;
        this.last = last;
        progress = event == null ? Progress.DONE : Progress.PENDING;
        if (event == null) {
            record();
        }
    }

    /**
     * Whether the work is done. Does not wait.
     *
     * @return whether it is done
     * @throws IllegalStateException if the communicator was aborted before it was done
     * @throws CudaException if work on the device failed
     */
    public boolean isDone() {
        return isDone(false);
    }

    private boolean isDone(boolean whileCapturing) {
        CudaEvent done;
        boolean wasLate;
        synchronized (this) {
            if (progress == Progress.LOST) {
                throw new IllegalStateException(communicator + " ended before " + this + " was done");
            }
            if (progress == Progress.PENDING && !eventIsDone(whileCapturing)) {
                return false;
            }
            progress = Progress.DONE;
            done = event;
            event = null;
            wasLate = late;
        }
        // Not within the lock: the streams ask their work while they hold theirs.
        if (done != null) {
            streams.free(done);
            record();
        }
        if (wasLate) {
            communicator.core().failures().clearLate(this);
        }
        return true;
    }

    private void record() {
        communicator.operationLog().seenDone(stream, last.sequence(), System.currentTimeMillis());
    }

    /** On host memory, failures are found by asking the communicator, as on a GPU, where work that failed never ends. */
    private boolean eventIsDone(boolean whileCapturing) {
        return whileCapturing || communicator.device().isHost() ? event.isDoneWhileCapturing() : event.isDone();
    }

    /** The communicator has ended; what was pending when it was aborted was not done then, but ended. */
    synchronized void end() {
        if (progress == Progress.PENDING) {
            progress = Progress.LOST;
            try {
                if (communicator.core().state() != Communicator.State.ABORTED && event.isDone()) {
                    progress = Progress.DONE;
                }
            } finally {
                event.close();
                event = null;
            }
        }
    }

    /**
     * Waits until the work is done, but not longer than the communicator's deadline.
     *
     * @throws NcclTimeoutException if it was not done in time
     * @throws NcclResultException if NCCL reports an error of the communicator
     * @throws NcclInterruptedException if the thread was interrupted; the communicator was aborted then
     * @throws IllegalStateException if the communicator was aborted before it was done
     * @throws CudaException if work on the device failed
     */
    public void await() {
        await(communicator.deadline());
    }

    /**
     * Waits until the work is done, but not longer than a limit. An interrupt ends the waiting.
     *
     * @param timeout the limit; 0 asks once
     * @throws NcclTimeoutException if it was not done in time
     * @throws NcclResultException if NCCL reports an error of the communicator
     * @throws NcclInterruptedException if the thread was interrupted; the communicator was aborted then
     * @throws IllegalArgumentException if the limit is negative
     * @throws IllegalStateException if the communicator was aborted before it was done
     * @throws CudaException if work on the device failed
     */
    public void await(Duration timeout) {
        Objects.requireNonNull(timeout, "timeout");
        long limit = Waiting.nanoseconds(timeout);
        JfrEvents.WaitEvent event = Jfr.recording ? JfrEvents.waiting() : null;
        try {
            if (!isDone()) {
                await(timeout, limit);
            }
        } finally {
            if (event != null) {
                JfrEvents.end(event, communicator.core(), toString());
            }
        }
    }

    /** While it looks for errors by itself, the watchdog need not. */
    private void await(Duration timeout, long limit) {
        Failures failures = communicator.core().failures();
        failures.beginWait();
        try {
            awaitAsking(timeout, limit);
        } finally {
            failures.endWait();
        }
    }

    private void awaitAsking(Duration timeout, long limit) {
        long start = System.nanoTime();
        long nextCheck = ERROR_CHECK_NANOSECONDS;
        long pause = 1_000;
        for (int asked = 0; !isDone(); asked++) {
            long passed = System.nanoTime() - start;
            if (passed >= nextCheck) {
                checkErrors();
                nextCheck = passed + ERROR_CHECK_NANOSECONDS;
            }
            if (passed >= limit) {
                throw timedOut(timeout);
            }
            if (asked < SPINS) {
                Thread.onSpinWait();
                continue;
            }
            if (Thread.currentThread().isInterrupted()) {
                throw communicator.core().failures().interrupted(toString());
            }
            LockSupport.parkNanos(Math.min(pause, limit - passed));
            pause = Math.min(2 * pause, LONGEST_PAUSE);
        }
    }

    /** Whether it is not done, and this is asked longer than a limit after it was first asked; for the watchdog. */
    boolean isOverdue(long now, long limit) {
        if (isDone(true)) {
            return false;
        }
        if (firstSeen == 0) {
            firstSeen = now;
        }
        synchronized (this) {
            return !late && now - firstSeen > limit;
        }
    }

    /** Throws if NCCL reports an error. */
    void checkErrors() {
        int result = communicator.core().poll();
        if (result != nccl.ncclSuccess && result != nccl.ncclInProgress) {
            throw communicator.core().failed(result, Operations.name(last.operation()), toString());
        }
    }

    /**
     * The work as a future, which a thread of this package completes: normally when it is done, exceptionally as {@link
     * #await()} would throw. Cancelling the future changes nothing but the future.
     *
     * @return a new future
     */
    public CompletableFuture<Void> toFuture() {
        return WorkWatcher.watch(this, communicator.deadline());
    }

    /** A future looks for errors until it is complete. */
    void beginWait(CompletableFuture<Void> future) {
        Failures failures = communicator.core().failures();
        failures.beginWait();
        future.whenComplete((nothing, failure) -> failures.endWait());
    }

    /** The exception of work that was not done in time. */
    RuntimeException timedOut(Duration limit) {
        Failures failures = communicator.core().failures();
        boolean again;
        synchronized (this) {
            again = late;
            late = true;
        }
        // Once, however often it is waited for: the communicator counts what is late.
        if (!again) {
            failures.markLate(this);
        }
        return failures.late(Operations.name(last.operation()), toString(), limit);
    }

    /** {@return the last operation of the work: "ncclAllReduce of 1024 float32 (operation 17)"} */
    @Override
    public String toString() {
        return last.describe();
    }
}
