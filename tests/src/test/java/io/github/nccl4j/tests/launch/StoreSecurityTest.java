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
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What those can do who do not know the secret: nothing. */
@Timeout(600)
class StoreSecurityTest {
    private static final byte[] SECRET = "a secret of more than sixteen bytes".getBytes(StandardCharsets.UTF_8);
    private static final byte[] WRONG = "another one of more than sixteen bytes".getBytes(StandardCharsets.UTF_8);
    private static final byte[] ID = "the unique id, which nobody else may see".getBytes(StandardCharsets.UTF_8);
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

    private RankInfo through(Proxy proxy, int rank, int world) {
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
    void ranksWithTheSecretMeet() {
        CompletableFuture<TcpStore> root = job.opening(job.rank(0, 2), with(SECRET));
        TcpStore other = job.open(job.rank(1, 2), with(SECRET));
        root.join().broadcast("id", 0, ID::clone, Job.LONG);
        assertArrayEquals(ID, other.broadcast("id", 0, () -> null, Job.LONG));
        byte[] large = new byte[1 << 16];
        large[77] = 1;
        other.set("large", large);
        assertArrayEquals(large, root.join().get("large", Job.LONG));
    }

    @Test
    void whoHasAnotherSecretIsToldAtOnce() {
        job.open(job.rank(0, 2), with(SECRET));
        assertEquals(
                "rank 1 can't join the store at 127.0.0.1:" + job.port()
                        + ": the secret of this rank differs from that of rank 0",
                failure(with(WRONG)));
        assertEquals(
                "rank 1 can't join the store at 127.0.0.1:" + job.port()
                        + ": rank 0 has a secret, and this rank has none: set"
                        + " NCCL4J_STORE_SECRET or NCCL4J_STORE_SECRET_FILE for all ranks or for none",
                failure(Job.settings()));
        // The store goes on.
        job.open(job.rank(1, 2), with(SECRET)).set("x", ID);
    }

    private String failure(TcpStore.Builder settings) {
        return assertThrows(RendezvousException.class, () -> settings.open(job.rank(1, 2)))
                .getMessage();
    }

    @Test
    void whoHasASecretTrustsNoStoreWithout() {
        job.open(job.rank(0, 2), Job.settings());
        assertTrue(failure(with(SECRET)).contains(": rank 0 has no secret, and this rank has one: set"));
    }

    @Test
    void whoListensSeesNothing() throws Exception {
        assertTrue(sees(Job.settings(), Job.settings()), "else this test proves nothing");
        assertFalse(sees(with(SECRET), with(SECRET)));
    }

    private boolean sees(TcpStore.Builder root, TcpStore.Builder other) throws Exception {
        try (Job own = new Job();
                Proxy proxy = new Proxy(own.port())) {
            own.open(own.rank(0, 2), root).broadcast("id", 0, ID::clone, Job.LONG);
            TcpStore rank = own.open(through(proxy, 1, 2), other);
            assertArrayEquals(ID, rank.broadcast("id", 0, () -> null, Job.LONG));
            rank.set("key", ID);
            boolean read = contains(proxy.toRank(), ID);
            assertEquals(read, contains(proxy.toStore(), ID));
            return read;
        }
    }

    @Test
    void whoChangesAByteEndsTheConnection() throws Exception {
        TcpStore root = job.open(job.rank(0, 2), with(SECRET));
        root.set("key", ID);
        try (Proxy proxy = new Proxy(job.port())) {
            TcpStore rank = job.open(through(proxy, 1, 2), with(SECRET));
            assertArrayEquals(ID, rank.get("key", Job.LONG));
            proxy.changeWhatPasses();
            assertThrows(RendezvousException.class, () -> rank.set("key", new byte[1]));
            assertArrayEquals(ID, root.get("key", Job.LONG));
            assertEquals(List.of(1), root.gone());
        }
    }

    @Test
    void whoSaysNothingIsSentAway() throws Exception {
        job.open(job.rank(0, 2), with(SECRET));
        try (Socket socket = new Socket("127.0.0.1", job.port())) {
            socket.setSoTimeout(60_000);
            // The greeting alone; the store closes, and this ends.
            assertEquals(46, socket.getInputStream().readAllBytes().length);
        }
    }

    @Test
    void whoRepeatsAConversationGetsNothing() throws Exception {
        TcpStore root = job.open(job.rank(0, 3), with(SECRET));
        byte[] said;
        try (Proxy proxy = new Proxy(job.port())) {
            job.open(through(proxy, 1, 3), with(SECRET)).set("key", ID);
            said = proxy.toStore();
        }
        root.delete("key");
        // The first frame has the proof, which the rest follows.
        int proof = Integer.BYTES + ByteBuffer.wrap(said).getInt();
        assertTrue(said.length > proof, () -> said.length + " bytes were said, " + proof + " of them the proof");
        try (Socket socket = new Socket("127.0.0.1", job.port())) {
            // The proof alone: a store that closes with bytes unread resets the connection, and its answer may be lost.
            socket.getOutputStream().write(said, 0, proof);
            byte[] answer = socket.getInputStream().readAllBytes();
            // The greeting, and that this is another secret, for the nonce was another.
            assertTrue(contains(answer, "the secret of this rank differs".getBytes(StandardCharsets.UTF_8)));
        }
        try (Socket socket = new Socket("127.0.0.1", job.port())) {
            socket.getOutputStream().write(said);
            untilItEnds(socket);
        }
        assertThrows(RendezvousTimeoutException.class, () -> root.get("key", Job.SHORT));
    }

    private static void untilItEnds(Socket socket) {
        try {
            socket.getInputStream().readAllBytes();
        } catch (IOException reset) {
            // It ends by a reset where the store has not read all.
        }
    }

    /** A store of an impostor, who greets and then says something. */
    private CompletableFuture<Void> impostor(ServerSocket listener, long magic, byte mode, byte[] answer) {
        return job.start(() -> {
            while (true) {
                try {
                    pretend(listener, magic, mode, answer);
                } catch (IOException gone) {
                    if (listener.isClosed()) {
                        return null;
                    }
                }
            }
        });
    }

    private static void pretend(ServerSocket listener, long magic, byte mode, byte[] answer) throws IOException {
        try (Socket rank = listener.accept()) {
            OutputStream out = rank.getOutputStream();
            out.write(ByteBuffer.allocate(46)
                    .putInt(42)
                    .putLong(magic)
                    .put((byte) 2)
                    .put(mode)
                    .array());
            DataInputStream in = new DataInputStream(rank.getInputStream());
            in.readFully(new byte[in.readInt()]);
            out.write(answer);
            in.read();
        }
    }

    @Test
    void aStoreThatDoesNotKnowTheSecretIsNotBelieved() throws Exception {
        byte[] proof = ByteBuffer.allocate(4 + 33).putInt(33).put((byte) 0).array();
        try (ServerSocket listener = new ServerSocket(job.port(), 50, InetAddress.getByName("127.0.0.1"))) {
            impostor(listener, 0x6e63636c346a5354L, WITH_SECRET, proof);
            assertTrue(
                    failure(with(SECRET)).endsWith(": the store does not prove that it has the secret of this rank"));
        }
    }

    @Test
    void anotherServiceAtThePortIsNamed() throws Exception {
        try (ServerSocket listener = new ServerSocket(job.port(), 50, InetAddress.getByName("127.0.0.1"))) {
            impostor(listener, 0x4854545031312020L, OPEN, new byte[0]);
            assertTrue(
                    failure(Job.settings().timeout(Job.SHORT)).endsWith(": another service listens at this address"));
        }
    }

    @Test
    void aStoreThatAnnouncesMoreThanItShouldIsLeft() throws Exception {
        try (ServerSocket listener = new ServerSocket(job.port(), 50, InetAddress.getByName("127.0.0.1"))) {
            impostor(
                    listener,
                    0x6e63636c346a5354L,
                    OPEN,
                    ByteBuffer.allocate(4).putInt(Integer.MAX_VALUE).array());
            String message = failure(Job.settings().timeout(Job.SHORT));
            assertTrue(message.endsWith(": a frame must have <= 4096 bytes: 2147483647"), message);
        }
    }

    /** The first attempt is told why it fails, the next gets no answer before the deadline. */
    @Test
    void theDeadlineDoesNotHideWhyARankCouldNotJoin() throws Exception {
        try (ServerSocket listener = new ServerSocket(job.port(), 50, InetAddress.getByName("127.0.0.1"))) {
            CompletableFuture<Void> once = job.start(() -> {
                pretend(listener, 0x4854545031312020L, OPEN, new byte[0]);
                return null;
            });
            String message = failure(Job.settings().timeout(Job.SHORT));
            assertTrue(message.endsWith(": another service listens at this address"), message);
            once.handle((nothing, gone) -> nothing).join();
        }
    }
}
