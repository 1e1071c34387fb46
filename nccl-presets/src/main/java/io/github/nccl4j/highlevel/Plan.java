package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.communicator.Resource;
import io.github.nccl4j.internal.cuda.NativeGraph;
import io.github.nccl4j.internal.submission.Batch;
import io.github.nccl4j.internal.submission.Call;
import io.github.nccl4j.internal.submission.CommunicatorWindows;
import io.github.nccl4j.internal.submission.GroupScope;
import io.github.nccl4j.internal.submission.OperationSubmitter;
import io.github.nccl4j.internal.submission.RecordedOperations;
import java.util.Objects;

/**
 * Operations of one communicator with fixed arguments, for loops: checked once, and run any number of times.
 *
 * <pre>{@code
 * try (Plan plan = communicator.plan(() -> communicator.allReduce(gradients, ReduceOp.AVG, stream))) {
 *     while (hasMoreSteps()) {
 *         plan.run();
 *     }
 *     communicator.work(stream).await();
 * }
 * }</pre>
 *
 * <p>A plan may have any operations on data: collectives, sends and receives, and one-sided operations, with their
 * streams and configurations. If it has several, they are launched together, with the rules of a {@link Group}. An
 * {@link AllToAllvPlan}, whose counts the ranks have compared, is a plan of its own kind.
 *
 * <p><b>Ownership.</b> The creator closes the plan, or it is closed with the communicator. Until then, the plan keeps
 * the memory of its buffers, and its streams, operators and windows, even if these are closed.
 *
 * <p><b>Threads.</b> As the communicator: one at a time.
 *
 * @see Communicator#plan
 * @since 0.1
 */
public final class Plan implements AutoCloseable {
    private final CommunicatorCore core;
    private final CommunicatorWindows windows;
    private final OperationSubmitter submitter;
    private final RecordedOperations recorded;

    /** The number of windows that had been registered when the operations were checked. */
    private final int windowsAtCheck;

    private final Resource resource;

    private Plan(
            CommunicatorCore core,
            CommunicatorWindows windows,
            OperationSubmitter submitter,
            RecordedOperations recorded) {
        this.core = core;
        this.windows = windows;
        this.submitter = submitter;
        this.recorded = recorded;
        windowsAtCheck = windows.registered();
        resource = new Resource(core, this, () -> {}, recorded::release);
    }

    /** Records the operations that a piece of code calls, instead of launching them. */
    static Plan of(
            CommunicatorCore core, CommunicatorWindows windows, OperationSubmitter submitter, Runnable operations) {
        core.requireOpen();
        if (Batch.current() != null || NativeGraph.ofThread() != null) {
            throw new IllegalStateException("a plan must be created outside of the "
                    + (Batch.current() != null ? "open group" : "capture") + " of this thread");
        }
        Objects.requireNonNull(operations, "operations");
        GroupScope group = GroupScope.open();
        try {
            operations.run();
            return new Plan(core, windows, submitter, new RecordedOperations(Batch.current(), core));
        } finally {
            group.discard();
        }
    }

    /**
     * Enqueues the operations in their streams, as the calls that the plan has recorded. Collective if they are. In an
     * open {@link Group}, adds them to the group.
     *
     * @throws IllegalStateException if the plan is closed, or if a window was registered after the plan was created: the
     *     checks of operations depend on the windows
     * @throws NcclResultException if NCCL refuses an operation
     */
    public void run() {
        resource.check();
        if (windows.registered() != windowsAtCheck) {
            throw new IllegalStateException(
                    this + " was created before a window was registered: create the plan again");
        }
        Call only = recorded.only();
        if (only != null && Batch.current() == null && NativeGraph.ofThread() == null) {
            recorded.checkMemory();
            resource.pin();
            try {
                submitter.submit(only);
            } finally {
                resource.unpin();
            }
        } else if (!recorded.isEmpty()) {
            recorded.checkMemory();
            GroupScope.run(() -> recorded.addTo(Batch.current(), core, resource));
        }
    }

    /** {@return true if the plan is not closed} */
    public boolean isOpen() {
        return resource.isOpen();
    }

    /** Releases the buffers. Does nothing if the plan is closed. */
    @Override
    public void close() {
        resource.close();
    }

    /** {@return a description, such as "plan of [ncclAllReduce of 1024 float32] of communicator 'gradients'" and its rank} */
    @Override
    public String toString() {
        return "plan of " + recorded + " of " + core;
    }
}
