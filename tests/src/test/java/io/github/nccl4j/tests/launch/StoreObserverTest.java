package io.github.nccl4j.tests.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.JobStatus;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.RankStatus;
import io.github.nccl4j.launch.RankStatus.State;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.StatusEntry;
import io.github.nccl4j.launch.StoreObserver;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.launch.TcpStoreServer;
import io.github.nccl4j.launch.wire.Wire;
import java.io.DataInputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Looks of observers at jobs, which must not notice them. */
@Timeout(600)
class StoreObserverTest {
    private static final byte[] SECRET = "a secret of more than sixteen bytes".getBytes(StandardCharsets.UTF_8);
    private static final byte[] WRONG = "another one of more than sixteen bytes".getBytes(StandardCharsets.UTF_8);
    private static final Duration SECOND = Duration.ofSeconds(1);

    private final Job job = new Job();

    @AfterEach
    void end() {
        job.close();
    }

    private StoreObserver observe() {
        return StoreObserver.connect("127.0.0.1:" + job.port(), Job.LONG);
    }

    private static List<RankStatus> onlyJob(StoreObserver observer, Duration timeout) {
        List<JobStatus> jobs = observer.look(timeout);
        assertEquals(1, jobs.size(), jobs::toString);
        return jobs.get(0).ranks();
    }

    @Test
    void everyRankAnswersWithItsTexts() {
        List<TcpStore> stores = job.openAll(3);
        StatusEntry entry = stores.get(1).status("epoch", () -> "3 of 90").orElseThrow();
        stores.get(1).scope("part").status("step", () -> "17").orElseThrow();
        stores.get(2).status("broken", () -> {
            throw new IllegalStateException("no text");
        });
        try (StoreObserver observer = observe()) {
            List<RankStatus> ranks = onlyJob(observer, Job.LONG);
            assertEquals(List.of(0, 1, 2), ranks.stream().map(RankStatus::rank).toList());
            ranks.forEach(rank -> {
                assertEquals(State.ANSWERED, rank.state());
                assertTrue(
                        rank.process()
                                .endsWith(", process " + ProcessHandle.current().pid()),
                        rank.process());
            });
            assertEquals(Map.of(), ranks.get(0).texts());
            assertEquals(
                    Map.of("epoch", "3 of 90", "part/step", "17"), ranks.get(1).texts());
            assertEquals(
                    Map.of("broken", "java.lang.IllegalStateException: no text"),
                    ranks.get(2).texts());
            assertThrows(IllegalArgumentException.class, () -> stores.get(1).status("epoch", () -> "again"));
            entry.close();
            assertEquals(
                    Map.of("part/step", "17"),
                    onlyJob(observer, Job.LONG).get(1).texts());
        }
    }

    @Test
    void textsBeyondLimitAreOmitted() {
        List<TcpStore> stores = job.openAll(3);
        // The number of texts, and the lengths of a topic and its text, have four bytes each.
        int rest = Wire.MAX_REPORT - 2 * Integer.BYTES;
        int header = 2 * Integer.BYTES + 1;
        stores.get(0).status("a", () -> "x".repeat(rest - header));
        stores.get(1).status("a", () -> "x".repeat(rest - header + 1));
        stores.get(2).status("a", () -> "x".repeat(rest / 2 - header));
        stores.get(2).status("b", () -> "x".repeat(rest / 2 - header));
        try (StoreObserver observer = observe()) {
            List<RankStatus> ranks = onlyJob(observer, Job.LONG);
            assertEquals(rest - header, ranks.get(0).texts().get("a").length());
            assertEquals(0, ranks.get(0).omitted());
            assertEquals(Map.of(), ranks.get(1).texts());
            assertEquals(1, ranks.get(1).omitted());
            assertEquals(
                    List.of("a", "b"),
                    ranks.get(2).texts().keySet().stream().sorted().toList());
            stores.get(2).status("c", () -> "");
            ranks = onlyJob(observer, Job.LONG);
            assertEquals(1, ranks.get(2).omitted());
        }
        stores.get(2).close();
        assertThrows(IllegalStateException.class, () -> stores.get(2).status("d", () -> ""));
    }

    @Test
    void closedObserverDoesNotLook() {
        job.openAll(2);
        StoreObserver observer = observe();
        assertEquals("127.0.0.1:" + job.port(), observer.address());
        assertEquals("observer of the store at 127.0.0.1:" + job.port(), observer.toString());
        observer.close();
        assertThrows(RendezvousException.class, () -> observer.look(SECOND));
    }

    @Test
    void observerIsNoMember() {
        List<TcpStore> stores = job.openAll(2);
        StoreObserver observer = observe();
        onlyJob(observer, Job.LONG);
        CompletableFuture<Void> waiting = job.start(() -> {
            stores.get(0).barrier("both", Job.LONG);
            return null;
        });
        onlyJob(observer, Job.LONG);
        stores.get(1).barrier("both", Job.LONG);
        waiting.join();
        observer.close();
        stores.get(1).set("key", new byte[1]);
        assertEquals(List.of(), stores.get(0).gone());
    }

    @Test
    void ranksThatDoNotAnswerHaveTheirState() {
        CountDownLatch late = new CountDownLatch(1);
        job.open(job.rank(0, 4), Job.settings());
        TcpStore slow = job.open(job.rank(1, 4), Job.settings());
        TcpStore left = job.open(job.rank(2, 4), Job.settings());
        left.close();
        CountDownLatch asked = new CountDownLatch(1);
        slow.status("slow", () -> {
            asked.countDown();
            try {
                late.await();
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
            return "late";
        });
        try (StoreObserver observer = observe()) {
            List<RankStatus> ranks = onlyJob(observer, Job.SHORT);
            assertEquals(State.NO_ANSWER, ranks.get(1).state());
            assertEquals(State.LEFT, ranks.get(2).state());
            assertEquals(State.MISSING, ranks.get(3).state());
            // The rank still owes its answer: the next look, and that of another observer, get it.
            late.countDown();
            assertEquals(
                    Map.of("slow", "late"), onlyJob(observer, Job.LONG).get(1).texts());
            try (StoreObserver other = observe()) {
                assertEquals(
                        Map.of("slow", "late"), onlyJob(other, Job.LONG).get(1).texts());
            }
        }
    }

    /** A rank whose connection ends in the middle of a look is lost at once. */
    @Test
    void rankThatEndsDuringLookIsLost() throws Exception {
        job.open(job.rank(0, 2), Job.settings());
        try (Socket silent = client(rankOne());
                StoreObserver observer = observe()) {
            CompletableFuture<List<RankStatus>> looking = job.start(() -> onlyJob(observer, Job.LONG));
            // The question.
            assertEquals(4, new DataInputStream(silent.getInputStream()).readInt());
            silent.shutdownOutput();
            assertEquals(State.LOST, looking.join().get(1).state());
            assertEquals(State.LOST, onlyJob(observer, Job.LONG).get(1).state());
        }
    }

    @Test
    void storeThatEndsIsNamed() {
        TcpStore rank = job.open(job.rank(0, 2), Job.settings());
        try (StoreObserver observer = observe()) {
            onlyJob(observer, Job.LONG);
            rank.close();
            String message = assertThrows(RendezvousException.class, () -> observer.look(SECOND))
                    .getMessage();
            assertTrue(
                    message.startsWith("the connection to the store at 127.0.0.1:" + job.port() + " has ended: "),
                    message);
        }
        String message = assertThrows(RendezvousException.class, this::observe).getMessage();
        assertTrue(message.startsWith("no store responds at 127.0.0.1:" + job.port() + ": "), message);
    }

    @Test
    void observerMustProveSecret() {
        job.open(job.rank(0, 2), Job.settings().secret(SECRET));
        String address = "127.0.0.1:" + job.port();
        try (StoreObserver observer = StoreObserver.connect(address, SECRET, Job.LONG)) {
            assertEquals(State.ANSWERED, onlyJob(observer, Job.LONG).get(0).state());
        }
        assertEquals(
                "the store at " + address + " can't be observed: the secret of this rank differs from that of rank 0",
                assertThrows(RendezvousException.class, () -> StoreObserver.connect(address, WRONG, Job.LONG))
                        .getMessage());
        String without = assertThrows(RendezvousException.class, this::observe).getMessage();
        assertTrue(
                without.contains("the store has a secret, and this process has none: set NCCL4J_STORE_SECRET"),
                without);
    }

    @Test
    void numberOfObserversIsLimited() {
        job.open(job.rank(0, 2), Job.settings());
        List<StoreObserver> observers = new ArrayList<>();
        for (int i = 0; i < 16; i++) {
            observers.add(observe());
        }
        String refused = assertThrows(RendezvousException.class, this::observe).getMessage();
        assertTrue(refused.endsWith("observers of a store must be <= 16: 17"), refused);
        observers.forEach(
                observer -> assertEquals(2, onlyJob(observer, Job.LONG).size()));
        observers.forEach(StoreObserver::close);
    }

    private Socket client(byte[] join) throws Exception {
        Socket socket = new Socket("127.0.0.1", job.port());
        DataInputStream in = new DataInputStream(socket.getInputStream());
        in.readFully(new byte[in.readInt()]);
        write(
                socket,
                new Wire.Frame()
                        .number64(Wire.MAGIC)
                        .number8(Wire.VERSION)
                        .number8(Wire.WITHOUT_SECRET)
                        .raw(new byte[Wire.NONCE_BYTES])
                        .toBytes());
        in.readFully(new byte[in.readInt()]);
        write(socket, join);
        in.readFully(new byte[in.readInt()]);
        return socket;
    }

    /** The frame by which rank 1 of 2 joins. */
    private static byte[] rankOne() {
        return new Wire.Frame()
                .number32(1)
                .number32(2)
                .number32(0)
                .number8(1)
                .text("rank 1 of 2")
                .text("job")
                .text("process 1")
                .number64(0)
                .number64(0)
                .toBytes();
    }

    private static void write(Socket socket, byte[] content) throws Exception {
        socket.getOutputStream()
                .write(ByteBuffer.allocate(Integer.BYTES + content.length)
                        .putInt(content.length)
                        .put(content)
                        .array());
    }

    /** Each of these requests ends the connection of the observer, and no other. */
    @Test
    void invalidRequestsEndConnection() throws Exception {
        TcpStore rank = job.open(job.rank(0, 2), Job.settings());
        byte[] join = new Wire.Frame().number32(Wire.OBSERVER).toBytes();
        for (byte[] request : List.of(
                new byte[0],
                new byte[3],
                new byte[1000],
                new Wire.Frame().number32(1).number64(-1).toBytes(),
                new Wire.Frame().number32(1).number64(Long.MAX_VALUE).toBytes())) {
            try (Socket socket = client(join)) {
                write(socket, request);
                assertEquals(-1, socket.getInputStream().read());
            }
        }
        rank.set("key", new byte[1]);
        try (StoreObserver observer = observe()) {
            assertEquals(2, onlyJob(observer, Job.LONG).size());
        }
    }

    /** A rank that reports without having been asked, or too much, is lost. */
    @Test
    void unaskedReportEndsConnection() throws Exception {
        TcpStore root = job.open(job.rank(0, 2), Job.settings());
        try (Socket socket = client(rankOne())) {
            write(
                    socket,
                    new Wire.Frame()
                            .number32(1)
                            .operation(Wire.Operation.REPORT)
                            .bytes(new byte[8])
                            .toBytes());
            assertEquals(-1, socket.getInputStream().read());
        }
        assertEquals(List.of(1), root.gone());
    }

    /** A rank may be asked as soon as it has joined, before its session has begun. */
    @Test
    void ranksAnswerWhileTheyJoin() {
        int world = 300;
        List<CompletableFuture<TcpStore>> opening = new ArrayList<>();
        opening.add(CompletableFuture.completedFuture(job.open(job.rank(0, world), Job.settings())));
        try (StoreObserver observer = observe()) {
            for (int rank = 1; rank < world; rank++) {
                opening.add(job.openAsync(job.rank(rank, world), Job.settings()));
            }
            while (!opening.stream().allMatch(CompletableFuture::isDone)) {
                onlyJob(observer, Duration.ofMillis(5));
            }
            onlyJob(observer, Job.LONG).forEach(rank -> assertEquals(State.ANSWERED, rank.state(), rank::toString));
        }
    }

    /** A look at 1000 ranks takes one round trip: it returns long before its timeout. */
    @Test
    void asksManyRanksAtOnce() {
        int world = 1000;
        String text = "x".repeat(700);
        try (TcpStoreServer server = TcpStoreServer.start(InetAddress.getLoopbackAddress(), 0)) {
            List<CompletableFuture<TcpStore>> opening = new ArrayList<>();
            for (int rank = 0; rank < world; rank++) {
                RankInfo self = new RankInfo(
                        rank, world, rank, world, "127.0.0.1", server.port(), "", 0, RankInfo.Source.PROPERTIES);
                opening.add(job.start(() -> {
                    TcpStore store = TcpStore.builder()
                            .withoutSecret()
                            .withoutServer()
                            .timeout(Duration.ofMinutes(5))
                            .open(self);
                    store.status("text", () -> text);
                    return store;
                }));
            }
            opening.forEach(CompletableFuture::join);
            try (StoreObserver observer = StoreObserver.connect(server.address(), Job.LONG)) {
                onlyJob(observer, Job.LONG);
                long start = System.nanoTime();
                List<RankStatus> ranks = onlyJob(observer, Job.LONG);
                System.out.printf(
                        Locale.ROOT, "a look at %d ranks took %.3f s%n", world, (System.nanoTime() - start) / 1e9);
                assertEquals(world, ranks.size());
                ranks.forEach(rank -> assertEquals(Map.of("text", text), rank.texts()));
            }
        }
    }
}
