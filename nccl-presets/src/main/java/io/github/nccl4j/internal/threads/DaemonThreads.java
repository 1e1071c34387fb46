package io.github.nccl4j.internal.threads;

import java.util.concurrent.ThreadFactory;

/** Names and starts the threads of this library. All are daemons, which do not prevent a program from ending. */
public final class DaemonThreads {
    private DaemonThreads() {}

    /** Starts a thread. */
    public static Thread start(String name, Runnable body) {
        Thread thread = create(name, body);
        thread.start();
        return thread;
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
