package io.github.nccl4j.internal.memory;

/**
 * Float format of 8 or 16 bits, and its conversion from and to Java's numbers. Rounds to nearest, ties to even, as the
 * host engine does. If the format has no infinity, numbers that are too large become the largest number. NaN stays NaN.
 */
public enum SmallFloatFormat {
    FLOAT16(5, 10, true),
    BFLOAT16(8, 7, true),
    FLOAT8E4M3(4, 3, false),
    FLOAT8E5M2(5, 2, true);

    private static final int DOUBLE_MANTISSA = 52;
    private static final int DOUBLE_BIAS = 1023;

    private final int mantissaBits;
    private final int bias;
    private final int sign;
    private final int infinityOrLargest;
    private final int nan;
    private final boolean infinite;

    SmallFloatFormat(int exponentBits, int mantissaBits, boolean infinite) {
        this.mantissaBits = mantissaBits;
        this.infinite = infinite;
        bias = (1 << (exponentBits - 1)) - 1;
        sign = 1 << (exponentBits + mantissaBits);
        int infinity = ((1 << exponentBits) - 1) << mantissaBits;
        nan = infinite ? infinity | 1 << (mantissaBits - 1) : sign - 1;
        infinityOrLargest = infinite ? infinity : nan - 1;
    }

    /** Encodes a double, so that doubles are rounded only once; floats are exact as doubles. */
    public int encode(double value) {
        long bits = Double.doubleToRawLongBits(value);
        int signBit = bits < 0 ? sign : 0;
        if (value != value) {
            return signBit | nan;
        }
        long magnitude = bits & Long.MAX_VALUE;
        int exponent = (int) (magnitude >>> DOUBLE_MANTISSA) - DOUBLE_BIAS;
        if (exponent > bias) {
            // For e4m3, whose exponent of all ones has numbers, 256 to 448 have an exponent of bias + 1.
            if (infinite || exponent > bias + 1) {
                return signBit | infinityOrLargest;
            }
        }
        int lowest = 1 - bias;
        // Normal numbers keep the implicit bit as the lowest bit of the exponent field; below, it is part of the
        // mantissa.
        int lost = DOUBLE_MANTISSA - mantissaBits + Math.max(0, lowest - exponent);
        if (lost > DOUBLE_MANTISSA + 1) {
            return signBit;
        }
        long mantissa = (magnitude & (1L << DOUBLE_MANTISSA) - 1) | 1L << DOUBLE_MANTISSA;
        long half = 1L << (lost - 1);
        long kept = mantissa >>> lost;
        long rest = mantissa & (1L << lost) - 1;
        if (rest > half || rest == half && (kept & 1) != 0) {
            kept++;
        }
        // A carry out of the mantissa increments the exponent, which is correct.
        long code = exponent < lowest ? kept : ((long) (exponent + bias - 1) << mantissaBits) + kept;
        return signBit | (int) Math.min(code, infinityOrLargest);
    }

    public float decode(int bits) {
        int magnitude = bits & (sign - 1);
        float value;
        if (infinite && magnitude >= infinityOrLargest) {
            value = magnitude == infinityOrLargest ? Float.POSITIVE_INFINITY : Float.NaN;
        } else if (!infinite && magnitude == nan) {
            value = Float.NaN;
        } else {
            int exponent = magnitude >>> mantissaBits;
            int mantissa = magnitude & (1 << mantissaBits) - 1;
            if (exponent == 0) {
                value = Math.scalb((float) mantissa, 1 - bias - mantissaBits);
            } else {
                value = Float.intBitsToFloat((exponent - bias + 127) << 23 | mantissa << (23 - mantissaBits));
            }
        }
        return (bits & sign) == 0 ? value : -value;
    }
}
