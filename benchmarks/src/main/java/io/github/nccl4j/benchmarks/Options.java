package io.github.nccl4j.benchmarks;

import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;

/** Handling of options for all commands of the benchmarks. */
final class Options {
    private Options() {}

    /** Runs a command; prints the message of a failure. */
    static int execute(Object command, String... args) {
        CommandLine line = new CommandLine(command).setCaseInsensitiveEnumValuesAllowed(true);
        line.setExecutionExceptionHandler((failure, failed, parsed) -> {
            System.err.println(
                    failed.getCommandName() + ": " + (failure.getMessage() == null ? failure : failure.getMessage()));
            return CommandLine.ExitCode.SOFTWARE;
        });
        return line.execute(args);
    }

    /** Throws if a number is below a minimum. */
    static void atLeast(CommandSpec spec, long least, String option, long value) {
        if (value < least) {
            throw new ParameterException(spec.commandLine(), option + " must be at least " + least + ": " + value);
        }
    }
}
