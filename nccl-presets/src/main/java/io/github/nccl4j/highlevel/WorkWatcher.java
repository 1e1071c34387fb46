package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.threads.CheckLoop;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;

/** Completes the futures of {@link Work}, in one thread for the process. */
final class WorkWatcher {
    private static final long PAUSE = 200_000;

    private static final CheckLoop<Watched> LOOP = new CheckLoop<>("nccl4j work", all -> {
        all.removeIf(Watched::tryComplete);
        return PAUSE;
    });

    private WorkWatcher() {}

    private record Watched(Work work, CompletableFuture<Void> future, long start, Duration limit) {
        /** Completes the future if the work is done, failed or late; returns true if it did. */
        boolean tryComplete() {
            try {
                if (work.isDone()) {
                    future.complete(null);
                    return true;
                }
                work.checkErrors();
                if (System.nanoTime() - start > Waiting.nanoseconds(limit)) {
                    throw work.timedOut(limit);
                }
                return false;
            } catch (RuntimeException | Error e) {
                future.completeExceptionally(e);
                return true;
            }
        }
    }

    static CompletableFuture<Void> watch(Work work, Duration limit) {
        Watched watched = new Watched(work, new CompletableFuture<>(), System.nanoTime(), limit);
        if (!watched.tryComplete()) {
            work.beginWait(watched.future);
            LOOP.add(watched);
        }
        return watched.future;
    }
}
