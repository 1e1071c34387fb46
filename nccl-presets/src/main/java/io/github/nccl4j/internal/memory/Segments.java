package io.github.nccl4j.internal.memory;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.util.function.Consumer;

/**
 * The memory segments of some memory, which can't be accessed after {@link #close}. Creates them by reflection: the
 * classes exist since Java 22, and this package is compiled for Java 17. They are looked up at the first use.
 *
 * <p>Not thread-safe. The segments may be used in any thread.
 */
public final class Segments implements AutoCloseable {
    private static final String CLASS = "java.lang.foreign.MemorySegment";
    private static final int SINCE = 22;

    private final Object arena = call(Handles.OF_SHARED);

    /** A class of its own, because it can't be initialised on an older Java. */
    private static final class Handles {
        static final MethodHandle OF_ADDRESS;
        static final MethodHandle OF_BUFFER;
        static final MethodHandle REINTERPRET;
        static final MethodHandle OF_SHARED;
        static final MethodHandle CLOSE;

        static {
            try {
                Class<?> segment = Class.forName(CLASS);
                Class<?> arena = Class.forName("java.lang.foreign.Arena");
                MethodHandles.Lookup lookup = MethodHandles.lookup();
                OF_ADDRESS = lookup.findStatic(segment, "ofAddress", MethodType.methodType(segment, long.class));
                OF_BUFFER = lookup.findStatic(segment, "ofBuffer", MethodType.methodType(segment, Buffer.class));
                REINTERPRET = lookup.findVirtual(
                        segment, "reinterpret", MethodType.methodType(segment, long.class, arena, Consumer.class));
                OF_SHARED = lookup.findStatic(arena, "ofShared", MethodType.methodType(arena));
                CLOSE = lookup.findVirtual(arena, "close", MethodType.methodType(void.class));
            } catch (ReflectiveOperationException e) {
                throw new ExceptionInInitializerError(e);
            }
        }
    }

    /** Requires the class of segments, and a Java that has it. To be called before anything else of this class. */
    public static void requireClass(Class<?> type) {
        if (!type.getName().equals(CLASS)) {
            throw new IllegalArgumentException("type must be " + CLASS + ".class: " + type.getName() + ".class");
        }
        if (Runtime.version().feature() < SINCE) {
            throw new UnsupportedOperationException(CLASS + " needs Java " + SINCE + ": this is "
                    + Runtime.version().feature());
        }
    }

    /** Returns the memory of a buffer, with the lifetime and the thread rule of that memory. */
    public static <S> S of(Class<S> type, ByteBuffer memory) {
        return type.cast(call(Handles.OF_BUFFER, memory));
    }

    public <S> S of(Class<S> type, long address, long bytes) {
        return type.cast(call(Handles.REINTERPRET, call(Handles.OF_ADDRESS, address), bytes, arena, null));
    }

    /**
     * Ends the segments.
     *
     * @throws IllegalStateException if a native function or a channel uses one of them at the moment
     */
    @Override
    public void close() {
        call(Handles.CLOSE, arena);
    }

    private static Object call(MethodHandle method, Object... arguments) {
        try {
            return method.invokeWithArguments(arguments);
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }
}
