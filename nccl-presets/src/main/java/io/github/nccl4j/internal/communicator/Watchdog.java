package io.github.nccl4j.internal.communicator;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.CudaException;
import io.github.nccl4j.internal.failure.LastError;
import io.github.nccl4j.internal.failure.Reason;
import io.github.nccl4j.internal.threads.CheckLoop;
import io.github.nccl4j.internal.threads.DaemonThreads;
import io.github.nccl4j.internal.threads.Gate;
import io.github.nccl4j.internal.threads.ServiceLoop;
import io.github.nccl4j.internal.threads.Timeouts;
import java.lang.System.Logger.Level;
import java.lang.ref.WeakReference;
import java.util.Iterator;
import java.util.List;

/**
 * Watchdog of all communicators of the process. One thread, which ends when there is no communicator, checks whether
 * NCCL has found an error, whether the store has reported a lost rank, whether a thread is in a call past the deadline or
 * despite an interrupt, and whether work is late for which no thread waits.
 *
 * <p>The thread only checks, and adds no cost to threads that make calls. A failure is handled in a thread of its own,
 * since that may take long; in this thread if the system has no other. A check or a handling that fails is repeated.
 */
public final class Watchdog {
    /** A check takes the processor from a rank that polls, and all other ranks wait for that one. */
    private static final long LONGEST_PAUSE = 100_000_000;

    /** The pause until a lost rank is reported. */
    private static final long LOSS_PAUSE = 10_000_000;

    private static final long SHORTEST_PAUSE = 1_000_000;
    /** Number of checks within a deadline. */
    private static final int CHECKS = 10;

    /** Time that a thread has to report an error that NCCL found, in nanoseconds. */
    private static final long PATIENCE = 1_000_000_000;

    /** Time for a call to return without help after the loss of a rank: most calls only enqueue. */
    private static final long LOSS_PATIENCE = 50_000_000;

    private static final CheckLoop<Watched> LOOP = new CheckLoop<>("nccl4j watchdog", Watchdog::check);

    private Watchdog() {}

    /** A communicator, held weakly, and its last observed state. */
    private static final class Watched {
        private final WeakReference<CommunicatorStreams> reference;
        private final long limit;
        private Gate.Pass inside;
        private long calls;
        private long since;
        /** Times of the first observation, or 0. */
        private long interrupted;

        private long error;
        /** When a lost rank was first observed, or 0. */
        private long loss;

        /** These are false again if the handling fails, which may be in another thread. */
        private volatile boolean lossReported;
        /** True once a call was ended because of the loss. */
        private volatile boolean lossEndedCall;

        private volatile boolean handled;
        private volatile boolean hasFailed;

        Watched(CommunicatorStreams streams) {
            reference = new WeakReference<>(streams);
            limit = Timeouts.nanoseconds(streams.core().deadline());
        }

        /** Checks the communicator; returns false if it has ended. */
        boolean check(long now, long time) {
            CommunicatorStreams streams = reference.get();
            if (streams == null || streams.core().hasEnded()) {
                return false;
            }
            CommunicatorCore core = streams.core();
            core.operationLog().tick(time);
            if (core.state() == CommunicatorState.OPEN) {
                checkCall(core, now);
                checkRanks(core, now);
                checkErrors(core, now);
                checkWork(streams, now);
            }
            return true;
        }

        /** Reports overdue work, because no thread may wait for it. */
        private void checkWork(CommunicatorStreams streams, long now) {
            CommunicatorCore core = streams.core();
            Failures failures = core.failures();
            try {
                StreamWork late = streams.overdue(now, limit);
                // A waiting thread reports the failure itself.
                if (late != null && !failures.hasWaiters()) {
                    handle("late work", () -> Failures.logUnobserved(late.timedOut(core.deadline())), () -> {});
                }
            } catch (CudaException lost) {
                if (failures.isUnreported()) {
                    handle("device", () -> failures.reportLost(lost), () -> {});
                }
            }
        }

        private void checkCall(CommunicatorCore core, long now) {
            Gate.Pass current = core.inLibrary();
            long made = core.calls().count();
            if (current == null || current != inside || made != calls) {
                inside = current;
                calls = made;
                since = now;
                interrupted = 0;
                error = 0;
                handled = false;
                return;
            }
            if (handled) {
                return;
            }
            if (current.holder().isInterrupted()) {
                // Delayed: the thread may wait in Java, where it handles the interrupt itself.
                interrupted = interrupted == 0 ? now : interrupted;
                if (now - interrupted >= LONGEST_PAUSE) {
                    handled = true;
                    handle("interrupt", () -> core.failures().endCall(Reason.INTERRUPTED), () -> handled = false);
                }
            } else if (now - since - LONGEST_PAUSE > limit) {
                // Later than threads that wait in Java, which have the same deadline.
                handled = true;
                handle("deadline", () -> core.failures().endCall(Reason.LATE), () -> handled = false);
            }
        }

        /** Ends a call that may wait for a lost rank; reports the loss if no thread waits, after which a call may begin to. */
        private void checkRanks(CommunicatorCore core, long now) {
            if (!core.calls().mayWaitForLostRank()) {
                loss = 0;
                lossReported = false;
                lossEndedCall = false;
                return;
            }
            loss = loss == 0 ? now : loss;
            if (inside != null) {
                if (!lossEndedCall && now - Math.max(since, loss) >= LOSS_PATIENCE) {
                    lossEndedCall = true;
                    handle("lost rank", () -> core.failures().endCall(Reason.RANK_LOST), () -> lossEndedCall = false);
                }
            } else if (!lossReported
                    && now - loss >= LOSS_PATIENCE
                    && !core.failures().hasWaiters()) {
                lossReported = true;
                if (core.failures().isUnreported()) {
                    handle("lost rank", core.failures()::reportLostRank, () -> lossReported = false);
                }
            }
        }

        /** Handles a failure; runs another action if that fails, after which the next check may find the failure again. */
        private void handle(String what, Runnable action, Runnable again) {
            DaemonThreads.startOrRun("nccl4j watchdog " + what, () -> {
                try {
                    action.run();
                } catch (RuntimeException | Error problem) {
                    again.run();
                    failed(problem);
                }
            });
        }

        /** Logs the first problem only: a check may be repeated often. */
        private void failed(Throwable problem) {
            if (!hasFailed) {
                hasFailed = true;
                ServiceLoop.log(
                        Level.WARNING, "the watchdog could not check a communicator, and tries it again", problem);
            }
        }

        private boolean isUrgent() {
            return loss != 0 && !(inside != null ? lossEndedCall : lossReported);
        }

        private void checkErrors(CommunicatorCore core, long now) {
            if (inside != null && !core.isBlocking()) {
                // The thread inside polls itself, and NCCL allows one polling thread only.
                return;
            }
            int result = core.calls().tryPoll();
            if (result == nccl.ncclSuccess
                    || result == nccl.ncclInProgress
                    || !core.failures().isUnreported()) {
                return;
            }
            error = error == 0 ? now : error;
            boolean othersCheck = inside != null || core.failures().hasWaiters();
            if (!othersCheck || now - error >= PATIENCE) {
                // Otherwise the thread in the call, or the waiting thread, reports the error soon.
                handle("error", () -> core.failures().reportError(result), () -> {});
            }
        }
    }

    /** Watches a communicator and its work until it has ended. */
    public static void watch(CommunicatorStreams streams) {
        streams.core().operationLog().tick(System.currentTimeMillis());
        LOOP.add(new Watched(streams));
        streams.core().peers().onLoss(LOOP::wake);
    }

    /** Checks all communicators, removes those that have ended, and returns the pause until the next check. */
    private static long check(List<Watched> all) {
        long now = System.nanoTime();
        long time = System.currentTimeMillis();
        long pause = LONGEST_PAUSE;
        for (Iterator<Watched> each = all.iterator(); each.hasNext(); ) {
            Watched one = each.next();
            try {
                if (!one.check(now, time)) {
                    each.remove();
                    continue;
                }
            } catch (RuntimeException | Error failure) {
                // Keeps watching this communicator, and the others.
                one.failed(failure);
            }
            pause = Math.min(pause, one.isUrgent() ? LOSS_PAUSE : one.limit / CHECKS);
        }
        LastError.observeProcess();
        return Math.max(pause, SHORTEST_PAUSE);
    }
}
