package io.github.nccl4j.launch;

import io.github.nccl4j.launch.PendingCollective.Signature;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.List;

/** The store's end of a connection: finds out whose it is, then serves that rank. */
final class ServerConnection extends Connection {
    /** Requests of one rank that wait for others. */
    private static final int MOST_WAITING = 4096;

    private final StoreServer server;
    private final StoreState state;
    private final byte[] nonce = new byte[Wire.NONCE_BYTES];
    private EventLoop.Timer patience;
    private boolean proven;
    private int rank = -1;
    private boolean leaves;
    private int waiting;

    ServerConnection(StoreServer server, SocketChannel channel) {
        super(server.loop(), channel, Wire.MAX_HELLO);
        this.server = server;
        state = server.state();
    }

    /** Where it comes from. */
    String remote() {
        try {
            InetSocketAddress address = (InetSocketAddress) channel().getRemoteAddress();
            return address == null ? "nowhere" : address.getAddress().getHostAddress();
        } catch (IOException closed) {
            return "a closed connection";
        }
    }

    void greet() {
        patience = loop().schedule(server.helloDeadline(), () -> close(new IOException("said nothing in time")));
        boolean secret = server.secret() != null;
        if (secret) {
            Random.SOURCE.nextBytes(nonce);
        }
        send(new Wire.Frame()
                .number64(Wire.MAGIC)
                .number8(Wire.VERSION)
                .number8(secret ? Wire.WITH_SECRET : Wire.WITHOUT_SECRET)
                .raw(nonce)
                .toBytes());
    }

    /** Apart, because a store without a secret needs none. */
    static final class Random {
        static final SecureRandom SOURCE = new SecureRandom();

        private Random() {}
    }

    @Override
    void received(ByteBuffer frame) throws IOException {
        if (rank >= 0) {
            Wire.read(frame, this::request);
        } else if (proven) {
            Wire.read(frame, this::join);
        } else {
            try {
                Wire.read(frame, this::prove);
            } catch (IOException stranger) {
                server.refused(this, stranger.getMessage());
                throw stranger;
            }
        }
    }

    private Void prove(ByteBuffer frame) throws IOException {
        if (frame.getLong() != Wire.MAGIC || frame.get() != Wire.VERSION) {
            throw new IOException("does not speak the store's language");
        }
        Secret secret = server.secret();
        boolean offered = frame.get() == Wire.WITH_SECRET;
        byte[] clientNonce = new byte[Wire.NONCE_BYTES];
        frame.get(clientNonce);
        if (secret == null || !offered) {
            if (offered || secret != null) {
                refuse(
                        Wire.FAILED,
                        "rank 0 has " + (secret == null ? "no" : "a") + " secret, and this rank has "
                                + (offered ? "one" : "none"));
                throw new IOException(offered ? "it has a secret, this store none" : "it has no secret");
            }
            send(new Wire.Frame()
                    .number8(Wire.OK)
                    .raw(new byte[Wire.PROOF_BYTES])
                    .toBytes());
        } else {
            byte[] proof = new byte[Wire.PROOF_BYTES];
            frame.get(proof);
            if (!secret.isProof(proof, false, nonce, clientNonce)) {
                refuse(Wire.FAILED, "this rank has another secret than rank 0");
                throw new IOException("wrong secret");
            }
            send(new Wire.Frame()
                    .number8(Wire.OK)
                    .raw(secret.proof(true, nonce, clientNonce))
                    .toBytes());
        }
        isTrusted(secret == null ? null : secret.seal(true, nonce, clientNonce), Wire.MAX_JOIN);
        proven = true;
        return null;
    }

    private void refuse(byte status, String reason) {
        send(new Wire.Frame().number8(status).text(reason).toBytes());
    }

    private Void join(ByteBuffer frame) throws IOException {
        int claimed = frame.getInt();
        int worldSize = frame.getInt();
        int restart = frame.getInt();
        boolean hasLocalRank = frame.get() != 0;
        String local = Wire.text(frame);
        String job = Wire.text(frame);
        String place = remote() + ", " + Wire.text(frame);
        RankInfo self = server.self();
        if (!job.equals(self.job()) || restart != self.restart()) {
            refuse(
                    Wire.ANOTHER_JOB,
                    "rank 0 there is of job '" + self.job() + "', attempt " + self.restart() + "; this rank of job '"
                            + job + "', attempt " + restart);
            throw new IOException("another job");
        }
        String wrong = server.join(this, claimed, worldSize, hasLocalRank, local, place);
        if (wrong != null) {
            refuse(Wire.FAILED, wrong);
            throw new IOException(wrong);
        }
        rank = claimed;
        loop().cancel(patience);
        isStillTrusted(Wire.REQUEST_HEADER_BYTES
                + Wire.MAX_KEY
                + Rendezvous.LONGEST_VALUE
                + Integer.BYTES * worldSize
                + Seal.OVERHEAD);
        send(new Wire.Frame().number8(Wire.OK).toBytes());
        return null;
    }

    @Override
    void ended(IOException why) {
        loop().cancel(patience);
        server.ended(this, rank, leaves);
    }

    /** Says that the store ends. */
    void farewell(String reason) {
        send(new Wire.Frame()
                .number32(Wire.CLOSE_NOTICE)
                .number8(Wire.FAILED)
                .text(reason)
                .toBytes());
    }

    /* Requests. */

    private Void request(ByteBuffer frame) throws IOException {
        int number = frame.getInt();
        if (waiting >= MOST_WAITING) {
            throw new IOException("more than " + MOST_WAITING + " requests that wait");
        }
        waiting++;
        Responder reply = new Answer(number);
        switch (Wire.Operation.read(frame)) {
            case SET -> {
                String key = Wire.text(frame);
                state.set(key, Wire.bytes(frame), reply);
            }
            case GET -> {
                long timeout = timeout(frame);
                state.await(List.of(Wire.text(frame)), true, timeout, reply);
            }
            case AWAIT -> await(frame, reply);
            case ADD -> {
                String key = Wire.text(frame);
                state.add(key, frame.getLong(), reply);
            }
            case DELETE -> state.delete(Wire.text(frame), reply);
            case COLLECTIVE -> meet(frame, reply);
            case ABORT -> {
                String prefix = Wire.text(frame);
                state.abort(prefix, "rank " + rank + " can't go on: " + Wire.text(frame));
                reply.ok(new byte[0]);
            }
            case GONE -> reply.ok(new Wire.Frame().numbers(state.gone()).toBytes());
            case LEAVE -> {
                leaves = true;
                reply.ok(new byte[0]);
            }
        }
        return null;
    }

    private static long timeout(ByteBuffer frame) throws IOException {
        long timeout = frame.getLong();
        if (timeout < 0 || timeout > Arguments.MAX_NANOSECONDS) {
            throw new IOException("a timeout of " + timeout + " ns");
        }
        return timeout;
    }

    private void await(ByteBuffer frame, Responder reply) throws IOException {
        long timeout = timeout(frame);
        int count = frame.getInt();
        if (count < 0 || count > frame.remaining() / Integer.BYTES) {
            throw new IOException("a list of " + count + " keys");
        }
        List<String> keys = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            keys.add(Wire.text(frame));
        }
        state.await(keys, false, timeout, reply);
    }

    private void meet(ByteBuffer frame, Responder reply) throws IOException {
        long timeout = timeout(frame);
        int kind = frame.get();
        int root = frame.getInt();
        List<Integer> ranks = Wire.numbers(frame);
        String key = Wire.text(frame);
        byte[] value = Wire.bytes(frame);
        if (ranks.isEmpty()) {
            ranks = state.all();
        }
        int index = ranks == state.all() ? rank : ranks.indexOf(rank);
        int size = state.all().size();
        boolean sensible = ranks == state.all()
                || ranks.stream().allMatch(one -> one >= 0 && one < size)
                        && ranks.stream().distinct().count() == ranks.size();
        if (kind < 0
                || kind >= PendingCollective.Kind.values().length
                || index < 0
                || root < 0
                || root >= ranks.size()
                || !sensible) {
            throw new IOException("a meeting of kind " + kind + ", root " + root + ", ranks " + ranks);
        }
        state.meet(
                key, new Signature(PendingCollective.Kind.values()[kind], ranks, root), index, value, timeout, reply);
    }

    /** Takes an answer to the rank that asked. */
    private final class Answer implements Responder {
        private final int number;

        Answer(int number) {
            this.number = number;
        }

        private Wire.Frame head(byte status) {
            waiting--;
            return new Wire.Frame().number32(number).number8(status);
        }

        @Override
        public void ok(byte[] content) {
            send(head(Wire.OK).raw(content).toBytes());
        }

        @Override
        public void failed(String reason) {
            send(head(Wire.FAILED).text(reason).toBytes());
        }

        @Override
        public void timedOut(String reason, List<Integer> missing) {
            send(head(Wire.TIMED_OUT).text(reason).numbers(missing).toBytes());
        }
    }
}
