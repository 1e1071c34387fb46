package io.github.nccl4j.internal.threads;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * Number of reasons in this process for which operations must take the slow path: open groups, captures, and a
 * recording of JDK Flight Recorder. It is 0 almost always, so one check per operation covers them all.
 */
public final class SlowPath {
    private static final VarHandle COUNT;

    static {
        try {
            COUNT = MethodHandles.lookup().findStaticVarHandle(SlowPath.class, "count", int.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    /** The negated number: the fast path checks the sign bit of several values at once. */
    private static int count;

    private SlowPath() {}

    /**
     * Returns true if there is any reason. A plain read: correct for a thread that added the reason itself, or that was
     * synchronized with the thread that did.
     */
    public static boolean isRequired() {
        return count < 0;
    }

    /** Returns a negative number if {@link #isRequired} is true, else 0. */
    public static int sign() {
        return count;
    }

    public static void begin() {
        COUNT.getAndAdd(-1);
    }

    public static void end() {
        COUNT.getAndAdd(1);
    }
}
