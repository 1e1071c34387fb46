package io.github.nccl4j.internal.threads;

import java.util.concurrent.CompletableFuture;
import java.util.function.BooleanSupplier;

/** Completes futures whose conditions must be polled, in one daemon thread. Thread-safe. */
public final class PolledFutures {
    private static final long PAUSE = 200_000;

    private final CheckLoop<Polled> loop;

    /**
     * Creates futures that are polled by one thread.
     *
     * @param thread the name of the thread
     */
    public PolledFutures(String thread) {
        loop = new CheckLoop<>(thread, all -> {
            all.removeIf(Polled::tryComplete);
            return PAUSE;
        });
    }

    private record Polled(BooleanSupplier condition, CompletableFuture<Void> future) {
        /** Completes the future if the condition is true or throws; returns true if it did. */
        boolean tryComplete() {
            try {
                if (condition.getAsBoolean()) {
                    future.complete(null);
                    return true;
                }
                return false;
            } catch (RuntimeException | Error e) {
                future.completeExceptionally(e);
                return true;
            }
        }
    }

    /**
     * Returns a future that is completed when a condition is true.
     *
     * @param condition polled by this thread first; the future gets what it throws
     */
    public CompletableFuture<Void> when(BooleanSupplier condition) {
        Polled polled = new Polled(condition, new CompletableFuture<>());
        if (!polled.tryComplete()) {
            loop.add(polled);
        }
        return polled.future;
    }
}
