package io.github.nccl4j.samples.launch;

import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.UnmatchedArgumentException;

/**
 * How the commands report wrong arguments and failures: a line with the reason, and for arguments a line that names the help.
 *
 * <p>Has no state.
 */
public final class CommandErrors {

    /** Files that fail without a reason in their message, as the JDK's own exceptions for the most frequent cases do. */
    private static final Map<Class<?>, String> REASONS = Map.of(
            NoSuchFileException.class, "no such file or folder", AccessDeniedException.class, "permission denied");

    private CommandErrors() {}

    /**
     * Makes a command report this way.
     *
     * @param command the command, with all its subcommands
     * @return the same command
     */
    public static CommandLine reportedBy(CommandLine command) {
        command.setParameterExceptionHandler((problem, arguments) -> {
            CommandLine failed = problem.getCommandLine();
            PrintWriter err = failed.getErr();
            err.println("nccl4j: " + describe(problem));
            err.println("See: " + failed.getCommandSpec().qualifiedName() + " --help");
            return CommandLine.ExitCode.USAGE;
        });
        command.setExecutionExceptionHandler((failure, failed, parsed) -> {
            if (isBug(failure)) {
                failure.printStackTrace(failed.getErr());
            } else {
                failed.getErr().println("nccl4j: " + reason(failure));
            }
            return CommandLine.ExitCode.SOFTWARE;
        });
        return command;
    }

    /**
     * What a failure's message says, and what the JDK leaves out of it.
     *
     * @param failure the failure
     * @return a text with the reason, such as {@code /a/b: no such file or folder}
     */
    public static String reason(Throwable failure) {
        if (failure instanceof UncheckedIOException && failure.getCause() != null) {
            return reason(failure.getCause());
        }
        if (failure instanceof FileSystemException file && file.getReason() == null) {
            return file.getFile() + ": "
                    + REASONS.getOrDefault(file.getClass(), file.getClass().getSimpleName());
        }
        return failure.getMessage() == null ? failure.toString() : failure.getMessage();
    }

    /** Expected failures say all in their message; the stack tells where any other one is from. */
    private static boolean isBug(Throwable failure) {
        return failure instanceof RuntimeException
                && !(failure instanceof IllegalStateException)
                && !(failure instanceof IllegalArgumentException)
                && !(failure instanceof UncheckedIOException)
                && !failure.getClass().getName().startsWith("io.github.nccl4j.");
    }

    private static String describe(ParameterException problem) {
        if (!(problem instanceof UnmatchedArgumentException unmatched)) {
            return problem.getMessage();
        }
        CommandSpec spec = problem.getCommandLine().getCommandSpec();
        String word = unmatched.getUnmatched().get(0);
        List<String> suggestions = unmatched.getSuggestions();
        String suggestion = suggestions.isEmpty() ? "" : "; did you mean " + String.join(" or ", suggestions) + "?";
        if (spec.subcommands().isEmpty() || word.startsWith("-")) {
            return problem.getMessage() + suggestion;
        }
        String kind = spec.usageMessage().synopsisSubcommandLabel().toLowerCase(Locale.ROOT);
        return "no such " + kind + ": '" + word + "'; there are " + names(spec) + suggestion;
    }

    /** The subcommands without their short names. */
    private static String names(CommandSpec spec) {
        return spec.subcommands().values().stream()
                .map(CommandLine::getCommandName)
                .distinct()
                .collect(Collectors.joining(", "));
    }
}
