package io.github.nccl4j.internal.memory;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * DLPack's {@code DLTensor}, as filled by another library.
 *
 * @param data the address of the memory
 * @param deviceType the kind of device
 * @param deviceId the number of the device
 * @param type the type of the elements
 * @param shape the sizes of the dimensions
 * @param strides the distances between neighbours in each dimension, in elements; null for a compact tensor
 * @param byteOffset the offset of the first element from the address, in bytes
 */
public record DlpackTensor(
        long data, int deviceType, int deviceId, Type type, long[] shape, long[] strides, long byteOffset) {
    /**
     * DLPack's {@code DLDataType}.
     *
     * @param code the kind of type
     * @param bits the size of a lane
     * @param lanes the number of values of an element
     */
    public record Type(int code, int bits, int lanes) {}

    public static final int BYTES = 48;

    public static final int CPU = 1;
    public static final int CUDA = 2;
    public static final int CUDA_HOST = 3;
    public static final int CUDA_MANAGED = 13;

    private static final int MOST_DIMENSIONS = 64;

    public static DlpackTensor read(ByteBuffer struct, int at) {
        int dimensions = struct.getInt(at + 16);
        if (dimensions < 0 || dimensions > MOST_DIMENSIONS) {
            throw new IllegalArgumentException(
                    "the tensor must have 0 to " + MOST_DIMENSIONS + " dimensions: " + dimensions);
        }
        long strides = struct.getLong(at + 32);
        return new DlpackTensor(
                struct.getLong(at),
                struct.getInt(at + 8),
                struct.getInt(at + 12),
                new Type(
                        Byte.toUnsignedInt(struct.get(at + 20)),
                        Byte.toUnsignedInt(struct.get(at + 21)),
                        Short.toUnsignedInt(struct.getShort(at + 22))),
                longs(struct.getLong(at + 24), dimensions),
                strides == 0 ? null : longs(strides, dimensions),
                struct.getLong(at + 40));
    }

    private static long[] longs(long address, int count) {
        long[] values = new long[count];
        if (count > 0) {
            Address.buffer(address, count * Long.BYTES).asLongBuffer().get(values);
        }
        return values;
    }

    /** Returns the number of elements; throws if the tensor is not compact in row-major order. */
    public long length() {
        long length = 1;
        boolean compact = true;
        for (int i = shape.length - 1; i >= 0; i--) {
            if (shape[i] < 0) {
                throw new IllegalArgumentException("the tensor's sizes must be >= 0: " + Arrays.toString(shape));
            }
            compact &= strides == null || shape[i] <= 1 || strides[i] == length;
            length = Math.multiplyExact(length, shape[i]);
        }
        if (!compact && length > 0) {
            throw new IllegalArgumentException("the tensor must be compact and in row-major order: shape "
                    + Arrays.toString(shape) + ", strides " + Arrays.toString(strides));
        }
        return length;
    }
}
