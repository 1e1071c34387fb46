package io.github.nccl4j.tools.conformance;

import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element;
import io.github.nccl4j.highlevel.ElementType;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/** Elements on the device between two fences, which detect that an operation has written beyond its buffer. */
final class Zone<T extends Element> {
    /** The contents of memory that was not written. */
    static final byte UNTOUCHED = 0x5a;

    private static final int FENCE_BYTES = 64;

    private final DeviceBuffer<T> memory;
    private final int fence;
    private final int length;
    private final int size;

    /**
     * Elements with a content.
     *
     * @param place the offset in the member's memory
     * @param odd true if they are aligned to their own size only
     */
    Zone(Member member, long place, ElementType<T> type, ByteBuffer content, boolean odd) {
        size = type.sizeInBytes();
        length = content.capacity() / size;
        fence = FENCE_BYTES / size + (odd ? 1 : 0);
        memory = member.at(place, type, 2L * fence + length);
        byte[] bytes = new byte[(2 * fence + length) * size];
        Arrays.fill(bytes, UNTOUCHED);
        content.get(0, bytes, fence * size, length * size);
        memory.copyFrom(ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder()));
    }

    /** The memory that a zone needs. */
    static long bytes(ElementType<?> type, long length) {
        return 2 * (FENCE_BYTES + type.sizeInBytes()) + length * type.sizeInBytes();
    }

    static ByteBuffer untouched(int bytes) {
        byte[] content = new byte[bytes];
        Arrays.fill(content, UNTOUCHED);
        return ByteBuffer.wrap(content).order(ByteOrder.nativeOrder());
    }

    DeviceBuffer<T> part(int from, int count) {
        return memory.slice((long) fence + from, count);
    }

    /** The present contents. */
    ByteBuffer content() {
        ByteBuffer bytes = ByteBuffer.allocate((2 * fence + length) * size).order(ByteOrder.nativeOrder());
        memory.copyTo(bytes);
        for (int i = 0; i < fence * size; i++) {
            int last = bytes.capacity() - 1 - i;
            if (bytes.get(i) != UNTOUCHED || bytes.get(last) != UNTOUCHED) {
                throw new AssertionError("memory beyond the buffer of " + length + " elements was written");
            }
        }
        return bytes.slice(fence * size, length * size).order(ByteOrder.nativeOrder());
    }
}
