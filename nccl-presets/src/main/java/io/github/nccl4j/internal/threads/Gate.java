package io.github.nccl4j.internal.threads;

import io.github.nccl4j.internal.binding.ProcessBarrier;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * The lock of a communicator. Admits one thread at a time, and no thread once the communicator is being freed. Entering
 * again costs the last thread only a few plain loads and stores.
 *
 * <p>The thread that entered last holds the pass. It first marks the pass as inside and then checks that the pass is
 * still valid. A thread that takes the pass away first invalidates it, then makes every thread of the process execute a
 * memory barrier, and then checks whether the holder is inside: at least one of the two sees the other's store. If the
 * system has no such barrier, the holder executes a fence itself.
 *
 * <p>The gate also counts the operations of its holders, in the word that marks the pass as inside. This saves a store
 * per operation; stores before a native call are costly, because the return from it has a memory barrier.
 */
public final class Gate {
    private static final boolean PROCESS_BARRIER = ProcessBarrier.pass();
    private static final VarHandle PASS;
    private static final VarHandle COUNTED;

    static {
        try {
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            PASS = lookup.findVarHandle(Gate.class, "pass", Pass.class);
            COUNTED = lookup.findVarHandle(Pass.class, "counted", long.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    /** Permission of one thread to enter. A pass that was invalidated never becomes valid again. */
    public static final class Pass {
        private final Thread holder;
        /** The holder if the pass allows to enter again, else null. */
        private final Thread regular;

        /** The number of operations so far; its complement, which is negative, while the holder is inside. */
        private long counted;

        private Pass(Thread holder, boolean again, long counted) {
            this.holder = holder;
            regular = again ? holder : null;
            this.counted = counted;
        }

        public void leave() {
            COUNTED.setRelease(this, ~counted);
        }

        /** Counts an operation and leaves. */
        public void countAndLeave() {
            COUNTED.setRelease(this, -counted);
        }

        /** Counts an operation and stays inside. */
        public void count() {
            COUNTED.setRelease(this, counted - 1);
        }

        /** Returns the number of operations so far or its complement, for {@link Gate#enterAgain}. */
        public long counted() {
            return counted;
        }

        /** Returns the number of the next operation, from 1. For the holder, while inside. */
        public long next() {
            return -counted;
        }

        private long operations() {
            long now = (long) COUNTED.getAcquire(this);
            return now < 0 ? ~now : now;
        }

        public boolean isInside() {
            return (long) COUNTED.getAcquire(this) < 0;
        }

        /** As {@link #isInside}, but false if the holder has ended: it left a group open and is in no call. */
        public boolean isHeld() {
            return isInside() && holder.isAlive();
        }

        public Thread holder() {
            return holder;
        }
    }

    private final Function<Thread, RuntimeException> inUse;
    private final Runnable prepareThread;
    private Pass pass = new Pass(null, false, 0);
    /**
     * Supplies the exception for threads that want to enter a barred gate; null if the gate is open. Guarded by this.
     */
    private Supplier<RuntimeException> barred;
    /** The pass that was inside when the gate was barred, and may still be; else null. Written with the lock held. */
    private volatile Pass evicted;
    /** The number of operations of invalidated passes. Written with the lock held. */
    private volatile long operations;

    /**
     * Creates an open gate.
     *
     * @param inUse creates the exception for a thread that wants to enter while another is inside, from that other
     *     thread
     * @param prepareThread runs in a thread that enters and was not the last one inside
     */
    public Gate(Function<Thread, RuntimeException> inUse, Runnable prepareThread) {
        this.inUse = inUse;
        this.prepareThread = prepareThread;
    }

    /** Call while already waiting: the first barrier of the process can take 30 ms. */
    public static void prepare() {}

    /** Enters the gate; {@link Pass#leave} leaves it. Not reentrant: the first leave would admit other threads. */
    public Pass enter() {
        Pass last = last();
        return enterAgain(last, last.counted()) ? last : enterNew();
    }

    /** Returns the last pass as this thread sees it; {@link #enterAgain} validates it. */
    public Pass last() {
        return pass;
    }

    /**
     * Enters if the calling thread was the last one inside; if this returns false, {@link #enterNew} is to be called.
     * Separate from {@link #enter} for a hot path that needs the count as well: reading it after the store would stall.
     *
     * @param mine the result of {@link #last}
     * @param counted the result of its {@link Pass#counted}
     */
    public boolean enterAgain(Pass mine, long counted) {
        if (mine.regular != Thread.currentThread() || counted < 0) {
            return false;
        }
        mine.counted = ~counted;
        if (PROCESS_BARRIER) {
            // No instruction for the processor, but the compiler must keep the order of the accesses before and after.
            VarHandle.releaseFence();
        } else {
            VarHandle.fullFence();
        }
        if ((Pass) PASS.getVolatile(this) == mine) {
            return true;
        }
        mine.leave();
        return false;
    }

    /** Enters as {@link #enter}, after {@link #enterAgain} returned false. */
    public Pass enterNew() {
        prepareThread.run();
        return enter(Thread.currentThread(), false);
    }

    /** Returns the number of operations. May be called from any thread, even with locks held. */
    public long operations() {
        Pass inside = evicted;
        long now = Math.max(operations, ((Pass) PASS.getVolatile(this)).operations());
        return inside == null ? now : Math.max(now, inside.operations());
    }

    /** Returns the thread that entered last, or null if it is unknown. */
    public Thread lastHolder() {
        return ((Pass) PASS.getVolatile(this)).holder;
    }

    /** Returns the pass of the thread that is inside, or null. */
    public synchronized Pass inside() {
        if (evicted != null && evicted.isHeld()) {
            return evicted;
        }
        return pass.isHeld() ? pass : null;
    }

    /** Returns true if the calling thread is inside. */
    public synchronized boolean isInside() {
        return isMine(pass) || evicted != null && isMine(evicted);
    }

    private static boolean isMine(Pass one) {
        return one.holder == Thread.currentThread() && one.isInside();
    }

    /** Enters even if the gate is barred: for calls that are allowed in that state. */
    public Pass enterBarred() {
        prepareThread.run();
        return enter(Thread.currentThread(), true);
    }

    private Pass enter(Thread me, boolean evenIfBarred) {
        Supplier<RuntimeException> reason;
        synchronized (this) {
            if (barred == null || evenIfBarred) {
                return enterFor(me);
            }
            reason = barred;
        }
        // Without the lock: it may take a while.
        throw reason.get();
    }

    /** Needs the lock. */
    private Pass enterFor(Thread me) {
        if (evicted != null) {
            if (evicted.isHeld()) {
                throw inUse.apply(evicted.holder);
            }
            operations = Math.max(operations, evicted.operations());
            evicted = null;
        }
        Pass before = invalidate();
        if (before.isHeld()) {
            PASS.setVolatile(this, before);
            throw inUse.apply(before.holder);
        }
        operations = Math.max(operations, before.operations());
        // A pass for a barred gate does not allow to enter again.
        Pass mine = new Pass(me, barred == null, ~operations);
        PASS.setVolatile(this, mine);
        return mine;
    }

    /**
     * Bars the gate. Returns the pass of the thread that may be inside, whose {@link Pass#isInside} tells when it has
     * left.
     *
     * @param reason supplies the exception for threads that want to enter
     * @param change makes the state change that the reason reports; runs before any thread gets the exception
     */
    public synchronized Pass bar(Supplier<RuntimeException> reason, Runnable change) {
        change.run();
        barred = reason;
        Pass before = invalidate();
        operations = Math.max(operations, before.operations());
        if (before.isInside()) {
            evicted = before;
        }
        return evicted != null ? evicted : before;
    }

    /**
     * Opens a barred gate.
     *
     * @param change makes the state change that ends the reason; runs before threads are admitted
     */
    public synchronized void open(Runnable change) {
        change.run();
        barred = null;
    }

    private Pass invalidate() {
        Pass before = pass;
        PASS.setVolatile(this, new Pass(null, false, before.operations()));
        if (!PROCESS_BARRIER || !ProcessBarrier.pass()) {
            VarHandle.fullFence();
        }
        return before;
    }
}
