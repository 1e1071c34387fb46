package io.github.nccl4j.highlevel;

import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.launch.Store;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
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
    record Scope(int rank, int size, String name, List<Integer> ranks, List<Integer> attempts, MemoryStore store)
            implements Rendezvous {
        @Override
        public List<byte[]> gather(String key, byte[] value, Duration timeout) {
            store.set(name + "/" + key + "/" + rank, value);
            List<String> keys = IntStream.range(0, size)
                    .mapToObj(one -> name + "/" + key + "/" + one)
                    .toList();
            return keys.stream().map(one -> store.get(one, timeout)).toList();
        }

        @Override
        public void close() {
            // A view.
        }
    }

    private synchronized void set(String key, byte[] value) {
        values.put(key, value.clone());
        notifyAll();
    }

    private synchronized byte[] get(String key, Duration timeout) {
        long end = System.nanoTime() + timeout.toNanos();
        while (!values.containsKey(key)) {
            long left = (end - System.nanoTime()) / 1_000_000;
            if (left <= 0) {
                throw new RendezvousTimeoutException("no " + key, List.of());
            }
            try {
                wait(left);
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }
        return values.get(key).clone();
    }

    private final class View implements Store {
        private final int rank;
        private final int attempt;

        View(int rank, int attempt) {
            this.rank = rank;
            this.attempt = attempt;
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
            return new Scope(ranks.indexOf(rank), ranks.size(), name, ranks, attempts, MemoryStore.this);
        }

        @Override
        public void set(String key, byte[] value) {
            MemoryStore.this.set(key, value);
        }

        @Override
        public byte[] get(String key, Duration timeout) {
            return MemoryStore.this.get(key, timeout);
        }

        @Override
        public void await(Collection<String> keys, Duration timeout) {
            keys.forEach(key -> MemoryStore.this.get(key, timeout));
        }

        @Override
        public long add(String key, long delta) {
            synchronized (MemoryStore.this) {
                byte[] old = values.get(key);
                long value = old == null ? 0 : Long.parseLong(new String(old, StandardCharsets.UTF_8));
                try {
                    long sum = Math.addExact(value, delta);
                    set(key, Long.toString(sum).getBytes(StandardCharsets.UTF_8));
                    return sum;
                } catch (ArithmeticException overflow) {
                    throw new RendezvousException("the sum is too large: " + value + " + " + delta, overflow);
                }
            }
        }

        @Override
        public boolean delete(String key) {
            synchronized (MemoryStore.this) {
                return values.remove(key) != null;
            }
        }

        @Override
        public int attempt() {
            return attempt;
        }

        @Override
        public List<Integer> attempts() {
            return List.of(attempts);
        }

        @Override
        public List<byte[]> gather(String key, byte[] value, Duration timeout) {
            return all().gather(key, value, timeout);
        }

        private Scope all() {
            return new Scope(rank, size(), "all", List.of(), List.of(), MemoryStore.this);
        }

        @Override
        public void close() {
            // Nothing is open.
        }
    }
}
