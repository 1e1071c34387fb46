package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/** Threads of one process meet. */
final class ThreadRendezvous implements Rendezvous {
    /** What the ranks have in common. */
    private static final class Place {
        private final Map<String, byte[][]> values = new HashMap<>();
        private final Map<String, RendezvousException> failures = new HashMap<>();
    }

    private final Place place;
    private final int rank;
    private final int size;

    private ThreadRendezvous(Place place, int rank, int size) {
        this.place = place;
        this.rank = rank;
        this.size = size;
    }

    /** One for each rank. */
    static List<Rendezvous> of(int size) {
        Place place = new Place();
        return IntStream.range(0, size)
                .<Rendezvous>mapToObj(rank -> new ThreadRendezvous(place, rank, size))
                .toList();
    }

    @Override
    public int rank() {
        return rank;
    }

    @Override
    public int size() {
        return size;
    }

    @Override
    public List<byte[]> gather(String key, byte[] value, Duration timeout) {
        synchronized (place) {
            byte[][] all = place.values.computeIfAbsent(key, any -> new byte[size][]);
            all[rank] = value;
            place.notifyAll();
            long start = System.nanoTime();
            while (!missing(all).isEmpty()) {
                long left = timeout.toMillis() - (System.nanoTime() - start) / 1_000_000;
                RendezvousException failure = place.failures.get(key);
                if (failure != null) {
                    throw failure;
                }
                if (left <= 0) {
                    failure = new RendezvousTimeoutException("missing at " + key + ": " + missing(all), missing(all));
                    place.failures.put(key, failure);
                    place.notifyAll();
                    throw failure;
                }
                try {
                    place.wait(left);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                    throw new RendezvousException("interrupted", e);
                }
            }
            return List.of(all);
        }
    }

    private static List<Integer> missing(byte[][] all) {
        List<Integer> missing = new ArrayList<>();
        for (int rank = 0; rank < all.length; rank++) {
            if (all[rank] == null) {
                missing.add(rank);
            }
        }
        return missing;
    }

    @Override
    public void close() {}
}
