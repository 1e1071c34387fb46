package io.github.nccl4j.samples.launch;

import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;

/**
 * Ends a rank, and the processes that it has started, when its launcher is gone.
 *
 * <p>The launcher holds the other end of each rank's standard input and never writes to it. However the launcher ends, also by
 * {@code kill -9}, the kernel closes that end, and the rank reads end-of-file. A rank that is stopped or has no memory left is
 * killed by the guard of {@link ChildProcesses}.
 */
public final class LauncherWatch {

    /** Set, to the launcher's process id, in each JVM that {@link JavaCommand} starts. */
    static final String PROPERTY = "nccl4j.launcher";

    /** Set in each JVM whose command {@link JavaCommand#ofOuterLauncher} makes. */
    static final String OUTER = "nccl4j.outerLauncher";

    /** 128 + SIGTERM: what a rank ends with when its launcher is gone. */
    private static final int ORPHANED = 143;

    private LauncherWatch() {}

    /** {@return whether this JVM was started by a {@link Launcher}} */
    public static boolean launched() {
        return System.getProperty(PROPERTY) != null;
    }

    /** {@return whether this JVM is a rank whatever its arguments say: of a {@link Launcher}, or of another that it is known to have} */
    public static boolean isRank() {
        return launched() || System.getProperty(OUTER) != null;
    }

    /** Starts watching, if this JVM was started by a {@link Launcher}; to be called first thing in {@code main}. */
    public static void start() {
        if (launched()) {
            Thread watch = new Thread(LauncherWatch::awaitEnd, "launcher-watch");
            watch.setDaemon(true);
            watch.start();
        }
    }

    /** Halts instead of exits: a shutdown hook may wait for ranks that will never answer. */
    private static void awaitEnd() {
        try (InputStream in = new FileInputStream(FileDescriptor.in)) {
            while (in.read() >= 0) {
                // The launcher sends nothing; whatever comes is not for us.
            }
        } catch (IOException gone) {
            // Same meaning as end-of-file.
        }
        try {
            ProcessHandle.current().descendants().forEach(ProcessHandle::destroyForcibly);
        } finally {
            // Also without the memory for the line above.
            Runtime.getRuntime().halt(ORPHANED);
        }
    }
}
