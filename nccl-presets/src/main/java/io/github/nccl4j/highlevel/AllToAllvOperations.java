package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.communicator.CommunicatorStreams;
import io.github.nccl4j.internal.cuda.NativeStream;

/**
 * The all-to-alls of one communicator with a count for each pair of ranks, and the resources that their plans share.
 * For the communicator's thread.
 */
final class AllToAllvOperations {
    private final CommunicatorCore core;
    private final OperationChecks checks;
    private final CommunicatorWindows windows;
    private final ComposedOperations composed;
    private final CommunicatorStreams streams;
    private final ExchangeBuffers buffers;

    AllToAllvOperations(
            CommunicatorCore core,
            OperationChecks checks,
            CommunicatorWindows windows,
            ComposedOperations composed,
            CommunicatorStreams streams) {
        this.core = core;
        this.checks = checks;
        this.windows = windows;
        this.composed = composed;
        this.streams = streams;
        buffers = new ExchangeBuffers(Device.of(core.device()));
    }

    CommunicatorCore core() {
        return core;
    }

    OperationChecks checks() {
        return checks;
    }

    CommunicatorWindows windows() {
        return windows;
    }

    ComposedOperations composed() {
        return composed;
    }

    CommunicatorStreams streams() {
        return streams;
    }

    /** The memory in which ranks exchange their counts. */
    ExchangeBuffers buffers() {
        return buffers;
    }

    /** Exchanges the counts of the ranks and then the elements; not in a group. */
    <T extends Element> void exchange(
            DeviceBuffer<T> send,
            long[] sendCounts,
            long[] sendDisplacements,
            DeviceBuffer<T> recv,
            long[] recvCounts,
            long[] recvDisplacements,
            NativeStream stream) {
        checks.stream(stream);
        if (Batch.current() != null) {
            throw new IllegalStateException(
                    "in a group, allToAllv needs a plan: the ranks can't compare their counts there");
        }
        try (AllToAllvPlan<T> plan = plan(send, sendCounts, sendDisplacements, recv, recvCounts, recvDisplacements)) {
            exchange(plan, stream);
        }
    }

    /** Creates a plan on which all ranks agree: at once, or at the launch of the open group. */
    <T extends Element> AllToAllvPlan<T> plan(
            DeviceBuffer<T> send,
            long[] sendCounts,
            long[] sendDisplacements,
            DeviceBuffer<T> recv,
            long[] recvCounts,
            long[] recvDisplacements) {
        core.requireOpen();
        AllToAllvPlan<T> plan = AllToAllvPlan.of(
                this, send, sendCounts, sendDisplacements, recv, recvCounts, recvDisplacements, streams.ownStream());
        plan.exchange();
        return plan;
    }

    /** Exchanges the elements of a plan. */
    void exchange(AllToAllvPlan<?> plan, NativeStream stream) {
        plan.check(core);
        checks.stream(stream);
        plan.run(stream);
    }

    /** Frees the memory of the exchanges. */
    void close() {
        buffers.close();
    }
}
