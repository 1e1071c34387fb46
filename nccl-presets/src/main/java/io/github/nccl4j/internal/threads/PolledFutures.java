package io.github.nccl4j.internal.threads;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.function.BooleanSupplier;

/**
 * Completes futures whose conditions must be polled. One daemon thread polls all conditions. An executor completes the
 * futures, because code that depends on a future may wait. Thread-safe.
 */
public final class PolledFutures {
    private static final long PAUSE = 200_000;

    /** Set in threads that poll. */
    private static final ThreadLocal<Boolean> POLLING = new ThreadLocal<>();

    private final CheckLoop<Polled> loop;
    private final Executor threads;

    /**
     * Creates futures that are polled by one thread.
     *
     * @param thread the name of the thread, and the beginning of the names of the threads of {@link #threads}
     */
    public PolledFutures(String thread) {
        loop = new CheckLoop<>(thread, all -> {
            POLLING.set(true);
            all.removeIf(Polled::poll);
            return PAUSE;
        });
        threads = Executors.newCachedThreadPool(DaemonThreads.factory(thread + " future"));
    }

    /** An executor with as many threads as there are tasks. */
    public Executor threads() {
        return threads;
    }

    /** Requires a thread that may wait: all futures wait for the threads that poll. */
    public static void requireMayWait() {
        if (POLLING.get() != null) {
            throw new IllegalStateException(
                    "the thread that polls the work of all futures must not wait: give toFuture an"
                            + " executor with threads of its own");
        }
    }

    private final class Polled {
        private final BooleanSupplier isDue;
        private final BooleanSupplier condition;
        private final CompletableFuture<Void> future = new CompletableFuture<>();
        private final Executor executor;
        /** True while the executor checks the condition. */
        private volatile boolean handedOver;

        Polled(BooleanSupplier isDue, BooleanSupplier condition, Executor executor) {
            this.isDue = isDue;
            this.condition = condition;
            this.executor = executor;
        }

        /** Lets the executor check the condition if that is due. Returns true if no further poll is needed. */
        boolean poll() {
            if (!handedOver && !future.isDone() && isDue()) {
                handedOver = true;
                try {
                    executor.execute(this::check);
                } catch (RuntimeException refused) {
                    threads.execute(() -> future.completeExceptionally(refused));
                }
            }
            return future.isDone();
        }

        private boolean isDue() {
            try {
                return isDue.getAsBoolean();
            } catch (RuntimeException | Error e) {
                // The condition throws as well, or polling continues.
                return true;
            }
        }

        private void check() {
            handedOver = tryComplete();
        }

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
     * @param isDue true if the condition may be true or throw; polled, and must not take long
     * @param condition checked by this thread first, and later by the executor; the future gets what it throws
     * @param executor completes the future
     */
    public CompletableFuture<Void> when(BooleanSupplier isDue, BooleanSupplier condition, Executor executor) {
        Polled polled = new Polled(isDue, condition, executor);
        if (!polled.tryComplete()) {
            loop.add(polled);
        }
        return polled.future;
    }
}
