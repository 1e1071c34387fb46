package io.github.nccl4j.launch.store;

import io.github.nccl4j.launch.store.TestListener.Rank;
import io.github.nccl4j.launch.wire.Wire;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;

/** A session of one rank, and the store's end of its connection, which may send anything. */
final class TestSession implements AutoCloseable {
    static final Heartbeat NO_HEARTBEAT = new Heartbeat(0, 0);
    static final int ATTEMPT = 2;

    private static final long LIMIT_SECONDS = 20;
    private static final Duration TIMEOUT = Duration.ofSeconds(15);

    private final TestListener listener = new TestListener();
    private final StoreSession session;
    private final Rank store;

    /** Opens the session of a rank whose store is that of rank 0, or one of its own. */
    TestSession(int rank, int worldSize, boolean ofRank, Heartbeat heartbeat) throws Exception {
        CompletableFuture<StoreSession> opening =
                start(() -> StoreSession.open(listener.rank(rank, worldSize), settings(TIMEOUT, ofRank, heartbeat)));
        store = listener.join(ATTEMPT);
        session = get(opening);
    }

    static StoreSession.Settings settings(Duration timeout, boolean ofRank, Heartbeat heartbeat) {
        return new StoreSession.Settings(timeout, null, null, ofRank, heartbeat);
    }

    StoreSession session() {
        return session;
    }

    /** The store's end of the connection. */
    Rank store() {
        return store;
    }

    /** The address of the store. */
    String address() {
        return "127.0.0.1:" + listener.address().getPort();
    }

    /** Calls in another thread. */
    static <T> CompletableFuture<T> start(Callable<T> call) {
        CompletableFuture<T> result = new CompletableFuture<>();
        Thread thread = new Thread(() -> {
            try {
                result.complete(call.call());
            } catch (Exception failure) {
                result.completeExceptionally(failure);
            }
        });
        thread.setDaemon(true);
        thread.start();
        return result;
    }

    static <T> T get(CompletableFuture<T> result) throws Exception {
        return result.get(LIMIT_SECONDS, TimeUnit.SECONDS);
    }

    /** Waits for a call, which must fail; returns its failure. */
    static Throwable failure(CompletableFuture<?> result) {
        return result.handle((none, failure) -> failure instanceof CompletionException ? failure.getCause() : failure)
                .orTimeout(LIMIT_SECONDS, TimeUnit.SECONDS)
                .join();
    }

    /** Returns when the client has handled all that the store has sent: it responds to a request that comes later. */
    void settle() throws Exception {
        CompletableFuture<?> last = session.requestAsync(Wire.Operation.GONE, new Wire.Frame());
        store.request(Wire.Operation.GONE);
        store.respond(new byte[0]);
        get(last);
    }

    @Override
    public void close() throws IOException {
        // The session does not wait for a connection that has ended.
        listener.close();
        session.close();
    }
}
