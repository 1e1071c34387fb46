package io.github.nccl4j.launch.store;

import java.util.TreeSet;
import java.util.concurrent.Executor;
import java.util.function.LongSupplier;

/** Actions that run once at a time of a clock. Confined to the thread that calls {@link #runDue}. */
final class TimerQueue {
    private final LongSupplier clock;
    private final TreeSet<Timer> timers = new TreeSet<>();
    private long timerCount;

    /** An action and its time. */
    static final class Timer implements Comparable<Timer> {
        private final long deadline;
        private final long number;
        private final Runnable action;

        private Timer(long deadline, long number, Runnable action) {
            this.deadline = deadline;
            this.number = number;
            this.action = action;
        }

        @Override
        public int compareTo(Timer other) {
            // Differences, because the time may wrap.
            return deadline != other.deadline
                    ? Long.signum(deadline - other.deadline)
                    : Long.compare(number, other.number);
        }
    }

    /** Creates a queue whose clock returns nanoseconds, as {@link System#nanoTime()} does. */
    TimerQueue(LongSupplier clock) {
        this.clock = clock;
    }

    /** The current time of the clock in nanoseconds. */
    long now() {
        return clock.getAsLong();
    }

    /** Schedules an action for a time of the clock. Actions of the same time run in the order of these calls. */
    Timer schedule(long nanoTime, Runnable action) {
        Timer timer = new Timer(nanoTime, timerCount++, action);
        timers.add(timer);
        return timer;
    }

    /** Does nothing if the timer is null, or has run. */
    void cancel(Timer timer) {
        if (timer != null) {
            timers.remove(timer);
        }
    }

    boolean isEmpty() {
        return timers.isEmpty();
    }

    /** Nanoseconds until the first action is due; negative if it is overdue. The queue must not be empty. */
    long nanosLeft() {
        return timers.first().deadline - now();
    }

    /** Passes the actions that are due to an executor, which runs them in this thread. If it throws, the action stays due. */
    void runDue(Executor executor) {
        while (!timers.isEmpty() && nanosLeft() <= 0) {
            Timer due = timers.first();
            executor.execute(due.action);
            timers.remove(due);
        }
    }
}
