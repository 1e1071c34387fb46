package io.github.nccl4j.tools;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.tools.launch.CommandErrors;
import io.github.nccl4j.tools.launch.LauncherWatch;
import java.time.Instant;
import java.util.concurrent.TimeUnit;

/** A rank of {@code nccl4j startup}. Like a typical user program, it does not parse a command line. */
final class StartupRank {
    private StartupRank() {}

    public static void main(String[] args) {
        LauncherWatch.start();
        try {
            run();
        } catch (RuntimeException | OutOfMemoryError e) {
            System.err.println("nccl4j: " + CommandErrors.reason(e));
            System.exit(1);
        }
    }

    /** Creates a communicator, completes an all-reduce and prints the time of its completion. */
    static void run() {
        try (Communicator communicator = Communicator.fromEnvironment();
                CudaStream stream = CudaStream.nonBlocking(communicator.device());
                DeviceBuffer<Float32> data = communicator.device().allocate(ElementType.FLOAT32, 1)) {
            data.fill(1.0);
            communicator.allReduce(data, ReduceOp.SUM, stream);
            stream.synchronize();
            Instant now = Instant.now();
            float[] sum = new float[1];
            data.copyTo(sum);
            if (sum[0] != communicator.size()) {
                throw new IllegalStateException("the sum must be " + communicator.size() + ": " + sum[0]);
            }
            System.out.println("FIRST " + (TimeUnit.SECONDS.toNanos(now.getEpochSecond()) + now.getNano()));
        }
    }
}
