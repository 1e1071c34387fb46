package io.github.nccl4j.spark;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;

/** The smallest collective. */
final class RankSum {
    private RankSum() {}

    /** The sum of a value over all ranks. */
    static int of(Communicator communicator, int value) {
        return of(communicator, ReduceOp.SUM, value);
    }

    /** The result of a reduction of a value of each rank. */
    static int of(Communicator communicator, ReduceOp op, int value) {
        try (CudaStream stream = CudaStream.nonBlocking(communicator.device());
                DeviceBuffer<Int32> buffer = communicator.device().allocate(ElementType.INT32, 1)) {
            buffer.copyFrom(new int[] {value});
            communicator.allReduce(buffer, op, stream);
            communicator.work(stream).await();
            int[] sum = new int[1];
            buffer.copyTo(sum);
            return sum[0];
        }
    }
}
