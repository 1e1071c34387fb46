package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;

/**
 * Data types of NCCL.
 *
 * <p>Constants are immutable and may be used in any thread.
 *
 * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/types.html">NCCL: types</a>
 * @since 0.1
 */
public enum DataType {
    /** 8-bit integer. */
    INT8(nccl.ncclInt8, byte.class, Byte.BYTES),

    /** Unsigned 8-bit integer, in a Java {@code byte} of the same bits. */
    UINT8(nccl.ncclUint8, byte.class, Byte.BYTES),

    /** 32-bit integer. */
    INT32(nccl.ncclInt32, int.class, Integer.BYTES),

    /** Unsigned 32-bit integer, in a Java {@code int} of the same bits. */
    UINT32(nccl.ncclUint32, int.class, Integer.BYTES),

    /** 64-bit integer. */
    INT64(nccl.ncclInt64, long.class, Long.BYTES),

    /** Unsigned 64-bit integer, in a Java {@code long} of the same bits. */
    UINT64(nccl.ncclUint64, long.class, Long.BYTES),

    /** IEEE 754 half precision, its bits in a Java {@code short}. */
    FLOAT16(nccl.ncclFloat16, short.class, Short.BYTES),

    /** IEEE 754 single precision. */
    FLOAT32(nccl.ncclFloat32, float.class, Float.BYTES),

    /** IEEE 754 double precision. */
    FLOAT64(nccl.ncclFloat64, double.class, Double.BYTES),

    /** The upper half of a single precision number, its bits in a Java {@code short}. */
    BFLOAT16(nccl.ncclBfloat16, short.class, Short.BYTES, new Version(2, 10, 3)),

    /** 8-bit float with 4 bits of exponent and 3 of mantissa, its bits in a Java {@code byte}. */
    FLOAT8_E4M3(nccl.ncclFloat8e4m3, byte.class, Byte.BYTES, new Version(2, 24, 3)),

    /** 8-bit float with 5 bits of exponent and 2 of mantissa, its bits in a Java {@code byte}. */
    FLOAT8_E5M2(nccl.ncclFloat8e5m2, byte.class, Byte.BYTES, new Version(2, 24, 3));

    private static final DataType[] BY_CODE = values();

    private final int code;
    private final Class<?> carrier;
    private final int size;
    private final Version since;

    DataType(int code, Class<?> carrier, int size) {
        this(code, carrier, size, new Version(2, 3, 5));
    }

    DataType(int code, Class<?> carrier, int size, Version since) {
        this.code = code;
        this.carrier = carrier;
        this.size = size;
        this.since = since;
    }

    /**
     * Returns the type of a code.
     *
     * @param code a value of {@code ncclDataType_t}
     * @return the type
     * @throws IllegalArgumentException if there is no type of this code
     */
    public static DataType of(int code) {
        if (code < 0 || code >= BY_CODE.length) {
            throw new IllegalArgumentException(
                    "a data type's code must be in 0.." + (BY_CODE.length - 1) + ": " + code);
        }
        return BY_CODE[code];
    }

    /**
     * Returns the value of {@code ncclDataType_t}.
     *
     * @return the code
     */
    public int code() {
        return code;
    }

    /**
     * Returns the size of an element.
     *
     * @return the number of bytes
     */
    public int size() {
        return size;
    }

    /**
     * Returns the Java type that holds an element's bits.
     *
     * @return a primitive type, such as {@code float.class}
     */
    public Class<?> carrier() {
        return carrier;
    }

    /**
     * Returns the NCCL release that added the type.
     *
     * @return the release; 2.3.5 for the types of all releases
     */
    public Version since() {
        return since;
    }
}
