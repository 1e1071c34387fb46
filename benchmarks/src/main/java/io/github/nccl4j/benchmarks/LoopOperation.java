package io.github.nccl4j.benchmarks;

import java.util.Locale;

/** The operations of the loops: the collectives of nccl-tests. In C their numbers are those of the declaration. */
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
    /** As much for each, by a plan in highlevel. */
    ALLTOALLV("ncclSend", true, true),
    /** The own block is where it belongs, so that there is nothing to copy. */
    HYPERCUBE("ncclSend", false, true);

    /** Its function; some are not in all releases. */
    final String function;
    /** True if the buffers have a block for each rank. */
    final boolean sendsBlocks;

    final boolean receivesBlocks;

    LoopOperation(String function, boolean sendsBlocks, boolean receivesBlocks) {
        this.function = function;
        this.sendsBlocks = sendsBlocks;
        this.receivesBlocks = receivesBlocks;
    }

    /** Its function with a configuration; null if there is none. */
    String configFunction() {
        return ordinal() <= SCATTER.ordinal() ? function + "Config" : null;
    }

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
