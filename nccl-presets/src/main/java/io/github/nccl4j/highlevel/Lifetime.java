package io.github.nccl4j.highlevel;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * Whether a native thing may still be used. Uses may run side by side; closing waits for those under way and is done
 * once, whatever the number of threads that try. A use must not close what it uses.
 */
final class Lifetime {
    private static final AtomicLong CREATED = new AtomicLong();

    private final long serial = CREATED.getAndIncrement();
    private final ReentrantReadWriteLock lock = new ReentrantReadWriteLock();
    private final Object what;
    private volatile boolean closed;
    private Leaks.Watch watch;

    /** Of something whose {@code toString} names it in messages. */
    Lifetime(Object what) {
        this.what = what;
    }

    /** Reports the owner when it is dropped without being closed. */
    void watch(Object owner, String description) {
        watch = Leaks.watch(owner, description);
    }

    boolean isOpen() {
        return !closed;
    }

    void check() {
        if (closed) {
            throw new IllegalStateException(what + " is closed");
        }
    }

    /** Which of two to acquire first, where both are needed. */
    boolean isBefore(Lifetime other) {
        return serial < other.serial;
    }

    /** Begins a use; {@link #release()} ends it. */
    void acquire() {
        lock.readLock().lock();
        if (closed) {
            lock.readLock().unlock();
            check();
        }
    }

    void release() {
        lock.readLock().unlock();
    }

    /** Frees once. What can't be freed counts as closed too: a second attempt would free twice. */
    void close(Runnable free) {
        lock.writeLock().lock();
        try {
            if (!closed) {
                closed = true;
                Leaks.closed(watch);
                free.run();
            }
        } finally {
            lock.writeLock().unlock();
        }
    }
}
