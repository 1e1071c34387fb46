package io.github.nccl4j.samples.support;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

/** Processes that are known by a variable of their environment, which all descendants inherit. */
public final class MarkedProcesses {
    /** The variable. */
    public static final String VARIABLE = "MARK_OF_A_TEST";

    private final String mark = UUID.randomUUID().toString();

    /** Marks a process that is to be started. */
    public ProcessBuilder mark(ProcessBuilder builder) {
        builder.environment().put(VARIABLE, mark);
        return builder;
    }

    /** The value of the variable. */
    public String value() {
        return mark;
    }

    /** Those that run, each by its process id and command. A zombie has no environment any more. */
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
        } catch (IOException endedOrNotOurs) {
            return "";
        }
    }

    /** Waits until so many run. */
    public void await(int count) throws IOException, InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        for (List<String> now = running(); now.size() != count; now = running()) {
            if (System.nanoTime() > end) {
                throw new AssertionError("not " + count + " processes, but " + now);
            }
            Thread.sleep(10);
        }
    }

    /** Fails if any still run after some seconds. */
    public void assertNoneLeft() throws IOException, InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
        List<String> left = running();
        while (!left.isEmpty() && System.nanoTime() < end) {
            Thread.sleep(10);
            left = running();
        }
        if (!left.isEmpty()) {
            left.forEach(process -> ProcessHandle.of(Long.parseLong(process.substring(0, process.indexOf(' '))))
                    .ifPresent(ProcessHandle::destroyForcibly));
            throw new AssertionError("left: " + left);
        }
    }
}
