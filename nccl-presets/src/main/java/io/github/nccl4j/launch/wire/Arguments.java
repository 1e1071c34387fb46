package io.github.nccl4j.launch.wire;

import io.github.nccl4j.internal.threads.Timeouts;
import java.nio.charset.StandardCharsets;
import java.time.Duration;

/** Checks and conversion of arguments of callers: keys, names of scopes, values, timeouts. */
public final class Arguments {
    /** Separates the scopes in a full key. */
    private static final String SEPARATOR = "/";

    /** 73 years: a sum of two such timeouts and {@link System#nanoTime()} can be compared without overflow. */
    public static final long MAX_NANOSECONDS = Long.MAX_VALUE / 4;

    /** Maximum length of a value, in bytes. */
    public static final int LONGEST_VALUE = 1 << 16;

    private Arguments() {}

    public static String requireKey(String key) {
        return requireName("a key", key);
    }

    /** Returns the prefix of the full keys of a scope. */
    public static String scopePrefix(String outer, String name) {
        return outer + requireName("the name of a scope", name) + SEPARATOR;
    }

    private static String requireName(String argument, String text) {
        if (text.isEmpty()) {
            throw new IllegalArgumentException(argument + " must not be empty");
        }
        if (text.contains(SEPARATOR)) {
            throw new IllegalArgumentException(argument + " must not contain a slash: " + text);
        }
        return text;
    }

    /** Returns a key with the prefix of its scope. */
    public static String fullKey(String prefix, String key) {
        String full = prefix + requireKey(key);
        int length = full.getBytes(StandardCharsets.UTF_8).length;
        if (length > Wire.MAX_KEY) {
            throw new IllegalArgumentException(
                    "a key with its scopes must have <= " + Wire.MAX_KEY + " bytes: " + length);
        }
        return full;
    }

    public static byte[] requireValue(byte[] value) {
        if (value.length > LONGEST_VALUE) {
            throw new IllegalArgumentException("a value must have <= " + LONGEST_VALUE + " bytes: " + value.length);
        }
        return value;
    }

    /** Converts a timeout to nanoseconds, at most {@link #MAX_NANOSECONDS}. */
    public static long nanoseconds(Duration timeout) {
        if (timeout.isNegative()) {
            throw new IllegalArgumentException("timeout must be >= 0: " + Timeouts.text(timeout));
        }
        return timeout.compareTo(Duration.ofNanos(MAX_NANOSECONDS)) > 0 ? MAX_NANOSECONDS : timeout.toNanos();
    }
}
