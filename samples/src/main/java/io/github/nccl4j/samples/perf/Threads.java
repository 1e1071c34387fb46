package io.github.nccl4j.samples.perf;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** Work in several threads at the same time, all of which must do their part. */
final class Threads {
    private static final long END_SECONDS = 30;

    private Threads() {}

    /**
     * Runs each part in a thread of its own, a single one in this thread, and waits for all. When one fails, the others are
     * ended and interrupted.
     *
     * @param end makes the other parts end; called when one has failed
     * @return the results, in any order
     * @throws Exception the first that a part has thrown
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
            // What they use is about to be closed.
            pool.awaitTermination(END_SECONDS, TimeUnit.SECONDS);
            throw e.getCause() instanceof Exception cause ? cause : e;
        } finally {
            pool.shutdownNow();
        }
    }
}
