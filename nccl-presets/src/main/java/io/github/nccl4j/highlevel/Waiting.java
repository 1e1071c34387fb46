package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.threads.Timeouts;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Waits for a condition by polling. */
final class Waiting {
    private static final int SPINS = 100;
    private static final long FIRST_PAUSE = 10_000;
    private static final long LONGEST_PAUSE = 1_000_000;

    static final Duration FOREVER = Duration.ofNanos(Long.MAX_VALUE);

    private Waiting() {}

    /**
     * Polls until the condition is true, with growing pauses. An interrupt does not end the wait; the interrupt status
     * is restored.
     */
    static void until(BooleanSupplier done, Object what, Duration timeout) {
        long limit = Timeouts.nanoseconds(timeout);
        long start = System.nanoTime();
        long pause = FIRST_PAUSE;
        boolean interrupted = false;
        try {
            for (int asked = 0; !done.getAsBoolean(); asked++) {
                long left = limit - (System.nanoTime() - start);
                if (left <= 0) {
                    throw new StreamTimeoutException(what.toString(), timeout);
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
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
