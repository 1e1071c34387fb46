package io.github.nccl4j.tools.doctor;

import io.github.nccl4j.tools.launch.ChildProcesses;
import io.github.nccl4j.tools.support.DaemonThreads;
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

/** Runs other programs. Tests substitute known results. */
@FunctionalInterface
public interface Commands {

    /**
     * The result of a program.
     *
     * @param code its exit code (128 + signal number if it was killed), {@link #MISSING} or {@link #TIMED_OUT}
     * @param out its standard output
     * @param err its standard error, or the reason why it could not be started
     */
    record Result(int code, String out, String err) {

        /** The function in which a JVM crashed, in its output. */
        private static final Pattern CRASH = Pattern.compile("# Problematic frame:\\R# (.*)");

        /** The program could not be started. */
        static final int MISSING = -1;

        /** The program exceeded the time limit and was killed. */
        static final int TIMED_OUT = -2;

        /** Describes the failure; call only if {@code code} is not 0. */
        String failure() {
            return switch (code) {
                case MISSING -> err;
                case TIMED_OUT -> "timed out";
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
     * Runs a program and waits for its end; kills it when the time limit is over or the calling thread is interrupted.
     *
     * @param command the program and its arguments
     * @param environment variables to add to those of this process
     * @param limit the time limit
     * @return the result
     */
    Result run(List<String> command, Map<String, String> environment, Duration limit);

    /** {@return the implementation that runs programs on this machine} */
    static Commands ofThisMachine() {
        return (command, environment, limit) -> {
            ProcessBuilder builder = new ProcessBuilder(command);
            builder.environment().putAll(environment);
            Process process;
            try {
                process = ChildProcesses.start(builder);
            } catch (IOException e) {
                return new Result(Result.MISSING, "", e.getMessage());
            }
            CompletableFuture<String> out = text(process.getInputStream());
            CompletableFuture<String> err = text(process.getErrorStream());
            try {
                boolean ended = process.waitFor(limit.toMillis(), TimeUnit.MILLISECONDS);
                if (!ended) {
                    ChildProcesses.kill(process);
                }
                // With a timeout, because a surviving descendant may hold the streams open.
                return new Result(
                        ended ? process.exitValue() : Result.TIMED_OUT,
                        out.completeOnTimeout("", 1, TimeUnit.SECONDS).join(),
                        err.completeOnTimeout("", 1, TimeUnit.SECONDS).join());
            } catch (InterruptedException e) {
                ChildProcesses.kill(process);
                Thread.currentThread().interrupt();
                return new Result(Result.TIMED_OUT, "", "interrupted");
            }
        };
    }

    private static CompletableFuture<String> text(InputStream stream) {
        CompletableFuture<String> text = new CompletableFuture<>();
        DaemonThreads.start("output", () -> {
            try (stream) {
                text.complete(new String(stream.readAllBytes(), StandardCharsets.UTF_8));
            } catch (IOException e) {
                text.complete("");
            }
        });
        return text;
    }
}
