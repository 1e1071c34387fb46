package io.github.nccl4j.tools.support;

/** Threads that do not keep the JVM alive. */
public final class DaemonThreads {
    private DaemonThreads() {}

    /** Starts a thread. */
    public static Thread start(String name, Runnable body) {
        Thread thread = new Thread(body, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }
}
