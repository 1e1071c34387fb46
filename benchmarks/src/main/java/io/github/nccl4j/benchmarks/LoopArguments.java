package io.github.nccl4j.benchmarks;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;

/**
 * The arguments of all calls of a loop. The root is rank 0.
 *
 * @param send of count elements, or of so many for each rank
 * @param recv likewise
 */
record LoopArguments(
        Communicator communicator,
        CudaStream stream,
        DeviceBuffer<Float32> send,
        DeviceBuffer<Float32> recv,
        long count) {
    static final int ROOT = 0;

    int rank() {
        return communicator.rank();
    }

    int size() {
        return communicator.size();
    }

    int next() {
        return Math.floorMod(rank() + 1, size());
    }

    int previous() {
        return Math.floorMod(rank() - 1, size());
    }
}
