package io.github.nccl4j.launch;

import java.nio.charset.StandardCharsets;

/** The value of a key that is counted up: decimal digits, which a program can read and set. */
final class Counter {
    private static final int MAX_DIGITS = 20;

    private Counter() {}

    static byte[] encode(long value) {
        return Long.toString(value).getBytes(StandardCharsets.US_ASCII);
    }

    static long decode(byte[] bytes) {
        try {
            if (bytes.length <= MAX_DIGITS) {
                return Long.parseLong(new String(bytes, StandardCharsets.US_ASCII));
            }
        } catch (NumberFormatException notANumber) {
            // The same message as for what is too long.
        }
        throw new IllegalStateException("the value is no number");
    }
}
