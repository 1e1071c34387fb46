package io.github.nccl4j.tools.oracle;

import io.github.nccl4j.global.nccl;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.random.RandomGenerator;

/** The element types of NCCL, and the conversion of their elements to numbers. */
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
    FLOAT8E5M2(nccl.ncclFloat8e5m2, 1, new SmallFloat(5, 2, SmallFloat.Top.SATURATING_BELOW_INFINITY));

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
        long value = extended(bits(buffer, index));
        return signed ? BigInteger.valueOf(value) : new BigInteger(Long.toUnsignedString(value));
    }

    /** The number that an integer becomes in an integer type, which wraps around: with the sign of the type, or none. */
    long extended(long bits) {
        int unused = 64 - 8 * size;
        return signed ? bits << unused >> unused : bits << unused >>> unused;
    }

    /** Compares two numbers of {@link #extended}. */
    int compare(long a, long b) {
        return signed ? Long.compare(a, b) : Long.compareUnsigned(a, b);
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

    /** The nearest number of a float type; of two, the even one. */
    double rounded(double value) {
        return switch (this) {
            case FLOAT32 -> (float) value;
            case FLOAT64 -> value;
            default -> format.decode(format.encode((float) value));
        };
    }

    /** A product and a sum of numbers of a float type, rounded once if it has more than 8 bits; 16 bits have the result of floats. */
    double multiplyAdd(double value, double scalar, double sum) {
        return switch (size) {
            case 1 -> rounded(rounded(value * scalar) + sum);
            case 8 -> Math.fma(value, scalar, sum);
            default -> rounded(Math.fma((float) value, (float) scalar, (float) sum));
        };
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

    /** Puts an element by its bits; those above the element's size have no effect. */
    public void putBits(ByteBuffer buffer, int index, long bits) {
        int at = index * size;
        switch (size) {
            case 1 -> buffer.put(at, (byte) bits);
            case 2 -> buffer.putShort(at, (short) bits);
            case 4 -> buffer.putInt(at, (int) bits);
            default -> buffer.putLong(at, bits);
        }
    }

    /** The bits of the limits of the type, of NaN and -0, and of a few values in between. */
    public long[] specialValues() {
        if (integer) {
            long low = signed ? -1L << (8 * size - 1) : 0;
            long high = signed ? ~low : -1L >>> (64 - 8 * size);
            long middle = (high >>> 1) + 1;
            return new long[] {0, 1, 2, 3, 7, 100, 101, middle, -100, -101, -1, low + 1, low, high - 1, high};
        }
        int mantissa = mantissaBits();
        long exponents = (1L << (8 * size - 1 - mantissa)) - 1;
        long one = exponents / 2 << mantissa;
        boolean finite = this == FLOAT8E4M3;
        long infinity = finite ? (1L << 7) - 1 : exponents << mantissa;
        long[] positive = {
            0,
            1,
            (1L << mantissa) - 1,
            1L << mantissa,
            one - 1,
            one,
            one + 1,
            one | 3L << mantissa - 2,
            infinity - 1,
            infinity
        };
        long sign = 1L << (8 * size - 1);
        long[] all = new long[2 * positive.length + 1];
        for (int i = 0; i < positive.length; i++) {
            all[i] = positive[i];
            all[positive.length + i] = positive[i] | sign;
        }
        all[2 * positive.length] = finite ? infinity : infinity | 1L << mantissa - 1;
        return all;
    }

    private int mantissaBits() {
        return switch (this) {
            case FLOAT32 -> 23;
            case FLOAT64 -> 52;
            default -> Integer.numberOfTrailingZeros(Math.toIntExact(Math.round(1 / format.epsilon())));
        };
    }
}
