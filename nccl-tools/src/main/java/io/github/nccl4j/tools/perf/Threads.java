package io.github.nccl4j.tools.perf;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** Runs several tasks at the same time, all of which must succeed. */
final class Threads {
    private static final long END_SECONDS = 30;

    private Threads() {}

    /**
     * Runs each part in its own thread, or a single part in the calling thread, and waits for all. When a part fails, calls
     * {@code end} and interrupts the others.
     *
     * @param end makes the other parts end
     * @return the results, in any order
     * @throws Exception the first exception of a part
     */
    static <T> List<T> run(List<Callable<T>> parts, Runnable end) throws Exception {
        if (parts.size() == 1) {
            return Collections.singletonList(parts.get(0).call());
        }
        ExecutorService pool = Executors.newFixedThreadPool(parts.size());
        try {
            ExecutorCompletionService<T> done = new ExecutorCompletionService<>(pool);
            parts.forEach(done::submit);
            List<T> results = new ArrayList<>();
            for (int i = 0; i < parts.size(); i++) {
                results.add(done.take().get());
            }
            pool.shutdown();
            return results;
        } catch (ExecutionException e) {
            end.run();
            pool.shutdownNow();
            // Wait, because the caller closes the resources of the parts next.
            pool.awaitTermination(END_SECONDS, TimeUnit.SECONDS);
            throw e.getCause() instanceof Exception cause ? cause : e;
        } finally {
            pool.shutdownNow();
        }
    }
}
