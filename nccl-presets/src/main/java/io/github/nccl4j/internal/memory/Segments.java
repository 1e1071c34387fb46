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
        static final MethodHandle SLICE;
        static final MethodHandle AS_BUFFER;
        static final MethodHandle ADDRESS;
        static final MethodHandle SIZE;
        static final MethodHandle IS_NATIVE;
        static final MethodHandle IS_READ_ONLY;
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
                SLICE = lookup.findVirtual(segment, "asSlice", MethodType.methodType(segment, long.class, long.class));
                AS_BUFFER = lookup.findVirtual(segment, "asByteBuffer", MethodType.methodType(ByteBuffer.class));
                ADDRESS = lookup.findVirtual(segment, "address", MethodType.methodType(long.class));
                SIZE = lookup.findVirtual(segment, "byteSize", MethodType.methodType(long.class));
                IS_NATIVE = lookup.findVirtual(segment, "isNative", MethodType.methodType(boolean.class));
                IS_READ_ONLY = lookup.findVirtual(segment, "isReadOnly", MethodType.methodType(boolean.class));
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

    /** Returns a part of a segment. */
    static <S> S slice(Class<S> type, Object segment, long offset, long bytes) {
        return type.cast(call(Handles.SLICE, segment, offset, bytes));
    }

    /** Returns the first byte of a segment, or no byte of an empty one. */
    static ByteBuffer start(Object segment) {
        return (ByteBuffer) call(Handles.AS_BUFFER, call(Handles.SLICE, segment, 0, Math.min(1, size(segment))));
    }

    /** Returns the address of a segment, which must be writable native memory. */
    public static long addressOf(Object segment) {
        if (!(boolean) call(Handles.IS_NATIVE, segment)) {
            throw new IllegalArgumentException("segment must be of native memory: " + segment);
        }
        if ((boolean) call(Handles.IS_READ_ONLY, segment)) {
            throw new IllegalArgumentException("segment must not be read-only: " + segment);
        }
        return (long) call(Handles.ADDRESS, segment);
    }

    /** Returns the number of bytes of a segment. */
    public static long size(Object segment) {
        return (long) call(Handles.SIZE, segment);
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
