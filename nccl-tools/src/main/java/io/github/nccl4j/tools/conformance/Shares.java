package io.github.nccl4j.tools.conformance;

import java.util.function.IntUnaryOperator;

/**
 * The number of elements of each rank in a buffer, and their offset; for operations with a count for each rank. Some
 * ranks have none.
 *
 * @param length the length of the buffer
 */
record Shares(long[] counts, long[] places, int length) {
    /** The share of a rank. */
    @FunctionalInterface
    interface Share {
        void accept(int rank, int count, int place);
    }

    /** A rank's count in a case. */
    static int count(Case c, int rank) {
        return (c.seed() + rank) % 3 == 0 ? 0 : c.count() + rank;
    }

    private static int count(Case c, int from, int to) {
        return (c.seed() + from + to) % 3 == 0 ? 0 : c.count() + from + 2 * to;
    }

    /** One after the other, by rank. */
    static Shares dense(Case c, int size) {
        return of(size, rank -> count(c, rank), 0, false);
    }

    /** The last rank first, with an unused element after each. */
    static Shares spread(Case c, int size) {
        return of(size, rank -> count(c, rank), 1, true);
    }

    /** The elements that a rank sends to all ranks. */
    static Shares sent(Case c, int rank, int size) {
        return of(size, to -> count(c, rank, to), 2, false);
    }

    /** The elements that a rank receives from all ranks. */
    static Shares received(Case c, int rank, int size) {
        return of(size, from -> count(c, from, rank), 1, true);
    }

    private static Shares of(int size, IntUnaryOperator count, int gap, boolean lastFirst) {
        long[] counts = new long[size];
        long[] places = new long[size];
        int end = 0;
        for (int i = 0; i < size; i++) {
            int rank = lastFirst ? size - 1 - i : i;
            counts[rank] = count.applyAsInt(rank);
            places[rank] = end;
            end += (int) counts[rank] + gap;
        }
        return new Shares(counts, places, end);
    }

    int place(int rank) {
        return (int) places[rank];
    }

    void forEach(Share share) {
        for (int rank = 0; rank < counts.length; rank++) {
            share.accept(rank, (int) counts[rank], (int) places[rank]);
        }
    }
}
