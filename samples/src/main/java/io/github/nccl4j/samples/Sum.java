package io.github.nccl4j.samples;

import io.github.nccl4j.highlevel.*;

/** Each rank adds 1: the sum is the number of ranks. */
public final class Sum {
    public static void main(String[] args) {
        try (var communicator = Communicator.fromEnvironment();
                var stream = CudaStream.nonBlocking(communicator.device());
                var data = communicator.device().allocate(ElementType.FLOAT32, 1)) {
            data.fill(1);
            communicator.allReduce(data, ReduceOp.SUM, stream);
            communicator.work(stream).await();
            var sum = new float[1];
            data.copyTo(sum);
            if (sum[0] != communicator.size()) throw new IllegalStateException("wrong sum: " + sum[0]);
            System.out.println("rank " + communicator.rank() + " of " + communicator.size() + ": sum " + sum[0]);
        }
    }
}
