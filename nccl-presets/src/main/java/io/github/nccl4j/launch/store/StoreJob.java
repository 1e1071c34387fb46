package io.github.nccl4j.launch.store;

import io.github.nccl4j.launch.env.Endpoint;
import io.github.nccl4j.launch.env.RankValues;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * Server-side state of one job: the values on which its ranks must agree, its keys and collectives, its groups and its
 * connections. Confined to the thread of the loop.
 */
final class StoreJob {
    /** Identifies a job and its attempt. */
    record Key(String job, int restart) {}

    /**
     * The description that a rank sends when it joins.
     *
     * @param local its local rank in words
     * @param process its address and process
     */
    record Claim(int rank, int worldSize, boolean hasLocalRank, String local, String process) {}

    private final int worldSize;
    private final boolean hasLocalRank;
    private final String local;
    private final String reference;

    /** True if no process of another job can claim to be a rank: the job has a name, or the store has a secret. */
    private final boolean excludesStrangers;

    private final StoreState state;
    private final MemberGroups groups = new MemberGroups();
    private final Set<ServerConnection> joined = new LinkedHashSet<>();
    private int joinCount;

    /** The job of the rank that keeps the store. */
    static StoreJob of(RankValues keeper, boolean excludesStrangers, Refusals refusals, TimerQueue timers) {
        Claim claim = new Claim(0, keeper.worldSize(), keeper.hasLocalRank(), keeper.localText(), "");
        String address = Endpoint.format(keeper.masterAddress(), keeper.masterPort());
        return new StoreJob(
                claim, "rank 0", excludesStrangers, new StoreState(claim.worldSize, address, refusals, timers));
    }

    /** A job whose properties are unknown before its first rank joins. */
    static StoreJob of(Claim first, boolean excludesStrangers, String address, Refusals refusals, TimerQueue timers) {
        String reference = "rank " + first.rank + ", which came first,";
        return new StoreJob(
                first, reference, excludesStrangers, new StoreState(first.worldSize, address, refusals, timers));
    }

    private StoreJob(Claim claim, String reference, boolean excludesStrangers, StoreState state) {
        worldSize = claim.worldSize;
        hasLocalRank = claim.hasLocalRank;
        local = claim.local;
        this.reference = reference;
        this.excludesStrangers = excludesStrangers;
        this.state = state;
    }

    StoreState state() {
        return state;
    }

    MemberGroups groups() {
        return groups;
    }

    /** The connections of the ranks that have joined; a copy is not made. */
    Set<ServerConnection> joined() {
        return joined;
    }

    /** The number of ranks that have not joined yet. */
    int missing() {
        return worldSize - joinCount;
    }

    /** Lets a connection join as a rank; returns the reason for a refusal, or null if it has joined. */
    String join(ServerConnection connection, Claim claim) {
        int rank = claim.rank;
        if (claim.worldSize != worldSize) {
            return abortUnlessComplete("rank " + rank + " (" + claim.process + ") expects " + claim.worldSize
                    + " ranks, " + reference + " expects " + worldSize);
        }
        if (rank < 0 || rank >= worldSize) {
            return abortUnlessComplete(
                    "rank must be >= 0 and < " + worldSize + ": " + rank + " (" + claim.process + ")");
        }
        if (claim.hasLocalRank != hasLocalRank) {
            // Rendezvous.locate is collective only for ranks without a local rank: these would wait for the others.
            return abortUnlessComplete("all ranks must know their local rank, or none: rank " + rank + " ("
                    + claim.process + "): " + claim.local + "; " + reference.replaceFirst(",$", "") + ": " + local
                    + "; set LOCAL_RANK and LOCAL_WORLD_SIZE for all ranks or for none");
        }
        String other = state.process(rank);
        if (other != null && !state.isGone(rank)) {
            return abortUnlessComplete("two processes claim to be rank " + rank + " of " + worldSize + ": " + other
                    + " and " + claim.process);
        }
        joined.add(connection);
        if (other == null) {
            joinCount++;
        }
        state.markJoined(rank, claim.process);
        return null;
    }

    /**
     * Aborts all ranks, unless all have joined or the new connection may be that of a stranger: then it alone is wrong. Returns the
     * reason.
     */
    private String abortUnlessComplete(String reason) {
        if (missing() > 0 && excludesStrangers) {
            state.abort("", reason);
        }
        return reason;
    }

    /**
     * Removes the connection of a rank.
     *
     * @param loss the reason why the rank counts as lost; null if the rank has left
     */
    void remove(ServerConnection connection, int rank, String loss) {
        joined.remove(connection);
        state.markGone(rank, loss == null);
        if (loss == null) {
            groups.leave(connection);
        } else {
            groups.markLost(connection, loss);
        }
    }

    /** The state for observers. */
    Observer.Job observed(String name, int restart) {
        Map<Integer, Observer.Gone> gone = new TreeMap<>();
        for (int rank : state.gone()) {
            gone.put(rank, new Observer.Gone(state.process(rank), state.hasClosed(rank)));
        }
        return new Observer.Job(name, restart, worldSize, List.copyOf(joined), gone);
    }

    /** True if a rank that comes later must find this state, although no rank is connected now. */
    boolean isAwaited() {
        return state.hasUndelivered() || state.hasUnnotifiedRank();
    }
}
