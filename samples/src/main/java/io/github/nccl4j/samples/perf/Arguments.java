package io.github.nccl4j.samples.perf;

import io.github.nccl4j.highlevel.CollectiveConfig;
import io.github.nccl4j.highlevel.ElementType;

/**
 * The arguments of one rank's call.
 *
 * @param send address of the elements that go out
 * @param recv address of where elements come in
 * @param operator null for collectives that only copy
 * @param config null for calls without one
 */
record Arguments(
        Member member,
        long send,
        long recv,
        Sizes sizes,
        ElementType<?> type,
        Operator operator,
        int root,
        Traffic traffic,
        CollectiveConfig config) {
    int rank() {
        return member.rank();
    }

    int ranks() {
        return member.size();
    }

    long count() {
        return sizes.count();
    }

    /** Bytes of an all-to-all with counts that each rank sends. */
    long total() {
        return count() * ranks() * type.sizeInBytes();
    }
}
