package io.github.nccl4j.tools.conformance;

import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.time.Duration;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/**
 * Sees that the ranks of this process go on. Each thread that drives ranks says what it does next; when one of them stays
 * at it too long, all that the threads were at and their stacks are printed, and {@code onStall} is run.
 */
public final class StallWatch {
    /** Reports to nobody: for tests, which have a limit of their own. */
    static final StallWatch NONE = new StallWatch(Duration.ofNanos(Long.MAX_VALUE), System.err, () -> {});

    private final Duration limit;
    private final PrintStream out;
    private final Runnable onStall;
    private final Map<Thread, Step> steps = new ConcurrentHashMap<>();

    /** What a thread is at since when. */
    private record Step(String what, long start) {
        long nanos() {
            return System.nanoTime() - start;
        }
    }

    public StallWatch(Duration limit, PrintStream out, Runnable onStall) {
        this.limit = limit;
        this.out = out;
        this.onStall = onStall;
    }

    /** Looks at the threads from now on, in a daemon thread. */
    public void start() {
        Thread watch = new Thread(this::watch, "stall-watch");
        watch.setDaemon(true);
        watch.start();
    }

    /** What this thread does from now on. */
    public void at(String what) {
        steps.put(Thread.currentThread(), new Step(what, System.nanoTime()));
    }

    /** This thread has nothing more to do. */
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
        onStall.run();
    }

    private void print() {
        out.printf(Locale.ROOT, "STALLED: something takes longer than %.1f s%n", limit.toMillis() / 1e3);
        steps.forEach((thread, step) -> out.printf(
                Locale.ROOT, "\"%s\" is since %.1f s at: %s%n", thread.getName(), step.nanos() / 1e9, step.what()));
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
