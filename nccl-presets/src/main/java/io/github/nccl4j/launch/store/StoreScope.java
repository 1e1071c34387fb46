package io.github.nccl4j.launch.store;

import io.github.nccl4j.launch.Inquiry;
import io.github.nccl4j.launch.LostRank;
import io.github.nccl4j.launch.Membership;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.StatusEntry;
import io.github.nccl4j.launch.wire.Arguments;
import io.github.nccl4j.launch.wire.BroadcastMessage;
import io.github.nccl4j.launch.wire.Wire;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;

/** Scope of a store: all or some of its ranks, and a prefix for their keys. */
public final class StoreScope implements Rendezvous {
    private final StoreSession store;
    private final Inquiries inquiries;
    private final String prefix;
    /** Ranks of the store, by the rank in this scope; empty for all ranks. */
    private final List<Integer> storeRanks;

    /** The attempts of the ranks; empty if all are the first. */
    private final List<Integer> attempts;

    private final int rank;
    private final int size;

    /** The scope of all ranks of a store, without a prefix. */
    public StoreScope(StoreSession store) {
        this(store, new Inquiries(store), "", List.of(), List.of(), store.rank(), store.size());
    }

    private StoreScope(
            StoreSession store,
            Inquiries inquiries,
            String prefix,
            List<Integer> storeRanks,
            List<Integer> attempts,
            int rank,
            int size) {
        this.store = store;
        this.inquiries = inquiries;
        this.prefix = prefix;
        this.storeRanks = storeRanks;
        this.attempts = attempts;
        this.rank = rank;
        this.size = size;
    }

    @Override
    public int rank() {
        return rank;
    }

    @Override
    public int size() {
        return size;
    }

    private byte[] collective(PendingCollective.Kind kind, String key, int root, byte[] value, Duration timeout) {
        String full = Arguments.fullKey(prefix, key);
        Wire.Frame request = new Wire.Frame()
                .number64(Arguments.nanoseconds(timeout))
                .number8(kind.ordinal())
                .number32(root)
                .numbers(storeRanks)
                .numbers(attempts)
                .text(full)
                .bytes(Arguments.requireValue(value));
        return store.request(Wire.Operation.COLLECTIVE, request, full, timeout);
    }

    @Override
    public List<byte[]> gather(String key, byte[] value, Duration timeout) {
        return ResponseReader.values(collective(PendingCollective.Kind.GATHER, key, 0, value, timeout), size);
    }

    @Override
    public void barrier(String key, Duration timeout) {
        collective(PendingCollective.Kind.BARRIER, key, 0, new byte[0], timeout);
    }

    @Override
    public byte[] broadcast(String key, int root, Supplier<byte[]> value, Duration timeout) {
        BroadcastMessage.requireRoot(root, size);
        if (rank != root) {
            return BroadcastMessage.decode(
                    collective(PendingCollective.Kind.BROADCAST, key, root, new byte[0], timeout), root);
        }
        return BroadcastMessage.send(
                value, message -> collective(PendingCollective.Kind.BROADCAST, key, root, message, timeout));
    }

    @Override
    public Rendezvous scope(String name) {
        return new StoreScope(store, inquiries, Arguments.scopePrefix(prefix, name), storeRanks, attempts, rank, size);
    }

    public Rendezvous among(String name, List<Integer> some) {
        return among(name, some, List.of());
    }

    /**
     * Returns a scope of some ranks.
     *
     * @param attempts the attempt of each of them; empty if all are the first
     */
    public Rendezvous among(String name, List<Integer> some, List<Integer> attempts) {
        List<Integer> chosen = List.copyOf(some);
        for (int one : chosen) {
            if (one < 0 || one >= size) {
                throw new IllegalArgumentException("ranks must be >= 0 and < size: " + one + ", size " + size);
            }
        }
        if (chosen.stream().distinct().count() < chosen.size()) {
            throw new IllegalArgumentException("ranks must be distinct: " + chosen);
        }
        if (!chosen.contains(rank)) {
            throw new IllegalArgumentException("ranks must include this rank: " + chosen + ", rank " + rank);
        }
        return new StoreScope(
                store,
                inquiries,
                Arguments.scopePrefix(prefix, name),
                chosen,
                List.copyOf(attempts),
                chosen.indexOf(rank),
                chosen.size());
    }

    /** Converts a rank of the store to a rank of this scope; -1 if this scope does not have it. */
    private int scopeRank(int storeRank) {
        return storeRanks.isEmpty() ? storeRank : storeRanks.indexOf(storeRank);
    }

    @Override
    public Optional<Inquiry> inquiry(String topic, Supplier<byte[]> answer) {
        return size > Inquiries.MAX_RANKS
                ? Optional.empty()
                : Optional.of(inquiries.open(
                        Arguments.fullKey(prefix, topic), new Inquiries.Ranks(rank, size, this::scopeRank), answer));
    }

    @Override
    public Optional<Membership> membership(String group, int number, Consumer<LostRank> onLoss) {
        return Optional.of(store.memberships().enter(Arguments.fullKey(prefix, group), number, onLoss));
    }

    @Override
    public Optional<StatusEntry> status(String topic, Supplier<String> text) {
        return Optional.of(store.status().add(Arguments.fullKey(prefix, topic), text));
    }

    @Override
    public void abort(String reason) {
        store.abort(prefix, reason);
    }

    @Override
    public void close() {
        // The caller that opened the store closes it.
    }
}
