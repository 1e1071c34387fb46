package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.library.NcclException;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** What has gone wrong in a communicator: the exceptions for it, who is reported, and which work may never end. */
final class Failures {

    private enum Ending {
        LATE,
        INTERRUPTED
    }

    private final CommunicatorCore core;

    private volatile NcclException first;

    /** Whether NCCL has reported an error that somebody was reported of. */
    private volatile boolean reported;

    private final AtomicInteger waiting = new AtomicInteger();

    /** Whether the flight recorder was reported to write its file. */
    private final AtomicBoolean dumped = new AtomicBoolean();

    /** Why the watchdog has ended a call of another thread, which gets an error for it; else null. */
    private volatile Ending ending;

    /** How often something went wrong that may leave work on the device for ever. Guarded by the core, as its state is. */
    private int stalls;

    /** Work that was not done in time, and not seen to be done since. Guarded by the core. */
    private final List<Work> late = new ArrayList<>();

    Failures(CommunicatorCore core) {
        this.core = core;
    }

    /** A thread waits for work, and looks for errors by itself, until {@link #endWait}. */
    void beginWait() {
        waiting.incrementAndGet();
    }

    void endWait() {
        waiting.decrementAndGet();
    }

    boolean hasWaiters() {
        return waiting.get() > 0;
    }

    /** What went wrong first, else null. */
    NcclException first() {
        return first;
    }

    /** The exception for an error, after the policy was asked. */
    RuntimeException failed(int result, String function, String description) {
        Ending reason = ending;
        if (reason == Ending.LATE) {
            return timeout(function, description, core.deadline());
        } else if (reason == Ending.INTERRUPTED) {
            return interruption(description);
        }
        boolean misuse = result == nccl.ncclInvalidArgument || result == nccl.ncclInvalidUsage;
        boolean ended = core.hasEnded();
        // Before all else, which may take a moment: the watchdog need not look into it.
        reported |= !misuse;
        NcclResultException failure = Status.failure(
                result,
                function,
                description,
                core.expectedRank(),
                core.name(),
                core.libraryMessages(function + " " + result),
                core.library(),
                misuse || ended ? "" : recorded(description + ": " + Result.of(result)));
        if (ended) {
            // Another thread has aborted it during the call, which is all there is to say.
            IllegalStateException aborted = core.notOpen();
            aborted.addSuppressed(failure);
            return aborted;
        }
        if (!misuse) {
            markStalled();
            report(failure);
        }
        return failure;
    }

    /** The exception for what was not done in time, after the policy was asked. */
    NcclException timedOut(String function, String description, Duration limit) {
        NcclException failure = timeout(function, description, limit);
        markStalled();
        report(failure);
        return failure;
    }

    /** Not all ranks have come to where their calls are compared, so that nothing was called. */
    NcclException late(String function, String description, Duration limit, Throwable cause) {
        NcclException failure = timeout(function, description, limit);
        failure.initCause(cause);
        report(failure);
        return failure;
    }

    /** As {@link #late(String, String, Duration, Throwable)}, of a rank that will not come any more. */
    NcclException peerLost(String function, String description, Throwable cause) {
        NcclException failure = Status.failure(
                nccl.ncclRemoteError,
                function,
                description,
                core.expectedRank(),
                core.name(),
                core.libraryMessages(null),
                core.library(),
                recorded(description));
        failure.initCause(cause);
        report(failure);
        return failure;
    }

    /** As {@link #timedOut}, of work, which {@link #markLate} knows of. */
    NcclException late(String function, String description, Duration limit) {
        NcclException failure = timeout(function, description, limit);
        report(failure);
        return failure;
    }

    /** The exception for a thread that was interrupted while it waited; aborts. */
    NcclException interrupted(String description) {
        NcclException failure = interruption(description);
        remember(failure);
        try {
            core.abort();
        } catch (RuntimeException e) {
            failure.addSuppressed(e);
        }
        return failure;
    }

    /** What the flight recorder has to say to a failure, which it may write to a file if it is the first. */
    private String recorded(String failure) {
        if (core.state() == Communicator.State.PENDING) {
            return "";
        }
        FlightRecorder recorder = core.communicator().flightRecorder();
        String text = recorder.tail();
        if (dumped.compareAndSet(false, true)) {
            String file = recorder.dumpFor(failure);
            text += text.isEmpty() || file.isEmpty() ? file : "\n" + file;
        }
        return text;
    }

    private NcclException interruption(String description) {
        return new NcclInterruptedException(
                description + " of " + core + " was interrupted; the communicator was aborted");
    }

    /* For the watchdog, in threads of its own. */

    /** Whether nobody was reported of an error yet. */
    boolean isUnreported() {
        return !reported;
    }

    /** NCCL has found an error, and no thread is in a call that will get it. */
    void reportError(int result) {
        synchronized (this) {
            if (reported) {
                return;
            }
            reported = true;
        }
        OperationLog.Entry last = core.communicator().operationLog().last();
        RuntimeException failure = failed(
                result,
                "ncclCommGetAsyncError",
                last.sequence() == 0 ? "the communicator, before any operation," : "what follows " + last.describe());
        if (failure instanceof NcclException) {
            log().log(Level.WARNING, "found by the watchdog, nobody was waiting", failure);
        }
    }

    /** Work is late that nobody waits for. */
    void reportLate(Work work) {
        log().log(Level.WARNING, "found by the watchdog, nobody was waiting", work.timedOut(core.deadline()));
    }

    /** Work of which nobody has asked has failed on the device. */
    void reportLost(CudaException failure) {
        synchronized (this) {
            if (reported) {
                return;
            }
            reported = true;
        }
        report(failure);
        log().log(Level.WARNING, "found by the watchdog, nobody was waiting", failure);
    }

    /** A thread is in a call for longer than the deadline. */
    void endLateCall() {
        ending = Ending.LATE;
        OperationLog.Entry last = core.communicator().operationLog().last();
        report(timeout(Operations.name(last.operation()), last.describe(), core.deadline()));
        endCall(false);
    }

    /** A thread is in a call although it was interrupted. */
    void endInterruptedCall() {
        ending = Ending.INTERRUPTED;
        remember(interruption(core.communicator().operationLog().last().describe()));
        endCall(true);
    }

    private void endCall(boolean abort) {
        try {
            if (abort || !core.library().provides("ncclCommRevoke")) {
                core.abort();
            } else if (core.state() == Communicator.State.OPEN) {
                core.revoke(RevokeFlag.DEFAULT.code());
            }
        } catch (RuntimeException e) {
            log().log(Level.WARNING, "a call of " + core + " could not be ended", e);
        }
    }

    private NcclException timeout(String function, String description, Duration limit) {
        RankStatusQuery.Result called = queryRankStatus(limit);
        Gate.Pass inside = core.device().isCuda() ? core.inLibrary() : null;
        String carrier = inside == null ? "" : VirtualThreads.ofCarrier(inside.holder());
        String recorded = recorded(description + ": not done after " + limit);
        return Status.timeout(
                function,
                description,
                limit,
                core.expectedRank(),
                core.name(),
                core.libraryMessages(null),
                core.library(),
                Stream.of(carrier, called.text(), recorded)
                        .filter(text -> !text.isEmpty())
                        .collect(Collectors.joining("\n")),
                called.silent());
    }

    /** What the other ranks are at; not for who waited for a moment only. */
    private RankStatusQuery.Result queryRankStatus(Duration limit) {
        RankStatusQuery statusQuery = core.statusQuery();
        return statusQuery == null || limit.compareTo(RankStatusQuery.PATIENCE) < 0
                ? RankStatusQuery.NOTHING
                : statusQuery.ask();
    }

    private boolean markStalled() {
        synchronized (core) {
            if (core.hasEnded() || !core.device().isCuda()) {
                return false;
            }
            stalls++;
            StalledDevices.add(core);
            return true;
        }
    }

    /** Work was not done in time, and is to be asked again. */
    void markLate(Work work) {
        synchronized (core) {
            if (markStalled()) {
                late.add(work);
            }
        }
    }

    /** What was not done in time is done now, or was known to be. */
    void clearLate(Work work) {
        synchronized (core) {
            if (!late.remove(work) || --stalls > 0) {
                return;
            }
        }
        StalledDevices.remove(core);
    }

    /** Whether the device may never be done with what it was reported; asks again for what was late. */
    boolean isStalled() {
        List<Work> asked;
        synchronized (core) {
            asked = new ArrayList<>(late);
        }
        for (Work work : asked) {
            try {
                work.isDone();
            } catch (RuntimeException failed) {
                // It stays late.
                continue;
            }
        }
        synchronized (core) {
            return stalls > 0;
        }
    }

    private synchronized void remember(NcclException failure) {
        if (Jfr.recording) {
            JfrEvents.failure(core, failure);
        }
        if (first == null) {
            first = failure;
        }
    }

    private void report(NcclException failure) {
        remember(failure);
        try {
            core.settings().policy().onFailure(core.communicator(), failure);
        } catch (RuntimeException e) {
            failure.addSuppressed(e);
        }
    }

    /** Asked for when there is something to say: the first logger of a process takes a tenth of its start. */
    private static System.Logger log() {
        return System.getLogger("io.github.nccl4j");
    }
}
