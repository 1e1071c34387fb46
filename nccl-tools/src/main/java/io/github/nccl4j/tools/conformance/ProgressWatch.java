package io.github.nccl4j.tools.conformance;

import io.github.nccl4j.tools.support.DaemonThreads;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.time.Duration;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/**
 * Detects that a thread which drives ranks makes no progress. Each such thread reports its next step; if a step takes
 * longer than the limit, the watch prints the steps and the stacks of all threads, and runs {@code onTimeout}.
 */
public final class ProgressWatch {
    /** A watch without a limit, for tests, which have a limit of their own. */
    static final ProgressWatch NONE = new ProgressWatch(Duration.ofNanos(Long.MAX_VALUE), System.err, () -> {});

    private final Duration limit;
    private final PrintStream out;
    private final Runnable onTimeout;
    private final Map<Thread, Step> steps = new ConcurrentHashMap<>();

    /** The step of a thread, and its start. */
    private record Step(String what, long start) {
        long nanos() {
            return System.nanoTime() - start;
        }
    }

    public ProgressWatch(Duration limit, PrintStream out, Runnable onTimeout) {
        this.limit = limit;
        this.out = out;
        this.onTimeout = onTimeout;
    }

    /** Starts to watch, in a daemon thread. */
    public void start() {
        DaemonThreads.start("progress-watch", this::watch);
    }

    /** Reports the next step of this thread. */
    public void at(String what) {
        steps.put(Thread.currentThread(), new Step(what, System.nanoTime()));
    }

    /** Ends the watch of this thread. */
    public void done() {
        steps.remove(Thread.currentThread());
    }

    private void watch() {
        try {
            while (steps.values().stream().allMatch(step -> step.nanos() <= limit.toNanos())) {
                TimeUnit.MILLISECONDS.sleep(Math.max(10, Math.min(1000, limit.toMillis() / 10)));
            }
        } catch (InterruptedException e) {
            return;
        }
        print();
        onTimeout.run();
    }

    private void print() {
        out.printf(Locale.ROOT, "STALLED: a step takes longer than %.1f s%n", limit.toMillis() / 1e3);
        steps.forEach((thread, step) -> out.printf(
                Locale.ROOT, "\"%s\" has been for %.1f s at: %s%n", thread.getName(), step.nanos() / 1e9, step.what()));
        for (ThreadInfo info : ManagementFactory.getThreadMXBean().dumpAllThreads(true, true)) {
            out.println();
            out.println("\"" + info.getThreadName() + "\" " + info.getThreadState()
                    + (info.getLockName() == null ? "" : " on " + info.getLockName())
                    + (info.getLockOwnerName() == null ? "" : " of \"" + info.getLockOwnerName() + "\""));
            // Not the text of ThreadInfo, which ends after eight frames.
            for (StackTraceElement frame : info.getStackTrace()) {
                out.println("\tat " + frame);
            }
        }
        out.flush();
    }
}
