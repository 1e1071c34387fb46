package io.github.nccl4j.launch.store;

/** Timers whose time a test sets. The time begins shortly before it wraps, as {@link System#nanoTime()} may. */
final class TestTime {
    static final long SECOND = 1_000_000_000;

    private long now = Long.MAX_VALUE - 1;
    private final TimerQueue timers = new TimerQueue(() -> now);

    TimerQueue timers() {
        return timers;
    }

    /** Runs the timers that are due after some nanoseconds, all at that time. */
    void advance(long nanos) {
        now += nanos;
        timers.runDue(Runnable::run);
    }
}
