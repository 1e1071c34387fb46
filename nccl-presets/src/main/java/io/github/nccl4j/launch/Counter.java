package io.github.nccl4j.launch;

import java.nio.charset.StandardCharsets;

/** Converts the value of a counter: decimal digits, so that a program can read and set it as text. */
final class Counter {
    /** The length of {@link Long#MIN_VALUE} in decimal. */
    private static final int MAX_BYTES = 20;

    private Counter() {}

    static byte[] encode(long value) {
        return Long.toString(value).getBytes(StandardCharsets.US_ASCII);
    }

    static long decode(byte[] bytes) {
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
}
