package io.github.nccl4j.internal.threads;

import java.math.BigDecimal;
import java.time.Duration;

/** Timeouts as numbers. */
public final class Timeouts {
    private static final int NANO_DIGITS = 9;

    private Timeouts() {}

    /** Returns a timeout in nanoseconds, at most {@link Long#MAX_VALUE}, which is 292 years. */
    public static long nanoseconds(Duration timeout) {
        if (timeout.isNegative()) {
            throw new IllegalArgumentException("timeout must be >= 0: " + text(timeout));
        }
        try {
            return timeout.toNanos();
        } catch (ArithmeticException tooLong) {
            return Long.MAX_VALUE;
        }
    }

    /** A duration for messages: "20 s", "0.25 s". */
    public static String text(Duration duration) {
        BigDecimal seconds =
                BigDecimal.valueOf(duration.getSeconds()).add(BigDecimal.valueOf(duration.getNano(), NANO_DIGITS));
        return (seconds.signum() == 0 ? BigDecimal.ZERO : seconds.stripTrailingZeros()).toPlainString() + " s";
    }
}
