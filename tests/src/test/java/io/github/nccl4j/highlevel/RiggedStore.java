package io.github.nccl4j.highlevel;

import io.github.nccl4j.launch.Inquiry;
import io.github.nccl4j.launch.LostRank;
import io.github.nccl4j.launch.Membership;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.Store;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;

/**
 * The store of one process, whose scopes the test can make fail. It keeps the scopes that were used, and reports the losses that
 * the test tells it.
 */
final class RiggedStore implements Store {
    private final Store store;
    private final Map<String, UnaryOperator<List<byte[]>>> rigged = new ConcurrentHashMap<>();
    private final Map<String, Runnable> actions = new ConcurrentHashMap<>();
    private final List<Consumer<LostRank>> watches = new CopyOnWriteArrayList<>();
    /** The scopes that were made, in their order. */
    final List<String> scopes = new CopyOnWriteArrayList<>();

    RiggedStore(Store store) {
        this.store = store;
    }

    /** Changes what this process gets by a gather, such as {@code r-1-shrunk/made}; the action may throw. */
    RiggedStore rig(String key, UnaryOperator<List<byte[]>> answers) {
        rigged.put(key, answers);
        return this;
    }

    RiggedStore fail(String key, Supplier<RuntimeException> failure) {
        return rig(key, answers -> {
            throw failure.get();
        });
    }

    /** Runs an action before a scope is made. */
    RiggedStore before(String scope, Runnable action) {
        actions.put(scope, action);
        return this;
    }

    /** Reports the loss of a rank to the communicators of this process. */
    void lose(int rank) {
        watches.forEach(watch -> watch.accept(new LostRank(rank, "host, process 1", "it has ended")));
    }

    private final class View implements Rendezvous {
        private final Rendezvous ranks;
        private final String name;

        View(Rendezvous ranks, String name) {
            this.ranks = ranks;
            this.name = name;
        }

        @Override
        public int rank() {
            return ranks.rank();
        }

        @Override
        public int size() {
            return ranks.size();
        }

        @Override
        public List<byte[]> gather(String key, byte[] value, Duration timeout) {
            List<byte[]> answers = ranks.gather(key, value, timeout);
            UnaryOperator<List<byte[]>> change = rigged.get(name + "/" + key);
            return change == null ? answers : change.apply(answers);
        }

        @Override
        public Optional<Membership> membership(String group, int number, Consumer<LostRank> onLoss) {
            watches.add(onLoss);
            return Optional.of(new Membership() {
                @Override
                public Map<Integer, Duration> silent() {
                    return Map.of();
                }

                @Override
                public void close() {
                    watches.remove(onLoss);
                }
            });
        }

        @Override
        public Optional<Inquiry> inquiry(String topic, Supplier<byte[]> answer) {
            return Optional.of(new Inquiry() {
                @Override
                public Map<Integer, byte[]> ask(Duration timeout) {
                    return Map.of();
                }

                @Override
                public void close() {
                    // Nothing is open.
                }
            });
        }

        @Override
        public void close() {
            // A view.
        }
    }

    @Override
    public Rendezvous scope(String name) {
        return new View(store.scope(name), name);
    }

    @Override
    public Rendezvous among(String name, List<Integer> ranks, List<Integer> attempts) {
        scopes.add(name);
        actions.getOrDefault(name, () -> {}).run();
        return new View(store.among(name, ranks, attempts), name);
    }

    @Override
    public int rank() {
        return store.rank();
    }

    @Override
    public int size() {
        return store.size();
    }

    @Override
    public int attempt() {
        return store.attempt();
    }

    @Override
    public List<Integer> attempts() {
        return store.attempts();
    }

    @Override
    public void set(String key, byte[] value) {
        store.set(key, value);
    }

    @Override
    public byte[] get(String key, Duration timeout) {
        return store.get(key, timeout);
    }

    @Override
    public void await(Collection<String> keys, Duration timeout) {
        store.await(keys, timeout);
    }

    @Override
    public long add(String key, long delta) {
        return store.add(key, delta);
    }

    @Override
    public boolean delete(String key) {
        return store.delete(key);
    }

    @Override
    public List<byte[]> gather(String key, byte[] value, Duration timeout) {
        return store.gather(key, value, timeout);
    }

    @Override
    public void close() {
        store.close();
    }
}
