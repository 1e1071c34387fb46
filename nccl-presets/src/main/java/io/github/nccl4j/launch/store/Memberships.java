package io.github.nccl4j.launch.store;

import io.github.nccl4j.internal.threads.ServiceLoop;
import io.github.nccl4j.launch.LostRank;
import io.github.nccl4j.launch.Membership;
import io.github.nccl4j.launch.store.StoreClient.End;
import io.github.nccl4j.launch.wire.Notice;
import io.github.nccl4j.launch.wire.Wire;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;

/**
 * The open memberships of one rank at a store. Notices arrive in the thread of the connection, which calls the listeners.
 * Thread-safe.
 */
final class Memberships {
    /** Limit for the wait until the thread of the connection has sent a request. */
    private static final long SEND_SECONDS = 1;

    /** Limit for the wait until the store has entered this rank. */
    private static final long ANSWER_SECONDS = 1;

    private final StoreSession store;
    private final Map<String, Entry> open = new ConcurrentHashMap<>();

    Memberships(StoreSession store) {
        this.store = store;
    }

    Membership enter(String group, int number, Consumer<LostRank> onLoss) {
        if (number < 0) {
            throw new IllegalArgumentException("number must be >= 0: " + number);
        }
        store.requireOpen();
        Entry entry = new Entry(group, number, onLoss);
        if (open.putIfAbsent(group, entry) != null) {
            throw new IllegalArgumentException("a rank must be a member of a group once: " + group);
        }
        awaitEntered(store.requestAsync(
                Wire.Operation.ENTER, new Wire.Frame().text(group).number32(number)));
        return entry;
    }

    /** Waits until the store has entered the rank. From then on, the end of the process is noticed. */
    private static void awaitEntered(CompletableFuture<?> response) {
        try {
            response.get(ANSWER_SECONDS, TimeUnit.SECONDS);
        } catch (ExecutionException | TimeoutException ended) {
            // The end of the connection is reported to the listener.
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Handles a notice of the store. In the thread of the connection. */
    void handle(Notice notice) {
        Entry entry = open.get(notice.group());
        // Null if this rank has left the group meanwhile.
        if (entry != null) {
            entry.handle(notice);
        }
    }

    /** Handles the end of the connection. In its thread. */
    void handleEnd(String reason, End how) {
        if (how == End.CLOSED) {
            return;
        }
        boolean isWatched = false;
        for (Entry entry : new ArrayList<>(open.values())) {
            if (how == End.DECLARED_LOST || !entry.loseKeeper(reason)) {
                isWatched = true;
                if (how != End.BROKEN) {
                    entry.loseSelf(reason);
                }
            }
        }
        if (isWatched && how == End.BROKEN) {
            System.getLogger("io.github.nccl4j")
                    .log(
                            Level.WARNING,
                            "rank " + store.rank() + " has lost its connection to " + store.name() + ": " + reason
                                    + ". It is not told of lost ranks any more: NCCL or a deadline may detect them later");
        }
    }

    private final class Entry implements Membership {
        private final String group;
        private final int number;
        private final Consumer<LostRank> onLoss;
        private final Set<Integer> lost = new HashSet<>();
        /** Time of the last heartbeat of each silent member, of {@link System#nanoTime()}. */
        private final Map<Integer, Long> silentSince = new HashMap<>();

        private Notice keeper;

        Entry(String group, int number, Consumer<LostRank> onLoss) {
            this.group = group;
            this.number = number;
            this.onLoss = onLoss;
        }

        void handle(Notice notice) {
            synchronized (this) {
                switch (notice.kind()) {
                    case KEEPER -> keeper = notice;
                    case SILENT -> silentSince.put(notice.number(), System.nanoTime() - notice.nanos());
                    case HEARD, LOST -> silentSince.remove(notice.number());
                }
            }
            if (notice.kind() == Notice.Kind.LOST) {
                report(new LostRank(notice.number(), notice.process(), notice.reason()));
            }
        }

        /** Reports the member that keeps the store as lost; returns false if no other member does. */
        boolean loseKeeper(String reason) {
            Notice gone;
            synchronized (this) {
                gone = keeper;
            }
            if (gone == null) {
                return false;
            }
            report(new LostRank(
                    gone.number(),
                    gone.process(),
                    "it keeps the store, and the connection to the store has ended (" + reason + ")"));
            return true;
        }

        /** Reports this member: the others are told that it is lost. */
        void loseSelf(String reason) {
            report(new LostRank(
                    number,
                    "this process",
                    "its connection to " + store.name() + " has ended (" + reason
                            + "), and the other ranks count it as lost"));
        }

        private void report(LostRank rank) {
            synchronized (this) {
                if (!lost.add(rank.rank())) {
                    return;
                }
            }
            try {
                onLoss.accept(rank);
            } catch (RuntimeException | Error failed) {
                ServiceLoop.log(Level.WARNING, "the loss of " + rank + " was not handled", failed);
            }
        }

        @Override
        public synchronized Map<Integer, Duration> silent() {
            Map<Integer, Duration> silent = new HashMap<>();
            long now = System.nanoTime();
            silentSince.forEach((number, since) -> silent.put(number, Duration.ofNanos(now - since)));
            long storeSilence = store.silence();
            if (keeper != null && storeSilence > 0) {
                silent.put(keeper.number(), Duration.ofNanos(storeSilence));
            }
            return silent;
        }

        @Override
        public void close() {
            if (!open.remove(group, this)) {
                return;
            }
            try {
                // Sent before this returns: the process may end at once.
                store.send(Wire.Operation.EXIT, new Wire.Frame().text(group)).get(SEND_SECONDS, TimeUnit.SECONDS);
            } catch (ExecutionException | TimeoutException | IllegalStateException ended) {
                // Without a connection, or after the store was closed, this rank is no member.
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
