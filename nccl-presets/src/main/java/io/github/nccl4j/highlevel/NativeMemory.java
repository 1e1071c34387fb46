package io.github.nccl4j.highlevel;

import io.github.nccl4j.library.NativeLibrary;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicLong;
import org.bytedeco.javacpp.Pointer;

/**
 * Native memory, zeros at first, that only {@link #close} frees. What {@code new LongPointer(1)} and its like allocate is
 * refused by JavaCPP when the whole process has more memory than some multiple of Java's heap, which a process that uses
 * CUDA soon has, and it is freed by the collector, even if NCCL still writes to it.
 *
 * <p>Not for several threads.
 */
final class NativeMemory implements AutoCloseable {
    private static final AtomicLong HELD = new AtomicLong();

    static {
        requireJavaCpp();
    }

    private final int bytes;
    private Pointer memory;
    private ByteBuffer buffer;

    /**
     * Allocates it.
     *
     * @param bytes how many, at least 1
     */
    NativeMemory(int bytes) {
        this.bytes = bytes;
        memory = Pointer.calloc(1, bytes);
        if (memory == null || memory.isNull()) {
            throw new OutOfMemoryError("cannot allocate " + bytes + " bytes of native memory");
        }
        buffer = Address.buffer(memory.address(), bytes);
        HELD.addAndGet(bytes);
    }

    /** Throws why JavaCPP's native code cannot be loaded, if so; its own methods say only that they are not there. */
    static void requireJavaCpp() {
        NativeLibrary.isLoaded();
    }

    /** The bytes of this process that were allocated and are not freed. */
    static long held() {
        return HELD.get();
    }

    /** Where it begins. */
    long address() {
        requireOpen();
        return memory.address();
    }

    /** All of it, in the machine's byte order; not to be used after {@link #close}. */
    ByteBuffer buffer() {
        requireOpen();
        return buffer;
    }

    private void requireOpen() {
        if (memory == null) {
            throw new IllegalStateException(bytes + " bytes of native memory were freed");
        }
    }

    /** Fills it with zeros. */
    void clear() {
        buffer().put(0, new byte[bytes]);
    }

    /** Frees it. Does nothing if it is freed. */
    @Override
    public void close() {
        if (memory != null) {
            Pointer freed = memory;
            memory = null;
            buffer = null;
            Pointer.free(freed);
            HELD.addAndGet(-bytes);
        }
    }
}
