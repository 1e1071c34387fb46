package io.github.nccl4j.internal.memory;

import java.lang.System.Logger.Level;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * Lifetime of a native object. Uses may run in parallel; closing waits for the uses under way and is done once, however
 * many threads try. A use must not close the object.
 *
 * <p>Work that outlives a call, such as a device's work on a buffer, holds a pin instead: closing does not wait for it,
 * prevents new uses, and leaves the freeing to the last pin.
 */
public final class Lifetime {
    private static final AtomicLong CREATED = new AtomicLong();
    public static final int CLOSED = Integer.MIN_VALUE;

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
    /** The number of pins; negative once the object is closed. */
    private volatile int state;

    private Runnable free;
    private Leaks.Watch watch;

    /** Creates the lifetime of an object whose {@code toString} names it in messages. */
    public Lifetime(Object what) {
        this.what = what;
    }

    /** Reports the owner as a leak if it is dropped without being closed. */
    public void watch(Object owner, String description) {
        watch = Leaks.watch(owner, description);
    }

    public boolean isOpen() {
        return state >= 0;
    }

    /** Returns the number of pins, of a closed object, too. */
    public int pins() {
        return state & ~CLOSED;
    }

    public void check() {
        if (state < 0) {
            throw new IllegalStateException(what + " is closed");
        }
    }

    /** Returns true if this lifetime is to be acquired before the other where both are needed. */
    public boolean isBefore(Lifetime other) {
        return serial < other.serial;
    }

    /** Begins a use; {@link #release()} ends it. */
    public void acquire() {
        lock.readLock().lock();
        if (!isOpen()) {
            lock.readLock().unlock();
            check();
        }
    }

    public void release() {
        lock.readLock().unlock();
    }

    /**
     * Keeps the native object alive beyond closing, until {@link #unpin()}, which may be called in any thread. Never
     * waits.
     */
    public void pin() {
        int pins;
        do {
            pins = state;
            if (pins < 0) {
                check();
            }
        } while (!STATE.compareAndSet(this, pins, pins + 1));
    }

    /**
     * Ends a pin. Frees the object if it is closed and this was the last pin; a failure is logged, because no caller
     * expects it.
     */
    public void unpin() {
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
     * Closes the object: frees it now, or leaves that to the last pin. An object that could not be freed is closed
     * nevertheless, because a second attempt would free it twice.
     */
    public void close(Runnable free) {
        lock.writeLock().lock();
        try {
            if (isOpen()) {
                // Stored before the state changes: the last pin may end right after.
                this.free = free;
                int pins = (int) STATE.getAndAdd(this, CLOSED);
                Leaks.endWatch(watch);
                if (pins == 0) {
                    free.run();
                }
            }
        } finally {
            lock.writeLock().unlock();
        }
    }
}
