package io.github.nccl4j.highlevel;

import io.github.nccl4j.library.ProcessBarrier;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * Lets one thread at a time into a communicator, and none into one that is being freed, at the cost of some plain loads
 * and stores for the thread that was in last.
 *
 * <p>That thread holds the pass. It says in the pass that it is inside, and then looks whether the pass is still valid.
 * Who wants to take the pass away invalidates it first, makes every thread of the process pass a memory barrier, and then
 * looks whether the holder is inside: one of the two sees the other. Where the system has no such barrier, the holder
 * has one of its own.
 *
 * <p>The gate also counts the operations of those who were inside, in the word that says that they are: a store less for
 * each, and before a call of C each store costs, since the way back has a memory barrier.
 */
final class Gate {
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

    /** Permission of one thread to go in. A pass that was taken away never becomes valid again. */
    static final class Pass {
        private final Thread holder;
        /** The holder if the pass is good for going in again, else null. */
        private final Thread regular;

        /** The number of operations so far; while the holder is inside its complement, which is negative. */
        private long counted;

        private Pass(Thread holder, boolean again, long counted) {
            this.holder = holder;
            regular = again ? holder : null;
            this.counted = counted;
        }

        void leave() {
            COUNTED.setRelease(this, ~counted);
        }

        /** Counts an operation and goes out. */
        void countAndLeave() {
            COUNTED.setRelease(this, -counted);
        }

        /** Counts an operation and stays inside. */
        void count() {
            COUNTED.setRelease(this, counted - 1);
        }

        /** The number of operations so far, or its complement, for {@link Gate#enterAgain}. */
        long counted() {
            return counted;
        }

        /** The number of the next operation, from 1; for the holder, who is inside. */
        long next() {
            return -counted;
        }

        private long operations() {
            long now = (long) COUNTED.getAcquire(this);
            return now < 0 ? ~now : now;
        }

        boolean isInside() {
            return (long) COUNTED.getAcquire(this) < 0;
        }

        /** As {@link #isInside}, unless the thread has ended: it has left a group open, and is in no call. */
        boolean isHeld() {
            return isInside() && holder.isAlive();
        }

        Thread holder() {
            return holder;
        }
    }

    private final Function<Thread, RuntimeException> inUse;
    private final Runnable prepareThread;
    private Pass pass = new Pass(null, false, 0);
    /** Why nobody may go in, else null. Guarded by this. */
    private Supplier<RuntimeException> barred;
    /** Who was inside when the gate was barred, and may be still; else null. Written by who has the lock. */
    private volatile Pass evicted;
    /** The operations of those whose passes are gone. Written by who has the lock. */
    private volatile long operations;

    /**
     * An open gate.
     *
     * @param inUse what a thread gets while another is inside, made of that other
     * @param prepareThread what a thread does that goes in and was not in last
     */
    Gate(Function<Thread, RuntimeException> inUse, Runnable prepareThread) {
        this.inUse = inUse;
        this.prepareThread = prepareThread;
    }

    /** For who waits anyway: the process' first barrier takes the system up to 30 ms. */
    static void prepare() {}

    /** Goes in; {@link Pass#leave} goes out. Not again before that, or the first to leave would let others in. */
    Pass enter() {
        Pass last = last();
        return enterAgain(last, last.counted()) ? last : enterNew();
    }

    /** The pass of who was in last, as far as this thread knows: {@link #enterAgain} looks again. */
    Pass last() {
        return pass;
    }

    /**
     * Goes in if the thread was in last, as {@link #enter}; else that is still to be done, by {@link #enterNew}. By itself
     * for a hot path that needs the number, too, and would wait for what was just written.
     *
     * @param mine what {@link #last} has said
     * @param counted what it has counted
     */
    boolean enterAgain(Pass mine, long counted) {
        if (mine.regular != Thread.currentThread() || counted < 0) {
            return false;
        }
        mine.counted = ~counted;
        if (PROCESS_BARRIER) {
            // Nothing for the processor, but the compiler must keep the order of what is before and what is after.
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

    /** Goes in, as {@link #enter}, where {@link #enterAgain} did not. */
    Pass enterNew() {
        prepareThread.run();
        return enter(Thread.currentThread(), false);
    }

    /** How many operations were counted. From any thread, also one that holds locks. */
    long operations() {
        Pass inside = evicted;
        long now = Math.max(operations, ((Pass) PASS.getVolatile(this)).operations());
        return inside == null ? now : Math.max(now, inside.operations());
    }

    /** Who was in last, or null if that is not known. */
    Thread lastHolder() {
        return ((Pass) PASS.getVolatile(this)).holder;
    }

    /** The pass of a thread that is inside, else null. */
    synchronized Pass inside() {
        if (evicted != null && evicted.isHeld()) {
            return evicted;
        }
        return pass.isHeld() ? pass : null;
    }

    /** Whether the calling thread is inside. */
    synchronized boolean isInside() {
        return isMine(pass) || evicted != null && isMine(evicted);
    }

    private static boolean isMine(Pass one) {
        return one.holder == Thread.currentThread() && one.isInside();
    }

    /** Goes in although the gate is barred: for what is allowed in a state that bars all else. */
    Pass enterBarred() {
        prepareThread.run();
        return enter(Thread.currentThread(), true);
    }

    private synchronized Pass enter(Thread me, boolean evenIfBarred) {
        if (barred != null && !evenIfBarred) {
            throw barred.get();
        }
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
        // What was let in through a barred gate does not come in again by itself.
        Pass mine = new Pass(me, barred == null, ~operations);
        PASS.setVolatile(this, mine);
        return mine;
    }

    /**
     * Lets nobody in from now on, and tells who is inside, by a pass of which {@link Pass#isInside} is to be asked.
     *
     * @param reason what who wants in gets instead
     * @param change what the reason tells of: nobody is told of it before it is made
     */
    synchronized Pass bar(Supplier<RuntimeException> reason, Runnable change) {
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
     * Lets threads in again.
     *
     * @param change what ends the reason that they were not let in for: nobody is told of that after it
     */
    synchronized void open(Runnable change) {
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
