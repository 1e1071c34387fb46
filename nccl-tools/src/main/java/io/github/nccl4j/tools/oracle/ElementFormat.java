package io.github.nccl4j.tools.oracle;

import io.github.nccl4j.global.nccl;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.random.RandomGenerator;

/** The element types of NCCL, and what an element of each is as a number. */
public enum ElementFormat {
    INT8(nccl.ncclInt8, 1, true),
    UINT8(nccl.ncclUint8, 1, false),
    INT32(nccl.ncclInt32, 4, true),
    UINT32(nccl.ncclUint32, 4, false),
    INT64(nccl.ncclInt64, 8, true),
    UINT64(nccl.ncclUint64, 8, false),
    FLOAT16(nccl.ncclFloat16, 2, new SmallFloat(5, 10, SmallFloat.Top.INFINITY)),
    FLOAT32(nccl.ncclFloat32, 4),
    FLOAT64(nccl.ncclFloat64, 8),
    BFLOAT16(nccl.ncclBfloat16, 2, new SmallFloat(8, 7, SmallFloat.Top.INFINITY)),
    FLOAT8E4M3(nccl.ncclFloat8e4m3, 1, new SmallFloat(4, 3, SmallFloat.Top.SATURATING)),
    FLOAT8E5M2(nccl.ncclFloat8e5m2, 1, new SmallFloat(5, 2, SmallFloat.Top.INFINITY));

    private static final ElementFormat[] BY_CODE = values();

    public final int code;
    public final int size;
    private final boolean integer;
    private final boolean signed;
    private final SmallFloat format;

    ElementFormat(int code, int size, boolean signed) {
        this(code, size, true, signed, null);
    }

    ElementFormat(int code, int size) {
        this(code, size, false, true, null);
    }

    ElementFormat(int code, int size, SmallFloat format) {
        this(code, size, false, true, format);
    }

    ElementFormat(int code, int size, boolean integer, boolean signed, SmallFloat format) {
        this.code = code;
        this.size = size;
        this.integer = integer;
        this.signed = signed;
        this.format = format;
    }

    /** The type of a {@code ncclDataType_t}. */
    public static ElementFormat of(int code) {
        return BY_CODE[code];
    }

    public boolean isInteger() {
        return integer;
    }

    public boolean isSigned() {
        return signed;
    }

    /** The distance from 1 to the next larger number of a float type. */
    public double epsilon() {
        return switch (this) {
            case FLOAT32 -> Math.ulp(1f);
            case FLOAT64 -> Math.ulp(1.0);
            default -> format.epsilon();
        };
    }

    /** The smallest number of a float type that is more than 0. */
    public double smallest() {
        return switch (this) {
            case FLOAT32 -> Float.MIN_VALUE;
            case FLOAT64 -> Double.MIN_VALUE;
            default -> format.decode(1);
        };
    }

    /** Puts a random element: any bits for integers, numbers of moderate size for floats. */
    public void putRandom(ByteBuffer buffer, int index, RandomGenerator random) {
        if (integer) {
            putBits(buffer, index, random.nextLong());
        } else {
            putNumber(buffer, index, (random.nextInt(2001) - 1000) / 64.0);
        }
    }

    /** An element of an integer type. */
    public BigInteger integer(ByteBuffer buffer, int index) {
        long bits = bits(buffer, index);
        int unused = 64 - 8 * size;
        return signed
                ? BigInteger.valueOf(bits << unused >> unused)
                : new BigInteger(Long.toUnsignedString(bits << unused >>> unused));
    }

    /** An element of a float type; exact. */
    public double number(ByteBuffer buffer, int index) {
        long bits = bits(buffer, index);
        return switch (this) {
            case FLOAT32 -> Float.intBitsToFloat((int) bits);
            case FLOAT64 -> Double.longBitsToDouble(bits);
            default -> format.decode((int) bits);
        };
    }

    public void putInteger(ByteBuffer buffer, int index, BigInteger value) {
        putBits(buffer, index, value.longValue());
    }

    /** Rounds to nearest, ties to even. */
    public void putNumber(ByteBuffer buffer, int index, double value) {
        long bits =
                switch (this) {
                    case FLOAT32 -> Float.floatToRawIntBits((float) value);
                    case FLOAT64 -> Double.doubleToRawLongBits(value);
                    default -> format.encode((float) value);
                };
        putBits(buffer, index, bits);
    }

    public long bits(ByteBuffer buffer, int index) {
        int at = index * size;
        return switch (size) {
            case 1 -> buffer.get(at) & 0xffL;
            case 2 -> buffer.getShort(at) & 0xffffL;
            case 4 -> buffer.getInt(at) & 0xffffffffL;
            default -> buffer.getLong(at);
        };
    }

    private void putBits(ByteBuffer buffer, int index, long bits) {
        int at = index * size;
        switch (size) {
            case 1 -> buffer.put(at, (byte) bits);
            case 2 -> buffer.putShort(at, (short) bits);
            case 4 -> buffer.putInt(at, (int) bits);
            default -> buffer.putLong(at, bits);
        }
    }
}
