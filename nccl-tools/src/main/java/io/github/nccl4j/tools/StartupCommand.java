package io.github.nccl4j.tools;

import io.github.nccl4j.tools.launch.LaunchOptions;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code nccl4j startup}: helps to measure the time from the start of the processes to the first result. */
@Command(
        name = "startup",
        description = {
            "Creates a communicator, completes an all-reduce, and prints \"FIRST\" and the time in nanoseconds since 1970.",
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
        return launch.run(
                StartupRank.class,
                List.of(),
                (self, initTimeout) -> {
                    StartupRank.run();
                    return CommandLine.ExitCode.OK;
                },
                size -> rank -> false);
    }
}
