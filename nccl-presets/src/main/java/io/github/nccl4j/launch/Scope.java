package io.github.nccl4j.launch;

import java.time.Duration;
import java.util.List;
import java.util.Objects;

/** Keys with a prefix, for a rendezvous that has no better way to keep them apart. */
final class Scope implements Rendezvous {
    private final Rendezvous whole;
    private final String prefix;

    Scope(Rendezvous whole, String name) {
        if (name.isEmpty()) {
            throw new IllegalArgumentException("the name of a scope must not be empty");
        }
        this.whole = whole;
        // Its length ends the name: one that has a slash in it is no scope within another.
        this.prefix = name.length() + ":" + name + "/";
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
        Objects.requireNonNull(key, "key");
        if (key.isEmpty()) {
            throw new IllegalArgumentException("a key must not be empty");
        }
        return whole.gather(prefix + key, value, timeout);
    }

    @Override
    public void abort(String reason) {
        whole.abort(reason);
    }

    @Override
    public void close() {
        // Whoever made the whole closes it.
    }
}
