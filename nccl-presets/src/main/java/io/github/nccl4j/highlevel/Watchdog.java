package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;
import java.lang.System.Logger.Level;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * Watchdog of all communicators of the process. One thread, which ends when there is no communicator, checks whether
 * NCCL has found an error, whether a thread is in a call past the deadline or despite an interrupt, and whether work is
 * late for which no thread waits.
 *
 * <p>The thread only checks, and adds no cost to threads that make calls. A failure is handled in a thread of its own,
 * since that may take long.
 */
final class Watchdog {
    static final long LONGEST_PAUSE = 100_000_000;
    private static final long ACTIVE_PAUSE = 10_000_000;
    private static final long SHORTEST_PAUSE = 1_000_000;
    /** Number of checks within a deadline. */
    private static final int LOOKS = 10;

    /** Time that a thread has to report an error that NCCL found, in nanoseconds. */
    private static final long PATIENCE = 1_000_000_000;

    private static final long LINGER = 1_000_000_000;

    private static final List<Watched> ADDED = new ArrayList<>();
    private static Thread thread;

    private Watchdog() {}

    /** A communicator, held weakly, and its last observed state. */
    private static final class Watched {
        private final WeakReference<CommunicatorCore> reference;
        private final long limit;
        private Gate.Pass inside;
        private long calls;
        private long since;
        /** Times of the first observation, or 0. */
        private long interrupted;

        private long error;
        private boolean handled;
        /** True if there were calls since the last check. */
        private boolean active;

        Watched(CommunicatorCore core) {
            reference = new WeakReference<>(core);
            limit = Waiting.nanoseconds(core.deadline());
        }

        /** Checks the communicator; returns false if it has ended. */
        boolean look(long now, long time) {
            CommunicatorCore core = reference.get();
            if (core == null || core.hasEnded()) {
                return false;
            }
            core.communicator().operationLog().tick(time);
            if (core.state() == Communicator.State.OPEN) {
                lookAtCall(core, now);
                lookForErrors(core, now);
                lookAtWork(core, now);
            }
            return true;
        }

        /** Reports overdue work, because no thread may wait for it. */
        private void lookAtWork(CommunicatorCore core, long now) {
            Failures failures = core.failures();
            try {
                Work late = core.communicator().streams().overdue(now, limit);
                // A waiting thread reports the failure itself.
                if (late != null && !failures.hasWaiters()) {
                    handle("late work", () -> failures.reportLate(late));
                }
            } catch (CudaException lost) {
                if (failures.isUnreported()) {
                    handle("device", () -> failures.reportLost(lost));
                }
            }
        }

        private void lookAtCall(CommunicatorCore core, long now) {
            Gate.Pass current = core.inLibrary();
            long made = core.calls().count();
            active = made != calls;
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
                    core.endInterruptedCall();
                }
            } else if (now - since - LONGEST_PAUSE > limit) {
                // Later than threads that wait in Java, which have the same deadline.
                handled = true;
                handle("deadline", core.failures()::endLateCall);
            }
        }

        private void lookForErrors(CommunicatorCore core, long now) {
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
            boolean othersLook = inside != null || core.failures().hasWaiters();
            if (!othersLook || now - error >= PATIENCE) {
                // Otherwise the thread in the call, or the waiting thread, reports the error soon.
                handle("error", () -> core.failures().reportError(result));
            }
        }
    }

    /** Watches a communicator until it has ended. */
    static void watch(CommunicatorCore core) {
        core.communicator().operationLog().tick(System.currentTimeMillis());
        synchronized (ADDED) {
            ADDED.add(new Watched(core));
            if (thread == null) {
                thread = new Thread(Watchdog::run, "nccl4j watchdog");
                thread.setDaemon(true);
                thread.start();
            } else {
                // The deadline may be shorter than the current pause.
                LockSupport.unpark(thread);
            }
        }
    }

    private static boolean lookAt(Watched one, long now, long time) {
        try {
            return one.look(now, time);
        } catch (RuntimeException e) {
            // Keeps watching the other communicators.
            System.getLogger("io.github.nccl4j").log(Level.WARNING, "the watchdog stops watching a communicator", e);
            return false;
        }
    }

    static void handle(String what, Runnable action) {
        Thread handler = new Thread(action, "nccl4j watchdog " + what);
        handler.setDaemon(true);
        handler.start();
    }

    private static void run() {
        List<Watched> all = new ArrayList<>();
        long idleSince = System.nanoTime();
        while (true) {
            long now = System.nanoTime();
            long time = System.currentTimeMillis();
            synchronized (ADDED) {
                all.addAll(ADDED);
                ADDED.clear();
                if (!all.isEmpty()) {
                    idleSince = now;
                } else if (now - idleSince > LINGER) {
                    thread = null;
                    return;
                }
            }
            LastError.observeProcess();
            long pause = LONGEST_PAUSE;
            for (Iterator<Watched> each = all.iterator(); each.hasNext(); ) {
                Watched one = each.next();
                if (lookAt(one, now, time)) {
                    pause = Math.min(pause, one.active ? ACTIVE_PAUSE : one.limit / LOOKS);
                } else {
                    each.remove();
                }
            }
            LockSupport.parkNanos(Math.max(pause, SHORTEST_PAUSE));
        }
    }
}
