package io.github.nccl4j.samples.support;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.function.Supplier;

/**
 * Hands rank 0's unique id to all other ranks over TCP.
 *
 * <p>Rank 0 listens at {@code masterAddress:masterPort}; the others connect, again and again until the deadline, because rank 0 may start
 * last. Each says its rank and the number of ranks that it expects. Once all are there, everyone gets the id; when they don't agree, or
 * some are missing at the deadline, everyone gets the reason. The id is the only secret that protects a communicator: it is never
 * logged. Collective: every rank calls {@link #exchange} once.
 */
public final class IdExchange {

    /** "nccl4jID", so that a stranger at the port is told apart. */
    static final long MAGIC = 0x6e63636c346a4944L;

    static final byte OK = 0;
    static final byte FAILED = 1;
    static final int LONGEST_PAYLOAD = 1 << 16;

    private static final long FIRST_PAUSE_MILLIS = 10;
    private static final long LONGEST_PAUSE_MILLIS = 500;
    /** The root needs a moment after the deadline to tell the reason to those that wait. */
    private static final Duration SLACK = Duration.ofSeconds(2);

    private final RankInfo self;
    private final Duration timeout;

    /**
     * Describes one exchange.
     *
     * @param self this process
     * @param timeout how long to wait for the others
     */
    public IdExchange(RankInfo self, Duration timeout) {
        this.self = self;
        this.timeout = timeout;
    }

    /**
     * Meets the other ranks.
     *
     * @param makeId called on rank 0 alone
     * @return the id, the same bytes on every rank
     * @throws RendezvousException if not all ranks met before the deadline, or they don't agree on who they are
     */
    public byte[] exchange(Supplier<byte[]> makeId) {
        long deadline = System.nanoTime() + timeout.toNanos();
        if (self.rank() != 0) {
            return fetch(deadline);
        }
        if (self.worldSize() == 1) {
            return makeId.get();
        }
        try (IdServer server = new IdServer(self, timeout)) {
            return server.serve(makeId.get(), deadline);
        }
    }

    private byte[] fetch(long deadline) {
        IOException last = null;
        for (long pause = FIRST_PAUSE_MILLIS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MILLIS)) {
            long left = (deadline - System.nanoTime()) / 1_000_000;
            if (left <= 0) {
                throw new RendezvousException(
                        "rank " + self.rank() + " could not reach rank 0 at " + self.masterAddress() + ":"
                                + self.masterPort() + " within " + timeout.toMillis() / 1000.0 + " s"
                                + (last == null ? "" : ": " + last.getMessage()),
                        last);
            }
            try {
                return ask(left);
            } catch (IOException notYet) {
                last = notYet;
            }
            pause(Math.min(pause, left));
        }
    }

    private byte[] ask(long leftMillis) throws IOException {
        int patience = (int) Math.min(Integer.MAX_VALUE, leftMillis);
        try (Socket socket = new Socket()) {
            // A new address object each time: the name may become known only later.
            socket.connect(
                    new InetSocketAddress(InetAddress.getByName(self.masterAddress()), self.masterPort()), patience);
            socket.setTcpNoDelay(true);
            socket.setSoTimeout((int) Math.min(Integer.MAX_VALUE, leftMillis + SLACK.toMillis()));
            DataOutputStream out = new DataOutputStream(socket.getOutputStream());
            out.write(hello(self.rank(), self.worldSize()));
            out.flush();
            return answer(new DataInputStream(socket.getInputStream()));
        }
    }

    static byte[] hello(int rank, int worldSize) {
        return ByteBuffer.allocate(Long.BYTES + 2 * Integer.BYTES)
                .putLong(MAGIC)
                .putInt(rank)
                .putInt(worldSize)
                .array();
    }

    private static byte[] answer(DataInputStream in) throws IOException {
        if (in.readLong() != MAGIC) {
            throw new IOException("another service listens there");
        }
        byte status = in.readByte();
        int length = in.readInt();
        if (length < 0 || length > LONGEST_PAYLOAD) {
            throw new IOException("answer of " + length + " bytes");
        }
        byte[] payload = new byte[length];
        in.readFully(payload);
        if (status != OK) {
            throw new RendezvousException(new String(payload, StandardCharsets.UTF_8));
        }
        return payload;
    }

    private static void pause(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new RendezvousException("interrupted while waiting for rank 0", interrupted);
        }
    }
}
