package io.github.nccl4j.highlevel;

import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.launch.Store;
import io.github.nccl4j.launch.wire.Arguments;
import io.github.nccl4j.launch.wire.Counter;
import io.github.nccl4j.launch.wire.MessageText;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

/**
 * A store in this process. The test sets which processes are connected, and everything else happens in the order of the calls: an
 * unconnected rank is not noticed by calls that wait.
 */
final class MemoryStore {
    private final TreeMap<String, byte[]> values = new TreeMap<>();
    private final Integer[] attempts;

    MemoryStore(int size) {
        attempts = new Integer[size];
        Arrays.fill(attempts, 0);
    }

    /** Sets the process of a rank that is connected; -1 for none. */
    MemoryStore connect(int rank, int attempt) {
        attempts[rank] = attempt;
        return this;
    }

    synchronized void clear() {
        values.clear();
    }

    /** The keys that begin with a prefix, with their values as text. */
    synchronized Map<String, String> keys(String prefix) {
        Map<String, String> found = new TreeMap<>();
        values.tailMap(prefix).forEach((key, value) -> {
            if (key.startsWith(prefix)) {
                found.put(key, new String(value, StandardCharsets.UTF_8));
            }
        });
        return found;
    }

    /** The store as a process of a rank sees it. */
    Store of(int rank, int attempt) {
        return new View(rank, attempt);
    }

    /** The ranks of a scope. */
    record Scope(int rank, int size, String name, List<Integer> ranks, List<Integer> attempts, View store)
            implements Rendezvous {
        @Override
        public List<byte[]> gather(String key, byte[] value, Duration timeout) {
            List<String> keys = IntStream.range(0, size)
                    .mapToObj(one -> name + "/" + key + "/" + one)
                    .toList();
            store.put(keys.get(rank), value.clone());
            return store.values(keys, Arguments.nanoseconds(timeout));
        }

        @Override
        public void close() {
            // A view.
        }
    }

    private final class View implements Store {
        private final int rank;
        private final int attempt;
        private boolean closed;

        View(int rank, int attempt) {
            this.rank = rank;
            this.attempt = attempt;
        }

        private void requireOpen() {
            if (closed) {
                throw new IllegalStateException("the store is closed");
            }
        }

        private void put(String key, byte[] value) {
            synchronized (MemoryStore.this) {
                requireOpen();
                values.put(key, value);
                MemoryStore.this.notifyAll();
            }
        }

        /** Returns copies of the values of keys when each has had one. */
        private List<byte[]> values(List<String> keys, long nanos) {
            long end = System.nanoTime() + nanos;
            synchronized (MemoryStore.this) {
                requireOpen();
                List<byte[]> found = new ArrayList<>();
                for (String key : keys) {
                    while (!values.containsKey(key)) {
                        waitFor(key, end, nanos);
                    }
                    found.add(values.get(key).clone());
                }
                return found;
            }
        }

        private void waitFor(String key, long end, long nanos) {
            long left = end - System.nanoTime();
            if (left <= 0) {
                throw new RendezvousTimeoutException(
                        "'" + key + "' was not set within " + MessageText.seconds(nanos), List.of());
            }
            try {
                TimeUnit.NANOSECONDS.timedWait(MemoryStore.this, left);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                throw new RendezvousException(
                        "rank " + rank + " was interrupted while it waited for '" + key + "'", interrupted);
            }
            if (closed) {
                throw new RendezvousException("the store was closed");
            }
        }

        @Override
        public int rank() {
            return rank;
        }

        @Override
        public int size() {
            return attempts.length;
        }

        @Override
        public Scope among(String name, List<Integer> ranks, List<Integer> attempts) {
            return new Scope(ranks.indexOf(rank), ranks.size(), name, ranks, attempts, this);
        }

        @Override
        public void set(String key, byte[] value) {
            put(Arguments.fullKey("", key), Arguments.requireValue(value).clone());
        }

        @Override
        public byte[] get(String key, Duration timeout) {
            return values(List.of(Arguments.fullKey("", key)), Arguments.nanoseconds(timeout))
                    .get(0);
        }

        @Override
        public void await(Collection<String> keys, Duration timeout) {
            keys.forEach(key -> Arguments.fullKey("", key));
            values(List.copyOf(keys), Arguments.nanoseconds(timeout));
        }

        @Override
        public long add(String key, long delta) {
            String full = Arguments.fullKey("", key);
            synchronized (MemoryStore.this) {
                requireOpen();
                try {
                    long sum = Counter.sum(values.get(full), delta);
                    put(full, Counter.encode(sum));
                    return sum;
                } catch (IllegalStateException wrong) {
                    throw new RendezvousException("'" + key + "': " + wrong.getMessage(), wrong);
                }
            }
        }

        @Override
        public boolean delete(String key) {
            Arguments.fullKey("", key);
            synchronized (MemoryStore.this) {
                requireOpen();
                return values.remove(key) != null;
            }
        }

        @Override
        public int attempt() {
            return attempt;
        }

        @Override
        public List<Integer> attempts() {
            synchronized (MemoryStore.this) {
                requireOpen();
                return List.of(attempts);
            }
        }

        @Override
        public List<byte[]> gather(String key, byte[] value, Duration timeout) {
            return new Scope(rank, size(), "all", List.of(), List.of(), this).gather(key, value, timeout);
        }

        @Override
        public void close() {
            synchronized (MemoryStore.this) {
                closed = true;
                MemoryStore.this.notifyAll();
            }
        }
    }
}
