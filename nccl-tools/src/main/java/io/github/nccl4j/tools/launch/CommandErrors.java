package io.github.nccl4j.tools.launch;

import io.github.nccl4j.highlevel.NcclException;
import io.github.nccl4j.tools.support.Printable;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.IntSupplier;
import java.util.stream.Collectors;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.UnmatchedArgumentException;

/**
 * Error reports of the commands: one line with the reason, and for wrong arguments a second line that names the help option.
 *
 * <p>Stateless.
 */
public final class CommandErrors {

    /** The JDK's messages of these exceptions contain only the file name. */
    private static final Map<Class<?>, String> REASONS = Map.of(
            NoSuchFileException.class, "no such file or folder", AccessDeniedException.class, "permission denied");

    private CommandErrors() {}

    /**
     * Installs this error report in a command and its subcommands.
     *
     * @param command the command, with all its subcommands
     * @return the same command
     */
    public static CommandLine install(CommandLine command) {
        command.setParameterExceptionHandler((error, arguments) -> {
            CommandLine failed = error.getCommandLine();
            PrintWriter err = failed.getErr();
            err.println("nccl4j: " + Printable.lines(describe(error)));
            err.println("See: " + failed.getCommandSpec().qualifiedName() + " --help");
            return CommandLine.ExitCode.USAGE;
        });
        command.setExecutionExceptionHandler((failure, failed, parsed) -> {
            if (isBug(failure)) {
                failure.printStackTrace(failed.getErr());
            } else {
                failed.getErr().println("nccl4j: " + Printable.lines(reason(failure)));
            }
            return CommandLine.ExitCode.SOFTWARE;
        });
        return command;
    }

    /**
     * Runs a program. If the JVM lacks memory or threads, prints the reason in one line instead of a stack trace.
     *
     * @param program returns the exit code
     * @return the exit code
     */
    public static int run(IntSupplier program) {
        try {
            return program.getAsInt();
        } catch (OutOfMemoryError failure) {
            System.err.println("nccl4j: " + reason(failure));
            return CommandLine.ExitCode.SOFTWARE;
        }
    }

    /**
     * Describes a failure in one line, including the reason that the JDK's file exceptions omit.
     *
     * @param failure the failure
     * @return the reason, such as {@code /a/b: no such file or folder}
     */
    public static String reason(Throwable failure) {
        if (failure instanceof UncheckedIOException && failure.getCause() != null) {
            return reason(failure.getCause());
        }
        if (failure instanceof FileSystemException file && file.getReason() == null) {
            return file.getFile() + ": "
                    + REASONS.getOrDefault(file.getClass(), file.getClass().getSimpleName());
        }
        if (failure instanceof NcclException) {
            // With the command that explains it.
            String name = failure.getClass().getName() + ": ";
            String text = failure.toString();
            return text.startsWith(name) ? text.substring(name.length()) : text;
        }
        if (failure instanceof OutOfMemoryError
                && String.valueOf(failure.getMessage()).contains("native thread")) {
            return failure.getMessage()
                    + "; raise the limit of processes and threads of this user (ulimit -u), or start fewer ranks";
        }
        return failure.getMessage() == null ? failure.toString() : failure.getMessage();
    }

    /** True for failures that the user cannot correct; their stack trace is printed. */
    private static boolean isBug(Throwable failure) {
        return failure instanceof RuntimeException
                && !(failure instanceof IllegalStateException)
                && !(failure instanceof IllegalArgumentException)
                && !(failure instanceof UncheckedIOException)
                && !failure.getClass().getName().startsWith("io.github.nccl4j.");
    }

    private static String describe(ParameterException error) {
        if (!(error instanceof UnmatchedArgumentException unmatched)) {
            return error.getMessage();
        }
        CommandSpec spec = error.getCommandLine().getCommandSpec();
        String word = unmatched.getUnmatched().get(0);
        List<String> suggestions = unmatched.getSuggestions();
        String suggestion = suggestions.isEmpty() ? "" : "; did you mean " + String.join(" or ", suggestions) + "?";
        if (spec.subcommands().isEmpty() || word.startsWith("-")) {
            return error.getMessage() + suggestion;
        }
        String kind = spec.usageMessage().synopsisSubcommandLabel().toLowerCase(Locale.ROOT);
        return "no such " + kind + ": '" + word + "'; there are " + names(spec) + suggestion;
    }

    /** The names of the subcommands, without their aliases. */
    private static String names(CommandSpec spec) {
        return spec.subcommands().values().stream()
                .map(CommandLine::getCommandName)
                .distinct()
                .collect(Collectors.joining(", "));
    }
}
