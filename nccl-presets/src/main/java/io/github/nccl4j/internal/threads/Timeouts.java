package io.github.nccl4j.internal.threads;

import java.time.Duration;

/** Timeouts as numbers. */
public final class Timeouts {
    private Timeouts() {}

    /** Returns a timeout in nanoseconds, at most {@link Long#MAX_VALUE}, which is 292 years. */
    public static long nanoseconds(Duration timeout) {
        if (timeout.isNegative()) {
            throw new IllegalArgumentException("timeout must be >= 0: " + timeout);
        }
        try {
            return timeout.toNanos();
        } catch (ArithmeticException tooLong) {
            return Long.MAX_VALUE;
        }
    }
}
