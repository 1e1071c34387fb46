package io.github.nccl4j.tools.oracle;

import java.util.Arrays;

/** A float format of 8 or 16 bits, by the table of all its values, which leaves little room for mistakes. */
public final class SmallFloat {
    /** Values beyond the largest finite number. */
    public enum Top {
        /** The exponent of all ones is infinity and NaN, as in IEEE 754. */
        INFINITY,
        /** As INFINITY, but numbers that are too large become the largest finite number. */
        SATURATING_BELOW_INFINITY,
        /**
         * There is no infinity, only the mantissa of all ones is NaN; numbers that are too large become the largest.
         */
        SATURATING
    }

    private static final int FLOAT_MANTISSA = 23;
    private static final int FLOAT_BIAS = 127;

    private final int exponentBits;
    private final int mantissaBits;
    private final Top top;
    /** The finite numbers that are not negative, in order: the code is the index. */
    private final float[] values;

    public SmallFloat(int exponentBits, int mantissaBits, Top top) {
        this.exponentBits = exponentBits;
        this.mantissaBits = mantissaBits;
        this.top = top;
        int codes = 1 << (exponentBits + mantissaBits);
        int finite = top == Top.SATURATING ? codes - 1 : codes - (1 << mantissaBits);
        values = new float[finite];
        for (int code = 0; code < finite; code++) {
            values[code] = (float) magnitude(code);
        }
    }

    private double magnitude(int code) {
        int bias = (1 << (exponentBits - 1)) - 1;
        int exponent = code >> mantissaBits;
        double fraction = (code & ((1 << mantissaBits) - 1)) / (double) (1 << mantissaBits);
        return exponent == 0 ? fraction * Math.pow(2, 1 - bias) : (1 + fraction) * Math.pow(2, exponent - bias);
    }

    /** The distance from 1 to the next larger number. */
    public double epsilon() {
        return 1.0 / (1 << mantissaBits);
    }

    public float decode(int bits) {
        int code = bits & ((1 << (exponentBits + mantissaBits)) - 1);
        float magnitude;
        if (code < values.length) {
            magnitude = values[code];
        } else {
            magnitude = top != Top.SATURATING && code == values.length ? Float.POSITIVE_INFINITY : Float.NaN;
        }
        return code == bits ? magnitude : -magnitude;
    }

    public int encode(float value) {
        int sign = Float.floatToRawIntBits(value) < 0 ? 1 << (exponentBits + mantissaBits) : 0;
        if (Float.isNaN(value)) {
            throw new IllegalArgumentException("the tests compare no NaN");
        }
        return sign | nearest(Math.abs(value));
    }

    /** The code of the largest finite number that is not above the magnitude. */
    private int below(float magnitude) {
        // Exponent and mantissa of a float, without the bits that the format lacks: the code of a normal number.
        int bias = (1 << (exponentBits - 1)) - 1;
        int code = (Float.floatToRawIntBits(magnitude) >> (FLOAT_MANTISSA - mantissaBits))
                - ((FLOAT_BIAS - bias) << mantissaBits);
        if (code >= 0 && code < values.length - 1 && values[code] <= magnitude && magnitude < values[code + 1]) {
            return code;
        }
        int found = Arrays.binarySearch(values, magnitude);
        return found >= 0 ? found : -found - 2;
    }

    private int nearest(float magnitude) {
        int below = below(magnitude);
        if (values[below] == magnitude) {
            return below;
        }
        int above = below + 1;
        if (above == values.length) {
            double largest = values[above - 1];
            double halfStep = (largest - values[above - 2]) / 2;
            boolean beyond = magnitude >= largest + halfStep;
            return top == Top.INFINITY && beyond ? above : above - 1;
        }
        double down = magnitude - (double) values[above - 1];
        double up = (double) values[above] - magnitude;
        if (down == up) {
            return above % 2 == 0 ? above : above - 1;
        }
        return down < up ? above - 1 : above;
    }
}
