package io.github.nccl4j.internal.memory;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;

/** Copies elements between NIO buffers and host memory in the device's layout. */
public final class Transfer {
    private Transfer() {}

    /** Returns the primitive type of a buffer, or null for chars, which no element type uses. */
    private static Class<?> primitive(Buffer buffer) {
        if (buffer instanceof ByteBuffer) {
            return byte.class;
        } else if (buffer instanceof ShortBuffer) {
            return short.class;
        } else if (buffer instanceof IntBuffer) {
            return int.class;
        } else if (buffer instanceof LongBuffer) {
            return long.class;
        } else if (buffer instanceof FloatBuffer) {
            return float.class;
        } else if (buffer instanceof DoubleBuffer) {
            return double.class;
        }
        return null;
    }

    /** Returns the number of remaining elements of a buffer. */
    public static int elements(ElementFormat type, Buffer buffer) {
        if (buffer instanceof ByteBuffer bytes) {
            return elements(type, bytes);
        }
        Class<?> primitive = primitive(buffer);
        if (primitive == null || !type.accepts(primitive)) {
            throw new IllegalArgumentException("elements of " + type + " are " + type.carrier() + " in Java, and "
                    + bits(type) + " as bits: " + (primitive == null ? "char" : primitive));
        }
        return buffer.remaining();
    }

    /**
     * Returns the number of elements that the remaining bytes of a buffer are. Larger elements than bytes are in the
     * machine's byte order, which the buffer must have, so that its elements have the same values in Java: Java creates
     * every buffer in big-endian order.
     */
    public static int elements(ElementFormat type, ByteBuffer buffer) {
        int size = type.size();
        if (buffer.remaining() % size != 0) {
            throw new IllegalArgumentException("the buffer's remaining bytes must be a multiple of the size of " + type
                    + ": " + buffer.remaining() + " % " + size + " != 0");
        }
        if (size > 1 && buffer.order() != ByteOrder.nativeOrder()) {
            throw new IllegalArgumentException(
                    "a ByteBuffer of " + type + " must have the byte order " + ByteOrder.nativeOrder() + ": "
                            + buffer.order() + "; call order(ByteOrder.nativeOrder()) before filling or reading it");
        }
        return buffer.remaining() / size;
    }

    /** Bytes of larger elements are passed in a ByteBuffer. */
    public static void requireByteElements(ElementFormat type) {
        if (type.size() != 1) {
            throw new IllegalArgumentException("elements of " + type + " are " + type.carrier()
                    + " in Java: byte; their bytes can be copied by a ByteBuffer");
        }
    }

    private static String bits(ElementFormat type) {
        return type.size() == Short.BYTES ? "short or bytes" : "byte";
    }

    /** Returns true if the buffer's memory has an address and the device's layout. */
    public static boolean isNative(ElementFormat type, Buffer buffer) {
        if (!buffer.isDirect()) {
            return false;
        }
        boolean converted = type.small() != null && buffer instanceof FloatBuffer;
        return !converted && (buffer instanceof ByteBuffer || order(buffer) == ByteOrder.nativeOrder());
    }

    /**
     * Throws if the memory of a buffer can't be accessed, because its arena is closed or belongs to another thread:
     * Java checks that when an element is read.
     */
    public static void requireAccessible(ElementFormat type, Buffer buffer) {
        if (buffer.hasRemaining()) {
            put(type, ByteBuffer.allocate(Long.BYTES), buffer, 0, 1);
        }
    }

    private static ByteOrder order(Buffer buffer) {
        if (buffer instanceof ShortBuffer shorts) {
            return shorts.order();
        } else if (buffer instanceof IntBuffer ints) {
            return ints.order();
        } else if (buffer instanceof LongBuffer longs) {
            return longs.order();
        } else if (buffer instanceof FloatBuffer floats) {
            return floats.order();
        }
        return ((DoubleBuffer) buffer).order();
    }

    /** Returns the size in bytes of a position in a buffer: 1 in a ByteBuffer, independent of the elements. */
    public static int step(ElementFormat type, Buffer buffer) {
        return buffer instanceof ByteBuffer ? 1 : type.size();
    }

    /** Copies elements of a buffer, from the {@code at}th after its position on, to memory. */
    public static void put(ElementFormat type, ByteBuffer memory, Buffer source, int at, int count) {
        int from = source.position() + at;
        if (source instanceof ByteBuffer bytes) {
            int size = type.size();
            memory.put(bytes.slice(source.position() + at * size, count * size));
        } else if (source instanceof ShortBuffer shorts) {
            memory.asShortBuffer().put(shorts.slice(from, count));
        } else if (source instanceof IntBuffer ints) {
            memory.asIntBuffer().put(ints.slice(from, count));
        } else if (source instanceof LongBuffer longs) {
            memory.asLongBuffer().put(longs.slice(from, count));
        } else if (source instanceof DoubleBuffer doubles) {
            memory.asDoubleBuffer().put(doubles.slice(from, count));
        } else if (type.small() == null) {
            memory.asFloatBuffer().put(((FloatBuffer) source).slice(from, count));
        } else {
            encode(type, memory, ((FloatBuffer) source).slice(from, count), count);
        }
    }

    private static void encode(ElementFormat type, ByteBuffer memory, FloatBuffer source, int count) {
        SmallFloatFormat format = type.small();
        if (type.size() == 1) {
            for (int i = 0; i < count; i++) {
                memory.put(i, (byte) format.encode(source.get(i)));
            }
        } else {
            for (int i = 0; i < count; i++) {
                memory.putShort(2 * i, (short) format.encode(source.get(i)));
            }
        }
    }

    /** Copies elements from memory to a buffer, from the {@code at}th after its position on. */
    public static void get(ElementFormat type, ByteBuffer memory, Buffer target, int at, int count) {
        int to = target.position() + at;
        if (target instanceof ByteBuffer bytes) {
            int size = type.size();
            bytes.slice(target.position() + at * size, count * size).put(memory.slice(0, count * size));
        } else if (target instanceof ShortBuffer shorts) {
            shorts.slice(to, count).put(memory.asShortBuffer().slice(0, count));
        } else if (target instanceof IntBuffer ints) {
            ints.slice(to, count).put(memory.asIntBuffer().slice(0, count));
        } else if (target instanceof LongBuffer longs) {
            longs.slice(to, count).put(memory.asLongBuffer().slice(0, count));
        } else if (target instanceof DoubleBuffer doubles) {
            doubles.slice(to, count).put(memory.asDoubleBuffer().slice(0, count));
        } else if (type.small() == null) {
            ((FloatBuffer) target).slice(to, count).put(memory.asFloatBuffer().slice(0, count));
        } else {
            decode(type, memory, ((FloatBuffer) target).slice(to, count), count);
        }
    }

    private static void decode(ElementFormat type, ByteBuffer memory, FloatBuffer target, int count) {
        SmallFloatFormat format = type.small();
        if (type.size() == 1) {
            for (int i = 0; i < count; i++) {
                target.put(i, format.decode(memory.get(i) & 0xff));
            }
        } else {
            for (int i = 0; i < count; i++) {
                target.put(i, format.decode(memory.getShort(2 * i) & 0xffff));
            }
        }
    }
}
