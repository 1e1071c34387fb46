package io.github.nccl4j.zookeeper;

import io.github.nccl4j.launch.Inquiry;
import io.github.nccl4j.launch.LostRank;
import io.github.nccl4j.launch.Membership;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.StatusEntry;
import io.github.nccl4j.zookeeper.Job.Process;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;

/** A scope of a store: all or some of its processes, and a prefix for their keys. */
final class NodeScope implements Rendezvous {
    private static final int MAX_REASON_CHARS = 2000;

    private final Gathers gathers;
    private final Inquiries inquiries;
    private final StatusAnswers status;
    private final Roster roster;
    private final String prefix;
    /** The processes, by the rank in this scope. */
    private final List<Process> members;

    private final int rank;

    NodeScope(
            Gathers gathers,
            Inquiries inquiries,
            StatusAnswers status,
            Roster roster,
            String prefix,
            List<Process> members,
            int rank) {
        this.gathers = gathers;
        this.inquiries = inquiries;
        this.status = status;
        this.roster = roster;
        this.prefix = prefix;
        this.members = members;
        this.rank = rank;
    }

    @Override
    public int rank() {
        return rank;
    }

    @Override
    public int size() {
        return members.size();
    }

    @Override
    public List<byte[]> gather(String key, byte[] value, Duration timeout) {
        String full = Text.requireKey(prefix, key);
        return gathers.gather(full, members, rank, Text.requireValue(value), Text.nanoseconds(timeout));
    }

    private String fullKey(String argument, String key) {
        return prefix + Text.require(argument, key);
    }

    @Override
    public Rendezvous scope(String name) {
        return with(name, members);
    }

    Rendezvous among(String name, List<Integer> ranks, List<Integer> attempts) {
        if (attempts.size() != ranks.size()) {
            throw new IllegalArgumentException(
                    "ranks and attempts must have the same length: " + ranks.size() + ", " + attempts.size());
        }
        for (int one : ranks) {
            if (one < 0 || one >= size()) {
                throw new IllegalArgumentException("ranks must be >= 0 and < size: " + one + ", size " + size());
            }
        }
        if (ranks.stream().distinct().count() < ranks.size()) {
            throw new IllegalArgumentException("ranks must be distinct: " + ranks);
        }
        if (!ranks.contains(rank)) {
            throw new IllegalArgumentException("ranks must include this rank: " + ranks + ", rank " + rank);
        }
        List<Process> chosen = new ArrayList<>();
        for (int i = 0; i < ranks.size(); i++) {
            chosen.add(new Process(ranks.get(i), attempts.get(i)));
        }
        if (!chosen.contains(gathers.process())) {
            throw new IllegalArgumentException("the attempt of rank " + rank + ", which is this rank, must be "
                    + gathers.process().attempt() + ": " + attempts.get(ranks.indexOf(rank)));
        }
        return with(name, List.copyOf(chosen));
    }

    private NodeScope with(String name, List<Process> chosen) {
        return new NodeScope(
                gathers,
                inquiries,
                status,
                roster,
                fullKey("the name of a scope", name) + "/",
                chosen,
                chosen == members ? rank : chosen.indexOf(gathers.process()));
    }

    @Override
    public Optional<Membership> membership(String group, int number, Consumer<LostRank> onLoss) {
        return Optional.of(roster.enter(fullKey("the name of a group", group), number, onLoss));
    }

    @Override
    public Optional<Inquiry> inquiry(String topic, Supplier<byte[]> answer) {
        return inquiries.open(fullKey("a topic", topic), members, rank, answer);
    }

    @Override
    public Optional<StatusEntry> status(String topic, Supplier<String> text) {
        return Optional.of(status.add(fullKey("a topic", topic), text));
    }

    @Override
    public void abort(String reason) {
        try {
            roster.abort(prefix, reason.substring(0, Math.min(reason.length(), MAX_REASON_CHARS)));
        } catch (RendezvousException unreachable) {
            // Without a session the others count this rank as lost.
        }
    }

    @Override
    public void close() {
        // The caller that opened the store closes it.
    }
}
