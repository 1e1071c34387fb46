package io.github.nccl4j.tests.launch;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.launch.wire.Wire;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests that a process without the secret can neither join a store, read or change its data, nor impersonate it. */
@Timeout(600)
class StoreSecurityTest {
    private static final byte[] SECRET = "a secret of more than sixteen bytes".getBytes(StandardCharsets.UTF_8);
    private static final byte[] WRONG = "another one of more than sixteen bytes".getBytes(StandardCharsets.UTF_8);
    private static final byte[] ID = "the unique id, which must stay secret".getBytes(StandardCharsets.UTF_8);
    private static final byte OPEN = 0;
    private static final byte WITH_SECRET = 1;

    private final Job job = new Job();

    @AfterEach
    void end() {
        job.close();
    }

    private static TcpStore.Builder with(byte[] secret) {
        return Job.settings().secret(secret);
    }

    private RankInfo rankThroughProxy(Proxy proxy, int rank, int world) {
        return new RankInfo(rank, world, rank, world, "127.0.0.1", proxy.port(), "job", 0, RankInfo.Source.PROPERTIES);
    }

    private static boolean contains(byte[] whole, byte[] part) {
        return Collections.indexOfSubList(boxed(whole), boxed(part)) >= 0;
    }

    private static List<Byte> boxed(byte[] bytes) {
        Byte[] all = new Byte[bytes.length];
        for (int i = 0; i < all.length; i++) {
            all[i] = bytes[i];
        }
        return List.of(all);
    }

    @Test
    void connectsRanksWithSameSecret() {
        CompletableFuture<TcpStore> root = job.openAsync(job.rank(0, 2), with(SECRET));
        TcpStore other = job.open(job.rank(1, 2), with(SECRET));
        root.join().broadcast("id", 0, ID::clone, Job.LONG);
        assertArrayEquals(ID, other.broadcast("id", 0, () -> null, Job.LONG));
        byte[] large = new byte[1 << 16];
        large[77] = 1;
        other.set("large", large);
        assertArrayEquals(large, root.join().get("large", Job.LONG));
    }

    @Test
    void refusesRankWithWrongOrNoSecret() {
        job.open(job.rank(0, 2), with(SECRET));
        // Another process than rank 0 may have refused: the rank tries again until its timeout.
        assertEquals(
                "rank 1 could not reach rank 0 at 127.0.0.1:" + job.port()
                        + " within 0.7 s: the secret of this rank differs from that of rank 0",
                failure(with(WRONG).timeout(Job.SHORT)));
        assertEquals(
                "rank 1 can't join the store at 127.0.0.1:" + job.port()
                        + ": rank 0 has a secret, and this rank has none: set"
                        + " NCCL4J_STORE_SECRET or NCCL4J_STORE_SECRET_FILE for all ranks or for none",
                failure(Job.settings()));
        // The store still accepts a rank with the right secret.
        job.open(job.rank(1, 2), with(SECRET)).set("x", ID);
    }

    private String failure(TcpStore.Builder settings) {
        return assertThrows(RendezvousException.class, () -> settings.open(job.rank(1, 2)))
                .getMessage();
    }

    @Test
    void rankWithSecretRejectsStoreWithoutSecret() {
        job.open(job.rank(0, 2), Job.settings());
        assertTrue(failure(with(SECRET).timeout(Job.SHORT))
                .contains(": rank 0 has no secret, and this rank has one: set"));
    }

    @Test
    void encryptsTraffic() throws Exception {
        assertTrue(
                proxySeesValue(Job.settings(), Job.settings()),
                "without a secret the proxy must see the value, or this test proves nothing");
        assertFalse(proxySeesValue(with(SECRET), with(SECRET)));
    }

    private boolean proxySeesValue(TcpStore.Builder root, TcpStore.Builder other) throws Exception {
        try (Job own = new Job();
                Proxy proxy = new Proxy(own.port())) {
            own.open(own.rank(0, 2), root).broadcast("id", 0, ID::clone, Job.LONG);
            TcpStore rank = own.open(rankThroughProxy(proxy, 1, 2), other);
            assertArrayEquals(ID, rank.broadcast("id", 0, () -> null, Job.LONG));
            rank.set("key", ID);
            boolean read = contains(proxy.toRank(), ID);
            assertEquals(read, contains(proxy.toStore(), ID));
            return read;
        }
    }

    @Test
    void changedByteEndsConnection() throws Exception {
        TcpStore root = job.open(job.rank(0, 2), with(SECRET));
        root.set("key", ID);
        try (Proxy proxy = new Proxy(job.port())) {
            TcpStore rank = job.open(rankThroughProxy(proxy, 1, 2), with(SECRET));
            assertArrayEquals(ID, rank.get("key", Job.LONG));
            proxy.corrupt();
            assertThrows(RendezvousException.class, () -> rank.set("key", new byte[1]));
            assertArrayEquals(ID, root.get("key", Job.LONG));
            assertEquals(List.of(1), root.gone());
        }
    }

    @Test
    void closesSilentConnection() throws Exception {
        job.open(job.rank(0, 2), with(SECRET));
        try (Socket socket = new Socket("127.0.0.1", job.port())) {
            socket.setSoTimeout(60_000);
            // The store sends its greeting only, then closes the connection.
            assertEquals(46, socket.getInputStream().readAllBytes().length);
        }
    }

    @Test
    void rejectsReplayedConnection() throws Exception {
        TcpStore root = job.open(job.rank(0, 3), with(SECRET));
        byte[] sent;
        try (Proxy proxy = new Proxy(job.port())) {
            job.open(rankThroughProxy(proxy, 1, 3), with(SECRET)).set("key", ID);
            sent = proxy.toStore();
        }
        root.delete("key");
        // The first frame is the hello with the proof; the sealed frames follow.
        int proof = Integer.BYTES + ByteBuffer.wrap(sent).getInt();
        assertTrue(sent.length > proof, () -> sent.length + " bytes were sent, " + proof + " of them the proof");
        try (Socket socket = new Socket("127.0.0.1", job.port())) {
            // Without the frames after the proof: a store that closes with unread bytes resets the connection, and the
            // response may be lost.
            socket.getOutputStream().write(sent, 0, proof);
            byte[] response = socket.getInputStream().readAllBytes();
            // The proof is wrong for the nonce of the new connection.
            assertTrue(contains(response, "the secret of this rank differs".getBytes(StandardCharsets.UTF_8)));
        }
        try (Socket socket = new Socket("127.0.0.1", job.port())) {
            socket.getOutputStream().write(sent);
            readToEnd(socket);
        }
        assertThrows(RendezvousTimeoutException.class, () -> root.get("key", Job.SHORT));
    }

    private static void readToEnd(Socket socket) {
        try {
            socket.getInputStream().readAllBytes();
        } catch (IOException reset) {
            // The store resets the connection if it has unread bytes.
        }
    }

    /** Starts a fake store, which sends a greeting and then a given response to each client, until the listener is closed. */
    private CompletableFuture<Void> startImpostor(ServerSocket listener, long magic, byte mode, byte[] response) {
        return job.start(() -> {
            while (true) {
                try {
                    serveOneImpostorConnection(listener, magic, mode, response);
                } catch (IOException gone) {
                    if (listener.isClosed()) {
                        return null;
                    }
                }
            }
        });
    }

    private static void serveOneImpostorConnection(ServerSocket listener, long magic, byte mode, byte[] response)
            throws IOException {
        try (Socket rank = listener.accept()) {
            OutputStream out = rank.getOutputStream();
            out.write(ByteBuffer.allocate(46)
                    .putInt(42)
                    .putLong(magic)
                    .put(Wire.VERSION)
                    .put(mode)
                    .array());
            DataInputStream in = new DataInputStream(rank.getInputStream());
            in.readFully(new byte[in.readInt()]);
            out.write(response);
            in.read();
        }
    }

    @Test
    void rejectsStoreWithoutProof() throws Exception {
        byte[] proof = ByteBuffer.allocate(4 + 33).putInt(33).put((byte) 0).array();
        try (ServerSocket listener = new ServerSocket(job.port(), 50, InetAddress.getByName("127.0.0.1"))) {
            startImpostor(listener, 0x6e63636c346a5354L, WITH_SECRET, proof);
            assertTrue(failure(with(SECRET).timeout(Job.SHORT))
                    .endsWith(": the store does not prove that it has the secret of this rank"));
        }
    }

    /** A stranger answers at the port before rank 0 starts, and refuses. */
    @Test
    void strangerDoesNotKeepRankWithSecretFromItsStore() throws Exception {
        byte[] refusal = new Wire.Frame().number8(Wire.FAILED).text("go away").toBytes();
        byte[] frame = ByteBuffer.allocate(4 + refusal.length)
                .putInt(refusal.length)
                .put(refusal)
                .array();
        CompletableFuture<TcpStore> rank;
        try (ServerSocket listener = new ServerSocket(job.port(), 50, InetAddress.getByName("127.0.0.1"))) {
            listener.setSoTimeout((int) Job.LONG.toMillis());
            rank = job.openAsync(job.rank(1, 2), with(SECRET));
            for (byte mode : new byte[] {OPEN, WITH_SECRET}) {
                try {
                    serveOneImpostorConnection(listener, 0x6e63636c346a5354L, mode, frame);
                } catch (EOFException | SocketException left) {
                    // The rank has closed the connection.
                }
            }
        }
        TcpStore root = job.open(job.rank(0, 2), with(SECRET));
        rank.join().set("x", ID);
        assertArrayEquals(ID, root.get("x", Job.LONG));
    }

    @Test
    void reportsOtherServiceAtPort() throws Exception {
        try (ServerSocket listener = new ServerSocket(job.port(), 50, InetAddress.getByName("127.0.0.1"))) {
            startImpostor(listener, 0x4854545031312020L, OPEN, new byte[0]);
            assertTrue(
                    failure(Job.settings().timeout(Job.SHORT)).endsWith(": another service listens at this address"));
        }
    }

    @Test
    void rejectsTooLongFrameOfStore() throws Exception {
        try (ServerSocket listener = new ServerSocket(job.port(), 50, InetAddress.getByName("127.0.0.1"))) {
            startImpostor(
                    listener,
                    0x6e63636c346a5354L,
                    OPEN,
                    ByteBuffer.allocate(4).putInt(Integer.MAX_VALUE).array());
            String message = failure(Job.settings().timeout(Job.SHORT));
            assertTrue(message.endsWith(": a frame must have <= 4096 bytes: 2147483647"), message);
        }
    }

    /** The first attempt fails with a reason; the next one gets no response before the deadline. */
    @Test
    void timeoutReportsFailureOfLastCompleteAttempt() throws Exception {
        try (ServerSocket listener = new ServerSocket(job.port(), 50, InetAddress.getByName("127.0.0.1"))) {
            CompletableFuture<Void> once = job.start(() -> {
                serveOneImpostorConnection(listener, 0x4854545031312020L, OPEN, new byte[0]);
                return null;
            });
            String message = failure(Job.settings().timeout(Job.SHORT));
            assertTrue(message.endsWith(": another service listens at this address"), message);
            once.handle((nothing, gone) -> nothing).join();
        }
    }
}
