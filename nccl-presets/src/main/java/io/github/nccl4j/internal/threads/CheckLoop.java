package io.github.nccl4j.internal.threads;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.ToLongFunction;

/**
 * Checks objects periodically, in one daemon thread for all of them. The thread ends after a second without objects, and is
 * started again with the next one; nothing that a check throws ends it. Thread-safe.
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
    /** Used by the thread. */
    private long idleSince;

    /**
     * Creates a loop without objects.
     *
     * @param name the name of the thread
     * @param check checks the objects, removes from the list those that need no further check, and returns the pause until
     *     the next check in nanoseconds; what it throws is logged, and it is called again soon
     */
    public CheckLoop(String name, ToLongFunction<List<T>> check) {
        this.name = name;
        this.check = check;
    }

    /**
     * Adds an object, which is checked soon for the first time.
     *
     * @throws IllegalStateException if the thread can't be started; the object is not added then
     */
    public void add(T one) {
        synchronized (added) {
            added.add(one);
            if (thread == null) {
                try {
                    thread = DaemonThreads.start(name, this::run);
                } finally {
                    if (thread == null) {
                        added.clear();
                    }
                }
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
        idleSince = System.nanoTime();
        List<T> all = new ArrayList<>();
        ServiceLoop.run(name, () -> checkOnce(all));
    }

    /** Returns false if the thread ends. */
    private boolean checkOnce(List<T> all) {
        synchronized (added) {
            all.addAll(added);
            added.clear();
            if (!all.isEmpty()) {
                idleSince = System.nanoTime();
            } else if (System.nanoTime() - idleSince > LINGER) {
                thread = null;
                return false;
            }
        }
        LockSupport.parkNanos(check.applyAsLong(all));
        return true;
    }
}
