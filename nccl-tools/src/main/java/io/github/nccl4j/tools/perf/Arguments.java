package io.github.nccl4j.tools.perf;

import io.github.nccl4j.highlevel.CollectiveConfig;
import io.github.nccl4j.highlevel.ElementType;

/**
 * The arguments of a rank's call.
 *
 * @param send the address of the send buffer
 * @param recv the address of the receive buffer
 * @param same the arguments that do not depend on rank and size
 */
record Arguments(Member member, long send, long recv, Sizes sizes, Same same) {
    /**
     * The arguments of all calls of a measurement.
     *
     * @param operator the reduction operator, or null for collectives without a reduction
     * @param config the configuration of the call, or null
     */
    record Same(ElementType<?> type, Operator operator, int root, Traffic traffic, CollectiveConfig config) {}

    ElementType<?> type() {
        return same.type;
    }

    Operator operator() {
        return same.operator;
    }

    int root() {
        return same.root;
    }

    Traffic traffic() {
        return same.traffic;
    }

    CollectiveConfig config() {
        return same.config;
    }

    int rank() {
        return member.rank();
    }

    int ranks() {
        return member.size();
    }

    long count() {
        return sizes.count();
    }

    /** The number of bytes that each rank sends in an all-to-all. */
    long total() {
        return count() * ranks() * same.type.sizeInBytes();
    }
}
