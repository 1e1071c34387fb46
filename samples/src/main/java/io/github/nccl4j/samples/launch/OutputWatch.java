package io.github.nccl4j.samples.launch;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Ends a command whose standard output nobody reads any more, as SIGPIPE ends other programs: {@code nccl4j perf -N 0 | head}.
 * Java ignores that signal, and {@link System#out} keeps to itself that it can't write.
 */
public final class OutputWatch {
    private static final long INTERVAL_MILLIS = 250;

    /** 128 + SIGPIPE. */
    private static final int PIPE_CLOSED = 141;

    private static final int NOT_WRITTEN = 1;

    /** More than {@link Launcher} needs to end its ranks. */
    private static final long EXIT_MILLIS = 5000;

    private OutputWatch() {}

    /** Starts watching, except in a rank of a {@link Launcher}, which reads all that the rank writes; to be called in {@code main}. */
    public static void start() {
        if (!LauncherWatch.launched()) {
            thread(OutputWatch::watch);
        }
    }

    private static void watch() {
        while (!System.out.checkError()) {
            sleep(INTERVAL_MILLIS);
        }
        int code = isPipe() ? PIPE_CLOSED : NOT_WRITTEN;
        if (code == NOT_WRITTEN) {
            System.err.println("nccl4j: standard output can't be written to");
        }
        // A shutdown hook may wait for ranks that will never answer.
        thread(() -> {
            sleep(EXIT_MILLIS);
            Runtime.getRuntime().halt(code);
        });
        System.exit(code);
    }

    private static boolean isPipe() {
        try {
            String target = Files.readSymbolicLink(Path.of("/proc/self/fd/1")).toString();
            return target.startsWith("pipe:") || target.startsWith("socket:");
        } catch (IOException closed) {
            return false;
        }
    }

    private static void thread(Runnable body) {
        Thread thread = new Thread(body, "output-watch");
        thread.setDaemon(true);
        thread.start();
    }

    private static void sleep(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException nobodyInterruptsThis) {
            Thread.currentThread().interrupt();
        }
    }
}
