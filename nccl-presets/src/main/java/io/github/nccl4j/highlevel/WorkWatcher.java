package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.threads.Waiting;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.LockSupport;

/** Completes the futures of {@link Work}, in one thread for the process, which ends when there is nothing to watch. */
final class WorkWatcher {
    private static final long PAUSE = 200_000;
    private static final long LINGER = 1_000_000_000;

    private static final List<Watched> ADDED = new ArrayList<>();
    private static boolean running;

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
            synchronized (ADDED) {
                ADDED.add(watched);
                if (!running) {
                    running = true;
                    Thread thread = new Thread(WorkWatcher::run, "nccl4j work");
                    thread.setDaemon(true);
                    thread.start();
                }
            }
        }
        return watched.future;
    }

    private static void run() {
        List<Watched> all = new ArrayList<>();
        long idleSince = System.nanoTime();
        while (true) {
            synchronized (ADDED) {
                all.addAll(ADDED);
                ADDED.clear();
                if (!all.isEmpty()) {
                    idleSince = System.nanoTime();
                } else if (System.nanoTime() - idleSince > LINGER) {
                    running = false;
                    return;
                }
            }
            for (Iterator<Watched> each = all.iterator(); each.hasNext(); ) {
                if (each.next().tryComplete()) {
                    each.remove();
                }
            }
            LockSupport.parkNanos(PAUSE);
        }
    }
}
