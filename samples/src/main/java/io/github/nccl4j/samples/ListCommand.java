package io.github.nccl4j.samples;

import java.io.PrintWriter;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code nccl4j list}: the samples. */
@Command(name = "list", description = "Lists the samples.")
final class ListCommand implements Runnable {

    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            description = "Show this help.")
    private boolean help;

    @Spec
    private CommandSpec spec;

    @Override
    public void run() {
        PrintWriter out = spec.commandLine().getOut();
        for (Sample sample : Main.samples()) {
            out.printf("%-28s %s%n", sample.name(), sample.summary());
        }
    }
}
