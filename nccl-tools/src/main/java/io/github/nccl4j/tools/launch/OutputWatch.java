package io.github.nccl4j.tools.launch;

import io.github.nccl4j.tools.support.DaemonThreads;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Ends a command when the reader of its standard output has gone, as in {@code nccl4j perf -N 0 | head}.
 *
 * <p>SIGPIPE ends other programs in this case; Java ignores this signal, and {@link System#out} hides write errors.
 */
public final class OutputWatch {
    private static final long INTERVAL_MILLIS = 250;

    /** 128 + SIGPIPE. */
    private static final int PIPE_CLOSED = 141;

    private static final int WRITE_FAILED = 1;

    /** Longer than {@link Launcher} needs to end its ranks. */
    private static final long EXIT_MILLIS = 5000;

    private OutputWatch() {}

    /**
     * Starts the watch, except in a rank of a {@link Launcher}, which reads the whole output of its ranks. Call in {@code main}.
     */
    public static void start() {
        if (!LauncherWatch.isLaunched()) {
            startThread(OutputWatch::watch);
        }
    }

    private static void watch() {
        while (!System.out.checkError()) {
            sleep(INTERVAL_MILLIS);
        }
        int code = isPipe() ? PIPE_CLOSED : WRITE_FAILED;
        if (code == WRITE_FAILED) {
            System.err.println("nccl4j: can't write to standard output");
        }
        // Halt if exit takes too long: a shutdown hook may wait for ranks that never answer.
        startThread(() -> {
            sleep(EXIT_MILLIS);
            Runtime.getRuntime().halt(code);
        });
        System.exit(code);
    }

    private static boolean isPipe() {
        try {
            String target = Files.readSymbolicLink(Path.of("/proc/self/fd/1")).toString();
            return target.startsWith("pipe:") || target.startsWith("socket:");
        } catch (IOException e) {
            return false;
        }
    }

    private static void startThread(Runnable body) {
        DaemonThreads.start("output-watch", body);
    }

    private static void sleep(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
