package io.github.nccl4j.launch.store;

import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.env.Endpoint;
import io.github.nccl4j.launch.env.RankValues;
import io.github.nccl4j.launch.wire.Arguments;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.SelectionKey;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Server side of the TCP store, in the process of rank 0. Accepts connections and keeps at most one for each rank.
 *
 * <p>A connection that has not joined lives {@link #HANDSHAKE_SECONDS} at most. The number of such connections is limited: when
 * it is exceeded, the oldest is closed.
 *
 * <p>{@link #start}, {@link #address} and {@link #close} may be called from any thread; all else runs in the loop's thread.
 */
final class StoreServer implements EventLoop.Handler {
    private static final long HANDSHAKE_SECONDS = 5;

    /** Connections that may be in their handshake beside those of the missing ranks. */
    private static final int EXTRA_HANDSHAKES = 64;

    private static final int MAX_ACCEPTS_AT_ONCE = 64;
    private static final long ACCEPT_PAUSE_MILLIS = 50;
    private static final long CLOSE_NOTICE_SECONDS = 1;
    private static final long LATE_RANK_SECONDS = 2;

    private final RankValues self;
    private final Secret secret;
    private final EventLoop loop;
    private final ServerSocketChannel listener;
    private final StoreState state;
    private SelectionKey key;
    private final Set<ServerConnection> handshakes = new LinkedHashSet<>();
    private final List<ServerConnection> joined = new ArrayList<>();
    private final CountDownLatch closed = new CountDownLatch(1);
    private long joinCount;
    private long refusalCount;

    private StoreServer(RankValues self, Secret secret, EventLoop loop, ServerSocketChannel listener) {
        this.self = self;
        this.secret = secret;
        this.loop = loop;
        this.listener = listener;
        state = new StoreState(self.worldSize(), loop);
    }

    /** Starts a server, which listens when this returns. Port 0 chooses a free port. */
    static StoreServer start(RankValues self, InetAddress address, int port, Secret secret) {
        String endpoint = Endpoint.format(address.getHostAddress(), port);
        try {
            ServerSocketChannel listener = ServerSocketChannel.open();
            try {
                listener.setOption(StandardSocketOptions.SO_REUSEADDR, true);
                listener.bind(new InetSocketAddress(address, port), self.worldSize() + EXTRA_HANDSHAKES);
                EventLoop loop = new EventLoop("nccl4j-store-server");
                StoreServer server = new StoreServer(self, secret, loop, listener);
                loop.execute(server::registerListener);
                return server;
            } catch (IOException failure) {
                listener.close();
                throw failure;
            }
        } catch (BindException taken) {
            throw new RendezvousException(
                    "rank 0 can't listen at " + endpoint + ", the address of the store (MASTER_ADDR, MASTER_PORT): "
                            + taken.getMessage() + "; set NCCL4J_STORE_PORT to another port, the same for all ranks",
                    taken);
        } catch (IOException failure) {
            throw new RendezvousException("rank 0 can't listen at " + endpoint + ": " + failure, failure);
        }
    }

    InetSocketAddress address() {
        try {
            return (InetSocketAddress) listener.getLocalAddress();
        } catch (IOException closed) {
            throw new IllegalStateException("the store is closed", closed);
        }
    }

    private void registerListener() {
        try {
            key = loop.register(listener, SelectionKey.OP_ACCEPT, this);
        } catch (IOException failure) {
            loop.close();
        }
    }

    @Override
    public void handleReady(SelectionKey ready) {
        try {
            for (int i = 0; i < MAX_ACCEPTS_AT_ONCE; i++) {
                SocketChannel channel = listener.accept();
                if (channel == null) {
                    return;
                }
                startHandshake(channel);
            }
        } catch (IOException tooManyFiles) {
            // The selector would report the waiting connections again at once, and the thread would spin.
            key.interestOps(0);
            loop.schedule(System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ACCEPT_PAUSE_MILLIS), () -> {
                if (key.isValid()) {
                    key.interestOps(SelectionKey.OP_ACCEPT);
                }
            });
        }
    }

    private void startHandshake(SocketChannel channel) {
        ServerConnection connection = new ServerConnection(this, channel);
        try {
            connection.start(SelectionKey.OP_READ);
        } catch (IOException alreadyClosed) {
            try {
                channel.close();
            } catch (IOException ignored) {
                // The channel is not used again.
            }
            return;
        }
        handshakes.add(connection);
        connection.sendGreeting();
        long limit = self.worldSize() - joinCount + EXTRA_HANDSHAKES;
        if (handshakes.size() > limit) {
            handshakes
                    .iterator()
                    .next()
                    .close(new IOException(
                            "connections that have not joined must be <= " + limit + ": " + handshakes.size()));
        }
    }

    @Override
    public void handleClose(IOException why) {
        closed.countDown();
    }

    EventLoop loop() {
        return loop;
    }

    StoreState state() {
        return state;
    }

    RankValues self() {
        return self;
    }

    /** Returns null if the store has no secret. */
    Secret secret() {
        return secret;
    }

    long handshakeDeadline() {
        return System.nanoTime() + TimeUnit.SECONDS.toNanos(HANDSHAKE_SECONDS);
    }

    /**
     * Lets a connection join as a rank.
     *
     * @return the reason for a refusal, or null if the connection has joined
     */
    String join(
            ServerConnection connection, int rank, int worldSize, boolean hasLocalRank, String local, String process) {
        if (worldSize != self.worldSize()) {
            return abortUnlessComplete("rank " + rank + " (" + process + ") expects " + worldSize
                    + " ranks, rank 0 expects " + self.worldSize());
        }
        if (rank < 0 || rank >= worldSize) {
            return abortUnlessComplete("rank must be >= 0 and < " + worldSize + ": " + rank + " (" + process + ")");
        }
        if (hasLocalRank != self.hasLocalRank()) {
            // Rendezvous.locate is collective only for ranks without a local rank: these would wait for the others.
            return abortUnlessComplete("all ranks must know their local rank, or none: rank " + rank + " (" + process
                    + "): " + local + "; rank 0: " + self.localText()
                    + "; set LOCAL_RANK and LOCAL_WORLD_SIZE for all ranks or for none");
        }
        String other = state.process(rank);
        if (other != null) {
            return state.isGone(rank)
                    ? state.describeGone(rank) + " and can't join again: start all ranks again"
                    : abortUnlessComplete("two processes claim to be rank " + rank + " of " + worldSize + ": " + other
                            + " and " + process);
        }
        handshakes.remove(connection);
        joined.add(connection);
        joinCount++;
        state.markJoined(rank, process);
        return null;
    }

    /** Aborts all ranks, unless all have joined: then only the new connection is wrong. Returns the reason. */
    private String abortUnlessComplete(String reason) {
        if (joinCount < self.worldSize()) {
            state.abort("", reason);
        }
        return reason;
    }

    /** Logs refusals 1, 10, 100, ... so that an attack does not fill the log. */
    void logRefusal(ServerConnection connection, String why) {
        refusalCount++;
        if (Long.toString(refusalCount).matches("10*")) {
            System.getLogger("io.github.nccl4j")
                    .log(
                            Level.WARNING,
                            "the store refused a connection from " + connection.remoteAddress() + ": " + why
                                    + (refusalCount == 1 ? "" : " (" + refusalCount + " refused so far)"));
        }
    }

    /** Removes a connection. The rank is negative if it has not joined. */
    void removeConnection(ServerConnection connection, int rank, boolean byClosing) {
        if (rank < 0) {
            handshakes.remove(connection);
        } else {
            joined.remove(connection);
            state.markGone(rank, byClosing);
        }
    }

    /**
     * Closes the store after the connected ranks have fetched all broadcast values, or after the timeout. After an abort it
     * stays open for up to {@link #LATE_RANK_SECONDS} so that ranks that join late get the reason.
     */
    void close(Duration timeout) {
        long nanos = Arguments.nanoseconds(timeout);
        long start = System.nanoTime();
        loop.execute(() -> closeWhenDelivered(
                start + nanos, start + Math.min(nanos, TimeUnit.SECONDS.toNanos(LATE_RANK_SECONDS))));
        try {
            closed.await(nanos + TimeUnit.SECONDS.toNanos(2 * CLOSE_NOTICE_SECONDS), TimeUnit.NANOSECONDS);
            loop.close();
            loop.awaitEnd(TimeUnit.SECONDS.toMillis(CLOSE_NOTICE_SECONDS));
        } catch (InterruptedException interrupted) {
            loop.close();
            Thread.currentThread().interrupt();
        }
    }

    private void closeWhenDelivered(long deadline, long lateRankDeadline) {
        long now = System.nanoTime();
        if (state.hasUndelivered() && now - deadline < 0 || state.hasUnnotifiedRank() && now - lateRankDeadline < 0) {
            loop.schedule(now + TimeUnit.MILLISECONDS.toNanos(1), () -> closeWhenDelivered(deadline, lateRankDeadline));
            return;
        }
        for (ServerConnection connection : new ArrayList<>(joined)) {
            connection.sendCloseNotice(state.closeReason());
        }
        closeWhenSent(System.nanoTime() + TimeUnit.SECONDS.toNanos(CLOSE_NOTICE_SECONDS));
    }

    private void closeWhenSent(long deadline) {
        if (joined.stream().allMatch(Connection::hasSentAll) || System.nanoTime() - deadline >= 0) {
            EventLoop.close(key, new IOException("the store is closed"));
            return;
        }
        loop.schedule(System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(1), () -> closeWhenSent(deadline));
    }
}
