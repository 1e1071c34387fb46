package io.github.nccl4j.launch.store;

import io.github.nccl4j.launch.env.RankValues;
import io.github.nccl4j.launch.wire.Arguments;
import io.github.nccl4j.launch.wire.MessageText;
import io.github.nccl4j.launch.wire.Wire;
import java.io.IOException;
import java.net.InetSocketAddress;
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

    private final RankValues self;
    private final Secret secret;
    private final CompletableFuture<StoreClient> joined = new CompletableFuture<>();
    private final Map<Integer, CompletableFuture<ByteBuffer>> pending = new ConcurrentHashMap<>();
    private final AtomicInteger lastNumber = new AtomicInteger(Wire.CLOSE_NOTICE);
    private final byte[] nonce = new byte[Wire.NONCE_BYTES];
    private byte[] serverNonce;
    private boolean proven;
    private volatile String endReason;

    /** The store refuses this rank, or this rank refuses the store. */
    static final class RefusedException extends IOException {
        private static final long serialVersionUID = 1L;
        /** True if another store, for this rank, may start at the same address later. */
        private final boolean retryable;

        RefusedException(String reason, boolean retryable) {
            super(reason);
            this.retryable = retryable;
        }

        boolean isRetryable() {
            return retryable;
        }
    }

    private StoreClient(EventLoop loop, SocketChannel channel, RankValues self, Secret secret) {
        super(loop, channel, Wire.MAX_JOIN);
        this.self = self;
        this.secret = secret;
    }

    /**
     * Starts to connect and join; {@link #joined} completes with the result. To cancel the attempt, call {@link #abandon}:
     * cancelling the future would leave the connection open.
     */
    static StoreClient connect(EventLoop loop, InetSocketAddress address, RankValues self, Secret secret)
            throws IOException {
        SocketChannel channel = SocketChannel.open();
        StoreClient client = new StoreClient(loop, channel, self, secret);
        loop.execute(() -> client.connect(address));
        return client;
    }

    CompletableFuture<StoreClient> joined() {
        return joined;
    }

    /** Closes the connection or the attempt to connect. From any thread. */
    void abandon() {
        loop().execute(() -> {
            if (channel().isOpen()) {
                close(new IOException("closed by this rank"));
            }
        });
    }

    private void connect(InetSocketAddress address) {
        try {
            channel().configureBlocking(false);
            boolean done = channel().connect(address);
            start(done ? SelectionKey.OP_READ : SelectionKey.OP_CONNECT);
        } catch (IOException | RuntimeException failure) {
            try {
                channel().close();
            } catch (IOException also) {
                failure.addSuppressed(also);
            }
            joined.completeExceptionally(failure instanceof IOException ? failure : new IOException(failure));
        }
    }

    @Override
    void handleConnect() {
        // The store sends the first frame.
    }

    @Override
    void handleFrame(ByteBuffer frame) throws IOException {
        if (joined.isDone()) {
            Wire.read(frame, this::handleResponse);
        } else if (proven) {
            Wire.read(frame, this::handleJoined);
        } else if (serverNonce != null) {
            Wire.read(frame, this::handleProof);
        } else {
            Wire.read(frame, this::handleGreeting);
        }
    }

    private Void handleGreeting(ByteBuffer frame) throws IOException {
        if (frame.getLong() != Wire.MAGIC) {
            throw new IOException("another service listens at this address");
        }
        byte version = frame.get();
        if (version != Wire.VERSION) {
            throw new RefusedException(
                    "versions of the store's protocol must be equal: rank 0 has " + version + ", this rank has "
                            + Wire.VERSION,
                    false);
        }
        boolean serverHasSecret = frame.get() == Wire.WITH_SECRET;
        byte[] received = new byte[Wire.NONCE_BYTES];
        frame.get(received);
        if (serverHasSecret != (secret != null)) {
            throw new RefusedException(
                    "rank 0 has " + (serverHasSecret ? "a" : "no") + " secret, and this rank has "
                            + (serverHasSecret ? "none" : "one") + ": set " + Secret.VARIABLE + " or "
                            + Secret.FILE_VARIABLE + " for all ranks or for none",
                    false);
        }
        serverNonce = received;
        Wire.Frame hello = new Wire.Frame()
                .number64(Wire.MAGIC)
                .number8(Wire.VERSION)
                .number8(serverHasSecret ? Wire.WITH_SECRET : Wire.WITHOUT_SECRET);
        if (serverHasSecret) {
            ServerConnection.Random.SOURCE.nextBytes(nonce);
        }
        hello.raw(nonce);
        if (serverHasSecret) {
            hello.raw(secret.proof(false, serverNonce, nonce));
        }
        send(hello.toBytes());
        return null;
    }

    private Void handleProof(ByteBuffer frame) throws IOException {
        throwIfRefused(frame);
        byte[] proof = new byte[Wire.PROOF_BYTES];
        frame.get(proof);
        if (secret != null && !secret.isProof(proof, true, serverNonce, nonce)) {
            throw new RefusedException("the store does not prove that it has the secret of this rank", false);
        }
        enableSeal(secret == null ? null : secret.seal(false, serverNonce, nonce), Wire.MAX_JOIN);
        proven = true;
        send(new Wire.Frame()
                .number32(self.rank())
                .number32(self.worldSize())
                .number32(self.restart())
                .number8(self.hasLocalRank() ? 1 : 0)
                .text(self.localText())
                .text(self.job())
                .text("process " + ProcessHandle.current().pid())
                .toBytes());
        return null;
    }

    private static void throwIfRefused(ByteBuffer frame) throws IOException {
        byte status = frame.get();
        if (status != Wire.OK) {
            throw new RefusedException(Wire.text(frame), status == Wire.ANOTHER_JOB);
        }
    }

    private Void handleJoined(ByteBuffer frame) throws IOException {
        throwIfRefused(frame);
        // The longest response holds one value of each rank.
        long longest = self.worldSize() * (Integer.BYTES + (long) Arguments.LONGEST_VALUE) + Wire.MAX_JOIN;
        setMaxFrameBytes((int) Math.min(longest, MAX_ARRAY_BYTES));
        joined.complete(this);
        return null;
    }

    private Void handleResponse(ByteBuffer frame) throws IOException {
        int number = frame.getInt();
        if (number == Wire.CLOSE_NOTICE) {
            frame.get();
            throw new IOException(Wire.text(frame));
        }
        CompletableFuture<ByteBuffer> response = pending.remove(number);
        // Null if the caller has given up.
        if (response != null) {
            response.complete(frame.slice());
        }
        return null;
    }

    /** Sends a request. The response begins with its status. From any thread. */
    CompletableFuture<ByteBuffer> request(Wire.Operation operation, Wire.Frame arguments) {
        int number = nextNumber();
        CompletableFuture<ByteBuffer> response = new CompletableFuture<>();
        pending.put(number, response);
        response.whenComplete((content, failure) -> pending.remove(number));
        byte[] content = arguments.toBytes();
        loop().execute(() -> {
            if (isClosed()) {
                response.completeExceptionally(new IOException(endReason));
            } else {
                send(new Wire.Frame()
                        .number32(number)
                        .operation(operation)
                        .raw(content)
                        .toBytes());
            }
        });
        return response;
    }

    private int nextNumber() {
        int number = lastNumber.incrementAndGet();
        return number == Wire.CLOSE_NOTICE ? lastNumber.incrementAndGet() : number;
    }

    @Override
    void handleEnd(IOException why) {
        endReason = MessageText.reason(why);
        joined.completeExceptionally(why);
        for (CompletableFuture<ByteBuffer> response : pending.values()) {
            response.completeExceptionally(why);
        }
    }
}
