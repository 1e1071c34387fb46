package io.github.nccl4j.launch.wire;

import java.nio.charset.StandardCharsets;

/** Converts and adds to the value of a counter: decimal digits, so that a program can read and set it as text. */
public final class Counter {
    /** The length of {@link Long#MIN_VALUE} in decimal. */
    private static final int MAX_BYTES = 20;

    private Counter() {}

    public static byte[] encode(long value) {
        return Long.toString(value).getBytes(StandardCharsets.US_ASCII);
    }

    public static long decode(byte[] bytes) {
        if (bytes.length > MAX_BYTES) {
            throw new IllegalStateException(
                    "the value of a counter must have <= " + MAX_BYTES + " bytes: it has " + bytes.length);
        }
        String text = new String(bytes, StandardCharsets.US_ASCII);
        try {
            return Long.parseLong(text);
        } catch (NumberFormatException notANumber) {
            throw new IllegalStateException("the value of a counter must be a decimal number: '" + text + "'");
        }
    }

    /**
     * Returns the sum of the value of a counter, null for none, and a number.
     *
     * @throws IllegalStateException if the value is not a number, or the sum exceeds 64 bits
     */
    public static long sum(byte[] bytes, long delta) {
        long value = bytes == null ? 0 : decode(bytes);
        try {
            return Math.addExact(value, delta);
        } catch (ArithmeticException overflow) {
            throw new IllegalStateException(
                    "the sum must be from " + Long.MIN_VALUE + " to " + Long.MAX_VALUE + ": " + value + " + " + delta,
                    overflow);
        }
    }
}
