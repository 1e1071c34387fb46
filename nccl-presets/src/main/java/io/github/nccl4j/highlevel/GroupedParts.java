package io.github.nccl4j.highlevel;

/** Parts that go into a group: where one is open, or operations must look further. */
final class GroupedParts implements Parts {
    private final CommunicatorCore core;
    private final Group group = Group.open();

    GroupedParts(CommunicatorCore core) {
        this.core = core;
    }

    @Override
    public void transfer(int operation, DeviceBuffer<?> buffer, long offset, long count, int peer, CudaStream stream) {
        if (count == 0) {
            return;
        }
        long address = buffer.addressOf(offset);
        long send = operation == Operations.SEND ? address : 0;
        long recv = operation == Operations.SEND ? 0 : address;
        Batch batch = Batch.currentFor(core);
        batch.pin(buffer);
        batch.add(core, operation, send, recv, count, buffer.typeCode, 0, peer, 0, 0, stream);
    }

    @Override
    public void reduce(
            DeviceBuffer<?> send,
            DeviceBuffer<?> recv,
            long sendAddress,
            long recvAddress,
            long count,
            ReduceOp op,
            int root,
            CudaStream stream) {
        if (count == 0) {
            return;
        }
        Batch batch = Batch.currentFor(core);
        batch.pin(send);
        batch.pin(recv);
        if (op instanceof PreMulSum<?> operator) {
            batch.pin(operator.resource());
        }
        int type = send.typeCode;
        batch.add(core, Operations.REDUCE, sendAddress, recvAddress, count, type, op.code(), root, 0, 0, stream);
    }

    @Override
    public void launch() {
        group.launch();
    }

    @Override
    public void close() {
        group.close();
    }
}
