package io.github.nccl4j.samples;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.samples.launch.LaunchOptions;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code nccl4j startup}: for measuring how long it takes from the start of the processes to a first result. */
@Command(
        name = "startup",
        description = {
            "Makes a communicator, finishes one all-reduce, and prints \"FIRST\" and the time then, in nanoseconds since 1970.",
            "",
            "benchmarks/startup.py compares it with a C program and with PyTorch.",
            ""
        })
final class StartupCommand implements Callable<Integer> {
    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            description = "Show this help.")
    private boolean help;

    @Mixin
    private LaunchOptions.Usual launch;

    @Override
    public Integer call() throws Exception {
        return launch.run(Main.class, StartupCommand::run);
    }

    private static int run(RankInfo self, Duration patience) {
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
                throw new Sample.Failure("the sum must be " + communicator.size() + ": " + sum[0]);
            }
            System.out.println("FIRST " + (TimeUnit.SECONDS.toNanos(now.getEpochSecond()) + now.getNano()));
            return 0;
        }
    }
}
