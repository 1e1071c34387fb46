package io.github.nccl4j.internal.submission;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.NcclInterruptedException;
import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.communicator.CommunicatorState;
import io.github.nccl4j.internal.cuda.Cuda;
import io.github.nccl4j.internal.cuda.NativeGraph;
import io.github.nccl4j.internal.diagnostics.Jfr;
import io.github.nccl4j.internal.diagnostics.JfrEvents;
import io.github.nccl4j.internal.failure.BlockingCall;
import io.github.nccl4j.internal.failure.Status;
import io.github.nccl4j.internal.memory.Address;
import io.github.nccl4j.internal.memory.NativeMemory;
import io.github.nccl4j.internal.operation.Deferred;
import io.github.nccl4j.internal.threads.VirtualThreads;
import io.github.nccl4j.library.StructInitializers;
import io.github.nccl4j.nccl.ncclSimInfo_t;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.function.ToIntFunction;
import java.util.stream.Collectors;
import org.bytedeco.javacpp.Loader;

/**
 * Launch of a {@link Batch}: compares and records the operations, makes the calls in a native group, waits for the
 * calls with results, and converts failures to exceptions.
 *
 * <p>Confined to the thread of the batch, and reused with it.
 */
public final class BatchLaunch {
    private final Batch batch;

    /** The error of the call that NCCL has refused, else {@code ncclSuccess}. */
    private int refusal;

    private String failedName;
    private String failedDescription;
    private CommunicatorCore failedCommunicator;

    BatchLaunch(Batch batch) {
        this.batch = batch;
    }

    private List<CommunicatorCore> communicators() {
        return batch.communicators();
    }

    /** Records all calls before NCCL is called, since a call with results may not return. */
    private void record() {
        for (Call call : batch.calls()) {
            call.record(call.core().batchPass(), call.core().batchGroup());
        }
    }

    /** Compares the collectives of each communicator across its ranks, in one exchange. */
    private void compare() {
        for (CommunicatorCore communicator : communicators()) {
            CommunicatorCore.Comparison check = communicator.check();
            if (check != null) {
                String calls = batch.calls().stream()
                        .filter(call -> call.core() == communicator)
                        .map(Call::signature)
                        .filter(Objects::nonNull)
                        .collect(Collectors.joining("; "));
                if (!calls.isEmpty()) {
                    check.compare("ncclGroupEnd", calls);
                }
            }
        }
    }

    /** Passes all operations and calls to NCCL, and waits until they are launched. */
    void run() {
        compare();
        if (Jfr.recording) {
            JfrEvents.GroupEvent event =
                    JfrEvents.group(batch.calls().size(), communicators().size());
            try {
                runNow();
            } finally {
                event.commit();
            }
        } else {
            runNow();
        }
    }

    private void runNow() {
        if (batch.deferred().isEmpty()) {
            launch();
            return;
        }
        record();
        Runnable launch = this::launch;
        for (CommunicatorCore communicator : communicators()) {
            Runnable inner = launch;
            String function = batch.deferred().get(0).toString();
            launch = () -> communicator.calls().waitingIn(function, inner);
        }
        launch.run();
    }

    private void launch() {
        CommunicatorCore first = communicators().get(0);
        int result;
        // The C calls with results wait for other ranks, so the deadline needs a separate thread.
        if (first.isBlocking() && waitsForOtherRanks()) {
            try {
                result = BlockingCall.run(
                        "group",
                        longestDeadline(),
                        () -> first.calls().onDevice(this::callAll),
                        () -> withLostRank().isPresent(),
                        late -> {});
            } catch (BlockingCall.AbandonedException e) {
                communicators().forEach(CommunicatorCore::markStuck);
                throw switch (e.reason()) {
                    case INTERRUPTED -> interrupted();
                    case RANK_LOST -> withLostRank().orElse(first).failures().rankLost("ncclGroupEnd", whole());
                    case LATE -> first.failures().timedOut("ncclGroupEnd", whole(), longestDeadline());
                };
            }
        } else if (first.isOnHost() && VirtualThreads.isCurrent() && usesDefaultStream()) {
            result = BlockingCall.runToCompletion(
                    this::callAll, () -> communicators().forEach(CommunicatorCore::endInterruptedCall));
        } else {
            result = NativeGraph.isThreadCapturingCuda() ? Cuda.whileCapturing(this::callAll) : callAll();
        }
        if (result == nccl.ncclInProgress) {
            awaitAll();
        } else if (result != nccl.ncclSuccess) {
            throw culprit().failures().failed(result, failedName, failedDescription);
        }
    }

    /** A communicator of which a rank is lost. */
    private Optional<CommunicatorCore> withLostRank() {
        return communicators().stream()
                .filter(one -> one.calls().mayWaitForLostRank())
                .findFirst();
    }

    /** True if an operation uses the default stream, in which the host engine waits for other ranks within the call. */
    private boolean usesDefaultStream() {
        for (Call call : batch.calls()) {
            if (call.deferred() != null || call.operation().usesDefaultStream()) {
                return true;
            }
        }
        return false;
    }

    private boolean waitsForOtherRanks() {
        for (Deferred call : batch.deferred()) {
            if (call.waitsForOtherRanks()) {
                return true;
            }
        }
        return false;
    }

    private String whole() {
        return "ncclGroupEnd of " + batch.calls().size() + " operations";
    }

    private void awaitAll() {
        for (CommunicatorCore communicator : communicators()) {
            try {
                communicator.calls().awaitReady("ncclGroupEnd", whole());
            } catch (NcclInterruptedException e) {
                interrupted();
                throw e;
            }
        }
    }

    /** Marks all communicators as interrupted: the launched operations continue without a waiting thread. */
    private RuntimeException interrupted() {
        RuntimeException first = null;
        for (CommunicatorCore communicator : communicators()) {
            RuntimeException one = communicator.failures().interrupted(whole());
            first = first == null ? one : first;
        }
        return first;
    }

    /**
     * The communicator to which a failure belongs: one that another thread has ended, else one that another thread has
     * changed, else the one whose call failed.
     */
    private CommunicatorCore culprit() {
        CommunicatorCore culprit = failedCommunicator;
        for (CommunicatorCore communicator : communicators()) {
            if (communicator.hasEnded()) {
                return communicator;
            }
            if (communicator.state() != CommunicatorState.OPEN) {
                culprit = communicator;
            }
        }
        return culprit;
    }

    private int callAll() {
        if (batch.calls().size() == 1
                && !batch.deferred().isEmpty()
                && batch.deferred().get(0).mustBeUngrouped()) {
            return callUngrouped(batch.deferred().get(0));
        }
        if (!batch.deferred().isEmpty()) {
            int result = callInGroup(batch.deferred(), Deferred::prepare);
            for (int round = 0; result == nccl.ncclSuccess && batch.hasAnyAlone(); round++) {
                List<Deferred> alone = alone(round);
                if (alone.isEmpty()) {
                    break;
                }
                result = callInGroup(alone, Deferred::call);
            }
            if (result != nccl.ncclSuccess) {
                return result;
            }
        }
        Status.check(nccl.ncclGroupStart(), "ncclGroupStart");
        int problem = nccl.ncclSuccess;
        int end;
        try {
            problem = callEach(batch.deferred().isEmpty());
        } finally {
            // Always ends the group, else this thread stays in it. After an error NCCL discards the operations.
            end = nccl.ncclGroupEnd();
        }
        if (problem != nccl.ncclSuccess) {
            return problem;
        }
        if (end != nccl.ncclSuccess && end != nccl.ncclInProgress) {
            failedCommunicator = communicators().get(0);
            failedName = "ncclGroupEnd";
            failedDescription = whole();
        }
        return end;
    }

    private int callUngrouped(Deferred call) {
        int result = call.call();
        if (result != nccl.ncclSuccess && result != nccl.ncclInProgress) {
            failedCommunicator = communicators().get(0);
            failedName = call.function();
            failedDescription = call.toString();
        }
        return result;
    }

    /** For each communicator, the call with index {@code round} among its calls that must be alone. */
    private List<Deferred> alone(int round) {
        int[] seen = new int[communicators().size()];
        return batch.calls().stream()
                .filter(call -> call.isAlone() && seen[communicators().indexOf(call.core())]++ == round)
                .map(Call::deferred)
                .toList();
    }

    /** Makes C calls in a native group, and waits until NCCL has launched them. */
    private int callInGroup(List<Deferred> calls, ToIntFunction<Deferred> call) {
        Status.check(nccl.ncclGroupStart(), "ncclGroupStart");
        int problem = nccl.ncclSuccess;
        for (int i = 0; (problem == nccl.ncclSuccess || problem == nccl.ncclInProgress) && i < calls.size(); i++) {
            problem = call.applyAsInt(calls.get(i));
        }
        int end = nccl.ncclGroupEnd();
        if (end == nccl.ncclInProgress) {
            for (CommunicatorCore communicator : communicators()) {
                communicator.calls().awaitReady("ncclGroupEnd", "ncclGroupEnd");
            }
            end = nccl.ncclSuccess;
        }
        int result = problem == nccl.ncclSuccess || problem == nccl.ncclInProgress ? end : problem;
        if (result != nccl.ncclSuccess) {
            failedCommunicator = communicators().get(0);
            failedName = "ncclGroupEnd";
            failedDescription = "ncclGroupEnd with " + calls.get(0);
        }
        return result;
    }

    /**
     * Makes the calls in order, up to the first call that NCCL refuses.
     *
     * @param recording true to record each operation before its call
     * @return the error of the refused call, else {@code ncclSuccess}
     */
    private int callEach(boolean recording) {
        refusal = nccl.ncclSuccess;
        // Reads the number in each round, since an interceptor may add operations.
        for (int at = 0; at < batch.calls().size() && refusal == nccl.ncclSuccess; at++) {
            Call call = batch.calls().get(at);
            if (!call.isAlone()) {
                if (recording) {
                    call.record(call.core().batchPass(), call.core().batchGroup());
                }
                settle(call.makeInGroup(), call);
            }
        }
        return refusal;
    }

    /** Checks the result of a call; records a refusal. */
    private void settle(int result, Call call) {
        if (result == nccl.ncclSuccess || result == nccl.ncclInProgress) {
            return;
        }
        refusal = result;
        failedCommunicator = call.core();
        failedName = call.function();
        failedDescription = call.describe() + " in a group of " + batch.calls().size() + " operations";
    }

    /** Returns NCCL's estimate of the duration in microseconds; launches nothing. */
    double simulate() {
        try (NativeMemory memory = new NativeMemory(Loader.sizeof(ncclSimInfo_t.class))) {
            StructInitializers.simInfo(memory.address());
            Status.check(nccl.ncclGroupStart(), "ncclGroupStart");
            int problem = callEach(false);
            int end = nccl.ncclGroupSimulateEnd(memory.address());
            if (problem != nccl.ncclSuccess) {
                throw culprit().failures().failed(problem, failedName, failedDescription);
            }
            Status.check(end, "ncclGroupSimulateEnd");
            return new ncclSimInfo_t(new Address(memory.address())).estimatedTime();
        }
    }

    private Duration longestDeadline() {
        return communicators().stream()
                .map(CommunicatorCore::deadline)
                .max(Duration::compareTo)
                .orElseThrow();
    }
}
