package io.github.nccl4j.internal.memory;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/**
 * Creates memory segments by reflection: the class exists since Java 22, and this package is compiled for Java 17. The
 * class is looked up at the first use.
 */
public final class Segments {
    private static final String CLASS = "java.lang.foreign.MemorySegment";
    private static final int SINCE = 22;

    private Segments() {}

    /** A class of its own, because it can't be initialised on an older Java. */
    private static final class Handles {
        static final Class<?> TYPE;
        static final MethodHandle OF_ADDRESS;
        static final MethodHandle REINTERPRET;

        static {
            try {
                TYPE = Class.forName(CLASS);
                MethodHandles.Lookup lookup = MethodHandles.lookup();
                OF_ADDRESS = lookup.findStatic(TYPE, "ofAddress", MethodType.methodType(TYPE, long.class));
                REINTERPRET = lookup.findVirtual(TYPE, "reinterpret", MethodType.methodType(TYPE, long.class));
            } catch (ReflectiveOperationException e) {
                throw new ExceptionInInitializerError(e);
            }
        }
    }

    public static <S> S of(Class<S> type, long address, long bytes) {
        if (!type.getName().equals(CLASS)) {
            throw new IllegalArgumentException("type must be " + CLASS + ".class: " + type.getName() + ".class");
        }
        if (Runtime.version().feature() < SINCE) {
            throw new UnsupportedOperationException(CLASS + " needs Java " + SINCE + ": this is "
                    + Runtime.version().feature());
        }
        try {
            Object segment = Handles.OF_ADDRESS.invoke(address);
            return type.cast(Handles.REINTERPRET.invoke(segment, bytes));
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }
}
