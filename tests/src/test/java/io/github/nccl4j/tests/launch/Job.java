package io.github.nccl4j.tests.launch;

import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.testing.Ports;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** A job whose ranks are threads of this process, with a port of its own. Closing it closes the stores that it has opened. */
public final class Job implements AutoCloseable {
    public static final Duration LONG = Duration.ofSeconds(40);
    static final Duration SHORT = Duration.ofMillis(700);

    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final List<TcpStore> stores = Collections.synchronizedList(new ArrayList<>());
    private final int port = Ports.free();

    public int port() {
        return port;
    }

    public RankInfo rank(int rank, int world) {
        return rank(rank, world, "job", 0);
    }

    /** A rank that reaches the store by a proxy. */
    public RankInfo rankVia(Proxy proxy, int rank, int world) {
        return new RankInfo(rank, world, rank, world, "127.0.0.1", proxy.port(), "job", 0, RankInfo.Source.PROPERTIES);
    }

    RankInfo rank(int rank, int world, String job, int restart) {
        return new RankInfo(rank, world, rank, world, "127.0.0.1", port, job, restart, RankInfo.Source.PROPERTIES);
    }

    public static TcpStore.Builder settings() {
        return TcpStore.builder().withoutSecret().timeout(LONG);
    }

    /** Opens a store in this thread. */
    public TcpStore open(RankInfo self, TcpStore.Builder settings) {
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

    public CompletableFuture<TcpStore> openAsync(RankInfo self, TcpStore.Builder settings) {
        return start(() -> open(self, settings));
    }

    /** Opens the stores of all ranks of a world and returns them by rank. */
    public List<TcpStore> openAll(int world) {
        List<CompletableFuture<TcpStore>> opening = new ArrayList<>();
        for (int rank = 0; rank < world; rank++) {
            opening.add(openAsync(rank(rank, world), settings()));
        }
        return opening.stream().map(CompletableFuture::join).toList();
    }

    /** Waits for the task of a rank, which must fail, and returns its failure. */
    static RendezvousException failure(CompletableFuture<?> rank) {
        CompletionException failure = assertThrows(CompletionException.class, rank::join);
        return assertInstanceOf(RendezvousException.class, failure.getCause(), () -> "" + failure.getCause());
    }

    @Override
    public void close() {
        threads.shutdownNow();
        // Rank 0 last, because it ends the store.
        stores.stream()
                .sorted((one, other) -> Integer.compare(other.rank(), one.rank()))
                .forEach(TcpStore::close);
    }
}
