package io.github.nccl4j.launch;

import io.github.nccl4j.launch.wire.Arguments;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;

/** Default scope of a rendezvous: adds a prefix to the keys. */
final class Scope implements Rendezvous {
    private final Rendezvous whole;
    private final String prefix;

    Scope(Rendezvous whole, String prefix) {
        this.whole = whole;
        this.prefix = prefix;
    }

    @Override
    public int rank() {
        return whole.rank();
    }

    @Override
    public int size() {
        return whole.size();
    }

    @Override
    public List<byte[]> gather(String key, byte[] value, Duration timeout) {
        return whole.gather(Arguments.fullKey(prefix, key), value, timeout);
    }

    @Override
    public Rendezvous scope(String name) {
        return new Scope(whole, Arguments.scopePrefix(prefix, name));
    }

    @Override
    public Optional<Inquiry> inquiry(String topic, Supplier<byte[]> answer) {
        return whole.inquiry(Arguments.fullKey(prefix, topic), answer);
    }

    @Override
    public Optional<Membership> membership(String group, int number, Consumer<LostRank> onLoss) {
        return whole.membership(Arguments.fullKey(prefix, group), number, onLoss);
    }

    @Override
    public Optional<StatusEntry> status(String topic, Supplier<String> text) {
        return whole.status(Arguments.fullKey(prefix, topic), text);
    }

    @Override
    public void abort(String reason) {
        whole.abort(reason);
    }

    @Override
    public void close() {
        // The creator of the underlying rendezvous closes it.
    }
}
