package io.github.nccl4j.internal.communicator;

import io.github.nccl4j.launch.LostRank;
import io.github.nccl4j.launch.Membership;
import io.github.nccl4j.launch.Rendezvous;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/**
 * The ranks of a communicator that its rendezvous reports as lost or silent. Without a rendezvous that reports ranks,
 * there are none. Has no reference to the communicator, which must stay collectable. Thread-safe.
 */
public final class PeerWatch implements AutoCloseable {
    private final List<Membership> memberships = new ArrayList<>();
    private final Map<Integer, LostRank> lost = new TreeMap<>();
    private boolean closed;
    private Runnable onLoss = () -> {};

    /** The number of lost ranks. Written under the lock. */
    private volatile int count;

    /** Creates a watch without ranks. */
    public PeerWatch() {}

    /**
     * Sets the action after each later loss, which the thread of the store calls. Calls the action now if ranks are
     * lost already.
     *
     * @param action the action, which must not block
     */
    public void onLoss(Runnable action) {
        synchronized (this) {
            onLoss = action;
            if (lost.isEmpty()) {
                return;
            }
        }
        action.run();
    }

    /**
     * Enters a group whose members have the numbers of the communicator's ranks.
     *
     * @param where the rendezvous, or null
     * @return the membership; null if the rendezvous reports no lost ranks
     */
    public Membership enter(Rendezvous where, String group, int rank) {
        if (where == null) {
            return null;
        }
        Membership entered;
        try {
            entered = where.membership(group, rank, this::add).orElse(null);
        } catch (IllegalArgumentException | IllegalStateException unavailable) {
            // The store is closed, or this process has another member of the name: a communicator works without a
            // membership.
            return null;
        }
        if (entered != null) {
            boolean isLate;
            synchronized (this) {
                isLate = closed;
                memberships.add(entered);
            }
            if (isLate) {
                entered.close();
            }
        }
        return entered;
    }

    private void add(LostRank rank) {
        Runnable action;
        synchronized (this) {
            if (closed || lost.putIfAbsent(rank.rank(), rank) != null) {
                return;
            }
            count = lost.size();
            notifyAll();
            action = onLoss;
        }
        action.run();
    }

    /** The number of ranks that are lost. Cheap: threads that wait call it in a loop. */
    public int count() {
        return count;
    }

    /** The ranks that are lost, in ascending order. */
    public synchronized List<LostRank> lost() {
        return List.copyOf(lost.values());
    }

    /** Waits until a rank is lost, at most for a time. Does not wait if no rank can be reported. */
    public synchronized void awaitLoss(Duration limit) {
        long deadline = System.nanoTime() + limit.toNanos();
        while (!memberships.isEmpty() && !closed && lost.isEmpty()) {
            long left = deadline - System.nanoTime();
            if (left <= 0) {
                return;
            }
            try {
                TimeUnit.NANOSECONDS.timedWait(this, left);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return;
            }
        }
    }

    /** Describes the ranks that are silent; empty if there are none. */
    public String describeSilent() {
        Map<Integer, Duration> silent = new TreeMap<>();
        List<Membership> all;
        synchronized (this) {
            all = List.copyOf(memberships);
        }
        all.forEach(membership -> silent.putAll(membership.silent()));
        return silent.entrySet().stream()
                .map(each -> "rank " + each.getKey() + " has been silent for "
                        + each.getValue().toSeconds() + " s")
                .collect(Collectors.joining("; "));
    }

    /** Ignores losses from now on, but stays in the groups: the end of this process is a loss for the others. */
    public synchronized void stay() {
        closed = true;
        notifyAll();
    }

    /** Leaves the groups: this rank may end from now on. */
    @Override
    public void close() {
        List<Membership> all;
        synchronized (this) {
            closed = true;
            notifyAll();
            all = List.copyOf(memberships);
        }
        all.forEach(Membership::close);
    }
}
