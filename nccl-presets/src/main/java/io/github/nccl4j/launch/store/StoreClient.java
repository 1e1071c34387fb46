package io.github.nccl4j.launch.store;

import io.github.nccl4j.launch.env.RankValues;
import io.github.nccl4j.launch.wire.Arguments;
import io.github.nccl4j.launch.wire.MessageText;
import io.github.nccl4j.launch.wire.Notice;
import io.github.nccl4j.launch.wire.Wire;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/** Client end of a connection to the store: runs the handshake, then sends the requests of one rank. */
final class StoreClient extends Connection {
    /** A length that every JVM can allocate as an array. */
    private static final int MAX_ARRAY_BYTES = Integer.MAX_VALUE - 16;

    private static final long SEND_POLL_NANOS = 1_000_000;

    private final RankValues self;
    private final ClientHandshake handshake;
    private final Heartbeat heartbeat;

    private final CompletableFuture<StoreClient> joined = new CompletableFuture<>();
    private final Map<Integer, CompletableFuture<ByteBuffer>> pending = new ConcurrentHashMap<>();
    private final AtomicInteger lastNumber = new AtomicInteger(Wire.CLOSE_NOTICE);
    private boolean proven;
    /** The number of earlier processes of this rank; written before {@link #joined} completes. */
    private int attempt;

    private volatile String endReason;
    private volatile Listener listener;
    /** True if the store asked for the status before there was a listener. It asks again only after an answer. */
    private boolean askedBeforeStart;

    private End end = End.BROKEN;

    private TimerQueue.Timer beat;
    /** The silence of the store. */
    private final Silence silence = new Silence();

    private boolean silent;

    /** The ways in which the connection of a rank can end. */
    enum End {
        /** The store or this rank has closed it. */
        CLOSED,
        /** The store was silent for longer than the patience. */
        SILENT,
        /** The store has told the other ranks that this one is lost. */
        DECLARED_LOST,
        BROKEN
    }

    /** Receiver of the unrequested messages of the store. Called in the thread of the connection. */
    interface Listener {
        void handleNotice(Notice notice);

        /** The store asks for the status of this rank. */
        void handleQuestion();

        /** The store has been silent for a time; 0 if it is no longer silent. */
        void handleSilence(long nanos);

        /** The connection has ended. */
        void handleEnd(String reason, End how);
    }

    private StoreClient(
            EventLoop loop,
            SocketChannel channel,
            RankValues self,
            Secret secret,
            String storeName,
            Heartbeat heartbeat) {
        super(loop, channel, Wire.MAX_JOIN);
        this.self = self;
        handshake = new ClientHandshake(secret, storeName, "this rank");
        this.heartbeat = heartbeat;
    }

    /**
     * Starts to connect and join; {@link #joined} completes with the result. To cancel the attempt, call {@link #abandon}:
     * cancelling the future would leave the connection open.
     */
    static StoreClient connect(
            EventLoop loop,
            InetSocketAddress address,
            RankValues self,
            Secret secret,
            String storeName,
            Heartbeat heartbeat)
            throws IOException {
        return connect(loop, SocketChannel.open(), address, self, secret, storeName, heartbeat);
    }

    /** As {@link #connect(EventLoop, InetSocketAddress, RankValues, Secret, String, Heartbeat)}, with a channel. */
    static StoreClient connect(
            EventLoop loop,
            SocketChannel channel,
            InetSocketAddress address,
            RankValues self,
            Secret secret,
            String storeName,
            Heartbeat heartbeat) {
        StoreClient client = new StoreClient(loop, channel, self, secret, storeName, heartbeat);
        loop.execute(() -> client.connect(address));
        return client;
    }

    /**
     * Requires that a connection has two ends. An attempt to connect to a port of the range for clients can connect to itself
     * while nobody listens there.
     */
    static void requireTwoEnds(SocketAddress local, SocketAddress remote) throws IOException {
        if (remote.equals(local)) {
            throw new IOException("no store listens at this address: the connection was to itself");
        }
    }

    CompletableFuture<StoreClient> joined() {
        return joined;
    }

    /** The number of earlier processes of this rank. */
    int attempt() {
        return attempt;
    }

    /** Closes the connection or the attempt to connect. From any thread. */
    void abandon() {
        loop().execute(() -> {
            end = End.CLOSED;
            if (channel().isOpen()) {
                close(new IOException("closed by this rank"));
            }
        });
    }

    private void connect(InetSocketAddress address) {
        try {
            channel().configureBlocking(false);
            // Lets the store listen at the port even while this attempt has it.
            channel().setOption(StandardSocketOptions.SO_REUSEADDR, true);
            boolean done = channel().connect(address);
            if (done) {
                handleConnect();
            }
            start(done ? SelectionKey.OP_READ : SelectionKey.OP_CONNECT);
        } catch (IOException | RuntimeException | Error failure) {
            try {
                channel().close();
            } catch (IOException also) {
                failure.addSuppressed(also);
            }
            joined.completeExceptionally(failure instanceof IOException ? failure : new IOException(failure));
        }
    }

    @Override
    void handleConnect() throws IOException {
        requireTwoEnds(channel().getLocalAddress(), channel().getRemoteAddress());
        // The store sends the first frame.
    }

    @Override
    void handleFrame(ByteBuffer frame) throws IOException {
        if (joined.isDone()) {
            silence.end(loop().now());
            Wire.read(frame, this::handleResponse);
        } else if (proven) {
            Wire.read(frame, this::handleJoined);
        } else if (handshake.hasBegun()) {
            Wire.read(frame, this::handleProof);
        } else {
            Wire.read(frame, this::handleGreeting);
        }
    }

    private Void handleGreeting(ByteBuffer frame) throws IOException {
        if (ClientHandshake.isOfAnotherVersion(frame)) {
            // So that the store can tell the other ranks why this one does not join.
            send(ClientHandshake.introduction(self.rank()));
        }
        send(handshake.hello(frame));
        return null;
    }

    private Void handleProof(ByteBuffer frame) throws IOException {
        enableSeal(handshake.verify(frame), Wire.MAX_JOIN);
        proven = true;
        send(new Wire.Frame()
                .number32(self.rank())
                .number32(self.worldSize())
                .number32(self.restart())
                .number8(self.hasLocalRank() ? 1 : 0)
                .text(self.localText())
                .text(self.job())
                .text("process " + ProcessHandle.current().pid())
                .number64(heartbeat.interval())
                .number64(heartbeat.patience())
                .toBytes());
        return null;
    }

    private Void handleJoined(ByteBuffer frame) throws IOException {
        ClientHandshake.throwIfRefused(frame);
        attempt = frame.getInt();
        // The longest response holds one value of each rank.
        long longest = self.worldSize() * (Integer.BYTES + (long) Arguments.LONGEST_VALUE) + Wire.MAX_JOIN;
        setMaxFrameBytes((int) Math.min(longest, MAX_ARRAY_BYTES));
        silence.end(loop().now());
        joined.complete(this);
        return null;
    }

    private Void handleResponse(ByteBuffer frame) throws IOException {
        int number = frame.getInt();
        if (number == Wire.CLOSE_NOTICE) {
            end = switch (frame.get()) {
                case Wire.KEEPER_LOST -> End.BROKEN;
                case Wire.DECLARED_LOST -> End.DECLARED_LOST;
                default -> End.CLOSED;
            };
            throw new IOException(Wire.text(frame));
        }
        if (number == Wire.QUESTION) {
            if (listener == null) {
                askedBeforeStart = true;
            } else {
                listener.handleQuestion();
            }
            return null;
        }
        if (number == Wire.NOTICE) {
            Notice notice = Notice.read(frame);
            if (listener != null) {
                listener.handleNotice(notice);
            }
            return null;
        }
        CompletableFuture<ByteBuffer> response = pending.remove(number);
        // Null if the caller has given up.
        if (response != null) {
            response.complete(frame.slice());
        }
        return null;
    }

    /** Sets the listener, and begins to send heartbeats. From any thread, once. */
    void start(Listener whatHappens) {
        listener = whatHappens;
        loop().execute(() -> {
            if (askedBeforeStart) {
                listener.handleQuestion();
            }
            if (heartbeat.interval() > 0 && !isClosed()) {
                scheduleBeat(0);
            }
        });
    }

    /** Schedules the next heartbeat: after the interval, or earlier when the patience with a store that is silent ends. */
    private void scheduleBeat(long silentNanos) {
        long wait = heartbeat.interval();
        if (heartbeat.patience() > 0) {
            wait = Math.min(wait, heartbeat.patience() - silentNanos + 1);
        }
        long due = loop().now() + wait;
        beat = loop().timers().schedule(due, () -> beat(due));
    }

    private void beat(long due) {
        long nanos = silence.check(due, loop().now());
        if (heartbeat.patience() > 0 && nanos > heartbeat.patience()) {
            end = End.SILENT;
            close(new IOException("it was silent for " + MessageText.seconds(nanos)));
            return;
        }
        boolean isSilent = nanos > Heartbeat.SILENT_AFTER * heartbeat.interval();
        if (isSilent != silent) {
            silent = isSilent;
            listener.handleSilence(isSilent ? nanos : 0);
        }
        request(Wire.Operation.HEARTBEAT, new Wire.Frame());
        scheduleBeat(nanos);
    }

    /** Nanoseconds since the last frame of the store, if the store is silent; otherwise 0. From any thread. */
    long silence() {
        long nanos = silence.nanos(loop().now());
        return heartbeat.interval() > 0 && nanos > Heartbeat.SILENT_AFTER * heartbeat.interval() ? nanos : 0;
    }

    /** Sends a request whose response does not matter; the future completes when the request is sent. From any thread. */
    CompletableFuture<Void> send(Wire.Operation operation, Wire.Frame arguments) {
        request(operation, arguments);
        CompletableFuture<Void> sent = new CompletableFuture<>();
        loop().execute(() -> awaitSent(sent));
        return sent;
    }

    private void awaitSent(CompletableFuture<Void> sent) {
        if (isClosed() || hasSentAll()) {
            sent.complete(null);
        } else {
            loop().timers().schedule(loop().now() + SEND_POLL_NANOS, () -> awaitSent(sent));
        }
    }

    /** Sends a request. The response begins with its status. From any thread. */
    CompletableFuture<ByteBuffer> request(Wire.Operation operation, Wire.Frame arguments) {
        int number = nextNumber();
        CompletableFuture<ByteBuffer> response = new CompletableFuture<>();
        pending.put(number, response);
        response.whenComplete((content, failure) -> pending.remove(number));
        byte[] content = arguments.toBytes();
        loop().execute(() -> {
            try {
                if (isClosed()) {
                    response.completeExceptionally(new IOException(endReason));
                } else {
                    send(new Wire.Frame()
                            .number32(number)
                            .operation(operation)
                            .raw(content)
                            .toBytes());
                }
            } catch (RuntimeException | Error failure) {
                response.completeExceptionally(new IOException(failure));
                throw failure;
            }
        });
        return response;
    }

    private int nextNumber() {
        int number = lastNumber.incrementAndGet();
        while (number == Wire.CLOSE_NOTICE || number == Wire.NOTICE || number == Wire.QUESTION) {
            number = lastNumber.incrementAndGet();
        }
        return number;
    }

    @Override
    void handleEnd(IOException why) {
        loop().timers().cancel(beat);
        endReason = MessageText.reason(why);
        joined.completeExceptionally(why);
        for (CompletableFuture<ByteBuffer> response : pending.values()) {
            response.completeExceptionally(why);
        }
        if (listener != null) {
            listener.handleEnd(endReason, end);
        }
    }
}
