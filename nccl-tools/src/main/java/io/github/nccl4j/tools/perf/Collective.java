package io.github.nccl4j.tools.perf;

import io.github.nccl4j.highlevel.ProfiledOperation;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * The operations that can be measured, named as in nccl-tests. Defines the lengths of their buffers, the data that each rank
 * sends and must receive, and their bandwidths, by the formulas in the documentation of nccl-tests.
 */
enum Collective {
    ALL_REDUCE(true, false, true),
    ALL_GATHER(false, false, true),
    REDUCE_SCATTER(true, false, true),
    BROADCAST(false, true, true),
    REDUCE(true, true, true),
    ALLTOALL(false, false, false),
    ALLTOALLV(false, false, false),
    GATHER(false, true, true),
    SCATTER(false, true, true),
    SENDRECV(false, false, false),
    HYPERCUBE(false, false, true);

    /** The counts per rank are multiples of this number of bytes. */
    private static final int ALIGNMENT = 16;

    final boolean reduces;
    final boolean rooted;

    /** True if in-place calls give the same result as out-of-place calls; otherwise they are timed, but not checked. */
    final boolean checkedInPlace;

    Collective(boolean reduces, boolean rooted, boolean checkedInPlace) {
        this.reduces = reduces;
        this.rooted = rooted;
        this.checkedInPlace = checkedInPlace;
    }

    /** True if NCCL has algorithms of the collective that can be selected, by the function with a configuration. */
    boolean hasAlgorithms() {
        return configFunction() != null;
    }

    /** The function with a configuration, of a collective that has algorithms; else null. */
    String configFunction() {
        return switch (this) {
            case ALL_REDUCE -> "ncclAllReduceConfig";
            case ALL_GATHER -> "ncclAllGatherConfig";
            case REDUCE_SCATTER -> "ncclReduceScatterConfig";
            case BROADCAST -> "ncclBroadcastConfig";
            case REDUCE -> "ncclReduceConfig";
            default -> null;
        };
    }

    String label() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** The lengths for a run with this number of bytes per rank. */
    Sizes sizes(long bytes, int elementSize, int ranks, Traffic traffic) {
        long count = bytes / elementSize;
        long share = count / ranks & -(ALIGNMENT / elementSize);
        return switch (this) {
            case ALL_REDUCE, BROADCAST, REDUCE, SENDRECV -> new Sizes(count, count, count, 0, 0);
            case ALL_GATHER, GATHER, HYPERCUBE -> new Sizes(share, share * ranks, share, share, 0);
            case REDUCE_SCATTER, SCATTER -> new Sizes(share * ranks, share, share, 0, share);
            case ALLTOALL -> new Sizes(share * ranks, share * ranks, share, 0, 0);
            case ALLTOALLV -> traffic(traffic.isMatrix() ? 0 : share, elementSize, ranks, traffic);
        };
    }

    private static Sizes traffic(long share, int elementSize, int ranks, Traffic traffic) {
        long send = 0;
        long recv = 0;
        for (int rank = 0; rank < ranks; rank++) {
            long total = share * ranks * elementSize;
            send = Math.max(send, Traffic.sum(traffic.sends(rank, ranks, total, elementSize)));
            recv = Math.max(recv, Traffic.sum(traffic.receives(rank, ranks, total, elementSize)));
        }
        return new Sizes(send, recv, share, 0, 0);
    }

    /** The number of bytes in the algorithm bandwidth. */
    long algorithmBytes(Sizes sizes, int elementSize, int ranks) {
        long count =
                switch (this) {
                    case ALL_REDUCE, BROADCAST, REDUCE, SENDRECV -> sizes.count();
                    case ALL_GATHER, REDUCE_SCATTER, ALLTOALL, GATHER, SCATTER -> sizes.count() * ranks;
                    case HYPERCUBE -> sizes.count() * (ranks - 1);
                    case ALLTOALLV -> sizes.largest();
                };
        return count * elementSize;
    }

    /** The ratio of the bus bandwidth, which is that of the busiest link, to the algorithm bandwidth. */
    double busFactor(int ranks) {
        return ProfiledOperation.busFactor(
                switch (this) {
                    case ALL_REDUCE -> "ncclAllReduce";
                    case ALL_GATHER -> "ncclAllGather";
                    case REDUCE_SCATTER -> "ncclReduceScatter";
                    case ALLTOALL -> "ncclAlltoAll";
                    case ALLTOALLV -> "ncclAlltoAllv";
                    case GATHER -> "ncclGather";
                    case SCATTER -> "ncclScatter";
                    case BROADCAST -> "ncclBroadcast";
                    case REDUCE -> "ncclReduce";
                    case SENDRECV, HYPERCUBE -> "ncclSend";
                },
                ranks);
    }

    /** The data that a rank sends; offsets refer to its send buffer. */
    List<Part> sent(Sizes sizes, int rank, int root) {
        if (rooted && rank != root && (this == BROADCAST || this == SCATTER)) {
            return List.of();
        }
        return List.of(Part.of(rank, 0, sizes.send(), 0));
    }

    /** The data that a rank must receive; offsets refer to its receive buffer. */
    List<Part> received(Sizes sizes, int rank, int ranks, int root, int elementSize, Traffic traffic) {
        long count = sizes.count();
        return switch (this) {
            case ALL_REDUCE -> List.of(Part.reduced(count, 0));
            case REDUCE -> List.of(rank == root ? Part.reduced(count, 0) : Part.untouched(count));
            case REDUCE_SCATTER -> List.of(Part.reduced(count, rank * count));
            case BROADCAST -> List.of(Part.of(root, 0, count, 0));
            case SCATTER -> List.of(Part.of(root, 0, count, rank * count));
            case SENDRECV -> List.of(Part.of(Math.floorMod(rank - 1, ranks), 0, count, 0));
            case ALL_GATHER, HYPERCUBE -> blocks(count, ranks, 0);
            case GATHER -> rank == root ? blocks(count, ranks, 0) : List.of(Part.untouched(count * ranks));
            case ALLTOALL -> blocks(count, ranks, rank * count);
            case ALLTOALLV -> blocks(sizes, rank, ranks, elementSize, traffic);
        };
    }

    private static List<Part> blocks(long count, int ranks, long index) {
        List<Part> parts = new ArrayList<>();
        for (int from = 0; from < ranks; from++) {
            parts.add(Part.of(from, from * count, count, index));
        }
        return parts;
    }

    private static List<Part> blocks(Sizes sizes, int rank, int ranks, int elementSize, Traffic traffic) {
        List<Part> parts = new ArrayList<>();
        long total = sizes.count() * ranks * elementSize;
        long offset = 0;
        for (int from = 0; from < ranks; from++) {
            long[] sent = traffic.sends(from, ranks, total, elementSize);
            parts.add(Part.of(from, offset, sent[rank], Traffic.displacements(sent)[rank]));
            offset += sent[rank];
        }
        if (offset < sizes.recv()) {
            parts.add(Part.untouched(sizes.recv() - offset).at(offset));
        }
        return parts;
    }
}
