package io.github.nccl4j.launch.store;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.Membership;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.launch.env.Launcher;
import io.github.nccl4j.launch.env.RankValues;
import io.github.nccl4j.launch.store.TestListener.Rank;
import io.github.nccl4j.launch.wire.Arguments;
import io.github.nccl4j.launch.wire.BroadcastMessage;
import io.github.nccl4j.launch.wire.Wire;
import io.github.nccl4j.launch.wire.Wire.Operation;
import io.github.nccl4j.testing.Ports;
import io.github.nccl4j.testing.TestLog;
import io.github.nccl4j.testing.Waiting;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests of {@link StoreSession} and {@link StoreConnector} against a store of this test, which may send anything. */
@Timeout(60)
class StoreSessionTest {
    private static final Heartbeat NONE = TestSession.NO_HEARTBEAT;
    private static final Duration SHORT = Duration.ofMillis(300);
    /** Enough for an attempt to connect, also on a busy machine. */
    private static final Duration ATTEMPT = Duration.ofSeconds(1);

    private static final Duration LONG = Duration.ofSeconds(15);

    private int users;

    /** Another client of this process, so that the thread of the clients does not end with a session. */
    @BeforeEach
    void acquireThread() throws IOException {
        EventLoop.acquireForClient();
        users = EventLoop.OF_CLIENTS.users();
    }

    /** Each session releases the thread of the clients, and so does each failure to open one. */
    @AfterEach
    void requireReleased() {
        int left = EventLoop.OF_CLIENTS.users();
        EventLoop.releaseByClient();
        assertEquals(users, left);
    }

    /* Open. */

    private static CompletableFuture<StoreSession> open(RankValues self, Duration timeout, boolean ofRank) {
        return TestSession.start(() -> StoreSession.open(self, TestSession.settings(timeout, ofRank, NONE)));
    }

    private static RankValues rank(int rank, int worldSize, String master, int port) {
        return new RankValues(
                new RankValues.Numbers(rank, worldSize, rank, worldSize), master, port, "job", 0, Launcher.PROPERTIES);
    }

    private static RendezvousTimeoutException late(CompletableFuture<StoreSession> opening) {
        return assertInstanceOf(RendezvousTimeoutException.class, TestSession.failure(opening));
    }

    @Test
    void tellsOfItself() throws Exception {
        for (boolean ofRank : new boolean[] {true, false}) {
            try (TestSession opened = new TestSession(1, 3, ofRank, NONE)) {
                StoreSession session = opened.session();
                assertEquals(1, session.rank());
                assertEquals(3, session.size());
                assertEquals(TestSession.ATTEMPT, session.attempt());
                assertEquals(opened.address(), session.address());
                assertEquals((ofRank ? "the store of rank 0 at " : "the store at ") + opened.address(), session.name());
                assertFalse(session.hasServer());
                assertEquals(0, session.silence());
                // Nothing to close.
                session.closeServer(Duration.ZERO);
            }
        }
    }

    @Test
    void addressWithoutAStoreIsTriedUntilTheTimeout() throws Exception {
        int port = Ports.free();
        long start = System.nanoTime();
        RendezvousTimeoutException late = late(open(rank(1, 2, "127.0.0.1", port), SHORT, true));
        assertTrue(System.nanoTime() - start >= SHORT.toNanos() - 1_000_000);
        assertEquals(
                "rank 1 could not reach rank 0 at 127.0.0.1:" + port + " within 0.3 s: " + Ports.refusal(port),
                late.getMessage());
        assertEquals(List.of(0), late.missing());
        late = late(open(rank(1, 2, "no such host", port), SHORT, false));
        assertEquals(
                "rank 1 could not reach the store at no such host:" + port
                        + " within 0.3 s: the host name no such host can't be resolved",
                late.getMessage());
        assertEquals(List.of(), late.missing());
        late = late(open(rank(1, 2, "127.0.0.1", port), Duration.ZERO, true));
        assertEquals("rank 1 could not reach rank 0 at 127.0.0.1:" + port + " within 0 s", late.getMessage());
    }

    /** A line after the interval, and then each time that the wait has doubled; it has the reason of the last attempt. */
    @Test
    void waitForTheStoreIsLogged() throws Exception {
        int port = Ports.free();
        assertWaits(rank(1, 2, "127.0.0.1", port), "127.0.0.1:" + port + ": " + Ports.refusal(port));
        assertWaits(
                rank(1, 2, "no such host", port),
                "no such host:" + port + ": the host name no such host can't be resolved");
        // Accepts, and does not answer.
        try (TestListener silent = new TestListener()) {
            assertWaits(silent.rank(1, 2), "127.0.0.1:" + silent.address().getPort() + ": no response");
        }
    }

    private static void assertWaits(RankValues self, String reason) {
        long interval = TimeUnit.MILLISECONDS.toNanos(20);
        try (TestLog log = new TestLog()) {
            StoreSession.Settings settings = new StoreSession.Settings(SHORT, null, null, true, NONE);
            StoreConnector connector =
                    new StoreConnector(self, settings, null, System.nanoTime() + SHORT.toNanos(), interval);
            assertThrows(RendezvousTimeoutException.class, connector::connect);
            List<String> lines = log.lines();
            assertTrue(lines.size() >= 1 && lines.size() <= 4, lines::toString);
            lines.forEach(line -> assertTrue(
                    line.startsWith("WARNING: rank 1 waits for rank 0 at " + reason + " (0."), lines::toString));
        }
    }

    @Test
    void storeThatDoesNotRespondIsLeftAtTheTimeout() throws Exception {
        try (TestListener listener = new TestListener()) {
            CompletableFuture<StoreSession> opening = open(listener.rank(1, 2), ATTEMPT, true);
            Rank silent = listener.accept();
            String message = late(opening).getMessage();
            assertTrue(
                    message.matches(
                            "rank 1 could not reach rank 0 at .* within 1 s: no response within (1|0\\.\\d+) s"),
                    message);
            silent.requireEnd();
        }
    }

    /** The failure of a whole attempt tells more than that of the last one, which had no time. */
    @Test
    void reasonIsThatOfAWholeAttempt() throws Exception {
        try (TestListener listener = new TestListener()) {
            CompletableFuture<StoreSession> opening = open(listener.rank(1, 2), ATTEMPT, true);
            listener.accept().close();
            listener.accept();
            String message = late(opening).getMessage();
            assertFalse(message.contains("no response"), message);
        }
    }

    /** The pauses are at least 2, 5, 10, 20, 40, 80, 160 and then always 250 ms. */
    @Test
    void pausesBetweenAttemptsGrow() throws Exception {
        try (TestListener listener = new TestListener()) {
            CompletableFuture<StoreSession> opening = open(listener.rank(1, 2), ATTEMPT, true);
            AtomicInteger attempts = new AtomicInteger();
            TestSession.start(() -> {
                while (true) {
                    listener.accept().close();
                    attempts.incrementAndGet();
                }
            });
            late(opening);
            assertTrue(attempts.get() <= 11, attempts + " attempts within a second");
        }
    }

    @Test
    void anotherJobAndALostConnectionAreTriedAgain() throws Exception {
        try (TestListener listener = new TestListener()) {
            CompletableFuture<StoreSession> opening = open(listener.rank(1, 2), LONG, true);
            listener.greet().send(new Wire.Frame().number8(Wire.ANOTHER_JOB).text("another job"));
            listener.accept().close();
            Rank store = listener.join(0);
            StoreSession session = TestSession.get(opening);
            store.close();
            session.close();
        }
    }

    @Test
    void refusalIsFinal() throws Exception {
        try (TestListener listener = new TestListener()) {
            CompletableFuture<StoreSession> opening = open(listener.rank(1, 2), LONG, true);
            Rank store = listener.greet();
            store.send(new Wire.Frame().number8(Wire.FAILED).text("not you"));
            RendezvousException refused = assertInstanceOf(RendezvousException.class, TestSession.failure(opening));
            assertEquals(
                    "rank 1 can't join the store at 127.0.0.1:"
                            + listener.address().getPort() + ": not you",
                    refused.getMessage());
            store.requireEnd();
        }
    }

    @Test
    void interruptEndsTheAttempts() throws Exception {
        RankValues self = rank(1, 2, "127.0.0.1", Ports.free());
        Thread.currentThread().interrupt();
        RendezvousException interrupted = assertThrows(
                RendezvousException.class, () -> StoreSession.open(self, TestSession.settings(LONG, true, NONE)));
        assertTrue(Thread.interrupted());
        assertEquals("rank 1 was interrupted while it waited for rank 0", interrupted.getMessage());
    }

    /* Rank 0. */

    private static boolean isFree(int port) {
        try (ServerSocket socket = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
            return socket.isBound();
        } catch (IOException taken) {
            return false;
        }
    }

    @Test
    void rankZeroKeepsTheStore() throws Exception {
        int port = Ports.free();
        for (InetAddress bind : new InetAddress[] {null, InetAddress.getByName("0.0.0.0")}) {
            StoreSession.Settings settings =
                    new StoreSession.Settings(LONG, new Secret(new byte[16], "the secret"), bind, true, NONE);
            StoreSession session = StoreSession.open(rank(0, 2, "127.0.0.1", port), settings);
            assertTrue(session.hasServer());
            assertEquals("127.0.0.1:" + port, session.address());
            assertFalse(isFree(port));
            assertEquals(List.of(), session.gone(LONG));
            assertEquals(List.of(0, 0), session.attempts(LONG));
            session.close();
            assertTrue(isFree(port));
        }
    }

    @Test
    void rankZeroConnectsToTheAddressOfItsStore() throws Exception {
        InetAddress bind = InetAddress.getByName("127.0.0.2");
        StoreSession.Settings settings = new StoreSession.Settings(LONG, null, bind, true, NONE);
        StoreSession.open(rank(0, 2, "127.0.0.1", Ports.free()), settings).close();
    }

    @Test
    void closedServerEndsTheRequests() throws Exception {
        StoreSession session =
                StoreSession.open(rank(0, 2, "127.0.0.1", Ports.free()), TestSession.settings(LONG, true, NONE));
        session.closeServer(Duration.ZERO);
        String message = assertThrows(RendezvousException.class, () -> session.gone(LONG))
                .getMessage();
        assertEquals("rank 0 has lost its connection to " + session.name() + ": rank 0 has closed its store", message);
        session.close();
    }

    /** As the hook of the process does while another hook closes a communicator. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void serverWaitsForTheEndOfItsMember(boolean leaves) throws Exception {
        StoreSession session =
                StoreSession.open(rank(0, 2, "127.0.0.1", Ports.free()), TestSession.settings(LONG, true, NONE));
        Membership member = session.memberships().enter("group", 0, lost -> {});
        Thread hook = new Thread(() -> session.closeServer(LONG));
        hook.start();
        Waiting.until("a close that waits", () -> !hook.isAlive() || hook.getState() == Thread.State.TIMED_WAITING);
        try (TestLog log = new TestLog()) {
            // The store still serves.
            assertEquals(List.of(), session.gone(LONG));
            if (leaves) {
                member.close();
            }
            hook.join(LONG.toMillis());
            assertFalse(hook.isAlive());
            // The thread of the connection logs it, unless the session is closed first.
            Waiting.until("a line of the loss", () -> leaves || !log.lines().isEmpty());
            session.close();
            assertEquals(leaves ? 0 : 1, log.lines().size(), log.lines()::toString);
        }
    }

    /** The heartbeats are invalid, so that the server refuses its own rank. */
    @Test
    void rankZeroThatCannotJoinEndsItsServer() throws Exception {
        int port = Ports.free();
        Heartbeat invalid = new Heartbeat(-1, 0);
        assertThrows(
                RendezvousTimeoutException.class,
                () -> StoreSession.open(rank(0, 2, "127.0.0.1", port), TestSession.settings(SHORT, true, invalid)));
        assertTrue(isFree(port));
    }

    /* Requests. */

    @Test
    void goneRanksAndAttemptsAreRead() throws Exception {
        try (TestSession opened = new TestSession(1, 3, true, NONE)) {
            StoreSession session = opened.session();
            Rank store = opened.store();
            byte[] both = new Wire.Frame()
                    .numbers(List.of(0))
                    .numbers(List.of(2, 5, 0, 1))
                    .toBytes();
            CompletableFuture<List<Integer>> gone = TestSession.start(() -> session.gone(LONG));
            store.request(Operation.GONE);
            store.respond(both);
            assertEquals(List.of(0), TestSession.get(gone));
            CompletableFuture<List<Integer>> attempts = TestSession.start(() -> session.attempts(LONG));
            store.request(Operation.GONE);
            store.respond(both);
            assertEquals(List.of(-1, 0, 5), TestSession.get(attempts));
        }
    }

    @Test
    void invalidResponsesAreRefused() throws Exception {
        try (TestSession opened = new TestSession(1, 3, true, NONE)) {
            StoreSession session = opened.session();
            Rank store = opened.store();
            String invalid = "the store at " + opened.address() + " sent an invalid response";
            CompletableFuture<List<Integer>> gone = TestSession.start(() -> session.gone(LONG));
            store.request(Operation.GONE);
            store.respond(new byte[1]);
            assertEquals(invalid, TestSession.failure(gone).getMessage());
            for (Wire.Frame wrong : List.of(
                    new Wire.Frame().numbers(List.of()),
                    new Wire.Frame().numbers(List.of()).numbers(List.of(1)),
                    new Wire.Frame().numbers(List.of(3)).numbers(List.of()),
                    new Wire.Frame().numbers(List.of()).numbers(List.of(3, 1)))) {
                CompletableFuture<List<Integer>> attempts = TestSession.start(() -> session.attempts(LONG));
                store.request(Operation.GONE);
                store.respond(wrong.toBytes());
                assertEquals(invalid, TestSession.failure(attempts).getMessage());
            }
        }
    }

    @Test
    void storeThatDoesNotRespondInTimeIsNamed() throws Exception {
        for (boolean ofRank : new boolean[] {true, false}) {
            try (TestSession opened = new TestSession(1, 3, ofRank, NONE)) {
                CompletableFuture<ByteBuffer> response = new CompletableFuture<>();
                RendezvousTimeoutException late = assertThrows(RendezvousTimeoutException.class, () -> opened.session()
                        .awaitResponse(response, "key", 5_000_000));
                assertEquals(
                        (ofRank ? "rank 0 at " : "the store at ") + opened.address()
                                + " did not respond to rank 1 for 'key' within 0.005 s",
                        late.getMessage());
                assertEquals(ofRank ? List.of(0) : List.of(), late.missing());
                assertInstanceOf(TimeoutException.class, late.getCause());
                assertTrue(response.isCancelled());
            }
        }
    }

    /** Lines after the interval, and then each time that the wait has doubled; none for other requests. */
    @Test
    void waitForAKeyIsLogged() throws Exception {
        long interval = TimeUnit.MILLISECONDS.toNanos(10);
        try (TestSession opened = new TestSession(1, 3, true, NONE);
                TestLog log = new TestLog()) {
            StoreSession session = opened.session();
            CompletableFuture<byte[]> get = TestSession.start(() -> session.get("a", LONG.toNanos(), interval));
            opened.store().request(Operation.GET);
            Waiting.until("two lines", () -> log.lines().size() >= 2);
            opened.store().respond(new byte[] {7});
            assertArrayEquals(new byte[] {7}, TestSession.get(get));
            List<String> lines = log.lines();
            assertEquals("WARNING: rank 1 waits for 'a' (0.01 s so far)", lines.get(0));
            assertTrue(lines.get(1)
                    .matches("WARNING: rank 1 waits for 'a' \\((0\\.0[2-9]|0\\.[1-9]|[1-9]).* s so far\\)"));
            CompletableFuture<Boolean> await = TestSession.start(() -> {
                session.await(List.of("a", "b"), LONG.toNanos(), interval);
                return true;
            });
            opened.store().request(Operation.AWAIT);
            Waiting.until("one more line", () -> log.lines().size() > lines.size());
            opened.store().respond(new byte[0]);
            assertTrue(TestSession.get(await));
            assertEquals(
                    "WARNING: rank 1 waits for 'a', 'b' (0.01 s so far)",
                    log.lines().get(lines.size()));
        }
    }

    /** The store applies the timeout, and gets two more seconds for its response. */
    @Test
    void responseMayBeALittleLate() throws Exception {
        try (TestSession opened = new TestSession(1, 3, true, NONE)) {
            CompletableFuture<byte[]> response = TestSession.start(
                    () -> opened.session().request(Operation.GET, new Wire.Frame(), "key", Duration.ZERO));
            opened.store().request(Operation.GET);
            Thread.sleep(50);
            opened.store().respond(new byte[] {7});
            assertArrayEquals(new byte[] {7}, TestSession.get(response));
            CompletableFuture<List<Integer>> gone =
                    TestSession.start(() -> opened.session().gone(Duration.ZERO));
            opened.store().request(Operation.GONE);
            Thread.sleep(50);
            opened.store().respond(new Wire.Frame().numbers(List.of(2)).toBytes());
            assertEquals(List.of(2), TestSession.get(gone));
            CompletableFuture<List<Integer>> attempts =
                    TestSession.start(() -> opened.session().attempts(Duration.ZERO));
            opened.store().request(Operation.GONE);
            Thread.sleep(50);
            opened.store()
                    .respond(new Wire.Frame()
                            .numbers(List.of())
                            .numbers(List.of())
                            .toBytes());
            assertEquals(List.of(0, 0, 0), TestSession.get(attempts));
        }
    }

    @Test
    void failuresOfTheStoreAreThrown() throws Exception {
        try (TestSession opened = new TestSession(1, 3, true, NONE)) {
            StoreSession session = opened.session();
            CompletableFuture<byte[]> failed =
                    TestSession.start(() -> session.request(Operation.GET, new Wire.Frame(), "key", LONG));
            opened.store().request(Operation.GET);
            opened.store().fail("no");
            assertEquals("no", TestSession.failure(failed).getMessage());
            CompletableFuture<byte[]> lost =
                    TestSession.start(() -> session.request(Operation.GET, new Wire.Frame(), "key", LONG));
            opened.store().request(Operation.GET);
            opened.store().close();
            assertEquals(
                    "rank 1 has lost its connection to the store of rank 0 at " + opened.address()
                            + ": the peer has closed the connection",
                    TestSession.failure(lost).getMessage());
        }
    }

    @Test
    void interruptEndsARequest() throws Exception {
        try (TestSession opened = new TestSession(1, 3, true, NONE)) {
            Thread.currentThread().interrupt();
            RendezvousException interrupted = assertThrows(RendezvousException.class, () -> opened.session()
                    .request(Operation.GET, new Wire.Frame(), "key", LONG));
            assertTrue(Thread.interrupted());
            assertEquals("rank 1 was interrupted while it waited for 'key'", interrupted.getMessage());
        }
    }

    @Test
    void abortCutsItsReason() throws Exception {
        try (TestSession opened = new TestSession(1, 3, true, NONE)) {
            String longest = "x".repeat(BroadcastMessage.MAX_REASON_CHARS);
            for (String reason : List.of("why", longest, longest + "y")) {
                CompletableFuture<Void> aborted = TestSession.start(() -> {
                    opened.session().abort("prefix/", reason);
                    return null;
                });
                ByteBuffer request = opened.store().request(Operation.ABORT);
                assertEquals("prefix/", Wire.text(request));
                assertEquals(reason.equals("why") ? "why" : longest, Wire.text(request));
                opened.store().respond(new byte[0]);
                TestSession.get(aborted);
            }
            // Without a store the calls of the other ranks fail, too.
            opened.store().close();
            opened.session().abort("prefix/", "why");
        }
    }

    @Test
    void closeLeavesTheStore() throws Exception {
        try (TestSession opened = new TestSession(1, 3, true, NONE)) {
            StoreSession session = opened.session();
            CompletableFuture<Void> closed = TestSession.start(() -> {
                session.close();
                return null;
            });
            assertEquals(0, opened.store().request(Operation.LEAVE).remaining());
            assertFalse(closed.isDone());
            opened.store().respond(new byte[0]);
            TestSession.get(closed);
            opened.store().requireEnd();
            session.close();
            for (Executable call : List.<Executable>of(
                    session::requireOpen,
                    () -> session.gone(LONG),
                    () -> session.send(Operation.EXIT, new Wire.Frame()),
                    () -> session.requestAsync(Operation.GET, new Wire.Frame()))) {
                assertEquals(
                        "the store is closed",
                        assertThrows(IllegalStateException.class, call).getMessage());
            }
        }
    }

    @Test
    void interruptedCloseIsAClose() throws Exception {
        try (TestSession opened = new TestSession(1, 3, true, NONE)) {
            Thread.currentThread().interrupt();
            opened.session().close();
            assertTrue(Thread.interrupted());
            opened.store().request(Operation.LEAVE);
            opened.store().requireEnd();
        }
    }

    @Test
    void silenceOfTheStoreIsLogged() throws Exception {
        try (TestLog log = new TestLog();
                TestSession opened = new TestSession(1, 3, true, new Heartbeat(20_000_000, 0))) {
            while (log.lines().isEmpty()) {
                opened.store().request(Operation.HEARTBEAT);
            }
            assertTrue(opened.session().silence() > 60_000_000);
            while (log.lines().size() == 1) {
                opened.store().respond(new byte[0]);
                opened.store().request(Operation.HEARTBEAT);
            }
            String silent = log.lines().get(0);
            assertTrue(silent.matches("WARNING: the store of rank 0 at .* has been silent for [0-9.]+ s"), silent);
            assertEquals(
                    "INFO: the store of rank 0 at " + opened.address() + " continues",
                    log.lines().get(1));
        }
    }

    /* The arguments of heartbeats come from the environment. */

    @Test
    void heartbeatsHaveLimits() {
        assertEquals(new Heartbeat(1_000_000_000, 0), Heartbeat.of(Map.of()));
        assertEquals(new Heartbeat(100_000_000, 300_000_000), heartbeat("0.1", "0.3"));
        assertEquals(new Heartbeat(0, 0), heartbeat(" 0 ", ""));
        assertEquals(new Heartbeat(1_000_000_000_000_000L, 0), heartbeat("1e6", "0"));
        assertEquals("NCCL4J_STORE_HEARTBEAT must be 0, or >= 0.1 seconds: 0.09", refusedHeartbeat("0.09", "0"));
        assertEquals(
                "NCCL4J_STORE_PATIENCE must be 0, or >= 3 times NCCL4J_STORE_HEARTBEAT: 0.29, 0.1",
                refusedHeartbeat("0.1", "0.29"));
        assertEquals(
                "NCCL4J_STORE_PATIENCE must be 0, or >= 3 times NCCL4J_STORE_HEARTBEAT: 5.0, 0.0",
                refusedHeartbeat("0", "5"));
        for (String wrong : List.of("-1", "x", "1000001", "NaN")) {
            assertEquals(
                    "NCCL4J_STORE_HEARTBEAT must be a number of seconds from 0 to 1000000: " + wrong,
                    refusedHeartbeat(wrong, "0"));
        }
        assertTrue(1_000_000_000_000_000L <= Arguments.MAX_NANOSECONDS);
    }

    private static Heartbeat heartbeat(String interval, String patience) {
        return Heartbeat.of(Map.of("NCCL4J_STORE_HEARTBEAT", interval, "NCCL4J_STORE_PATIENCE", patience));
    }

    private static String refusedHeartbeat(String interval, String patience) {
        return assertThrows(IllegalArgumentException.class, () -> heartbeat(interval, patience))
                .getMessage();
    }
}
