package io.github.nccl4j.launch.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.env.Launcher;
import io.github.nccl4j.launch.env.RankValues;
import io.github.nccl4j.launch.store.PendingCollective.Kind;
import io.github.nccl4j.launch.store.TestStore.Client;
import io.github.nccl4j.launch.wire.Wire;
import io.github.nccl4j.launch.wire.Wire.Operation;
import io.github.nccl4j.testing.Ports;
import io.github.nccl4j.testing.TestLog;
import io.github.nccl4j.testing.Waiting;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests of a store whose time is set: its jobs, its end, and where it listens. */
@Timeout(60)
class StoreServerTest {
    private static final long SECOND = TestStore.SECOND;
    /** The period in which a store that ends looks whether it may. */
    private static final long MILLI = SECOND / 1000;

    private static final long LIMIT_SECONDS = 20;

    private TestStore store = TestStore.ofJob(2, null);

    @AfterEach
    void close() throws IOException {
        store.close();
    }

    private void restart(TestStore other) throws IOException {
        store.close();
        store = other;
    }

    private static byte status(Client client, Operation operation, Wire.Frame arguments) throws IOException {
        return client.ask(operation, arguments).get();
    }

    /** Broadcasts from rank 0. */
    private static ByteBuffer broadcast(Client client, String value) throws IOException {
        return client.ask(
                Operation.COLLECTIVE,
                new Wire.Frame()
                        .number64(60 * SECOND)
                        .number8(Kind.BROADCAST.ordinal())
                        .number32(0)
                        .numbers(List.of())
                        .numbers(List.of())
                        .text("key")
                        .text(value));
    }

    /* The end. */

    /** Begins to close the store, in a thread that has begun to wait. */
    private Thread closing(Duration limit) throws Exception {
        Thread closing = new Thread(() -> store.server().close(limit));
        closing.start();
        Waiting.until(
                "a close that waits", () -> closing.getState() == Thread.State.TIMED_WAITING || !closing.isAlive());
        store.settle();
        return closing;
    }

    private static void await(Thread closing) throws Exception {
        closing.join(TimeUnit.SECONDS.toMillis(LIMIT_SECONDS));
        assertFalse(closing.isAlive());
    }

    @Test
    void endIsToldToRanksAndObservers() throws Exception {
        Client rank = store.join(0, 2);
        Client other = store.join(1, 2);
        Client observer = store.observe();
        InetSocketAddress address = store.server().address();
        store.server().close(Duration.ZERO);
        for (Client client : List.of(rank, other, observer)) {
            assertEquals("rank 0 has closed its store", client.closeNotice(Wire.FAILED));
        }
        assertEquals(
                "the store is closed",
                assertThrows(IllegalStateException.class, () -> store.server().address())
                        .getMessage());
        // Nobody listens there any more.
        try (ServerSocket next = new ServerSocket(address.getPort(), 1, address.getAddress())) {
            assertTrue(next.isBound());
        }
    }

    @Test
    void endOfAKeeperThatIsAMemberIsALoss() throws Exception {
        for (boolean isMember : new boolean[] {false, true}) {
            restart(TestStore.ofJob(2, null));
            Client keeper = store.join(0, 2);
            Client other = store.join(1, 2);
            // A member that does not keep the store is no reason.
            assertEquals(
                    Wire.OK,
                    status(
                            other,
                            Operation.ENTER,
                            new Wire.Frame().text("group").number32(1)));
            if (isMember) {
                assertEquals(
                        Wire.OK,
                        status(
                                keeper,
                                Operation.ENTER,
                                new Wire.Frame().text("group").number32(0)));
                assertEquals("rank 0 (127.0.0.1, process 7) keeps the store", TestStore.notice(other.receive()));
            }
            store.server().close(Duration.ZERO);
            ByteBuffer notice = other.receive();
            assertEquals(Wire.CLOSE_NOTICE, notice.getInt());
            assertEquals(isMember ? Wire.KEEPER_LOST : Wire.FAILED, notice.get());
            assertEquals("rank 0 has closed its store", Wire.text(notice));
        }
    }

    /** It may end, although its connection has not ended yet. */
    @Test
    void keeperThatHasLeftIsNoLoss() throws Exception {
        Client keeper = store.join(0, 2);
        Client other = store.join(1, 2);
        assertEquals(
                Wire.OK,
                status(keeper, Operation.ENTER, new Wire.Frame().text("group").number32(0)));
        assertEquals(Wire.OK, status(keeper, Operation.LEAVE, new Wire.Frame()));
        store.server().close(Duration.ZERO);
        assertEquals("rank 0 has closed its store", other.closeNotice(Wire.FAILED));
    }

    @Test
    void endOfAStoreOfItsOwnIsTold() throws Exception {
        restart(TestStore.ofAnyJob());
        Client rank = store.join(0, 2);
        Client observer = store.observe();
        store.server().close(Duration.ZERO);
        assertEquals("the store has been closed", rank.closeNotice(Wire.FAILED));
        assertEquals("the store has closed its store", observer.closeNotice(Wire.FAILED));
    }

    @Test
    void endWaitsUntilABroadcastIsDelivered() throws Exception {
        Client root = store.join(0, 2);
        Client other = store.join(1, 2);
        assertEquals(Wire.OK, broadcast(root, "value").get());
        Thread closing = closing(Duration.ofSeconds(10));
        store.advance(10 * SECOND - MILLI);
        assertTrue(closing.isAlive());
        ByteBuffer value = broadcast(other, "");
        assertEquals(Wire.OK, value.get());
        assertEquals("value", StandardCharsets.UTF_8.decode(value).toString());
        store.advanceToEnd(MILLI);
        await(closing);
        assertEquals("rank 0 has closed its store", other.closeNotice(Wire.FAILED));
    }

    @Test
    void endDoesNotWaitBeyondItsLimit() throws Exception {
        Client root = store.join(0, 2);
        Client other = store.join(1, 2);
        assertEquals(Wire.OK, broadcast(root, "value").get());
        Thread closing = closing(Duration.ofSeconds(10));
        store.advance(10 * SECOND - MILLI);
        assertEquals(Wire.OK, status(other, Operation.HEARTBEAT, new Wire.Frame()));
        store.advanceToEnd(MILLI);
        await(closing);
        assertEquals("rank 0 has closed its store", other.closeNotice(Wire.FAILED));
    }

    /** A rank that joins after an abort gets its reason, for two seconds. */
    @Test
    void endWaitsForLateRanksAfterAnAbort() throws Exception {
        for (int limit : new int[] {1, 10}) {
            restart(TestStore.ofJob(2, null));
            Client first = store.join(0, 2);
            assertEquals(
                    Wire.OK,
                    status(first, Operation.ABORT, new Wire.Frame().text("").text("no memory")));
            Thread closing = closing(Duration.ofSeconds(limit));
            store.advance(Math.min(limit, 2) * SECOND - MILLI);
            assertEquals(Wire.OK, status(first, Operation.HEARTBEAT, new Wire.Frame()));
            store.advanceToEnd(MILLI);
            await(closing);
            assertEquals(
                    "rank 0 has closed its store; earlier: rank 0 has aborted: no memory",
                    first.closeNotice(Wire.FAILED));
        }
        restart(TestStore.ofJob(2, null));
        Client first = store.join(0, 2);
        assertEquals(
                Wire.OK,
                status(first, Operation.ABORT, new Wire.Frame().text("").text("no memory")));
        Thread closing = closing(Duration.ofSeconds(10));
        Client late = store.join(1, 2);
        ByteBuffer response =
                late.ask(Operation.SET, new Wire.Frame().text("key").text("value"));
        assertEquals(Wire.FAILED, response.get());
        assertEquals("rank 0 has aborted: no memory", Wire.text(response));
        store.advanceToEnd(MILLI);
        await(closing);
    }

    /** More than the kernel buffers: the end waits a second for the rank that does not read. */
    @Test
    void endWaitsUntilItsNoticesAreSent() throws Exception {
        for (boolean reads : new boolean[] {true, false}) {
            restart(TestStore.ofJob(2, null));
            Client client = store.join(1, 2);
            byte[] value = new byte[1 << 16];
            assertEquals(
                    Wire.OK,
                    status(client, Operation.SET, new Wire.Frame().text("key").bytes(value)));
            int count = 0;
            while (store.hasSentAll()) {
                client.request(Operation.GET, new Wire.Frame().number64(0).text("key"));
                store.settle();
                count++;
            }
            // Beyond the limit of this test: the end comes by the time of the store.
            Thread closing = closing(Duration.ofSeconds(2 * LIMIT_SECONDS));
            store.advance(SECOND - MILLI);
            assertTrue(closing.isAlive());
            if (reads) {
                for (int i = 0; i < count; i++) {
                    assertEquals(5 + value.length, client.receive().remaining());
                }
                assertEquals(Wire.CLOSE_NOTICE, client.receive().getInt());
                store.settle();
            }
            store.advanceToEnd(MILLI);
            await(closing);
        }
    }

    @Test
    void interruptedEndIsAnEnd() throws Exception {
        Client root = store.join(0, 2);
        store.join(1, 2);
        assertEquals(Wire.OK, broadcast(root, "value").get());
        Thread.currentThread().interrupt();
        store.server().close(Duration.ofSeconds(10));
        assertTrue(Thread.interrupted());
        root.requireEnd();
    }

    /* Jobs. */

    private Client join(int rank, int worldSize, String job, int restart) throws IOException {
        Client client = store.greet();
        client.join(client.claim(rank, worldSize, job, restart).number64(0).number64(0));
        return client;
    }

    private static void requireJoined(Client client) throws IOException {
        assertEquals(Wire.OK, client.receive().get());
    }

    private Set<String> jobs() throws IOException {
        Set<String> names = new TreeSet<>();
        Client observer = store.observe();
        observer.look().forEach(job -> names.add(job.name() + " " + job.restart() + " " + job.size()));
        observer.close();
        return names;
    }

    @Test
    void jobsDoNotSeeEachOther() throws Exception {
        restart(TestStore.ofAnyJob());
        Client first = join(0, 2, "a", 0);
        requireJoined(first);
        Client again = join(0, 3, "a", 1);
        requireJoined(again);
        assertEquals(Set.of("a 0 2", "a 1 3"), jobs());
        first.requireQuestion();
        again.requireQuestion();
        assertEquals(
                Wire.OK,
                status(first, Operation.SET, new Wire.Frame().text("key").text("")));
        again.request(Operation.GET, new Wire.Frame().number64(0).text("key"));
        store.settle();
        ByteBuffer response = again.receive();
        response.getInt();
        assertEquals(Wire.TIMED_OUT, response.get());
        // No rank is in the process of the store.
        assertEquals(
                Wire.OK,
                status(first, Operation.ENTER, new Wire.Frame().text("group").number32(0)));
        Client second = join(1, 2, "a", 0);
        requireJoined(second);
        assertEquals(
                Wire.OK,
                status(second, Operation.ENTER, new Wire.Frame().text("group").number32(1)));
        Client wrong = join(1, 3, "a", 0);
        ByteBuffer refusal = wrong.receive();
        assertEquals(Wire.FAILED, refusal.get());
        assertEquals(
                "rank 1 (127.0.0.1, process 7) expects 3 ranks, rank 0, which came first, expects 2",
                Wire.text(refusal));
        wrong.requireEnd();
        // A job ends with its last connection; then its name can be used again.
        first.close();
        second.close();
        store.settle();
        assertEquals(Set.of("a 1 3"), jobs());
        requireJoined(join(1, 5, "a", 0));
        assertEquals(Set.of("a 0 5", "a 1 3"), jobs());
    }

    @Test
    void sizesAndNumbersOfJobsHaveLimits() throws Exception {
        restart(TestStore.ofAnyJob());
        for (int wrong : new int[] {0, (1 << 20) + 1}) {
            join(0, wrong, "a", 0).requireEnd();
        }
        List<Client> clients = new ArrayList<>();
        for (int i = 0; i < 256; i++) {
            clients.add(join(0, i == 0 ? 1 << 20 : 1, "job", i));
            requireJoined(clients.get(i));
        }
        join(0, 1, "job", 256).requireEnd();
        clients.get(0).close();
        store.settle();
        requireJoined(join(0, 1, "job", 256));
    }

    /** A rank that comes late gets the reason of the failure, for ten seconds. */
    @Test
    void failedJobIsKeptForLateRanks() throws Exception {
        restart(TestStore.ofAnyJob());
        Client wrong = join(2, 2, "a", 0);
        ByteBuffer refusal = wrong.receive();
        assertEquals(Wire.FAILED, refusal.get());
        String reason = "rank must be >= 0 and < 2: 2 (127.0.0.1, process 7)";
        assertEquals(reason, Wire.text(refusal));
        wrong.requireEnd();
        store.advance(10 * SECOND - 1);
        assertEquals(Set.of("a 0 2"), jobs());
        store.advance(1);
        assertEquals(Set.of(), jobs());
        join(2, 2, "a", 0).receive();
        store.settle();
        Client late = join(0, 2, "a", 0);
        requireJoined(late);
        ByteBuffer response =
                late.ask(Operation.SET, new Wire.Frame().text("key").text(""));
        assertEquals(Wire.FAILED, response.get());
        assertEquals(reason, Wire.text(response));
        // It stays while a rank is connected.
        store.advance(10 * SECOND);
        assertEquals(Set.of("a 0 2"), jobs());
    }

    @Test
    void jobWithAValueThatIsAwaitedIsKept() throws Exception {
        restart(TestStore.ofAnyJob());
        Client root = join(0, 2, "a", 0);
        requireJoined(root);
        assertEquals(Wire.OK, broadcast(root, "value").get());
        root.close();
        store.settle();
        store.advance(10 * SECOND - 1);
        Client late = join(1, 2, "a", 0);
        requireJoined(late);
        ByteBuffer value = broadcast(late, "");
        assertEquals(Wire.OK, value.get());
        assertEquals("value", StandardCharsets.UTF_8.decode(value).toString());
    }

    /** A store of one job is never without it. */
    @Test
    void jobOfItsRankIsNotForgotten() throws Exception {
        store.join(1, 2).close();
        store.settle();
        assertEquals(Set.of("job 0 2"), jobs());
    }

    /** It does not know how many ranks there will be. */
    @Test
    void storeOfItsOwnAcceptsMoreHandshakes() throws Exception {
        restart(TestStore.ofAnyJob());
        Client first = store.connect();
        for (int i = 0; i < 70; i++) {
            store.connect();
        }
        store.settle();
        ClientHandshake handshake = new ClientHandshake(null, "the store", "this test");
        first.send(new Wire.Frame().raw(handshake.hello(first.receive())));
        assertEquals(Wire.OK, first.receive().get());
    }

    /* Addresses. */

    private static RankValues self(int worldSize, int localSize, String master, int port) {
        int localRank = localSize == RankValues.UNKNOWN ? RankValues.UNKNOWN : 0;
        return new RankValues(
                new RankValues.Numbers(0, worldSize, localRank, localSize),
                master,
                port,
                "job",
                0,
                Launcher.PROPERTIES);
    }

    private static InetAddress address(String text) throws IOException {
        return InetAddress.getByName(text);
    }

    /** Starts the server of rank 0; returns what it logs. */
    private static List<String> started(RankValues self, InetAddress bind, Secret secret, String expected)
            throws IOException {
        try (TestLog log = new TestLog()) {
            StoreServer server = StoreServerStarter.start(self, bind, secret);
            InetAddress address = server.address().getAddress();
            // The wildcard address is that of IPv6, if there is one.
            assertEquals(expected, address.isAnyLocalAddress() ? "0.0.0.0" : address.getHostAddress());
            assertEquals(self.worldSize() > 1, server.address().getPort() == self.masterPort());
            server.close(Duration.ZERO);
            return log.lines();
        }
    }

    private static String refused(RankValues self, InetAddress bind) {
        return assertThrows(RendezvousException.class, () -> StoreServerStarter.start(self, bind, null))
                .getMessage();
    }

    @Test
    void listensAtTheAddressOfTheMaster() throws Exception {
        int port = Ports.free();
        assertEquals(List.of(), started(self(2, 2, "127.0.0.1", port), null, null, "127.0.0.1"));
        assertEquals(List.of(), started(self(2, 2, "192.0.2.1", port), address("127.0.0.2"), null, "127.0.0.2"));
        // A single rank meets nobody.
        assertEquals(List.of(), started(self(1, 1, "192.0.2.1", port), address("127.0.0.2"), null, "127.0.0.1"));
    }

    @Test
    void addressOfAnotherHostIsRefused() throws Exception {
        int port = Ports.free();
        assertEquals(
                "MASTER_ADDR must be a name that rank 0 can resolve: no such host",
                refused(self(2, 2, "no such host", port), null));
        assertEquals(
                "MASTER_ADDR must be an address of the host of rank 0: 192.0.2.1; if a service or a router forwards to this"
                        + " host, set NCCL4J_STORE_BIND to the address that it forwards to, or to 0.0.0.0",
                refused(self(2, 2, "192.0.2.1", port), null));
    }

    @Test
    void portThatIsTakenIsRefused() throws Exception {
        int port = store.server().address().getPort();
        String taken = refused(self(2, 2, "127.0.0.1", port), null);
        assertTrue(
                taken.matches(
                        "rank 0 can't listen at 127\\.0\\.0\\.1:" + port + ", the address of the store \\(MASTER_ADDR,"
                                + " MASTER_PORT\\): .*; set NCCL4J_STORE_PORT to another port, the same for all ranks"),
                taken);
        String alone = assertThrows(
                        RendezvousException.class, () -> StoreServer.startAlone(address("127.0.0.1"), port, null))
                .getMessage();
        assertTrue(alone.matches("the store can't listen at 127\\.0\\.0\\.1:" + port + ": .*"), alone);
    }

    private static final String EXPOSED =
            " has no secret: any process that can reach it can read and change the values of the ranks, including the"
                    + " unique ids of communicators. Set NCCL4J_STORE_SECRET or NCCL4J_STORE_SECRET_FILE for all ranks";

    @Test
    void warnsOfAStoreInANetworkWithoutASecret() throws Exception {
        int port = Ports.free();
        Secret secret = new Secret(new byte[16], "the secret");
        assertEquals(
                List.of("WARNING: the store at 0.0.0.0:" + port + EXPOSED),
                started(self(2, 2, "127.0.0.1", port), address("0.0.0.0"), null, "0.0.0.0"));
        assertEquals(List.of(), started(self(2, 2, "127.0.0.1", port), address("0.0.0.0"), secret, "0.0.0.0"));
        try (TestLog log = new TestLog()) {
            StoreServer alone = StoreServer.startAlone(address("0.0.0.0"), 0, null);
            int chosen = alone.address().getPort();
            alone.close(Duration.ZERO);
            assertEquals(List.of("WARNING: the store at 0.0.0.0:" + chosen + EXPOSED), log.lines());
        }
    }

    @Test
    void warnsOfALoopbackAddressIfThereMayBeOtherHosts() throws Exception {
        int port = Ports.free();
        String warning = "WARNING: the store listens at the loopback address 127.0.0.1:" + port
                + ", to which this host resolves the name 127.0.0.1: ranks on other hosts can't reach it. Set MASTER_ADDR"
                + " or NCCL4J_STORE_BIND to an address of the network";
        assertEquals(List.of(warning), started(self(4, 2, "127.0.0.1", port), null, null, "127.0.0.1"));
        assertEquals(List.of(), started(self(4, 2, "127.0.0.1", port), address("127.0.0.1"), null, "127.0.0.1"));
        // Without local ranks, the name of the master decides.
        int unknown = RankValues.UNKNOWN;
        assertEquals(List.of(), started(self(4, unknown, "127.0.0.1", port), null, null, "127.0.0.1"));
        assertEquals(List.of(), started(self(4, unknown, "localhost", port), null, null, "127.0.0.1"));
    }
}
