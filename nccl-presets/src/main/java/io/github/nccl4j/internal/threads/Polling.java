package io.github.nccl4j.internal.threads;

import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Waits for a condition by polling. */
public final class Polling {
    private static final int SPINS = 100;
    private static final long FIRST_PAUSE = 10_000;
    private static final long LONGEST_PAUSE = 1_000_000;

    public static final Duration FOREVER = Duration.ofNanos(Long.MAX_VALUE);

    private Polling() {}

    /**
     * Polls until the condition is true, with growing pauses; returns false if the time ends before. An interrupt does not
     * end the wait; the interrupt status is restored.
     */
    public static boolean until(BooleanSupplier done, Duration timeout) {
        long limit = Timeouts.nanoseconds(timeout);
        long start = System.nanoTime();
        long pause = FIRST_PAUSE;
        boolean interrupted = false;
        try {
            for (int asked = 0; !done.getAsBoolean(); asked++) {
                long left = limit - (System.nanoTime() - start);
                if (left <= 0) {
                    return false;
                }
                if (asked < SPINS) {
                    Thread.onSpinWait();
                    continue;
                }
                // A pending interrupt would make the pause return at once.
                interrupted |= Thread.interrupted();
                LockSupport.parkNanos(Math.min(pause, left));
                pause = Math.min(2 * pause, LONGEST_PAUSE);
            }
            return true;
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
