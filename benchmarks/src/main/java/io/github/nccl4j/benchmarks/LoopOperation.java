package io.github.nccl4j.benchmarks;

import java.util.Locale;

/** The operations of the loops: the collectives of nccl-tests. loops.cpp uses their ordinal numbers. */
enum LoopOperation {
    ALL_REDUCE("ncclAllReduce", false, false),
    ALL_GATHER("ncclAllGather", false, true),
    REDUCE_SCATTER("ncclReduceScatter", true, false),
    BROADCAST("ncclBroadcast", false, false),
    REDUCE("ncclReduce", false, false),
    ALLTOALL("ncclAlltoAll", true, true),
    GATHER("ncclGather", false, true),
    SCATTER("ncclScatter", true, false),
    SENDRECV("ncclSend", false, false),
    /** Equal counts for all ranks, by a plan in highlevel. */
    ALLTOALLV("ncclSend", true, true),
    /** The own block is already in its place, so that nothing is copied. */
    HYPERCUBE("ncclSend", false, true);

    /** The function; some releases lack some of the functions. */
    final String function;
    /** True if the buffers have a block for each rank. */
    final boolean sendsBlocks;

    final boolean receivesBlocks;

    LoopOperation(String function, boolean sendsBlocks, boolean receivesBlocks) {
        this.function = function;
        this.sendsBlocks = sendsBlocks;
        this.receivesBlocks = receivesBlocks;
    }

    /** The function with a configuration; null if NCCL has none. */
    String configFunction() {
        return ordinal() <= SCATTER.ordinal() ? function + "Config" : null;
    }

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
