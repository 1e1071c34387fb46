package io.github.nccl4j.internal.threads;

import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Work in the library for which the end of the process waits. Otherwise NCCL, which works in threads of its own, would
 * use CUDA and memory after the end has freed them, and the process would end with SIGSEGV and a crash report.
 */
public final class ExitWait implements AutoCloseable {
    private static final Set<ExitWait> OPEN = ConcurrentHashMap.newKeySet();

    private final CountDownLatch ended = new CountDownLatch(1);
    private final long patience;

    private ExitWait(Duration patience) {
        this.patience = Timeouts.nanoseconds(patience);
    }

    /** Registers the hook once. */
    private static final class Hook {
        static {
            try {
                Runtime.getRuntime().addShutdownHook(new Thread(ExitWait::awaitAll, "nccl4j exit"));
            } catch (IllegalStateException ending) {
                // The process is ending: it waits for its hooks, such as the one that begins this work.
            }
        }

        private Hook() {}

        static void register() {}
    }

    /**
     * Begins work, in any thread.
     *
     * @param patience the longest time that the end of the process waits for the work
     * @return the work; its end closes it, in any thread
     */
    public static ExitWait begin(Duration patience) {
        Hook.register();
        ExitWait work = new ExitWait(patience);
        OPEN.add(work);
        return work;
    }

    /** Ends the work. */
    @Override
    public void close() {
        OPEN.remove(this);
        ended.countDown();
    }

    /** Waits for all work, each up to its patience from now on; an interrupt ends the wait and stays set. */
    public static void awaitAll() {
        long start = System.nanoTime();
        try {
            for (ExitWait work : OPEN) {
                work.ended.await(work.patience - (System.nanoTime() - start), TimeUnit.NANOSECONDS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
