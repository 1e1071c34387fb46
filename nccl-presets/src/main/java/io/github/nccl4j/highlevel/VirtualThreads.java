package io.github.nccl4j.highlevel;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/**
 * Tells virtual threads apart, which Java has from 21 on. One that waits in native code holds its carrier, and the threads
 * that it waits for may need a carrier, too: what may wait there is done in a platform thread, or by asking again and again.
 */
final class VirtualThreads {
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

    /** True if the calling thread is a virtual one. */
    static boolean isCurrent() {
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

    /** What the message of a deadline says of a thread that waits in a call of NCCL; empty if it is not a virtual one. */
    static String ofCarrier(Thread inLibrary) {
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
