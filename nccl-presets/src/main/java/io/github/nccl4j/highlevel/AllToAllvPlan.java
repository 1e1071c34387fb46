package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.submission.AgreedExchange;

/**
 * Counts, displacements and buffers of an all-to-all that all ranks have agreed on, for any number of calls of
 * {@link Communicator#allToAllv(AllToAllvPlan, CudaStream)}.
 *
 * <pre>{@code
 * try (AllToAllvPlan<Float32> plan = communicator.planAllToAllv(
 *         send, sendCounts, sendDisplacements, recv, recvCounts, recvDisplacements)) {
 *     communicator.allToAllv(plan, stream);
 * }
 * }</pre>
 *
 * <p>A plan keeps the memory of its buffers until it is closed.
 *
 * <p><b>RCCL.</b> If the library has {@code ncclAlltoAllv} in RCCL's form, the plan uses it, with any buffers. RCCL's
 * call may wait for the other ranks before it returns, and can't be part of a native group: in a {@link Group}, the
 * plan groups sends and receives instead. Either all ranks or no rank must run a plan in a group.
 *
 * <p><b>VCCL.</b> The plan uses {@code ncclAlltoAllv} in one of VCCL's forms if the library has it, the ranks share one
 * machine, and on every rank both buffers are within windows with {@link WindowFlag#COLL_SYMMETRIC}, the receive buffer
 * at the same offset. VCCL lets a rank write into the receive buffer of a rank that has not reached the call yet, so an
 * operation that waits for all ranks precedes each call. VCCL's call can't be captured in a CUDA graph. In a {@link
 * Group}, these calls precede the other operations, since VCCL overwrites its data about other operations.
 *
 * <p>In all other cases, the plan groups sends and receives. {@link #usesNativeCall} returns the choice.
 *
 * <p><b>Ownership.</b> The creator closes the plan, or it is closed with the communicator.
 *
 * <p><b>Threads.</b> As the communicator: one at a time.
 *
 * @param <T> the type of the elements
 * @since 0.1
 */
public final class AllToAllvPlan<T extends Element> implements AutoCloseable {
    final AgreedExchange exchange;

    AllToAllvPlan(AgreedExchange exchange) {
        this.exchange = exchange;
    }

    /**
     * Returns true if the plan calls {@code ncclAlltoAllv}. With RCCL, the plan does so only outside of groups.
     *
     * @return true if the plan calls it; false if the plan groups sends and receives
     */
    public boolean usesNativeCall() {
        return exchange.usesNativeCall();
    }

    /** {@return true if the plan is not closed} */
    public boolean isOpen() {
        return exchange.isOpen();
    }

    /** Releases the buffers. Does nothing if the plan is closed. */
    @Override
    public void close() {
        exchange.close();
    }

    /** {@return a description} */
    @Override
    public String toString() {
        return exchange.toString();
    }
}
