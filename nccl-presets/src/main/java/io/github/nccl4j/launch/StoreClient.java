package io.github.nccl4j.launch;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/** A rank's end of the connection to the store. */
final class StoreClient extends Connection {
    /** The most that a Java array may have, nearly. */
    private static final int MOST_BYTES = Integer.MAX_VALUE - 16;

    private final RankInfo self;
    private final Secret secret;
    private final CompletableFuture<StoreClient> joined = new CompletableFuture<>();
    private final Map<Integer, CompletableFuture<ByteBuffer>> asked = new ConcurrentHashMap<>();
    private final AtomicInteger numbers = new AtomicInteger(Wire.CLOSE_NOTICE);
    private final byte[] nonce = new byte[Wire.NONCE_BYTES];
    private byte[] serverNonce;
    private boolean proven;
    private volatile String end;

    /** The store does not want this rank. */
    static final class RefusedException extends IOException {
        private static final long serialVersionUID = 1L;
        /** Whether another store may come in its place. */
        private final boolean forNow;

        RefusedException(String reason, boolean forNow) {
            super(reason);
            this.forNow = forNow;
        }

        boolean isForNow() {
            return forNow;
        }
    }

    private StoreClient(EventLoop loop, SocketChannel channel, RankInfo self, Secret secret) {
        super(loop, channel, Wire.MAX_JOIN);
        this.self = self;
        this.secret = secret;
    }

    /** Connects and joins; the result tells when, or why not, and is never cancelled: it is {@link #abandon}ed. */
    static StoreClient connect(EventLoop loop, InetSocketAddress address, RankInfo self, Secret secret)
            throws IOException {
        SocketChannel channel = SocketChannel.open();
        StoreClient client = new StoreClient(loop, channel, self, secret);
        loop.execute(() -> client.begin(address));
        return client;
    }

    CompletableFuture<StoreClient> joined() {
        return joined;
    }

    /** Gives an attempt, or the connection, up. */
    void abandon() {
        loop().execute(() -> {
            if (channel().isOpen()) {
                close(new IOException("given up"));
            }
        });
    }

    private void begin(InetSocketAddress address) {
        try {
            channel().configureBlocking(false);
            boolean now = channel().connect(address);
            start(now ? SelectionKey.OP_READ : SelectionKey.OP_CONNECT);
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
    void connected() {
        // The store speaks first.
    }

    @Override
    void received(ByteBuffer frame) throws IOException {
        if (joined.isDone()) {
            Wire.read(frame, this::answer);
        } else if (proven) {
            Wire.read(frame, this::welcome);
        } else if (serverNonce != null) {
            Wire.read(frame, this::proof);
        } else {
            Wire.read(frame, this::greeting);
        }
    }

    private Void greeting(ByteBuffer frame) throws IOException {
        if (frame.getLong() != Wire.MAGIC) {
            throw new IOException("another service listens there");
        }
        byte version = frame.get();
        if (version != Wire.VERSION) {
            throw new RefusedException(
                    "rank 0 speaks version " + version + " of the store's protocol, this rank " + Wire.VERSION, false);
        }
        boolean hasSecret = frame.get() == Wire.WITH_SECRET;
        byte[] fresh = new byte[Wire.NONCE_BYTES];
        frame.get(fresh);
        if (hasSecret != (secret != null)) {
            throw new RefusedException(
                    "rank 0 has " + (hasSecret ? "a" : "no") + " secret, and this rank has "
                            + (hasSecret ? "none" : "one") + ": set " + Secret.VARIABLE + " or "
                            + Secret.FILE_VARIABLE + " for all ranks or for none",
                    false);
        }
        serverNonce = fresh;
        Wire.Frame hello = new Wire.Frame()
                .number64(Wire.MAGIC)
                .number8(Wire.VERSION)
                .number8(hasSecret ? Wire.WITH_SECRET : Wire.WITHOUT_SECRET);
        if (hasSecret) {
            ServerConnection.Random.SOURCE.nextBytes(nonce);
        }
        hello.raw(nonce);
        if (hasSecret) {
            hello.raw(secret.proof(false, serverNonce, nonce));
        }
        send(hello.toBytes());
        return null;
    }

    private Void proof(ByteBuffer frame) throws IOException {
        refusal(frame);
        byte[] given = new byte[Wire.PROOF_BYTES];
        frame.get(given);
        if (secret != null && !secret.isProof(given, true, serverNonce, nonce)) {
            throw new RefusedException("the store there does not know the secret of this rank", false);
        }
        isTrusted(secret == null ? null : secret.seal(false, serverNonce, nonce), Wire.MAX_JOIN);
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

    private static void refusal(ByteBuffer frame) throws IOException {
        byte status = frame.get();
        if (status != Wire.OK) {
            throw new RefusedException(Wire.text(frame), status == Wire.ANOTHER_JOB);
        }
    }

    private Void welcome(ByteBuffer frame) throws IOException {
        refusal(frame);
        // The longest answer has a value of each rank.
        long longest = self.worldSize() * (Integer.BYTES + (long) Rendezvous.LONGEST_VALUE) + Wire.MAX_JOIN;
        isStillTrusted((int) Math.min(longest, MOST_BYTES));
        joined.complete(this);
        return null;
    }

    private Void answer(ByteBuffer frame) throws IOException {
        int number = frame.getInt();
        if (number == Wire.CLOSE_NOTICE) {
            frame.get();
            throw new IOException(Wire.text(frame));
        }
        CompletableFuture<ByteBuffer> one = asked.remove(number);
        // One who does not wait any more has taken it out.
        if (one != null) {
            one.complete(frame.slice());
        }
        return null;
    }

    /** Sends a request; the answer begins with its status. */
    CompletableFuture<ByteBuffer> ask(Wire.Operation operation, Wire.Frame request) {
        int number = next();
        CompletableFuture<ByteBuffer> answer = new CompletableFuture<>();
        asked.put(number, answer);
        answer.whenComplete((content, failure) -> asked.remove(number));
        byte[] content = request.toBytes();
        loop().execute(() -> {
            if (isClosed()) {
                answer.completeExceptionally(new IOException(end));
            } else {
                send(new Wire.Frame()
                        .number32(number)
                        .operation(operation)
                        .raw(content)
                        .toBytes());
            }
        });
        return answer;
    }

    private int next() {
        int number = numbers.incrementAndGet();
        return number == Wire.CLOSE_NOTICE ? numbers.incrementAndGet() : number;
    }

    @Override
    void ended(IOException why) {
        end = why.getMessage() == null ? why.toString() : why.getMessage();
        joined.completeExceptionally(why);
        for (CompletableFuture<ByteBuffer> one : asked.values()) {
            one.completeExceptionally(why);
        }
    }
}
