package io.github.nccl4j.benchmarks;

import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;

/** The handling of options that all of these commands share. */
final class Options {
    private Options() {}

    /** Runs a command; a failure is reported by its message. */
    static int execute(Object command, String... args) {
        CommandLine line = new CommandLine(command).setCaseInsensitiveEnumValuesAllowed(true);
        line.setExecutionExceptionHandler((failure, failed, parsed) -> {
            System.err.println(
                    failed.getCommandName() + ": " + (failure.getMessage() == null ? failure : failure.getMessage()));
            return CommandLine.ExitCode.SOFTWARE;
        });
        return line.execute(args);
    }

    /** Refuses a number below a minimum. */
    static void atLeast(CommandSpec spec, long least, String option, long value) {
        if (value < least) {
            throw new ParameterException(spec.commandLine(), option + " must be at least " + least + ": " + value);
        }
    }
}
