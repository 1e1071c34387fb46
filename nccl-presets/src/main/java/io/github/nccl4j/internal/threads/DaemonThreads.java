package io.github.nccl4j.internal.threads;

import java.util.concurrent.ThreadFactory;

/** Names and starts the threads of this library. All are daemons, which do not prevent a program from ending. */
public final class DaemonThreads {
    private DaemonThreads() {}

    /**
     * Starts a thread.
     *
     * @throws IllegalStateException if the system has no thread for this process
     */
    public static Thread start(String name, Runnable body) {
        Thread thread = create(name, body);
        start(thread);
        return thread;
    }

    /** As {@link #start(String, Runnable)}, for a thread that was created. */
    public static void start(Thread thread) {
        try {
            thread.start();
        } catch (OutOfMemoryError none) {
            throw new IllegalStateException(
                    "the thread '" + thread.getName() + "' cannot be started: " + none.getMessage()
                            + "; raise the limit of the processes of the user (ulimit -u) or of the container (pids.max)",
                    none);
        }
    }

    /** Starts a thread, or runs its body in this one if the system has no thread for this process. */
    public static void startOrRun(String name, Runnable body) {
        try {
            start(name, body);
        } catch (IllegalStateException | OutOfMemoryError none) {
            body.run();
        }
    }

    /** Creates a thread that the caller starts. */
    public static Thread create(String name, Runnable body) {
        return asDaemon(new Thread(body, name));
    }

    /** Returns a factory for threads that outlive their first task, and therefore inherit no thread-local values. */
    public static ThreadFactory factory(String name) {
        return body -> asDaemon(new Thread(null, body, name, 0, false));
    }

    private static Thread asDaemon(Thread thread) {
        thread.setDaemon(true);
        return thread;
    }
}
