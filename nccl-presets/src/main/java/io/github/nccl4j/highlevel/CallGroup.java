package io.github.nccl4j.highlevel;

/**
 * The calls of NCCL that one operation consists of, to be launched together. All arguments were checked before; for the
 * thread that began it. CallGroup of nothing are left out, at both ranks: NCCL would launch a kernel for them.
 */
abstract class CallGroup implements AutoCloseable {

    /** A part of a buffer to or from a rank: SEND or RECV. */
    final void transfer(int operation, DeviceBuffer<?> buffer, long offset, long count, int peer, CudaStream stream) {
        if (count == 0) {
            return;
        }
        long address = buffer.addressOf(offset);
        long send = operation == Operations.SEND ? address : 0;
        long recv = operation == Operations.SEND ? 0 : address;
        pin(buffer);
        add(operation, send, recv, count, buffer.typeCode, 0, peer, stream);
    }

    /** A rank's block to or from it. */
    final void transfer(int operation, DeviceBuffer<?> buffer, BlockLayout blocks, int peer, CudaStream stream) {
        transfer(operation, buffer, blocks.displacements()[peer], blocks.counts()[peer], peer, stream);
    }

    /** A reduction of a part of a buffer to a rank. */
    final void reduce(
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
        pin(send);
        pin(recv);
        pin(op);
        add(Operations.REDUCE, sendAddress, recvAddress, count, send.typeCode, op.code(), root, stream);
    }

    /** Keeps what a part that is added next uses, if the part is not handed to NCCL at once. */
    abstract void pin(DeviceBuffer<?> buffer);

    abstract void pin(ReduceOp op);

    abstract void add(int operation, long send, long recv, long count, int type, int op, int peer, CudaStream stream);

    abstract void launch();

    @Override
    public abstract void close();
}
