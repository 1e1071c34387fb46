package io.github.nccl4j.tests.launch;

import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.tests.Ports;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** Ranks of this process that meet at a port of their own. */
public final class Job implements AutoCloseable {
    static final Duration LONG = Duration.ofSeconds(40);
    static final Duration SHORT = Duration.ofMillis(700);

    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final List<TcpStore> stores = Collections.synchronizedList(new ArrayList<>());
    private final int port = Ports.free();

    int port() {
        return port;
    }

    RankInfo rank(int rank, int world) {
        return rank(rank, world, "job", 0);
    }

    RankInfo rank(int rank, int world, String job, int restart) {
        return new RankInfo(rank, world, rank, world, "127.0.0.1", port, job, restart, RankInfo.Source.PROPERTIES);
    }

    static TcpStore.Builder settings() {
        return TcpStore.builder().withoutSecret().timeout(LONG);
    }

    /** Opened by this thread; closed with the job. */
    TcpStore open(RankInfo self, TcpStore.Builder settings) {
        TcpStore store = settings.open(self);
        stores.add(store);
        return store;
    }

    public <T> CompletableFuture<T> start(Callable<T> task) {
        return CompletableFuture.supplyAsync(
                () -> {
                    try {
                        return task.call();
                    } catch (RuntimeException | Error failure) {
                        throw failure;
                    } catch (Exception failure) {
                        throw new CompletionException(failure);
                    }
                },
                threads);
    }

    CompletableFuture<TcpStore> opening(RankInfo self, TcpStore.Builder settings) {
        return start(() -> open(self, settings));
    }

    /** All ranks of a world, in their order. */
    public List<TcpStore> openAll(int world) {
        List<CompletableFuture<TcpStore>> opening = new ArrayList<>();
        for (int rank = 0; rank < world; rank++) {
            opening.add(opening(rank(rank, world), settings()));
        }
        return opening.stream().map(CompletableFuture::join).toList();
    }

    /** What a rank's task failed with. */
    static RendezvousException failure(CompletableFuture<?> rank) {
        CompletionException failure = assertThrows(CompletionException.class, rank::join);
        return assertInstanceOf(RendezvousException.class, failure.getCause(), () -> "" + failure.getCause());
    }

    @Override
    public void close() {
        threads.shutdownNow();
        // Rank 0 last: it ends the store.
        stores.stream()
                .sorted((one, other) -> Integer.compare(other.rank(), one.rank()))
                .forEach(TcpStore::close);
    }
}
