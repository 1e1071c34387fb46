package io.github.nccl4j.internal.communicator;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.internal.cuda.NativeEvent;
import io.github.nccl4j.internal.diagnostics.Jfr;
import io.github.nccl4j.internal.diagnostics.JfrEvents;
import io.github.nccl4j.internal.operation.OperationLog;
import io.github.nccl4j.internal.threads.PolledFutures;
import io.github.nccl4j.internal.threads.Timeouts;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

/** The work that was in a stream when it was marked. Any number of threads may wait for it. */
public final class StreamWork {
    private static final long ERROR_CHECK_NANOSECONDS = 1_000_000;
    private static final long LONGEST_PAUSE = 1_000_000;
    private static final int SPINS = 1_000;

    private static final PolledFutures FUTURES = new PolledFutures("nccl4j work");

    private enum Progress {
        PENDING,
        DONE,
        LOST
    }

    private final CommunicatorCore core;
    /** Takes the event back when the work is done. */
    private final Consumer<NativeEvent> free;

    private final long stream;
    /** The last operation before it. */
    private final OperationLog.Entry last;

    private NativeEvent event;
    private Progress progress;
    /** The query of the state, for {@link Failures}; null unless the work timed out. */
    private BooleanSupplier late;
    /** When the watchdog first checked it, or 0. */
    private long firstSeen;

    StreamWork(
            CommunicatorCore core,
            Consumer<NativeEvent> free,
            NativeEvent event,
            long stream,
            OperationLog.Entry last) {
        this.core = core;
        this.free = free;
        this.event = event;
        this.stream = stream;
        this.last = last;
        progress = event == null ? Progress.DONE : Progress.PENDING;
        if (event == null) {
            record();
        }
    }

    public boolean isDone() {
        Progress now = progress(false);
        if (now == Progress.LOST) {
            throw told(lost());
        }
        return now == Progress.DONE;
    }

    private RuntimeException lost() {
        return core.failures().workStopped(last.function(), toString());
    }

    /** Returns true if the work is done or lost. */
    public boolean isOver() {
        return progress(false) != Progress.PENDING;
    }

    private Progress progress(boolean whileCapturing) {
        NativeEvent over = null;
        BooleanSupplier wasLate;
        Progress now;
        synchronized (this) {
            if (progress == Progress.PENDING) {
                if (!eventIsDone(whileCapturing)) {
                    return progress;
                }
                // A revocation or an abort completes the event as well.
                progress = core.isStopped() ? Progress.LOST : Progress.DONE;
                over = event;
                event = null;
            }
            now = progress;
            wasLate = late;
        }
        // Outside the lock: CommunicatorStreams checks its work while it holds its own lock.
        if (over != null) {
            free.accept(over);
            if (now == Progress.DONE) {
                record();
            }
        }
        if (wasLate != null) {
            core.failures().clearLate(wasLate);
        }
        return now;
    }

    private void record() {
        core.operationLog().markDone(stream, last.sequence(), System.currentTimeMillis());
    }

    /** On host memory, failures are found by polling the communicator, as on a GPU, where failed work never ends. */
    private boolean eventIsDone(boolean whileCapturing) {
        return whileCapturing || core.device().isHost() ? event.isDoneWhileCapturing() : event.isDone();
    }

    /** Called when the communicator has ended. Work that was pending when it was aborted is lost, not done. */
    synchronized void end() {
        if (progress == Progress.PENDING) {
            progress = Progress.LOST;
            try {
                if (core.state() != CommunicatorState.ABORTED && event.isDone()) {
                    progress = Progress.DONE;
                }
            } finally {
                event.close();
                event = null;
            }
        }
    }

    public void await() {
        await(core.deadline());
    }

    public void await(Duration timeout) {
        Objects.requireNonNull(timeout, "timeout");
        long limit = Timeouts.nanoseconds(timeout);
        JfrEvents.WaitEvent event = Jfr.recording ? JfrEvents.waiting() : null;
        try {
            if (!isDone()) {
                await(timeout, limit);
            }
        } finally {
            if (event != null) {
                JfrEvents.end(event, core, toString());
            }
        }
    }

    /** While this thread checks for errors, the watchdog need not. */
    private void await(Duration timeout, long limit) {
        PolledFutures.requireMayWait();
        Failures failures = core.failures();
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
                RuntimeException error = error();
                if (error != null) {
                    throw told(error);
                }
                nextCheck = passed + ERROR_CHECK_NANOSECONDS;
            }
            if (passed >= limit) {
                throw told(timedOut(timeout));
            }
            if (asked < SPINS) {
                Thread.onSpinWait();
                continue;
            }
            if (Thread.currentThread().isInterrupted()) {
                throw told(core.failures().interrupted(toString()));
            }
            LockSupport.parkNanos(Math.min(pause, limit - passed));
            pause = Math.min(2 * pause, LONGEST_PAUSE);
        }
    }

    /** Returns true if the work is not done a limit after the first call of this method. For the watchdog. */
    boolean isOverdue(long now, long limit) {
        if (progress(true) != Progress.PENDING) {
            return false;
        }
        if (firstSeen == 0) {
            firstSeen = now;
        }
        synchronized (this) {
            return late == null && now - firstSeen > limit;
        }
    }

    /** Returns the exception for an error that NCCL reports, or for a rank that the store has lost; else null. */
    private RuntimeException error() {
        if (core.calls().mayWaitForLostRank()) {
            markLate();
            return core.failures().rankLostDuringWork(last.function(), toString());
        }
        int result = core.calls().poll();
        return result == nccl.ncclSuccess || result == nccl.ncclInProgress
                ? null
                : core.failures().failed(result, last.function(), toString());
    }

    private RuntimeException told(RuntimeException thrown) {
        return core.failures().told(thrown);
    }

    public CompletableFuture<Void> toFuture() {
        return toFuture(FUTURES.threads());
    }

    public CompletableFuture<Void> toFuture(Executor executor) {
        Objects.requireNonNull(executor, "executor");
        Duration limit = core.deadline();
        long start = System.nanoTime();
        CompletableFuture<Void> future =
                FUTURES.when(() -> isOver() || mayFail(start, limit), () -> isDoneInTime(start, limit), executor);
        if (!future.isDone()) {
            Failures failures = core.failures();
            failures.beginWait();
            future.whenComplete((nothing, failure) -> failures.endWait());
        }
        return future;
    }

    /** Returns true if {@link #isDoneInTime} would throw. Calls no policy. */
    private boolean mayFail(long start, Duration limit) {
        if (core.calls().mayWaitForLostRank() || isPast(start, limit)) {
            return true;
        }
        int result = core.calls().poll();
        return result != nccl.ncclSuccess && result != nccl.ncclInProgress;
    }

    private static boolean isPast(long start, Duration limit) {
        return System.nanoTime() - start > Timeouts.nanoseconds(limit);
    }

    /** For futures. What it throws does not count as told: perhaps the program never looks at its future. */
    private boolean isDoneInTime(long start, Duration limit) {
        Progress now = progress(false);
        RuntimeException failure = now == Progress.LOST ? lost() : now == Progress.PENDING ? error() : null;
        if (failure == null && now == Progress.PENDING && isPast(start, limit)) {
            failure = timedOut(limit);
        }
        if (failure != null) {
            throw failure;
        }
        return now == Progress.DONE;
    }

    /** Returns the exception for work that timed out. */
    RuntimeException timedOut(Duration limit) {
        markLate();
        return core.failures().workTimedOut(last.function(), toString(), limit);
    }

    private void markLate() {
        boolean again;
        synchronized (this) {
            again = late != null;
            if (!again) {
                late = this::isOver;
            }
        }
        // Marked once, however often it is waited for: the communicator counts late work.
        if (!again) {
            core.failures().markLate(late);
        }
    }

    @Override
    public String toString() {
        return last.describe();
    }
}
