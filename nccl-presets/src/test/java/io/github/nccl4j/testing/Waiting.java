package io.github.nccl4j.testing;

import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.function.Predicate;

/** Waits in tests for a state that another thread or process brings about. The failures name the state. */
public final class Waiting {
    /** Never met, also not on a machine that does much else at the same time. */
    public static final Duration LONG = Duration.ofMinutes(2);

    private static final long LONGEST_PAUSE = 16;

    private Waiting() {}

    /** As {@link #until(String, Callable, Duration)} for {@link #LONG}. */
    public static void until(String state, Callable<Boolean> condition) {
        until(state, condition, LONG);
    }

    /**
     * Returns when a condition holds.
     *
     * @param state the name of the state, for the failure
     * @param condition true if the state is reached; what it throws is thrown
     * @param limit the time after which the test fails
     */
    public static void until(String state, Callable<Boolean> condition, Duration limit) {
        value(state, condition, Boolean.TRUE::equals, limit);
    }

    /** As {@link #value(String, Callable, Predicate, Duration)} for {@link #LONG}. */
    public static <T> T value(String state, Callable<T> current, Predicate<? super T> wanted) {
        return value(state, current, wanted, LONG);
    }

    /**
     * Returns the first value that is wanted; the failure shows the last one.
     *
     * @param state the name of the state, for the failure
     * @param current returns the present value; what it throws is thrown
     * @param wanted true if the state is reached
     * @param limit the time after which the test fails
     */
    public static <T> T value(String state, Callable<T> current, Predicate<? super T> wanted, Duration limit) {
        long start = System.nanoTime();
        try {
            for (long pause = 1; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
                // Before the look: the thread may be stopped for long between the two.
                boolean isLast = System.nanoTime() - start >= limit.toNanos();
                T now = current.call();
                if (wanted.test(now)) {
                    return now;
                }
                if (isLast) {
                    throw new AssertionError("not reached within " + limit + ": " + state
                            + (now instanceof Boolean ? "" : "; last: " + now));
                }
                Thread.sleep(pause);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError("interrupted while waiting for: " + state, e);
        } catch (RuntimeException e) {
            throw e;
        } catch (Exception e) {
            throw new AssertionError("failed while waiting for: " + state, e);
        }
    }
}
