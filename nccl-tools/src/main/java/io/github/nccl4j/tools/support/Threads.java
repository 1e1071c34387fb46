package io.github.nccl4j.tools.support;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/** Runs tasks that wait for each other, such as the ranks of a communicator. */
public final class Threads {
    /**
     * A thread for each task. {@code CompletableFuture}'s own pool has a single one where there are two processors, from
     * Java 25 on, and tasks that wait for each other never end in it.
     */
    public static final Executor EACH = task -> DaemonThreads.start("task", task);

    private Threads() {}

    /** Runs each task in a thread of its own; the results in their order. */
    public static <T> List<T> together(List<Callable<T>> tasks, Duration limit) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(tasks.size());
        try {
            List<T> results = new ArrayList<>();
            ExecutionException first = null;
            for (Future<T> result : pool.invokeAll(tasks, limit.toMillis(), TimeUnit.MILLISECONDS)) {
                try {
                    results.add(result.get());
                } catch (ExecutionException e) {
                    // An assertion is the cause; failed calls of the other ranks are a consequence.
                    if (first == null || e.getCause() instanceof AssertionError) {
                        first = e;
                    }
                }
            }
            if (first != null) {
                throw first;
            }
            return results;
        } finally {
            pool.shutdownNow();
        }
    }
}
