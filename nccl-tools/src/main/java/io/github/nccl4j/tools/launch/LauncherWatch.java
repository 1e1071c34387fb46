package io.github.nccl4j.tools.launch;

import io.github.nccl4j.tools.support.DaemonThreads;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;

/**
 * Ends a rank and its child processes when its launcher ends.
 *
 * <p>The launcher holds the other end of each rank's standard input, and writes to it only to make a {@link Spare} a rank. When
 * the launcher ends, even by {@code kill -9}, the kernel closes that end, and the rank reads end-of-file. The guard of {@link
 * ChildProcesses} kills ranks that are stopped or have no memory left.
 *
 * <p>Thread-safe.
 */
public final class LauncherWatch {

    /** System property of the ranks of a {@link Launcher}: its process id. */
    static final String PROPERTY = "nccl4j.launcher";

    /** System property of ranks that another launcher starts with {@link JavaCommand#ofOuterLauncher}. */
    static final String OUTER = "nccl4j.outerLauncher";

    /** Exit code of a rank whose launcher has ended: 128 + SIGTERM. */
    private static final int ORPHANED = 143;

    private LauncherWatch() {}

    /** {@return true if a {@link Launcher} started this JVM} */
    public static boolean isLaunched() {
        return System.getProperty(PROPERTY) != null;
    }

    /**
     * Returns true if this JVM must not launch ranks itself, independent of its arguments.
     *
     * @return true if this JVM was started with a command of {@link JavaCommand}
     */
    public static boolean isRank() {
        return isLaunched() || System.getProperty(OUTER) != null;
    }

    /**
     * Starts the watch if a {@link Launcher} started this JVM. Call first in {@code main}. In a spare, returns when the spare
     * has become a rank.
     */
    public static void start() {
        if (isLaunched()) {
            if (Spare.isSpare()) {
                Spare.awaitPlace();
            }
            DaemonThreads.start("launcher-watch", LauncherWatch::awaitLauncherEnd);
        }
    }

    /** Halts rather than exits, because a shutdown hook may wait for ranks that never answer. */
    private static void awaitLauncherEnd() {
        try (InputStream in = new FileInputStream(FileDescriptor.in)) {
            while (in.read() >= 0) {
                // Ignore the input; only its end counts.
            }
        } catch (IOException e) {
            // Same meaning as end-of-file.
        }
        try {
            ProcessHandle.current().descendants().forEach(ProcessHandle::destroyForcibly);
        } finally {
            // In a finally block, because the line above may run out of memory.
            Runtime.getRuntime().halt(ORPHANED);
        }
    }
}
