package io.github.nccl4j.highlevel;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * How many things are under way in the process for which operations must look further: open groups, captures, and a
 * recording of JDK Flight Recorder. Almost always none, which is asked once in an operation for all of them.
 */
final class SlowPath {
    private static final VarHandle COUNT;

    static {
        try {
            COUNT = MethodHandles.lookup().findStaticVarHandle(SlowPath.class, "count", int.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    /** Their number, negative: hot paths look at the sign of several things at once. */
    private static int count;

    private SlowPath() {}

    /** Whether there are any. A plain read, for a thread that began one itself or was told of it by who did. */
    static boolean isRequired() {
        return count < 0;
    }

    /** Negative if there are any, as {@link #isRequired}. */
    static int sign() {
        return count;
    }

    static void begin() {
        COUNT.getAndAdd(-1);
    }

    static void end() {
        COUNT.getAndAdd(1);
    }
}
