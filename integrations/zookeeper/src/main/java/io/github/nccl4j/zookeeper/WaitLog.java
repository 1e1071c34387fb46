package io.github.nccl4j.zookeeper;

import java.lang.System.Logger.Level;
import java.util.function.LongFunction;

/** Logs for what a call still waits: first after an interval, then each time that the wait has doubled. Used by one thread. */
final class WaitLog {
    /** As for waits at the TCP store. */
    static final long USUAL_NANOS = 10_000_000_000L;

    private final long begin = System.nanoTime();
    private long next;

    WaitLog(long interval) {
        next = interval;
    }

    /** The time at which the next line is due. */
    long due() {
        return begin + next;
    }

    /** Logs a line, if one is due; it is made from the nanoseconds of the wait. */
    void logIfDue(LongFunction<String> line) {
        long waited = System.nanoTime() - begin;
        if (waited >= next) {
            System.getLogger("io.github.nccl4j").log(Level.WARNING, line.apply(next));
            next = 2 * waited;
        }
    }
}
