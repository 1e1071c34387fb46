package io.github.nccl4j.launch.store;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.nccl4j.launch.env.Launcher;
import io.github.nccl4j.launch.env.RankValues;
import io.github.nccl4j.launch.wire.Wire;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** Accepts connections of ranks, as a store that may send anything. */
final class TestListener implements AutoCloseable {
    private static final int LIMIT_MILLIS = 20_000;

    private final ServerSocket socket;
    private final List<Rank> ranks = new ArrayList<>();

    TestListener() throws IOException {
        socket = new ServerSocket(0, 10, InetAddress.getLoopbackAddress());
        socket.setSoTimeout(LIMIT_MILLIS);
    }

    InetSocketAddress address() {
        return (InetSocketAddress) socket.getLocalSocketAddress();
    }

    /** A rank whose store is this one. */
    RankValues rank(int rank, int worldSize) {
        return new RankValues(
                new RankValues.Numbers(rank, worldSize, rank, worldSize),
                "127.0.0.1",
                socket.getLocalPort(),
                "job",
                3,
                Launcher.PROPERTIES);
    }

    /** The next connection, before the greeting. */
    Rank accept() throws IOException {
        return new Rank();
    }

    /** The next connection, up to the join of the rank, which is read. */
    Rank greet() throws IOException {
        Rank rank = accept();
        rank.greet();
        rank.receive();
        return rank;
    }

    /** The next connection, which joins. */
    Rank join(int attempt) throws IOException {
        Rank rank = greet();
        rank.send(new Wire.Frame().number8(Wire.OK).number32(attempt));
        return rank;
    }

    @Override
    public void close() throws IOException {
        for (Rank rank : ranks) {
            rank.close();
        }
        socket.close();
    }

    /** A connection of a rank. */
    final class Rank extends TestPeer {
        private int number;

        private Rank() throws IOException {
            super(socket.accept());
            ranks.add(this);
        }

        /** Does all that precedes the join, without a secret. */
        void greet() throws IOException {
            send(greeting(Wire.MAGIC, Wire.VERSION, Wire.WITHOUT_SECRET));
            receive();
            send(new Wire.Frame().number8(Wire.OK).raw(new byte[Wire.PROOF_BYTES]));
        }

        /** Reads the next request, which must have the operation; returns its arguments. */
        ByteBuffer request(Wire.Operation operation) throws IOException {
            ByteBuffer request = receive();
            number = request.getInt();
            assertEquals(operation, Wire.Operation.read(request));
            return request;
        }

        /** The number of the last request. */
        int number() {
            return number;
        }

        /** Responds to the last request. */
        void respond(byte[] content) throws IOException {
            respond(number, content);
        }

        void respond(int request, byte[] content) throws IOException {
            send(new Wire.Frame().number32(request).number8(Wire.OK).raw(content));
        }

        void fail(String reason) throws IOException {
            send(new Wire.Frame().number32(number).number8(Wire.FAILED).text(reason));
        }

        void sendCloseNotice(byte status, String reason) throws IOException {
            send(new Wire.Frame().number32(Wire.CLOSE_NOTICE).number8(status).text(reason));
        }
    }

    static Wire.Frame greeting(long magic, int version, byte mode) {
        return new Wire.Frame().number64(magic).number8(version).number8(mode).raw(new byte[Wire.NONCE_BYTES]);
    }
}
