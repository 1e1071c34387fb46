package io.github.nccl4j.tools.support;

import io.github.nccl4j.testing.Waiting;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;

/** Finds processes by a variable of their environment, which all descendants inherit. Each instance has its own mark. */
public final class MarkedProcesses {
    /** The name of the variable. */
    public static final String VARIABLE = "MARK_OF_A_TEST";

    private final String mark = UUID.randomUUID().toString();

    /** Adds the mark to the environment of a process. */
    public ProcessBuilder mark(ProcessBuilder builder) {
        builder.environment().put(VARIABLE, mark);
        return builder;
    }

    /** The mark: the value of the variable. */
    public String value() {
        return mark;
    }

    /** The running processes with the mark, each as process id and command. Zombies have no environment and are not included. */
    public List<String> running() throws IOException {
        String entry = "\0" + VARIABLE + "=" + mark + "\0";
        try (DirectoryStream<Path> processes = Files.newDirectoryStream(Path.of("/proc"), "[0-9]*")) {
            List<String> found = new ArrayList<>();
            for (Path process : processes) {
                if (("\0" + read(process.resolve("environ"))).contains(entry)) {
                    found.add(process.getFileName() + " "
                            + read(process.resolve("cmdline")).replace('\0', ' '));
                }
            }
            return found;
        }
    }

    private static String read(Path file) {
        try {
            return Files.readString(file, StandardCharsets.ISO_8859_1);
        } catch (IOException e) {
            // The process has ended, or belongs to another user.
            return "";
        }
    }

    /** Waits until {@code count} marked processes run. */
    public void await(int count) {
        Waiting.value(count + " processes", this::running, now -> now.size() == count);
    }

    /** Fails if a marked process still runs after 20 seconds. */
    public void assertNoneLeft() throws IOException {
        try {
            Waiting.value("no processes", this::running, List::isEmpty, Duration.ofSeconds(20));
        } catch (AssertionError e) {
            for (String process : running()) {
                ProcessHandle.of(Long.parseLong(process.substring(0, process.indexOf(' '))))
                        .ifPresent(ProcessHandle::destroyForcibly);
            }
            throw e;
        }
    }
}
