package io.github.nccl4j.launch;

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
 * The store in the process of rank 0: takes connections, and has at most one for each rank. A connection of which nobody knows
 * yet whose it is costs little, lives {@link #HELLO_SECONDS} at most, and is one of a few: when there are more, the
 * oldest goes.
 */
final class StoreServer implements EventLoop.Handler {
    private static final long HELLO_SECONDS = 5;
    private static final int STRANGERS = 64;
    private static final int ACCEPT_AT_ONCE = 64;
    private static final long ACCEPT_PAUSE_MILLIS = 50;
    private static final long FAREWELL_SECONDS = 1;
    private static final long LATECOMER_SECONDS = 2;

    private final RankInfo self;
    private final Secret secret;
    private final EventLoop loop;
    private final ServerSocketChannel listener;
    private final StoreState state;
    private SelectionKey key;
    private final Set<ServerConnection> strangers = new LinkedHashSet<>();
    private final List<ServerConnection> members = new ArrayList<>();
    private final CountDownLatch closed = new CountDownLatch(1);
    private long joined;
    private long refused;

    private StoreServer(RankInfo self, Secret secret, EventLoop loop, ServerSocketChannel listener) {
        this.self = self;
        this.secret = secret;
        this.loop = loop;
        this.listener = listener;
        state = new StoreState(self.worldSize(), loop);
    }

    /** Listens, from now on. */
    static StoreServer start(RankInfo self, InetAddress address, int port, Secret secret) {
        String place = Endpoint.format(address.getHostAddress(), port);
        try {
            ServerSocketChannel listener = ServerSocketChannel.open();
            try {
                listener.setOption(StandardSocketOptions.SO_REUSEADDR, true);
                listener.bind(new InetSocketAddress(address, port), self.worldSize() + STRANGERS);
                EventLoop loop = new EventLoop("nccl4j-store-server");
                StoreServer server = new StoreServer(self, secret, loop, listener);
                loop.execute(server::begin);
                return server;
            } catch (IOException failure) {
                listener.close();
                throw failure;
            }
        } catch (BindException taken) {
            throw new RendezvousException(
                    "rank 0 can't listen at " + place + ", where the ranks are to meet (MASTER_ADDR, MASTER_PORT): "
                            + taken.getMessage() + "; NCCL4J_STORE_PORT, the same for all ranks, chooses another port",
                    taken);
        } catch (IOException failure) {
            throw new RendezvousException("rank 0 can't listen at " + place + ": " + failure, failure);
        }
    }

    InetSocketAddress address() {
        try {
            return (InetSocketAddress) listener.getLocalAddress();
        } catch (IOException closed) {
            throw new IllegalStateException("the store is closed", closed);
        }
    }

    private void begin() {
        try {
            key = loop.register(listener, SelectionKey.OP_ACCEPT, this);
        } catch (IOException failure) {
            loop.close();
        }
    }

    @Override
    public void ready(SelectionKey ready) {
        try {
            for (int i = 0; i < ACCEPT_AT_ONCE; i++) {
                SocketChannel channel = listener.accept();
                if (channel == null) {
                    return;
                }
                greet(channel);
            }
        } catch (IOException tooManyFiles) {
            // Those that wait to be accepted would be reported again at once.
            key.interestOps(0);
            loop.schedule(System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ACCEPT_PAUSE_MILLIS), () -> {
                if (key.isValid()) {
                    key.interestOps(SelectionKey.OP_ACCEPT);
                }
            });
        }
    }

    private void greet(SocketChannel channel) {
        ServerConnection stranger = new ServerConnection(this, channel);
        try {
            stranger.start(SelectionKey.OP_READ);
        } catch (IOException goneAlready) {
            try {
                channel.close();
            } catch (IOException ignored) {
                // It is of no use any more.
            }
            return;
        }
        strangers.add(stranger);
        stranger.greet();
        if (strangers.size() > self.worldSize() - joined + STRANGERS) {
            strangers.iterator().next().close(new IOException("too many connections"));
        }
    }

    @Override
    public void closed(IOException why) {
        closed.countDown();
    }

    EventLoop loop() {
        return loop;
    }

    StoreState state() {
        return state;
    }

    RankInfo self() {
        return self;
    }

    /** Null if there is none. */
    Secret secret() {
        return secret;
    }

    long helloDeadline() {
        return System.nanoTime() + TimeUnit.SECONDS.toNanos(HELLO_SECONDS);
    }

    /** A connection says who it is. Returns what is wrong with that, or null, and it is a member. */
    String join(
            ServerConnection connection, int rank, int worldSize, boolean hasLocalRank, String local, String place) {
        if (worldSize != self.worldSize()) {
            return disagree("rank " + rank + " (" + place + ") expects " + worldSize + " ranks, rank 0 expects "
                    + self.worldSize());
        }
        if (rank < 0 || rank >= worldSize) {
            return disagree("rank " + rank + " (" + place + ") is not one of the " + worldSize + " ranks");
        }
        if (hasLocalRank != self.hasLocalRank()) {
            // Else those that do not would wait in Rendezvous.locate for those that do.
            return disagree("all ranks must know their local rank, or none: rank " + rank + " (" + place + "): " + local
                    + "; rank 0: " + self.localText()
                    + "; set LOCAL_RANK and LOCAL_WORLD_SIZE for all ranks or for none");
        }
        String other = state.place(rank);
        if (other != null) {
            return state.isGone(rank)
                    ? state.describeGone(rank) + ", and can't come again: start all ranks again"
                    : disagree("two processes say that they are rank " + rank + " of " + worldSize + ": " + other
                            + " and " + place);
        }
        strangers.remove(connection);
        members.add(connection);
        joined++;
        state.markJoined(rank, place);
        return null;
    }

    /** The ranks can't meet; once they have met, it is the newcomer who is wrong. */
    private String disagree(String reason) {
        if (joined < self.worldSize()) {
            state.abort("", reason);
        }
        return reason;
    }

    /** Someone is not who may come in. Not each of many is worth a line. */
    void refused(ServerConnection connection, String why) {
        refused++;
        if (Long.toString(refused).matches("10*")) {
            System.getLogger("io.github.nccl4j")
                    .log(
                            Level.WARNING,
                            "the store refused a connection from " + connection.remote() + ": " + why
                                    + (refused == 1 ? "" : " (" + refused + " refused so far)"));
        }
    }

    void ended(ServerConnection connection, int rank, boolean closed) {
        if (rank < 0) {
            strangers.remove(connection);
        } else {
            members.remove(connection);
            state.markGone(rank, closed);
        }
    }

    /**
     * Ends the store, when the ranks that are there have fetched what was broadcast, at the latest after a time. Ranks that
     * come soon are told why others have given up.
     */
    void close(Duration patience) {
        long most = Arguments.nanoseconds(patience);
        long start = System.nanoTime();
        loop.execute(
                () -> closeWhenIdle(start + most, start + Math.min(most, TimeUnit.SECONDS.toNanos(LATECOMER_SECONDS))));
        try {
            closed.await(most + TimeUnit.SECONDS.toNanos(2 * FAREWELL_SECONDS), TimeUnit.NANOSECONDS);
            loop.close();
            loop.awaitEnd(TimeUnit.SECONDS.toMillis(FAREWELL_SECONDS));
        } catch (InterruptedException hurry) {
            loop.close();
            Thread.currentThread().interrupt();
        }
    }

    private void closeWhenIdle(long end, long endForLatecomers) {
        long now = System.nanoTime();
        if (state.hasUndelivered() && now - end < 0 || state.hasUnnotifiedRank() && now - endForLatecomers < 0) {
            loop.schedule(now + TimeUnit.MILLISECONDS.toNanos(1), () -> closeWhenIdle(end, endForLatecomers));
            return;
        }
        for (ServerConnection member : new ArrayList<>(members)) {
            member.farewell(state.closeReason());
        }
        closeWhenSent(System.nanoTime() + TimeUnit.SECONDS.toNanos(FAREWELL_SECONDS));
    }

    private void closeWhenSent(long end) {
        if (members.stream().allMatch(Connection::hasSentAll) || System.nanoTime() - end >= 0) {
            EventLoop.close(key, new IOException("closed"));
            return;
        }
        loop.schedule(System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(1), () -> closeWhenSent(end));
    }
}
