package io.github.nccl4j.samples.doctor;

import io.github.nccl4j.samples.launch.ChildProcesses;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Runs other programs. Tests put known answers in its place. */
@FunctionalInterface
public interface Commands {

    /**
     * What a program left.
     *
     * @param code its exit code, 128 + signal if it was killed; {@link #MISSING} or {@link #LATE}
     * @param out its output
     * @param err its errors; why it could not be started, if so
     */
    record Result(int code, String out, String err) {

        /** What a JVM prints of the function in which it crashed. */
        private static final Pattern CRASH = Pattern.compile("# Problematic frame:\\R# (.*)");

        /** The program could not be started. */
        static final int MISSING = -1;

        /** It did not end in time, and was killed. */
        static final int LATE = -2;

        /** Why there is no use in the output. */
        String failure() {
            return switch (code) {
                case MISSING -> err;
                case LATE -> "it did not end in time";
                default -> {
                    String last = err.strip();
                    last = last.substring(last.lastIndexOf('\n') + 1);
                    Matcher frame = CRASH.matcher(out);
                    String reason = frame.find() ? "a crash in " + frame.group(1) : last;
                    yield "exit code " + code + (reason.isEmpty() ? "" : ": " + reason);
                }
            };
        }
    }

    /**
     * Runs a program to its end, or kills it.
     *
     * @param command the program and its arguments
     * @param environment variables that it gets besides those of this process
     * @param limit how long it may take
     * @return what it left
     */
    Result run(List<String> command, Map<String, String> environment, Duration limit);

    /** {@return what really runs them} */
    static Commands ofThisMachine() {
        return (command, environment, limit) -> {
            ProcessBuilder builder = new ProcessBuilder(command);
            builder.environment().putAll(environment);
            Process process;
            try {
                process = ChildProcesses.start(builder);
            } catch (IOException missing) {
                return new Result(Result.MISSING, "", missing.getMessage());
            }
            CompletableFuture<String> out = text(process.getInputStream());
            CompletableFuture<String> err = text(process.getErrorStream());
            try {
                boolean ended = process.waitFor(limit.toMillis(), TimeUnit.MILLISECONDS);
                if (!ended) {
                    ChildProcesses.kill(process);
                }
                // What a descendant that lives on holds open is not waited for.
                return new Result(
                        ended ? process.exitValue() : Result.LATE,
                        out.completeOnTimeout("", 1, TimeUnit.SECONDS).join(),
                        err.completeOnTimeout("", 1, TimeUnit.SECONDS).join());
            } catch (InterruptedException interrupted) {
                ChildProcesses.kill(process);
                Thread.currentThread().interrupt();
                return new Result(Result.LATE, "", "interrupted");
            }
        };
    }

    private static CompletableFuture<String> text(InputStream stream) {
        CompletableFuture<String> text = new CompletableFuture<>();
        Thread reader = new Thread(
                () -> {
                    try (stream) {
                        text.complete(new String(stream.readAllBytes(), StandardCharsets.UTF_8));
                    } catch (IOException killed) {
                        text.complete("");
                    }
                },
                "output");
        reader.setDaemon(true);
        reader.start();
        return text;
    }
}
