package io.github.nccl4j.internal.submission;

import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.communicator.CommunicatorStreams;
import io.github.nccl4j.internal.cuda.NativeStream;

/**
 * The all-to-alls of one communicator with a count for each pair of ranks, and the resources that their plans share.
 * For the communicator's thread.
 *
 * @param buffers the memory in which ranks exchange their counts
 */
public record AllToAllvOperations(
        CommunicatorCore core,
        OperationChecks checks,
        CommunicatorWindows windows,
        ComposedOperations composed,
        CommunicatorStreams streams,
        ExchangeBuffers buffers) {

    /** Exchanges the counts of the ranks and then the elements; not in a group. */
    public void exchange(Blocks send, Blocks recv, NativeStream stream) {
        checks.stream(stream);
        if (Batch.current() != null) {
            throw new IllegalStateException(
                    "in a group, allToAllv needs a plan: the ranks can't compare their counts there");
        }
        try (AgreedExchange plan = plan(send, recv)) {
            exchange(plan, stream);
        }
    }

    /** Creates a plan on which all ranks agree: at once, or at the launch of the open group. */
    public AgreedExchange plan(Blocks send, Blocks recv) {
        core.requireOpen();
        AgreedExchange plan = AgreedExchange.of(this, send, recv);
        plan.exchange();
        return plan;
    }

    /** Exchanges the elements of a plan. */
    public void exchange(AgreedExchange plan, NativeStream stream) {
        plan.check(core);
        checks.stream(stream);
        plan.run(stream);
    }

    /** Frees the memory of the exchanges. */
    public void close() {
        buffers.close();
    }
}
