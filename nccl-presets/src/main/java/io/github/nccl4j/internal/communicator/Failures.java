package io.github.nccl4j.internal.communicator;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.CudaException;
import io.github.nccl4j.highlevel.NcclException;
import io.github.nccl4j.highlevel.NcclResultException;
import io.github.nccl4j.highlevel.Result;
import io.github.nccl4j.internal.cuda.OperationWait;
import io.github.nccl4j.internal.cuda.PendingOperations;
import io.github.nccl4j.internal.diagnostics.FlightRecord;
import io.github.nccl4j.internal.diagnostics.Jfr;
import io.github.nccl4j.internal.diagnostics.JfrEvents;
import io.github.nccl4j.internal.failure.FailureReport;
import io.github.nccl4j.internal.failure.Reason;
import io.github.nccl4j.internal.memory.StalledDevices;
import io.github.nccl4j.internal.operation.OperationLog;
import io.github.nccl4j.internal.threads.Gate;
import io.github.nccl4j.internal.threads.ServiceLoop;
import io.github.nccl4j.internal.threads.Timeouts;
import io.github.nccl4j.internal.threads.VirtualThreads;
import io.github.nccl4j.launch.LostRank;
import io.github.nccl4j.library.NativeLibrary;
import java.lang.System.Logger.Level;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Failures of a communicator: creates the exceptions, reports them to the failure policy, and keeps track of work that
 * may never end.
 */
public final class Failures implements PendingOperations.Owner {

    /** Time that the store has to name a lost rank after NCCL has reported a loss. */
    private static final Duration STORE_PATIENCE = Duration.ofMillis(400);

    private final CommunicatorCore core;

    /** For objects that must not keep a dropped communicator; always the same one. */
    private final WeakReference<PendingOperations.Owner> reference = new WeakReference<>(this);

    private volatile NcclException first;

    /** True once an error of NCCL was reported to a caller or to the policy. */
    private volatile boolean reported;

    /** True once the program got an exception because of a failure, or asked for the failure. */
    private volatile boolean told;

    private final AtomicInteger waiting = new AtomicInteger();

    /** True once the flight recorder was asked to write its file. */
    private final AtomicBoolean dumped = new AtomicBoolean();

    /** The reason why the watchdog ended a call of another thread; else null. */
    private volatile Reason ending;

    /** True once a thread got the exception for it. */
    private final AtomicBoolean endingThrown = new AtomicBoolean();

    /** Number of failures that may leave work on the device forever. Guarded by the core, as its state is. */
    private int stalls;

    /** Work that timed out and has not been observed as done since: queries of its state. Guarded by the core. */
    private final List<BooleanSupplier> late = new ArrayList<>();

    public Failures(CommunicatorCore core) {
        this.core = core;
    }

    /** Called when a thread starts to wait for work; it checks for errors itself until {@link #endWait}. */
    @Override
    public void beginWait() {
        waiting.incrementAndGet();
    }

    @Override
    public void endWait() {
        waiting.decrementAndGet();
    }

    public boolean hasWaiters() {
        return waiting.get() > 0;
    }

    /** Returns an exception that the caller throws to the program. */
    public <E extends RuntimeException> E told(E thrown) {
        told = true;
        return thrown;
    }

    /** Returns the first failure, which counts as told; null if there is none. */
    public NcclException tellFirst() {
        NcclException first = first();
        if (first != null) {
            told = true;
        }
        return first;
    }

    public void setTold() {
        told = true;
    }

    /** Returns the first failure, or null. */
    public NcclException first() {
        return first;
    }

    /**
     * Begins the report of a failed call of the communicator.
     *
     * @param call the call that returned an error, and the error; null if no call did
     */
    public FailureReport report(String function, String description, String call) {
        return new FailureReport(function, core.library())
                .of(description)
                .at(core.expectedRank(), core.name())
                .id(core.identity())
                .messages(core.calls().libraryMessages(call));
    }

    /** Returns the exception for an error, after the policy was called. */
    public RuntimeException failed(int result, String function, String description) {
        if (ending != null) {
            return ofEndedCall(function, description);
        }
        boolean misuse = result == nccl.ncclInvalidArgument || result == nccl.ncclInvalidUsage;
        boolean ended = core.hasEnded();
        // Set first, because the rest may take a while: the watchdog need not report the same error.
        reported |= !misuse;
        if (result == nccl.ncclRemoteError && !ended) {
            core.peers().awaitLoss(STORE_PATIENCE);
        }
        List<LostRank> lost = misuse ? List.of() : core.peers().lost();
        NcclResultException failure = report(function, description, function + " " + result)
                .tail(
                        ended || result == nccl.ncclInvalidArgument
                                ? ""
                                : lines(describe(lost), recorded(description, result, misuse)))
                .lost(numbers(lost))
                .failed(result);
        if (ended) {
            // Another thread aborted the communicator during the call, which explains the error.
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

    /** Returns the exception for a call that the watchdog has ended, or for its work. */
    private NcclException ofEndedCall(String function, String description) {
        endingThrown.set(true);
        return exception(ending, function, description);
    }

    private NcclException exception(Reason reason, String function, String description) {
        return switch (reason) {
            case INTERRUPTED -> interruption(description);
            case RANK_LOST -> remote(function, description);
            case LATE -> timeout(function, description, core.deadline());
        };
    }

    /**
     * Returns the exception for a call that the watchdog has ended, unless a thread got it; else null. NCCL may return success
     * from such a call, so the next use of the communicator throws.
     */
    public NcclException ofEndedCall() {
        if (ending == null || endingThrown.get()) {
            return null;
        }
        OperationLog.Entry last = core.operationLog().last();
        return ofEndedCall(last.function(), last.describe());
    }

    /** Returns the exception for work that was stopped before it was done. */
    public RuntimeException workStopped(String function, String description) {
        return ending != null
                ? ofEndedCall(function, description)
                : new IllegalStateException(
                        core + (core.hasEnded() ? " ended" : " was revoked") + " before " + description + " was done",
                        first);
    }

    /** Returns the exception for an operation that timed out, after the policy was called. */
    public NcclException timedOut(String function, String description, Duration limit) {
        NcclException failure = timeout(function, description, limit);
        markStalled();
        report(failure);
        return failure;
    }

    /** Returns the exception for a call that the caller has stopped waiting for, after the policy was called. */
    public NcclException abandoned(Reason reason, String function) {
        return abandoned(reason, function, function);
    }

    /** As {@link #abandoned(Reason, String)}, with a description of the call. */
    public NcclException abandoned(Reason reason, String function, String description) {
        return switch (reason) {
            case INTERRUPTED -> interrupted(description);
            case RANK_LOST -> rankLost(function, description);
            case LATE -> timedOut(function, description, core.deadline());
        };
    }

    /** Returns the exception for a call that may wait for a rank that the store reports as lost, after the policy was called. */
    public NcclException rankLost(String function, String description) {
        reported = true;
        NcclException failure = remote(function, description);
        markStalled();
        report(failure);
        return failure;
    }

    /** As {@link #rankLost}, for work that is tracked by {@link #markLate}. */
    public NcclException rankLostDuringWork(String function, String description) {
        reported = true;
        NcclException failure = remote(function, description);
        report(failure);
        return failure;
    }

    private NcclException remote(String function, String description) {
        List<LostRank> lost = core.peers().lost();
        return report(function, description, null)
                .tail(lines(describe(lost), recorded(description + ": " + Result.REMOTE_ERROR)))
                .lost(numbers(lost))
                .failed(nccl.ncclRemoteError);
    }

    private String describe(List<LostRank> lost) {
        return lost.stream()
                .map(rank -> rank.rank() == core.rank() ? "This rank is lost: " + rank : "The store reports: " + rank)
                .collect(Collectors.joining("\n"));
    }

    private static List<Integer> numbers(List<LostRank> lost) {
        return lost.stream().map(LostRank::rank).toList();
    }

    private static String lines(String... texts) {
        return Stream.of(texts).filter(text -> !text.isEmpty()).collect(Collectors.joining("\n"));
    }

    /** Returns the exception for a call at the store that not all ranks joined in time; no native call was made. */
    public NcclException storeTimedOut(String function, String description, Duration limit, Throwable cause) {
        NcclException failure = timeout(function, description, limit);
        failure.initCause(cause);
        report(failure);
        return failure;
    }

    /** As {@link #storeTimedOut}, for a rank that is lost. */
    public NcclException storeLostRank(String function, String description, Throwable cause) {
        NcclException failure =
                report(function, description, null).tail(recorded(description)).failed(nccl.ncclRemoteError);
        failure.initCause(cause);
        report(failure);
        return failure;
    }

    /** As {@link #timedOut}, for work that is tracked by {@link #markLate}. */
    public NcclException workTimedOut(String function, String description, Duration limit) {
        NcclException failure = timeout(function, description, limit);
        report(failure);
        return failure;
    }

    /** Aborts the communicator and returns the exception for a thread that was interrupted while it waited. */
    public NcclException interrupted(String description) {
        NcclException failure = interruption(description);
        remember(failure);
        try {
            core.abort();
        } catch (RuntimeException e) {
            failure.addSuppressed(e);
        }
        return failure;
    }

    /** Returns the flight recorder's text for a failure. The first failure may also write the recorder's file. */
    private String recorded(String failure) {
        if (core.state() == CommunicatorState.PENDING) {
            return "";
        }
        FlightRecord recorder = core.recorder();
        String text = recorder.tail();
        String file = dump(recorder, failure);
        return text + (text.isEmpty() || file.isEmpty() ? file : "\n" + file);
    }

    private String dump(FlightRecord recorder, String failure) {
        return dumped.compareAndSet(false, true) ? recorder.dumpFor(failure) : "";
    }

    /** As {@link #recorded(String)}; calls that differ between ranks are in the message, so that only files are written. */
    private String recorded(String description, int result, boolean misuse) {
        String failure = description + ": " + Result.of(result);
        boolean created = core.state() != CommunicatorState.PENDING;
        return misuse && created ? dump(core.recorder(), failure) : misuse ? "" : recorded(failure);
    }

    private NcclException interruption(String description) {
        return core.listener()
                .interrupted(description + " of " + core + " was interrupted; the communicator was aborted");
    }

    /* Called by the watchdog, in threads of their own. */

    /** Returns true if no error was reported yet. */
    public boolean isUnreported() {
        return !reported;
    }

    /** Reports an error of NCCL that no thread in a native call will get. */
    public void reportError(int result) {
        reportOnce(() -> {
            OperationLog.Entry last = core.operationLog().last();
            RuntimeException failure = failed(result, "ncclCommGetAsyncError", work(last));
            if (failure instanceof NcclException) {
                logUnobserved(failure);
            }
        });
    }

    /** Makes the first report. If that fails, for example because there is no memory, the next check makes it. */
    void reportOnce(Runnable report) {
        synchronized (this) {
            if (reported) {
                return;
            }
            reported = true;
        }
        boolean done = false;
        try {
            report.run();
            done = true;
        } finally {
            reported = done;
        }
    }

    /** Reports lost ranks while no thread waits, which would get an exception. */
    public void reportLostRank() {
        reportOnce(() -> {
            OperationLog.Entry last = core.operationLog().last();
            NcclException failure =
                    remote(last.sequence() == 0 ? "ncclCommGetAsyncError" : last.function(), work(last));
            markStalled();
            report(failure);
            logUnobserved(failure);
        });
    }

    /** Ends a call of another thread for a reason. */
    public void endCall(Reason reason) {
        boolean interrupted = reason == Reason.INTERRUPTED;
        ending = reason;
        reported |= reason == Reason.RANK_LOST;
        try {
            OperationLog.Entry last = core.operationLog().last();
            NcclException failure = exception(reason, last.function(), last.describe());
            if (interrupted) {
                remember(failure);
            } else {
                report(failure);
            }
        } finally {
            // Also without memory for a report: the thread in the call makes one, too.
            endCall(interrupted);
        }
    }

    /** Describes the work that may have failed, for an error that NCCL does not report from a call. */
    private static String work(OperationLog.Entry last) {
        return last.sequence() == 0 ? "the communicator, before any operation," : "the work up to " + last.describe();
    }

    /** Logs a failure that was reported and that no thread will get. */
    public static void logUnobserved(Throwable failure) {
        ServiceLoop.log(Level.WARNING, "the watchdog found a failure that no thread was waiting for", failure);
    }

    /** Reports work that failed on the device while no thread waits for it. */
    public void reportLost(CudaException failure) {
        reportOnce(() -> {
            report(failure);
            logUnobserved(failure);
        });
    }

    private void endCall(boolean abort) {
        try {
            if (abort || !core.library().provides("ncclCommRevoke")) {
                core.abort();
            } else if (core.state() == CommunicatorState.OPEN) {
                core.lifecycle().revoke(nccl.NCCL_REVOKE_DEFAULT);
            }
        } catch (RuntimeException e) {
            ServiceLoop.log(Level.WARNING, "a call of " + core + " could not be ended", e);
        }
    }

    private NcclException timeout(String function, String description, Duration limit) {
        RankStatusQuery.Result called = queryRankStatus(limit);
        Gate.Pass inside = core.device().isCuda() ? core.inLibrary() : null;
        String carrier = inside == null ? "" : VirtualThreads.ofCarrier(inside.holder());
        String ras = RasQuery.report(NativeLibrary.versionCode());
        String recorded = recorded(description + ": not done after " + Timeouts.text(limit)
                + (called.text().isEmpty() ? "" : ". " + called.text()));
        return report(function, description, null)
                .ranks(called.text())
                .tail(lines(
                        carrier,
                        core.peers().describeSilent(),
                        ras,
                        core.recorder().othersInStream(),
                        recorded))
                .silent(called.silent())
                .timedOut(limit);
    }

    /** Asks the other ranks for their status, unless the timeout was shorter than the query may take. */
    private RankStatusQuery.Result queryRankStatus(Duration limit) {
        RankStatusQuery statusQuery = core.ranks().statusQuery();
        return statusQuery == null || limit.compareTo(RankStatusQuery.TIMEOUT) < 0
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

    /**
     * Marks work as late.
     *
     * @param isDone the query of its state, which {@link #isStalled} makes again, and which is true when it is over
     */
    public void markLate(BooleanSupplier isDone) {
        synchronized (core) {
            if (markStalled()) {
                late.add(isDone);
            }
        }
    }

    /** Removes work that is done now, or whose failure is known, from the late work. */
    public void clearLate(BooleanSupplier isDone) {
        synchronized (core) {
            if (!late.remove(isDone) || --stalls > 0) {
                return;
            }
        }
        StalledDevices.remove(core);
    }

    /** Returns true if work on the device may never end; checks late work again first. */
    public boolean isStalled() {
        List<BooleanSupplier> asked;
        synchronized (core) {
            asked = new ArrayList<>(late);
        }
        for (BooleanSupplier isDone : asked) {
            try {
                if (isDone.getAsBoolean()) {
                    clearLate(isDone);
                }
            } catch (RuntimeException failed) {
                // The work stays late.
                continue;
            }
        }
        synchronized (core) {
            return stalls > 0;
        }
    }

    private synchronized void remember(NcclException failure) {
        if (Jfr.recording) {
            JfrEvents.recordFailure(core, failure);
        }
        if (first == null) {
            first = failure;
        }
    }

    private void report(NcclException failure) {
        remember(failure);
        try {
            core.reportFailure(failure);
        } catch (RuntimeException | Error e) {
            failure.addSuppressed(e);
        }
    }

    /* Waits of threads for streams with operations of the communicator. */

    WeakReference<PendingOperations.Owner> reference() {
        return reference;
    }

    /** Keeps the operations, because the communicator is being stopped: as {@link PendingOperations#stop}. */
    void stop(boolean asks) {
        PendingOperations.stop(this, reference, asks);
    }

    @Override
    public long context() {
        return core.device().context();
    }

    @Override
    public Duration deadline() {
        return core.deadline();
    }

    @Override
    public OperationLog operationLog() {
        return core.operationLog();
    }

    @Override
    public boolean isStopped() {
        return core.isStopped();
    }

    @Override
    public boolean isClosed() {
        return core.state() == CommunicatorState.CLOSED;
    }

    @Override
    public boolean isLossKnown() {
        return told;
    }

    @Override
    public void checkFailures(OperationLog.Entry last, OperationWait.Target work) {
        if (core.calls().mayWaitForLostRank()) {
            markLate(work.lasting(this));
            throw told(rankLostDuringWork(last.function(), last.describe()));
        }
        int result = core.calls().tryPoll();
        if (result != nccl.ncclSuccess && result != nccl.ncclInProgress) {
            throw told(failed(result, last.function(), last.describe()));
        }
    }

    @Override
    public RuntimeException lost(OperationLog.Entry last) {
        return told(workStopped(last.function(), last.describe()));
    }

    @Override
    public RuntimeException late(OperationLog.Entry last, OperationWait.Target work) {
        markLate(work.lasting(this));
        return told(workTimedOut(last.function(), last.describe(), core.deadline()));
    }

    @Override
    public RuntimeException interrupted(OperationLog.Entry last) {
        return told(interrupted(last.describe()));
    }

    @Override
    public void keepUntilEnded(Runnable release) {
        core.owned().keepUntilEnded(release);
    }
}
