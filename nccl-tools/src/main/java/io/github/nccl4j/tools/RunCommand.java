package io.github.nccl4j.tools;

import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.tools.launch.LaunchOptions;
import java.io.IOException;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.PositionalParamSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.Spec;
import picocli.CommandLine.UnmatchedArgumentException;

/**
 * {@code nccl4j run}: runs a sample, or any program. The options may precede or follow the sample's name; they precede the {@code
 * --} of a program.
 */
@Command(
        name = "run",
        customSynopsis = {
            "nccl4j run [OPTIONS] SAMPLE [OPTIONS]",
            "       nccl4j run [OPTIONS] -- COMMAND [ARGUMENT]..."
        },
        synopsisSubcommandLabel = "SAMPLE",
        commandListHeading = "%nSamples:%n",
        description = {
            "Runs a sample or a program, one process per rank on this machine.",
            "",
            "A program, such as java -jar app.jar, gets its rank, the store and the library by variables: "
                    + "Communicator.fromEnvironment() and torch.distributed read them. Its standard input is empty.",
            "",
            "Each line of output begins with its rank. When a rank fails, the others are ended, and the exit code is that of "
                    + "the first rank that failed. Under torchrun, mpirun, srun or another launcher, and without -n, this "
                    + "process is one rank of the sample.",
            "",
            "While it runs, 'nccl4j status' on this machine shows which operation each rank is executing.",
            ""
        })
final class RunCommand implements Callable<Integer> {
    private static final String SEPARATOR = "--";

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
                    "Start ranks that fail again, each alone, at most R times in all, if the sample or program takes ranks back. "
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
        if (maxRestarts != null && maxRestarts < 0) {
            throw new ParameterException(spec.commandLine(), "--max-restarts must be at least 0: " + maxRestarts);
        }
        return maxRestarts;
    }

    int spares() {
        return spares;
    }

    /** Called without a sample: runs the program after {@code --}. */
    @Override
    public Integer call() throws IOException, InterruptedException {
        List<String> arguments = spec.root().commandLine().getParseResult().originalArgs();
        int separator = arguments.indexOf(SEPARATOR);
        if (separator < 0) {
            throw new ParameterException(
                    spec.commandLine(),
                    "the name of a sample, or " + SEPARATOR + " and a command, is missing; the samples: "
                            + Samples.names());
        }
        List<String> program = arguments.subList(separator + 1, arguments.size());
        if (program.isEmpty()) {
            throw new ParameterException(spec.commandLine(), "the command after " + SEPARATOR + " is missing");
        }
        // With those before the separator.
        List<String> words = spec.positionalParameters().get(0).originalStringValues();
        if (words.size() > program.size()) {
            throw new UnmatchedArgumentException(spec.commandLine(), words.subList(0, words.size() - program.size()));
        }
        // picocli does not know that -J was matched: its values are taken by a consumer.
        if (!launch.jvmOptions().isEmpty()) {
            throw onlyForSamples("-J");
        }
        for (String option : List.of("--spares", "--init-timeout")) {
            if (spec.commandLine().getParseResult().hasMatchedOption(option)) {
                throw onlyForSamples(option);
            }
        }
        Integer restarts = maxRestarts();
        Optional<RankInfo> self = launch.self();
        if (self.isPresent()) {
            throw new ParameterException(
                    spec.commandLine(),
                    "this process is " + self.get() + ": start the program itself, or add -n to launch ranks here");
        }
        launch.setMaxRestarts(restarts == null ? 0 : restarts);
        return launch.launchProgram(program);
    }

    private ParameterException onlyForSamples(String option) {
        return new ParameterException(
                spec.commandLine(), option + " is for samples; the program has options of its own");
    }

    /**
     * Creates the command with a subcommand for each sample.
     *
     * @param arguments the arguments to be executed
     */
    static CommandLine of(List<String> arguments) {
        RunCommand command = new RunCommand();
        CommandLine run = new CommandLine(command);
        Samples.all().forEach(sample -> run.addSubcommand(SampleCommand.of(sample, command)));
        // Only after the separator: elsewhere a word is the name of a sample.
        if (arguments.contains(SEPARATOR)) {
            run.getCommandSpec()
                    .addPositional(PositionalParamSpec.builder()
                            .paramLabel("COMMAND")
                            .type(List.class)
                            .auxiliaryTypes(String.class)
                            .arity("0..*")
                            .build());
        }
        return run;
    }
}
