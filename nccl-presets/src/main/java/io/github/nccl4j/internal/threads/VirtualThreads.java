package io.github.nccl4j.internal.threads;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/**
 * Detects virtual threads, which Java has since 21. A virtual thread that waits in native code pins its carrier, and
 * the threads for which it waits may need a carrier, too. Therefore calls that may wait run in a platform thread, or
 * poll.
 */
public final class VirtualThreads {
    private static final int FIRST_WITH = 21;
    private static final String PARALLELISM = "jdk.virtualThreadScheduler.parallelism";
    private static final MethodHandle IS_VIRTUAL = find();

    private VirtualThreads() {}

    private static MethodHandle find() {
        if (Runtime.version().feature() < FIRST_WITH) {
            return null;
        }
        try {
            return MethodHandles.publicLookup()
                    .findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    /** Returns true if the calling thread is virtual. */
    public static boolean isCurrent() {
        return isVirtual(Thread.currentThread());
    }

    private static boolean isVirtual(Thread thread) {
        if (IS_VIRTUAL == null) {
            return false;
        }
        try {
            return (boolean) IS_VIRTUAL.invokeExact(thread);
        } catch (Throwable impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    /** Returns a hint for the message of a timeout if the thread that waits in NCCL is virtual, else an empty text. */
    public static String ofCarrier(Thread inLibrary) {
        if (!isVirtual(inLibrary)) {
            return "";
        }
        String carriers = System.getProperty(
                PARALLELISM, Integer.toString(Runtime.getRuntime().availableProcessors()));
        return "the rank is a virtual thread, which holds its carrier while it waits in NCCL, and this process has "
                + carriers + " carriers (" + PARALLELISM
                + "): with more ranks in virtual threads, give each a platform thread";
    }
}
