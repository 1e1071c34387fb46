package io.github.nccl4j.internal.operation;

import java.util.Arrays;
import java.util.Objects;

/** Layout of a buffer with one block per rank: MPI's counts and displacements, in elements. */
public record BlockLayout(long[] counts, long[] displacements) {

    /**
     * Creates a layout and checks that all blocks are within the buffer.
     *
     * @param what the buffer's name in messages: "send" or "recv"
     * @param written true if the blocks are written, and so must not overlap
     */
    public static BlockLayout checked(
            String what, long[] counts, long[] displacements, int size, long length, boolean written) {
        Objects.requireNonNull(counts, what + "Counts");
        Objects.requireNonNull(displacements, what + "Displacements");
        requireSize(what + "Counts", counts.length, size);
        requireSize(what + "Displacements", displacements.length, size);
        BlockLayout blocks = new BlockLayout(counts.clone(), displacements.clone());
        for (int rank = 0; rank < size; rank++) {
            long count = counts[rank];
            long at = displacements[rank];
            if (count < 0) {
                throw new IllegalArgumentException(what + "Counts[" + rank + "] must be >= 0: " + count);
            }
            if (at < 0 || count > length - at) {
                throw new IndexOutOfBoundsException(what + "Displacements[" + rank + "] + " + what + "Counts[" + rank
                        + "] must be within the buffer: " + at + " + " + count + ", " + what + ".length() " + length);
            }
        }
        if (written) {
            blocks.requireDisjoint(what);
        }
        return blocks;
    }

    /**
     * As {@link #checked} with this rank's row of counts and of displacements, or with the matrices of all ranks, row by
     * row.
     */
    public static BlockLayout ofRank(
            String what, long[] counts, long[] displacements, int rank, int size, long length, boolean written) {
        return checked(what, row(counts, rank, size), row(displacements, rank, size), size, length, written);
    }

    private static long[] row(long[] table, int rank, int size) {
        return table == null || table.length != (long) size * size
                ? table
                : Arrays.copyOfRange(table, rank * size, (rank + 1) * size);
    }

    /** Creates a layout of consecutive blocks, which must fill the buffer. */
    public static BlockLayout consecutive(String what, long[] counts, int size, long length) {
        Objects.requireNonNull(counts, "counts");
        requireSize("counts", counts.length, size);
        long[] displacements = new long[size];
        long end = 0;
        for (int rank = 0; rank < size; rank++) {
            if (counts[rank] < 0) {
                throw new IllegalArgumentException("counts[" + rank + "] must be >= 0: " + counts[rank]);
            }
            displacements[rank] = end;
            end = Math.addExact(end, counts[rank]);
        }
        if (end != length) {
            throw new IllegalArgumentException(
                    what + ".length() must be the sum of the counts: " + length + " != " + end);
        }
        return new BlockLayout(counts.clone(), displacements);
    }

    private static void requireSize(String what, int length, int size) {
        if (length != size) {
            throw new IllegalArgumentException(
                    what + " must have an element for each rank: " + length + ", size " + size);
        }
    }

    private void requireDisjoint(String what) {
        Integer[] order = new Integer[counts.length];
        Arrays.setAll(order, i -> i);
        Arrays.sort(order, (a, b) -> Long.compare(displacements[a], displacements[b]));
        int before = -1;
        for (int rank : order) {
            if (counts[rank] == 0) {
                continue;
            }
            if (before >= 0 && displacements[before] + counts[before] > displacements[rank]) {
                throw new IllegalArgumentException(what + " blocks must not overlap: that of rank " + before + " is at "
                        + displacements[before] + " with " + counts[before] + " elements, that of rank " + rank + " at "
                        + displacements[rank]);
            }
            before = rank;
        }
    }
}
