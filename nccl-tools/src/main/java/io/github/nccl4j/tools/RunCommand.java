package io.github.nccl4j.tools;

import io.github.nccl4j.tools.launch.LaunchOptions;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.Spec;

/** {@code nccl4j run}: runs a sample. The options may precede or follow the sample's name. */
@Command(
        name = "run",
        synopsisSubcommandLabel = "SAMPLE",
        commandListHeading = "%nSamples:%n",
        description = {
            "Runs a sample, one JVM per rank on this machine.",
            "",
            "Each line of output begins with its rank. When a rank fails, the others are ended, and the exit code is that of "
                    + "the first rank that failed. Under torchrun, mpirun, srun or another launcher, and without -n, this "
                    + "process is one rank.",
            "",
            "While it runs, 'nccl4j status' on this machine shows which operation each rank is executing.",
            ""
        })
final class RunCommand implements Callable<Integer> {

    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            scope = ScopeType.INHERIT,
            description = "Show this help.")
    private boolean help;

    @Mixin
    private LaunchOptions.Usual launch;

    @Option(
            names = "--max-restarts",
            paramLabel = "R",
            scope = ScopeType.INHERIT,
            description =
                    "Start ranks that fail again, each alone, at most R times in all, if the sample takes ranks back. "
                            + "Default: the number of ranks for such a sample, otherwise 0.")
    private Integer maxRestarts;

    @Option(
            names = "--spares",
            paramLabel = "S",
            scope = ScopeType.INHERIT,
            defaultValue = "0",
            description =
                    "Start S more processes, which wait. Each takes the place of a rank that fails, at once and before any "
                            + "restart, if the sample takes ranks back. Default: ${DEFAULT-VALUE}.")
    private int spares;

    @Spec
    private CommandSpec spec;

    LaunchOptions launch() {
        return launch;
    }

    /** The number of restarts, or null for that of the sample. */
    Integer maxRestarts() {
        return maxRestarts;
    }

    int spares() {
        return spares;
    }

    /** Called without a sample. */
    @Override
    public Integer call() {
        throw new ParameterException(spec.commandLine(), "the name of a sample is missing: one of " + Samples.names());
    }

    /** Creates the command with a subcommand for each sample. */
    static CommandLine withSamples() {
        RunCommand command = new RunCommand();
        CommandLine run = new CommandLine(command);
        Samples.all().forEach(sample -> run.addSubcommand(SampleCommand.of(sample, command)));
        return run;
    }
}
