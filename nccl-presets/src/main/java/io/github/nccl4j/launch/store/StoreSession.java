package io.github.nccl4j.launch.store;

import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.launch.env.RankValues;
import io.github.nccl4j.launch.wire.Arguments;
import io.github.nccl4j.launch.wire.BroadcastMessage;
import io.github.nccl4j.launch.wire.MessageText;
import io.github.nccl4j.launch.wire.Notice;
import io.github.nccl4j.launch.wire.Wire;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;

/** The connection of one rank to a store, with the server if this rank keeps it: sends requests and waits for their responses. Thread-safe. */
public final class StoreSession implements StoreRequests, AutoCloseable {
    /** Extra time for the response to a request whose timeout the server applies. */
    private static final Duration RESPONSE_GRACE = Duration.ofSeconds(2);

    /** As many of the longest keys as fit in the place of a value, which these requests do not have. */
    private static final int KEYS_OF_A_REQUEST = Arguments.LONGEST_VALUE / (Wire.MAX_KEY + Integer.BYTES);

    /** Keys of a request that messages name. */
    private static final int MAX_NAMED = 16;

    /** Name of a store in the process of a rank. */
    static final String RANK_0 = "rank 0";

    private final RankValues self;
    private final Duration timeout;
    private final StoreServer server;
    private final StoreClient client;
    private final String address;
    private final boolean ofRank;
    private final Memberships memberships = new Memberships(this);
    private final StatusEntries status = new StatusEntries(this);
    private boolean closed;

    private StoreSession(
            RankValues self, Duration timeout, StoreServer server, StoreClient client, String address, boolean ofRank) {
        this.self = self;
        this.timeout = timeout;
        this.server = server;
        this.client = client;
        this.address = address;
        this.ofRank = ofRank;
    }

    /**
     * Settings of a session.
     *
     * @param timeout the limit of opening and of closing
     * @param secret the shared secret, or null
     * @param bind the address at which rank 0 listens; null for the master's address
     * @param ofRank true if rank 0 keeps the store; false if a process of its own does
     */
    public record Settings(Duration timeout, Secret secret, InetAddress bind, boolean ofRank, Heartbeat heartbeat) {
        /** Names the store in messages. */
        String storeName() {
            return ofRank ? RANK_0 : "the store";
        }
    }

    /**
     * Starts the server, if this rank keeps the store, and connects.
     *
     * @throws RendezvousTimeoutException if the store could not be reached in time
     * @throws RendezvousException if rank 0 can't listen, or the store does not accept this rank
     */
    public static StoreSession open(RankValues self, Settings settings) {
        Duration timeout = settings.timeout;
        long deadline = System.nanoTime() + Arguments.nanoseconds(timeout);
        StoreServer server = null;
        if (self.rank() == 0 && settings.ofRank) {
            server = StoreServerStarter.start(self, settings.bind, settings.secret);
        }
        boolean done = false;
        try {
            StoreConnector connector = new StoreConnector(self, settings, server, deadline, WaitLog.USUAL_NANOS);
            StoreClient client = connector.connect();
            done = true;
            StoreSession session =
                    new StoreSession(self, timeout, server, client, connector.address(), settings.ofRank);
            client.start(session.new ConnectionListener());
            return session;
        } finally {
            if (!done && server != null) {
                server.close(Duration.ZERO);
            }
        }
    }

    private final class ConnectionListener implements StoreClient.Listener {
        @Override
        public void handleNotice(Notice notice) {
            memberships.handle(notice);
        }

        @Override
        public void handleQuestion() {
            status.answer();
        }

        @Override
        public void handleSilence(long nanos) {
            System.getLogger("io.github.nccl4j")
                    .log(
                            nanos > 0 ? Level.WARNING : Level.INFO,
                            name() + (nanos > 0 ? " has been silent for " + MessageText.seconds(nanos) : " continues"));
        }

        @Override
        public void handleEnd(String reason, StoreClient.End how) {
            memberships.handleEnd(reason, how);
        }
    }

    /** Names the store, such as "the store of rank 0 at node0:29500". */
    String name() {
        return (ofRank ? "the store of rank 0 at " : "the store at ") + address;
    }

    Memberships memberships() {
        return memberships;
    }

    StatusEntries status() {
        return status;
    }

    /** Nanoseconds since the last frame of the store, if the store is silent; otherwise 0. */
    long silence() {
        return client.silence();
    }

    /** Sends a request whose response does not matter; the future completes when the request is sent. */
    CompletableFuture<Void> send(Wire.Operation operation, Wire.Frame request) {
        requireOpen();
        return client.send(operation, request);
    }

    /** The number of earlier processes of this rank. */
    public int attempt() {
        return client.attempt();
    }

    @Override
    public int rank() {
        return self.rank();
    }

    int size() {
        return self.worldSize();
    }

    /** The address of the store, such as "node0:29500". */
    public String address() {
        return address;
    }

    public boolean hasServer() {
        return server != null;
    }

    /**
     * Closes the session. On rank 0, first waits until the other ranks have fetched their values, and ends the store.
     */
    public void closeServer(Duration limit) {
        if (server != null) {
            server.close(limit);
        }
    }

    /** Fails current and future calls of all ranks whose keys have the prefix. */
    void abort(String prefix, String reason) {
        String shorter = reason.substring(0, Math.min(reason.length(), BroadcastMessage.MAX_REASON_CHARS));
        try {
            request(Wire.Operation.ABORT, new Wire.Frame().text(prefix).text(shorter), "abort", RESPONSE_GRACE);
        } catch (RendezvousException unreachable) {
            // Without a store the calls of the other ranks fail, too.
        }
    }

    /** Returns the ranks that are lost or have left, within the timeout and the time for its response. */
    public List<Integer> gone(Duration limit) {
        return gone(Arguments.nanoseconds(limit) + RESPONSE_GRACE.toNanos());
    }

    @Override
    public List<Integer> gone(long timeoutNanos) {
        ByteBuffer response = presence(timeoutNanos);
        try {
            return List.copyOf(Wire.read(response, Wire::numbers));
        } catch (IOException invalid) {
            throw new RendezvousException("the store at " + address + " sent an invalid response", invalid);
        }
    }

    /** Returns by rank the attempt of its process, or -1 if the process has ended. */
    public List<Integer> attempts(Duration limit) {
        ByteBuffer response = presence(Arguments.nanoseconds(limit) + RESPONSE_GRACE.toNanos());
        Integer[] attempts = new Integer[self.worldSize()];
        Arrays.fill(attempts, 0);
        try {
            List<Integer> gone = Wire.read(response, Wire::numbers);
            List<Integer> later = Wire.read(response, Wire::numbers);
            for (int i = 0; i < later.size(); i += 2) {
                attempts[later.get(i)] = later.get(i + 1);
            }
            gone.forEach(rank -> attempts[rank] = -1);
        } catch (IOException | IndexOutOfBoundsException invalid) {
            throw new RendezvousException("the store at " + address + " sent an invalid response", invalid);
        }
        return List.of(attempts);
    }

    private ByteBuffer presence(long timeoutNanos) {
        return ByteBuffer.wrap(request(Wire.Operation.GONE, new Wire.Frame(), "gone", timeoutNanos));
    }

    /** Sends a request whose timeout the server applies, and waits for the response a little longer. */
    public byte[] request(Wire.Operation operation, Wire.Frame request, String subject, Duration timeout) {
        return request(operation, request, subject, Arguments.nanoseconds(timeout) + RESPONSE_GRACE.toNanos());
    }

    /** Returns the value of a key when it has one. */
    public byte[] get(String key, long timeoutNanos) {
        return get(key, timeoutNanos, WaitLog.USUAL_NANOS);
    }

    byte[] get(String key, long timeoutNanos, long logAfter) {
        Wire.Frame request = new Wire.Frame().number64(timeoutNanos).text(key);
        WaitLog log = new WaitLog(System.nanoTime(), logAfter);
        return awaitResponse(
                requestAsync(Wire.Operation.GET, request), key, timeoutNanos + RESPONSE_GRACE.toNanos(), log);
    }

    /** Waits until all keys have values: in several requests at once if one would be longer than the store accepts. */
    public void await(List<String> keys, long timeoutNanos) {
        await(keys, timeoutNanos, WaitLog.USUAL_NANOS);
    }

    void await(List<String> keys, long timeoutNanos, long logAfter) {
        requireOpen();
        WaitLog log = new WaitLog(System.nanoTime(), logAfter);
        List<List<String>> parts = new ArrayList<>();
        for (int at = 0; at < keys.size(); at += KEYS_OF_A_REQUEST) {
            parts.add(keys.subList(at, Math.min(keys.size(), at + KEYS_OF_A_REQUEST)));
        }
        List<CompletableFuture<ByteBuffer>> responses = new ArrayList<>();
        for (List<String> part : parts) {
            Wire.Frame request = new Wire.Frame().number64(timeoutNanos).number32(part.size());
            part.forEach(request::text);
            responses.add(requestAsync(Wire.Operation.AWAIT, request));
        }
        try {
            for (int i = 0; i < parts.size(); i++) {
                String subject = parts.get(i).stream().limit(MAX_NAMED).collect(Collectors.joining("', '"));
                awaitResponse(responses.get(i), subject, timeoutNanos + RESPONSE_GRACE.toNanos(), log);
            }
        } finally {
            responses.forEach(response -> response.cancel(false));
        }
    }

    @Override
    public CompletableFuture<ByteBuffer> requestAsync(Wire.Operation operation, Wire.Frame request) {
        requireOpen();
        return client.request(operation, request);
    }

    @Override
    public synchronized void requireOpen() {
        if (closed) {
            throw new IllegalStateException("the store is closed");
        }
    }

    @Override
    public byte[] awaitResponse(CompletableFuture<ByteBuffer> response, String subject, long timeoutNanos) {
        return awaitResponse(response, subject, timeoutNanos, new WaitLog(System.nanoTime(), Long.MAX_VALUE));
    }

    private byte[] awaitResponse(
            CompletableFuture<ByteBuffer> response, String subject, long timeoutNanos, WaitLog log) {
        try {
            return ResponseReader.content(awaitLogged(response, subject, timeoutNanos, log), self.rank());
        } catch (TimeoutException silent) {
            RendezvousTimeoutException late = new RendezvousTimeoutException(
                    (ofRank ? RANK_0 : "the store") + " at " + address + " did not respond to rank " + self.rank()
                            + " for '" + subject + "' within " + MessageText.seconds(timeoutNanos),
                    ofRank ? List.of(0) : List.of());
            late.initCause(silent);
            throw late;
        } catch (ExecutionException failure) {
            throw new RendezvousException(
                    "rank " + self.rank() + " has lost its connection to " + name() + ": "
                            + MessageText.reason(failure.getCause()),
                    failure.getCause());
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new RendezvousException(
                    "rank " + self.rank() + " was interrupted while it waited for '" + subject + "'", interrupted);
        } finally {
            response.cancel(false);
        }
    }

    private ByteBuffer awaitLogged(
            CompletableFuture<ByteBuffer> response, String subject, long timeoutNanos, WaitLog log)
            throws InterruptedException, ExecutionException, TimeoutException {
        long begin = System.nanoTime();
        long now = begin;
        while (true) {
            long left = timeoutNanos - (now - begin);
            try {
                return response.get(Math.min(left, log.left(now)), TimeUnit.NANOSECONDS);
            } catch (TimeoutException silent) {
                now = System.nanoTime();
                if (now - begin >= timeoutNanos) {
                    throw silent;
                }
                log.logIfDue(
                        now,
                        nanos -> "rank " + self.rank() + " waits for '" + subject + "' (" + MessageText.seconds(nanos)
                                + " so far)");
            }
        }
    }

    @Override
    public void close() {
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
        }
        try {
            client.request(Wire.Operation.LEAVE, new Wire.Frame()).get(RESPONSE_GRACE.toNanos(), TimeUnit.NANOSECONDS);
        } catch (ExecutionException | TimeoutException alreadyGone) {
            // The server has already noticed, or will notice, that the connection ends.
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        client.abandon();
        EventLoop.releaseByClient();
        closeServer(timeout);
    }
}
