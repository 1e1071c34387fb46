package io.github.nccl4j.highlevel;

/**
 * The calls of NCCL that one operation consists of, to be launched together. All arguments were checked before; for the
 * thread that began it.
 */
interface Parts extends AutoCloseable {
    /**
     * A part of a buffer to or from a rank: SEND or RECV. Nothing if it is empty: both ranks leave it out, and NCCL would
     * launch a kernel for it.
     */
    void transfer(int operation, DeviceBuffer<?> buffer, long offset, long count, int peer, CudaStream stream);

    /** A reduction of a part of a buffer to a rank; nothing if it is empty. */
    void reduce(
            DeviceBuffer<?> send,
            DeviceBuffer<?> recv,
            long sendAddress,
            long recvAddress,
            long count,
            ReduceOp op,
            int root,
            CudaStream stream);

    void launch();

    @Override
    void close();

    /** A rank's block to or from it. */
    default void transfer(int operation, DeviceBuffer<?> buffer, Blocks blocks, int peer, CudaStream stream) {
        transfer(operation, buffer, blocks.displacements()[peer], blocks.counts()[peer], peer, stream);
    }
}
