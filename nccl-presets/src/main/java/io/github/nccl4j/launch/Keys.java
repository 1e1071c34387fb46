package io.github.nccl4j.launch;

import java.nio.charset.StandardCharsets;
import java.time.Duration;

/** Checks of what callers give. */
final class Keys {
    /** Scopes are written as paths. */
    private static final String SEPARATOR = "/";

    static final long LONGEST_NANOSECONDS = Long.MAX_VALUE / 4;

    private Keys() {}

    static String require(String key) {
        return require("a key", key);
    }

    /** The beginning of the keys of a scope. */
    static String prefix(String outer, String name) {
        return outer + require("the name of a scope", name) + SEPARATOR;
    }

    private static String require(String what, String text) {
        if (text.isEmpty()) {
            throw new IllegalArgumentException(what + " must not be empty");
        }
        if (text.contains(SEPARATOR)) {
            throw new IllegalArgumentException(what + " must not have a slash: " + text);
        }
        return text;
    }

    /** A key with its scopes. */
    static String full(String prefix, String key) {
        String full = prefix + require(key);
        int length = full.getBytes(StandardCharsets.UTF_8).length;
        if (length > Wire.LONGEST_KEY) {
            throw new IllegalArgumentException(
                    "a key must have <= " + Wire.LONGEST_KEY + " bytes, with its scopes: " + length);
        }
        return full;
    }

    static byte[] requireShort(byte[] value) {
        if (value.length > Rendezvous.LONGEST_VALUE) {
            throw new IllegalArgumentException(
                    "a value must have <= " + Rendezvous.LONGEST_VALUE + " bytes: " + value.length);
        }
        return value;
    }

    /** A timeout in nanoseconds; one of 73 years stands for all longer ones. */
    static long nanoseconds(Duration timeout) {
        if (timeout.isNegative()) {
            throw new IllegalArgumentException("timeout must be >= 0: " + timeout);
        }
        return timeout.compareTo(Duration.ofNanos(LONGEST_NANOSECONDS)) > 0 ? LONGEST_NANOSECONDS : timeout.toNanos();
    }
}
