package io.github.nccl4j.tools.perf;

/**
 * A part of a buffer and its expected content. Offsets and lengths are in elements.
 *
 * @param source the source of the elements
 * @param rank the rank that generates them, for {@link Source#RANK}
 * @param index the index of the first element in the source
 */
record Part(long offset, long length, Source source, int rank, long index) {
    static Part of(int rank, long offset, long length, long index) {
        return new Part(offset, length, Source.RANK, rank, index);
    }

    static Part reduced(long length, long index) {
        return new Part(0, length, Source.REDUCED, -1, index);
    }

    static Part untouched(long length) {
        return new Part(0, length, Source.UNTOUCHED, -1, 0);
    }

    Part at(long newOffset) {
        return new Part(newOffset, length, source, rank, index);
    }
}
