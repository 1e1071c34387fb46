package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.cuda.NativeStream;
import io.github.nccl4j.internal.operation.OperationKind;

/** Adds the calls to the thread's open batch: used if a group is open or operations must take the slow path. */
final class BatchedCallGroup extends CallGroup {
    private final CommunicatorCore core;
    private final Group group = Group.open();

    BatchedCallGroup(CommunicatorCore core) {
        this.core = core;
    }

    @Override
    void pin(DeviceBuffer<?> buffer) {
        Batch.currentFor(core).pin(buffer);
    }

    @Override
    void pin(ReduceOp op) {
        if (op instanceof PreMulSum<?> operator) {
            Batch.currentFor(core).pin(operator.resource());
        }
    }

    @Override
    void add(OperationKind kind, long send, long recv, long count, int type, int op, int peer, NativeStream stream) {
        Batch.currentFor(core).add(core, kind.code(), send, recv, count, type, op, peer, 0, stream);
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
