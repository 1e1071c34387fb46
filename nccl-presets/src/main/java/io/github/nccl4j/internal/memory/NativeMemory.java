package io.github.nccl4j.internal.memory;

import io.github.nccl4j.library.NativeLibrary;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicLong;
import org.bytedeco.javacpp.Pointer;

/**
 * Native memory, initially 0, that only {@link #close} frees. JavaCPP's {@code new LongPointer(1)} and the like are
 * unsuitable: JavaCPP refuses them if the process uses more memory than a multiple of Java's heap, which is common with
 * CUDA, and the garbage collector frees them even if NCCL still writes to them.
 *
 * <p>Not thread-safe.
 */
public final class NativeMemory implements AutoCloseable {
    private static final AtomicLong HELD = new AtomicLong();

    static {
        NativeLibrary.initialize();
    }

    private final int bytes;
    private Pointer memory;
    private final ByteBuffer buffer;

    /**
     * Allocates memory.
     *
     * @param bytes the size, at least 1
     */
    public NativeMemory(int bytes) {
        this.bytes = bytes;
        memory = Pointer.calloc(1, bytes);
        if (memory == null || memory.isNull()) {
            throw new OutOfMemoryError("cannot allocate " + bytes + " bytes of native memory");
        }
        buffer = Address.buffer(memory.address(), bytes);
        HELD.addAndGet(bytes);
    }

    /** Returns the number of bytes of this class that are allocated in the process. */
    public static long held() {
        return HELD.get();
    }

    /** Returns the address. */
    public long address() {
        requireOpen();
        return memory.address();
    }

    /** Returns the memory as a buffer in the machine's byte order; must not be used after {@link #close}. */
    public ByteBuffer buffer() {
        requireOpen();
        return buffer;
    }

    private void requireOpen() {
        if (memory == null) {
            throw new IllegalStateException(bytes + " bytes of native memory were freed");
        }
    }

    /** Fills the memory with zeros. */
    public void clear() {
        buffer().put(0, new byte[bytes]);
    }

    /** Frees the memory. Does nothing if it is freed already. */
    @Override
    public void close() {
        if (memory != null) {
            Pointer freed = memory;
            memory = null;
            Pointer.free(freed);
            HELD.addAndGet(-bytes);
        }
    }
}
