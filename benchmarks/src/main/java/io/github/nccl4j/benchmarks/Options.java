package io.github.nccl4j.benchmarks;

import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;

/** What all of these commands do with their options. */
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

    /** Refuses a number below the least that makes sense. */
    static void atLeast(CommandSpec spec, long least, String option, long value) {
        if (value < least) {
            throw new ParameterException(spec.commandLine(), option + " must be at least " + least + ": " + value);
        }
    }
}
