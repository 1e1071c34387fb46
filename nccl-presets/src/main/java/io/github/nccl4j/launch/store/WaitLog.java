package io.github.nccl4j.launch.store;

import java.lang.System.Logger.Level;
import java.util.function.LongFunction;

/** Logs for what a call still waits: first after an interval, then each time that the wait has doubled. Used by one thread. */
final class WaitLog {
    /** The usual interval: shorter waits are part of every start. */
    static final long USUAL_NANOS = 10_000_000_000L;

    private final long begin;
    private long next;

    /**
     * Creates a log.
     *
     * @param begin the time at which the wait begins
     * @param interval the nanoseconds until the first line
     */
    WaitLog(long begin, long interval) {
        this.begin = begin;
        next = interval;
    }

    /** The nanoseconds until the next line is due. */
    long left(long now) {
        return begin + next - now;
    }

    /** Logs a line, if one is due; it is made from the nanoseconds of the wait. */
    void logIfDue(long now, LongFunction<String> line) {
        if (left(now) <= 0) {
            System.getLogger("io.github.nccl4j").log(Level.WARNING, line.apply(next));
            next = 2 * Math.max(next, now - begin);
        }
    }
}
