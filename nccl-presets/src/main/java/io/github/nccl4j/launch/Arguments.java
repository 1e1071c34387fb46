package io.github.nccl4j.launch;

import java.nio.charset.StandardCharsets;
import java.time.Duration;

/** Checks of what callers give. */
final class Arguments {
    /** Scopes are written as paths. */
    private static final String SEPARATOR = "/";

    static final long MAX_NANOSECONDS = Long.MAX_VALUE / 4;

    private Arguments() {}

    static String requireKey(String key) {
        return requireName("a key", key);
    }

    /** The beginning of the keys of a scope. */
    static String scopePrefix(String outer, String name) {
        return outer + requireName("the name of a scope", name) + SEPARATOR;
    }

    private static String requireName(String what, String text) {
        if (text.isEmpty()) {
            throw new IllegalArgumentException(what + " must not be empty");
        }
        if (text.contains(SEPARATOR)) {
            throw new IllegalArgumentException(what + " must not have a slash: " + text);
        }
        return text;
    }

    /** A key with its scopes. */
    static String fullKey(String prefix, String key) {
        String full = prefix + requireKey(key);
        int length = full.getBytes(StandardCharsets.UTF_8).length;
        if (length > Wire.MAX_KEY) {
            throw new IllegalArgumentException(
                    "a key must have <= " + Wire.MAX_KEY + " bytes, with its scopes: " + length);
        }
        return full;
    }

    static byte[] requireValue(byte[] value) {
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
        return timeout.compareTo(Duration.ofNanos(MAX_NANOSECONDS)) > 0 ? MAX_NANOSECONDS : timeout.toNanos();
    }
}
