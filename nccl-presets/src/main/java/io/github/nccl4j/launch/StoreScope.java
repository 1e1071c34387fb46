package io.github.nccl4j.launch;

import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/** Ranks of a store that meet, with a prefix of their own before their keys. */
final class StoreScope implements Rendezvous {
    private final TcpStore store;
    private final String prefix;
    /** As the store counts them; empty for all. */
    private final List<Integer> ranks;

    private final int rank;
    private final int size;

    StoreScope(TcpStore store, String prefix, List<Integer> ranks, int rank, int size) {
        this.store = store;
        this.prefix = prefix;
        this.ranks = ranks;
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

    private byte[] meet(PendingCollective.Kind kind, String key, int root, byte[] value, Duration timeout) {
        String full = Arguments.fullKey(prefix, key);
        Wire.Frame request = new Wire.Frame()
                .number64(Arguments.nanoseconds(timeout))
                .number8(kind.ordinal())
                .number32(root)
                .numbers(ranks)
                .text(full)
                .bytes(Arguments.requireValue(value));
        return store.ask(Wire.Operation.COLLECTIVE, request, full, timeout);
    }

    @Override
    public List<byte[]> gather(String key, byte[] value, Duration timeout) {
        return ResponseReader.values(meet(PendingCollective.Kind.GATHER, key, 0, value, timeout), size);
    }

    @Override
    public void barrier(String key, Duration timeout) {
        meet(PendingCollective.Kind.BARRIER, key, 0, new byte[0], timeout);
    }

    @Override
    public byte[] broadcast(String key, int root, Supplier<byte[]> value, Duration timeout) {
        BroadcastMessage.requireRoot(root, size);
        if (rank != root) {
            return BroadcastMessage.decode(
                    meet(PendingCollective.Kind.BROADCAST, key, root, new byte[0], timeout), root);
        }
        return BroadcastMessage.send(
                value, message -> meet(PendingCollective.Kind.BROADCAST, key, root, message, timeout));
    }

    @Override
    public Rendezvous scope(String name) {
        return new StoreScope(store, Arguments.scopePrefix(prefix, name), ranks, rank, size);
    }

    Rendezvous among(String name, List<Integer> some) {
        List<Integer> chosen = List.copyOf(some);
        for (int one : chosen) {
            if (one < 0 || one >= size) {
                throw new IllegalArgumentException("ranks must be >= 0 and < size: " + one + ", size " + size);
            }
        }
        if (chosen.stream().distinct().count() < chosen.size()) {
            throw new IllegalArgumentException("a rank must be there once only: " + chosen);
        }
        if (!chosen.contains(rank)) {
            throw new IllegalArgumentException("this rank must be one of the ranks: " + rank + ", " + chosen);
        }
        return new StoreScope(store, Arguments.scopePrefix(prefix, name), chosen, chosen.indexOf(rank), chosen.size());
    }

    /** A rank of the store, as this counts it; -1 if it is not here. */
    int here(int storeRank) {
        return ranks.isEmpty() ? storeRank : ranks.indexOf(storeRank);
    }

    @Override
    public Optional<Inquiry> inquiry(String topic, Supplier<byte[]> answer) {
        return size > Inquiries.MAX_RANKS
                ? Optional.empty()
                : Optional.of(store.inquiries().open(Arguments.fullKey(prefix, topic), this, answer));
    }

    @Override
    public void abort(String reason) {
        store.abort(prefix, reason);
    }

    @Override
    public void close() {
        // Whoever opened the store closes it.
    }
}
