package io.github.nccl4j.highlevel;

import java.lang.System.Logger.Level;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * Whether a native thing may still be used. Uses may run side by side; closing waits for those under way and is done
 * once, whatever the number of threads that try. A use must not close what it uses.
 *
 * <p>What outlives a call, such as a device's work on a buffer, holds a pin instead: closing doesn't wait for it, lets no
 * new use begin, and leaves the freeing to the last pin.
 */
final class Lifetime {
    private static final AtomicLong CREATED = new AtomicLong();
    static final int CLOSED = Integer.MIN_VALUE;

    private static final VarHandle STATE;

    static {
        try {
            STATE = MethodHandles.lookup().findVarHandle(Lifetime.class, "state", int.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private final long serial = CREATED.getAndIncrement();
    private final ReentrantReadWriteLock lock = new ReentrantReadWriteLock();
    private final Object what;
    /** The number of pins, negative once it is closed. */
    private volatile int state;

    private Runnable free;
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
        return state >= 0;
    }

    /** How many pins there are, of what is closed, too. */
    int pins() {
        return state & ~CLOSED;
    }

    void check() {
        if (state < 0) {
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
        if (!isOpen()) {
            lock.readLock().unlock();
            check();
        }
    }

    void release() {
        lock.readLock().unlock();
    }

    /** Keeps the native thing alive beyond closing, until {@link #unpin()}, in any thread. Never waits. */
    void pin() {
        int pins;
        do {
            pins = state;
            if (pins < 0) {
                check();
            }
        } while (!STATE.compareAndSet(this, pins, pins + 1));
    }

    /** Ends a pin. Frees if that was the last and it is closed; as nobody expects an error then, it is only logged. */
    void unpin() {
        int before;
        do {
            before = state;
            if ((before & ~CLOSED) == 0) {
                throw new IllegalStateException(what + " is not pinned");
            }
        } while (!STATE.compareAndSet(this, before, before - 1));
        if (before - 1 == CLOSED) {
            try {
                free.run();
            } catch (RuntimeException failure) {
                System.getLogger("io.github.nccl4j")
                        .log(Level.WARNING, what + " was closed, but could not be freed later", failure);
            }
        }
    }

    /**
     * Frees once, or leaves that to the last pin. What can't be freed counts as closed too: a second attempt would free
     * twice.
     */
    void close(Runnable free) {
        lock.writeLock().lock();
        try {
            if (isOpen()) {
                // Before the state says so: the last pin may go right after.
                this.free = free;
                int pins = (int) STATE.getAndAdd(this, CLOSED);
                Leaks.closed(watch);
                if (pins == 0) {
                    free.run();
                }
            }
        } finally {
            lock.writeLock().unlock();
        }
    }
}
