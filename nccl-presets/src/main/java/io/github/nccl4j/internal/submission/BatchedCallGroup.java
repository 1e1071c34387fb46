package io.github.nccl4j.internal.submission;

import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.cuda.NativeBuffer;
import io.github.nccl4j.internal.cuda.NativeStream;
import io.github.nccl4j.internal.operation.Operation;
import io.github.nccl4j.internal.operation.Operator;

/** Adds the calls to the thread's open batch: used if a group is open or operations must take the slow path. */
public final class BatchedCallGroup extends CallGroup {
    private final CommunicatorCore core;
    private final GroupScope group = GroupScope.open();

    public BatchedCallGroup(CommunicatorCore core) {
        this.core = core;
    }

    @Override
    void pin(NativeBuffer buffer) {
        Batch.currentFor(core).pin(buffer);
    }

    @Override
    void pin(Operator op) {
        if (op instanceof CreatedOperator operator) {
            Batch.currentFor(core).pin(operator.resource);
        }
    }

    @Override
    void add(Operation operation, NativeStream stream) {
        Batch.currentFor(core).add(core, operation, null, stream);
    }

    @Override
    void launch() {
        group.launch();
    }

    @Override
    public void close() {
        group.discard();
    }
}
