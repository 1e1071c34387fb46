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
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Server side of the TCP store: in the process of rank 0, for its job only, or in a process of its own, for any job. Accepts
 * connections and keeps at most one for each rank.
 *
 * <p>A connection that has not joined lives {@link #HANDSHAKE_SECONDS} at most. The number of such connections is limited: when
 * it is exceeded, the oldest is closed.
 *
 * <p>{@link #start}, {@link #address} and {@link #close} may be called from any thread; all else runs in the loop's thread.
 */
public final class StoreServer implements EventLoop.Handler {
    private static final long HANDSHAKE_SECONDS = 5;

    /** Connections that may be in their handshake beside those of the missing ranks. */
    private static final int EXTRA_HANDSHAKES = 64;

    private static final int MAX_ACCEPTS_AT_ONCE = 64;
    private static final long ACCEPT_PAUSE_MILLIS = 50;
    private static final long CLOSE_NOTICE_SECONDS = 1;
    private static final long LATE_RANK_SECONDS = 2;

    /** Time for a shutdown hook of the program to close the communicators of the rank that keeps the store. */
    private static final long KEEPER_SECONDS = 2;

    /** Connections that may be in their handshake at a store that does not know the number of ranks. */
    private static final int UNKNOWN_RANKS = 4096;

    /** Ranks of a job at a store of its own, so that a stranger can't make it allocate more. */
    private static final int MAX_RANKS = 1 << 20;

    /** Jobs of a store of its own; more are refused. */
    private static final int MAX_JOBS = 256;

    /** Time for which a job without connections is kept for ranks that come late. */
    private static final long AWAITED_SECONDS = 10;

    /** Observers at a time; more are refused. */
    private static final int MAX_OBSERVERS = 16;

    /** Period of the check for silent ranks. */
    private static final long CHECK_NANOS = 250_000_000;

    /** Null in a process of its own. */
    private final RankValues self;

    private final Secret secret;
    private final EventLoop loop;
    private final ServerSocketChannel listener;
    private final Map<StoreJob.Key, StoreJob> jobs = new LinkedHashMap<>();
    private SelectionKey key;
    private final Set<ServerConnection> handshakes = new LinkedHashSet<>();
    private final Set<ServerConnection> observers = new LinkedHashSet<>();
    private final Refusals refusals;
    private final CountDownLatch closed = new CountDownLatch(1);
    private long refusalCount;
    private boolean checking;

    private StoreServer(RankValues self, Secret secret, EventLoop loop, ServerSocketChannel listener) {
        this.self = self;
        this.secret = secret;
        this.loop = loop;
        this.listener = listener;
        refusals = new Refusals(loop.timers());
        if (self != null) {
            StoreJob.Key own = new StoreJob.Key(self.job(), self.restart());
            jobs.put(own, StoreJob.of(self, excludesStrangers(own), refusals, loop.timers()));
        }
    }

    /** Starts a server for any job, in a process that is no rank. A null secret is none. */
    public static StoreServer startAlone(InetAddress address, int port, Secret secret) {
        StoreServer server = start(null, address, port, secret);
        StoreServerStarter.warnIfExposed(
                Endpoint.format(address.getHostAddress(), server.address().getPort()), address, secret);
        return server;
    }

    /**
     * Starts a server, which listens when this returns.
     *
     * @param self the rank of this process, for whose job the store is; null for a store of any job
     * @param port the port; 0 chooses a free one
     * @param secret the shared secret, or null
     */
    static StoreServer start(RankValues self, InetAddress address, int port, Secret secret) {
        return start(self, address, port, secret, System::nanoTime);
    }

    /** As {@link #start(RankValues, InetAddress, int, Secret)} with the clock of the time limits. */
    static StoreServer start(RankValues self, InetAddress address, int port, Secret secret, LongSupplier clock) {
        String who = self == null ? "the store" : "rank 0";
        String endpoint = Endpoint.format(address.getHostAddress(), port);
        try {
            ServerSocketChannel listener = ServerSocketChannel.open();
            try {
                listener.setOption(StandardSocketOptions.SO_REUSEADDR, true);
                listener.bind(
                        new InetSocketAddress(address, port),
                        (self == null ? UNKNOWN_RANKS : self.worldSize()) + EXTRA_HANDSHAKES);
                EventLoop loop = new EventLoop("nccl4j-store-server", clock);
                StoreServer server = new StoreServer(self, secret, loop, listener);
                loop.execute(server::registerListener);
                return server;
            } catch (IOException | RuntimeException | Error failure) {
                listener.close();
                throw failure;
            }
        } catch (BindException taken) {
            throw new RendezvousException(
                    self == null
                            ? "the store can't listen at " + endpoint + ": " + taken.getMessage()
                            : "rank 0 can't listen at " + endpoint
                                    + ", the address of the store (MASTER_ADDR, MASTER_PORT): " + taken.getMessage()
                                    + "; set NCCL4J_STORE_PORT to another port, the same for all ranks",
                    taken);
        } catch (IOException failure) {
            throw new RendezvousException(who + " can't listen at " + endpoint + ": " + failure, failure);
        }
    }

    public InetSocketAddress address() {
        try {
            return (InetSocketAddress) listener.getLocalAddress();
        } catch (IOException closed) {
            throw new IllegalStateException("the store is closed", closed);
        }
    }

    private void registerListener() {
        try {
            key = loop.register(listener, SelectionKey.OP_ACCEPT, this);
        } catch (IOException | RuntimeException | Error failure) {
            loop.close();
            throw new IllegalStateException("the store does not listen", failure);
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
        } catch (IOException | OutOfMemoryError tooManyFiles) {
            // The selector would report the waiting connections again at once, and the thread would spin.
            loop.timers().schedule(loop.now() + TimeUnit.MILLISECONDS.toNanos(ACCEPT_PAUSE_MILLIS), () -> {
                if (key.isValid()) {
                    key.interestOps(SelectionKey.OP_ACCEPT);
                }
            });
            key.interestOps(0);
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
        long limit = EXTRA_HANDSHAKES
                + (self == null
                        ? UNKNOWN_RANKS
                        : jobs.values().stream().mapToInt(StoreJob::missing).sum());
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

    /** Names the store in messages to a rank. */
    String name() {
        return self == null ? "the store" : "rank 0";
    }

    /** True if the rank's process keeps this store. */
    boolean isKeptBy(int rank) {
        return self != null && rank == self.rank();
    }

    /** Returns null if the store has no secret. */
    Secret secret() {
        return secret;
    }

    long handshakeDeadline() {
        return loop.now() + TimeUnit.SECONDS.toNanos(HANDSHAKE_SECONDS);
    }

    /** Finds the job of a rank; returns null if this store is for another one. */
    StoreJob job(StoreJob.Key wanted, StoreJob.Claim first) throws IOException {
        StoreJob found = jobs.get(wanted);
        if (found == null && self == null) {
            if (first.worldSize() < 1 || first.worldSize() > MAX_RANKS) {
                throw new IOException("world size must be >= 1 and <= " + MAX_RANKS + ": " + first.worldSize());
            }
            if (jobs.size() >= MAX_JOBS) {
                throw new IOException("jobs of a store must be <= " + MAX_JOBS + ": " + (jobs.size() + 1));
            }
            String address = Endpoint.format(
                    address().getAddress().getHostAddress(), address().getPort());
            found = StoreJob.of(first, excludesStrangers(wanted), address, refusals, loop.timers());
            jobs.put(wanted, found);
        }
        return found;
    }

    private boolean excludesStrangers(StoreJob.Key job) {
        return secret != null || !job.job().isEmpty();
    }

    /** Describes the job of this store, for a rank of another job. */
    String describeJob() {
        return name() + " is in job '" + self.job() + "', attempt " + self.restart();
    }

    void markJoined(ServerConnection connection) {
        handshakes.remove(connection);
    }

    /** Lets a connection look at the jobs; returns null, or the reason for a refusal. */
    String addObserver(ServerConnection connection) {
        if (observers.size() >= MAX_OBSERVERS) {
            return "observers of a store must be <= " + MAX_OBSERVERS + ": " + (observers.size() + 1);
        }
        handshakes.remove(connection);
        observers.add(connection);
        return null;
    }

    void removeObserver(ServerConnection connection) {
        observers.remove(connection);
    }

    List<Observer.Job> observedJobs() {
        return jobs.entrySet().stream()
                .map(one ->
                        one.getValue().observed(one.getKey().job(), one.getKey().restart()))
                .toList();
    }

    Refusals refusals() {
        return refusals;
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

    /** Removes a connection that has not joined. */
    void removeHandshake(ServerConnection connection) {
        handshakes.remove(connection);
    }

    /** Forgets a job without connections, so that it can start again; later if ranks that come late must find it. */
    void forgetIfOver(StoreJob job) {
        if (self != null || !job.joined().isEmpty()) {
            return;
        }
        if (!job.isAwaited()) {
            jobs.values().remove(job);
            return;
        }
        loop.timers().schedule(loop.now() + TimeUnit.SECONDS.toNanos(AWAITED_SECONDS), () -> {
            if (job.joined().isEmpty()) {
                jobs.values().remove(job);
            }
        });
    }

    /** Begins to check for silent ranks, because one has sent a heartbeat. */
    void startChecks() {
        if (!checking) {
            checking = true;
            scheduleCheck();
        }
    }

    private void scheduleCheck() {
        long due = loop.now() + CHECK_NANOS;
        loop.timers().schedule(due, () -> checkSilence(due));
    }

    private void checkSilence(long due) {
        long now = loop.now();
        for (StoreJob job : List.copyOf(jobs.values())) {
            for (ServerConnection connection : List.copyOf(job.joined())) {
                connection.checkSilence(due, now);
            }
        }
        scheduleCheck();
    }

    /**
     * Closes the store after the connected ranks have fetched all broadcast values, or after the timeout. After an abort it
     * stays open for up to {@link #LATE_RANK_SECONDS} so that ranks that join late get the reason, and for up to {@link
     * #KEEPER_SECONDS} while the rank that keeps it is in a group, whose members would take its end for a loss.
     */
    public void close(Duration timeout) {
        long nanos = Arguments.nanoseconds(timeout);
        long start = loop.now();
        loop.execute(() -> closeWhenDelivered(
                start + nanos,
                start + Math.min(nanos, TimeUnit.SECONDS.toNanos(LATE_RANK_SECONDS)),
                start + Math.min(nanos, TimeUnit.SECONDS.toNanos(KEEPER_SECONDS))));
        try {
            closed.await(nanos + TimeUnit.SECONDS.toNanos(2 * CLOSE_NOTICE_SECONDS), TimeUnit.NANOSECONDS);
            loop.close();
            loop.awaitEnd(TimeUnit.SECONDS.toMillis(CLOSE_NOTICE_SECONDS));
        } catch (InterruptedException interrupted) {
            loop.close();
            Thread.currentThread().interrupt();
        }
    }

    private void closeWhenDelivered(long deadline, long lateRankDeadline, long keeperDeadline) {
        long now = loop.now();
        boolean isUndelivered =
                jobs.values().stream().anyMatch(job -> job.state().hasUndelivered());
        boolean isUnnotified =
                jobs.values().stream().anyMatch(job -> job.state().hasUnnotifiedRank());
        boolean isMember = jobs.values().stream().anyMatch(StoreServer::isKeeperMember);
        if (isUndelivered && now - deadline < 0
                || isUnnotified && now - lateRankDeadline < 0
                || isMember && now - keeperDeadline < 0) {
            loop.timers()
                    .schedule(
                            now + TimeUnit.MILLISECONDS.toNanos(1),
                            () -> closeWhenDelivered(deadline, lateRankDeadline, keeperDeadline));
            return;
        }
        for (StoreJob job : jobs.values()) {
            boolean keeperIsLost = isKeeperMember(job);
            String reason = job.state().closeReason(name());
            List.copyOf(job.joined()).forEach(connection -> connection.sendCloseNotice(reason, keeperIsLost));
        }
        List.copyOf(observers)
                .forEach(connection -> connection.sendCloseNotice(name() + " has closed its store", false));
        closeWhenSent(loop.now() + TimeUnit.SECONDS.toNanos(CLOSE_NOTICE_SECONDS));
    }

    private static boolean isKeeperMember(StoreJob job) {
        return job.joined().stream()
                .anyMatch(one -> one.isKeeper() && job.groups().isMember(one));
    }

    private void closeWhenSent(long deadline) {
        if (hasSentAll() || loop.now() - deadline >= 0) {
            EventLoop.close(key, new IOException("the store is closed"));
            return;
        }
        loop.timers().schedule(loop.now() + TimeUnit.MILLISECONDS.toNanos(1), () -> closeWhenSent(deadline));
    }

    /** True if the kernel has all output to the ranks. */
    boolean hasSentAll() {
        return jobs.values().stream().flatMap(job -> job.joined().stream()).allMatch(Connection::hasSentAll);
    }
}
