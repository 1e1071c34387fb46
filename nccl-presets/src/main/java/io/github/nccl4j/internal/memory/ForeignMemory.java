package io.github.nccl4j.internal.memory;

import java.nio.ByteBuffer;

/**
 * Memory of which Java knows whether it can be accessed: that of a direct NIO buffer or of a segment. Keeps it from
 * being garbage-collected. Immutable.
 */
public final class ForeignMemory {
    /** The segment, or null for the memory of a NIO buffer. */
    private final Object segment;
    /** The memory of the NIO buffer, or the first byte of the segment. */
    private final ByteBuffer memory;

    private ForeignMemory(Object segment, ByteBuffer memory) {
        this.segment = segment;
        this.memory = memory;
    }

    /** Returns the memory from the buffer's position to its limit. */
    public static ForeignMemory of(ByteBuffer memory) {
        return new ForeignMemory(null, memory.slice());
    }

    /** Returns the memory of a {@code MemorySegment}. */
    public static ForeignMemory ofSegment(Object segment) {
        return new ForeignMemory(segment, Segments.start(segment));
    }

    /** Returns why the memory can't be accessed: its arena was closed, or belongs to another thread. Else null. */
    public RuntimeException problem() {
        if (memory.hasRemaining()) {
            try {
                memory.get(0);
            } catch (RuntimeException inaccessible) {
                return inaccessible;
            }
        }
        return null;
    }

    /** Returns a part as a {@code MemorySegment} with the lifetime and the thread rule of this memory. */
    public <S> S asSegment(Class<S> type, long offset, long bytes) {
        return segment == null
                ? Segments.of(type, memory.slice((int) offset, (int) bytes))
                : Segments.slice(type, segment, offset, bytes);
    }
}
