package io.github.nccl4j.internal.threads;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.ToLongFunction;

/**
 * Checks objects periodically, in one daemon thread for all of them. The thread ends after a second without objects, and is
 * started again with the next one. Thread-safe.
 *
 * @param <T> the type of the objects
 */
public final class CheckLoop<T> {
    private static final long LINGER = 1_000_000_000;

    private final String name;
    private final ToLongFunction<List<T>> check;
    private final List<T> added = new ArrayList<>();
    /** Guarded by {@link #added}. */
    private Thread thread;

    /**
     * Creates a loop without objects.
     *
     * @param name the name of the thread
     * @param check checks the objects, removes from the list those that need no further check, and returns the pause until
     *     the next check in nanoseconds; must not throw
     */
    public CheckLoop(String name, ToLongFunction<List<T>> check) {
        this.name = name;
        this.check = check;
    }

    /** Adds an object, which is checked soon for the first time. */
    public void add(T one) {
        synchronized (added) {
            added.add(one);
            if (thread == null) {
                thread = DaemonThreads.start(name, this::run);
            } else {
                // The object may need a shorter pause than the current one.
                LockSupport.unpark(thread);
            }
        }
    }

    /** Makes the next check soon. */
    public void wake() {
        synchronized (added) {
            LockSupport.unpark(thread);
        }
    }

    private void run() {
        List<T> all = new ArrayList<>();
        long idleSince = System.nanoTime();
        while (true) {
            synchronized (added) {
                all.addAll(added);
                added.clear();
                if (!all.isEmpty()) {
                    idleSince = System.nanoTime();
                } else if (System.nanoTime() - idleSince > LINGER) {
                    thread = null;
                    return;
                }
            }
            LockSupport.parkNanos(check.applyAsLong(all));
        }
    }
}
