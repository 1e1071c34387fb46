package io.github.nccl4j.launch.store;

import java.util.Map;

/**
 * The interval of the heartbeats between a rank and its store, and the limit for silence of either end.
 *
 * @param interval nanoseconds between two heartbeats; 0 for none
 * @param patience nanoseconds of silence after which the other end is lost; 0 if it never is
 */
public record Heartbeat(long interval, long patience) {
    /** Intervals without a heartbeat after which a rank is silent. */
    static final int SILENT_AFTER = 3;

    /** Least interval, so that no rank keeps the store busy. */
    static final long MIN_NANOS = 100_000_000;

    static final String INTERVAL = "NCCL4J_STORE_HEARTBEAT";
    static final String INTERVAL_PROPERTY = "nccl4j.store.heartbeat";
    static final String PATIENCE = "NCCL4J_STORE_PATIENCE";
    static final String PATIENCE_PROPERTY = "nccl4j.store.patience";

    private static final double NANOS = 1e9;
    private static final double MAX_SECONDS = 1e6;

    /** Returns the settings of the system properties and the environment. By default every second, and silence is never a loss. */
    public static Heartbeat of(Map<String, String> environment) {
        long interval = nanos(environment, INTERVAL_PROPERTY, INTERVAL, "1");
        long patience = nanos(environment, PATIENCE_PROPERTY, PATIENCE, "0");
        if (interval > 0 && interval < MIN_NANOS) {
            throw new IllegalArgumentException(
                    INTERVAL + " must be 0, or >= " + MIN_NANOS / NANOS + " seconds: " + interval / NANOS);
        }
        if (patience > 0 && (interval == 0 || patience < SILENT_AFTER * interval)) {
            throw new IllegalArgumentException(PATIENCE + " must be 0, or >= " + SILENT_AFTER + " times " + INTERVAL
                    + ": " + patience / NANOS + ", " + interval / NANOS);
        }
        return new Heartbeat(interval, patience);
    }

    private static long nanos(Map<String, String> environment, String property, String variable, String standard) {
        String given = System.getProperty(property, environment.getOrDefault(variable, ""));
        String text = given.isBlank() ? standard : given.strip();
        try {
            double seconds = Double.parseDouble(text);
            if (seconds >= 0 && seconds <= MAX_SECONDS) {
                return (long) (seconds * NANOS);
            }
        } catch (NumberFormatException notANumber) {
            // Falls through to the message for a number out of range.
        }
        throw new IllegalArgumentException(
                variable + " must be a number of seconds from 0 to " + (long) MAX_SECONDS + ": " + text);
    }
}
