package io.github.nccl4j.launch.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.JobStatus;
import io.github.nccl4j.launch.RankStatus;
import io.github.nccl4j.launch.RankStatus.State;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.launch.store.TestListener.Rank;
import io.github.nccl4j.launch.wire.Wire;
import io.github.nccl4j.testing.Ports;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests of {@link ObserverClient} against a store of this test, which may send anything. */
@Timeout(60)
class ObserverClientTest {
    private static final Duration LONG = Duration.ofSeconds(30);

    private static void send(DataOutputStream out, byte[] frame) throws IOException {
        out.writeInt(frame.length);
        out.write(frame);
    }

    private static byte[] receive(DataInputStream in) throws IOException {
        return in.readNBytes(in.readInt());
    }

    /** Greets one client, and answers each of its looks with the parts. */
    private static Thread serve(ServerSocket server, List<Wire.Frame> parts) {
        Thread store = new Thread(() -> {
            try (Socket client = server.accept()) {
                DataInputStream in = new DataInputStream(client.getInputStream());
                DataOutputStream out = new DataOutputStream(client.getOutputStream());
                send(
                        out,
                        new Wire.Frame()
                                .number64(Wire.MAGIC)
                                .number8(Wire.VERSION)
                                .number8(Wire.WITHOUT_SECRET)
                                .raw(new byte[Wire.NONCE_BYTES])
                                .toBytes());
                receive(in);
                send(
                        out,
                        new Wire.Frame()
                                .number8(Wire.OK)
                                .raw(new byte[Wire.PROOF_BYTES])
                                .toBytes());
                assertEquals(Wire.OBSERVER, ByteBuffer.wrap(receive(in)).getInt());
                send(out, new Wire.Frame().number8(Wire.OK).toBytes());
                for (int number = 1; ; number++) {
                    assertEquals(number, ByteBuffer.wrap(receive(in)).getInt());
                    for (Wire.Frame part : parts) {
                        send(
                                out,
                                new Wire.Frame()
                                        .number32(number)
                                        .raw(part.toBytes())
                                        .toBytes());
                    }
                }
            } catch (IOException closed) {
                // The client has ended the connection.
            }
        });
        store.start();
        return store;
    }

    private static Wire.Frame job(int size) {
        return new Wire.Frame()
                .number8(Wire.Look.JOB.ordinal())
                .text("job")
                .number32(2)
                .number32(size);
    }

    private static Wire.Frame rank(int job, int rank, int state, int report) {
        return new Wire.Frame()
                .number8(Wire.Look.RANK.ordinal())
                .number32(job)
                .number32(rank)
                .number8(state)
                .text("process")
                .number64(-7)
                .bytes(new byte[report]);
    }

    private static List<JobStatus> look(List<Wire.Frame> parts) throws Exception {
        List<Wire.Frame> all = new ArrayList<>(parts);
        all.add(new Wire.Frame().number8(Wire.Look.END.ordinal()));
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            Thread store = serve(server, all);
            try (ObserverClient client = ObserverClient.connect("127.0.0.1", server.getLocalPort(), null, LONG)) {
                List<JobStatus> first = client.look(LONG);
                assertEquals(first, client.look(LONG));
                return first;
            } finally {
                store.join();
            }
        }
    }

    private static String failure(Wire.Frame... parts) {
        String message = assertThrows(RendezvousException.class, () -> look(List.of(parts)))
                .getMessage();
        return message.replaceFirst(".* has ended: ", "");
    }

    @Test
    void ranksThatTheStoreDoesNotNameAreMissing() throws Exception {
        JobStatus job =
                look(List.of(job(3), rank(0, 1, State.LOST.ordinal(), 0))).get(0);
        assertEquals("job", job.job());
        assertEquals(2, job.restart());
        assertEquals(
                List.of(State.MISSING, State.LOST, State.MISSING),
                job.ranks().stream().map(one -> one.state()).toList());
        assertEquals(Duration.ZERO, job.ranks().get(1).silence());
        assertEquals(List.of(), look(List.of()));
        assertEquals(0, look(List.of(job(0))).get(0).ranks().size());
    }

    @Test
    void invalidPartsAreRefused() {
        assertEquals("invalid job: 0, -1 ranks", failure(job(-1)));
        assertEquals("invalid job: 0, 1048577 ranks", failure(job((1 << 20) + 1)));
        assertEquals("job of a rank must be < 0: 0", failure(rank(0, 0, 0, 0)));
        assertEquals("job of a rank must be < 1: 1", failure(job(1), rank(1, 0, 0, 0)));
        assertEquals("job of a rank must be < 1: -1", failure(job(1), rank(-1, 0, 0, 0)));
        int states = State.values().length;
        assertEquals(
                "state of a rank must be from 0 to " + (states - 1) + ": " + states,
                failure(job(1), rank(0, 0, states, 0)));
        assertEquals("state of a rank must be from 0 to " + (states - 1) + ": -1", failure(job(1), rank(0, 0, -1, 0)));
    }

    @Test
    void statesAreThoseOfTheirCodes() throws Exception {
        State[] states = State.values();
        List<Wire.Frame> parts = new ArrayList<>();
        parts.add(job(states.length));
        for (int i = 0; i < states.length; i++) {
            parts.add(rank(0, i, i, 0));
        }
        assertEquals(
                List.of(states),
                look(parts).get(0).ranks().stream().map(RankStatus::state).toList());
    }

    @Test
    void numberOfJobsHasALimit() throws Exception {
        List<Wire.Frame> jobs = new ArrayList<>();
        for (int i = 0; i < 1024; i++) {
            jobs.add(job(0));
        }
        assertEquals(1024, look(jobs).size());
        jobs.add(job(0));
        assertEquals("invalid job: 1024, 0 ranks", failure(jobs.toArray(Wire.Frame[]::new)));
    }

    @Test
    void frameHasALimit() {
        String refused =
                failure(new Wire.Frame().raw(new byte[Wire.MAX_REPORT + Wire.LOOK_HEADER_BYTES + Seal.OVERHEAD]));
        assertTrue(refused.startsWith("another service listens at this address, or a frame is too long: "), refused);
    }

    /* The connection. */

    private static final Duration SHORT = Duration.ofMillis(500);

    private static CompletableFuture<ObserverClient> connecting(TestListener store, Secret secret, Duration timeout) {
        return TestSession.start(
                () -> ObserverClient.connect("127.0.0.1", store.address().getPort(), secret, timeout));
    }

    /** The next connection, as an observer. */
    private static Rank join(TestListener store) throws IOException {
        Rank client = store.accept();
        client.greet();
        ByteBuffer join = client.receive();
        assertEquals(Wire.OBSERVER, join.getInt());
        assertEquals(0, join.remaining());
        client.send(new Wire.Frame().number8(Wire.OK));
        return client;
    }

    private static String endpoint(TestListener store) {
        return "the store at 127.0.0.1:" + store.address().getPort();
    }

    @Test
    void reportsHaveTheirTexts() throws Exception {
        try (TestListener store = new TestListener()) {
            CompletableFuture<ObserverClient> connecting = connecting(store, null, LONG);
            Rank client = join(store);
            ObserverClient observer = TestSession.get(connecting);
            CompletableFuture<List<JobStatus>> look = TestSession.start(() -> observer.look(Duration.ofSeconds(3)));
            ByteBuffer request = client.receive();
            assertEquals(1, request.getInt());
            assertEquals(3_000_000_000L, request.getLong());
            client.send(new Wire.Frame().number32(1).raw(job(2).toBytes()));
            byte[] report = new Wire.Frame()
                    .number32(5)
                    .number32(2)
                    .text("a")
                    .text("first")
                    .text("b")
                    .text("second")
                    .toBytes();
            client.send(new Wire.Frame()
                    .number32(1)
                    .number8(Wire.Look.RANK.ordinal())
                    .number32(0)
                    .number32(1)
                    .number8(State.SILENT.ordinal())
                    .text("process 7")
                    .number64(1_500_000_000)
                    .bytes(report));
            client.send(new Wire.Frame().number32(1).number8(Wire.Look.END.ordinal()));
            RankStatus rank = TestSession.get(look).get(0).ranks().get(1);
            assertEquals(
                    new RankStatus(
                            1,
                            State.SILENT,
                            "process 7",
                            Duration.ofMillis(1500),
                            Map.of("a", "first", "b", "second"),
                            5),
                    rank);
            assertEquals(List.of("a", "b"), List.copyOf(rank.texts().keySet()));
            observer.close();
            client.requireEnd();
        }
    }

    @Test
    void framesAreSealedWithASecret() throws Exception {
        Secret secret = new Secret(new byte[16], "the secret");
        try (TestStore store = TestStore.ofJob(2, secret)) {
            int port = store.server().address().getPort();
            store.join(1, 2);
            try (ObserverClient observer = ObserverClient.connect("127.0.0.1", port, secret, LONG)) {
                List<RankStatus> ranks = observer.look(Duration.ZERO).get(0).ranks();
                assertEquals(
                        List.of(State.MISSING, State.NO_ANSWER),
                        ranks.stream().map(RankStatus::state).toList());
            }
            String refused = assertThrows(
                            RendezvousException.class, () -> ObserverClient.connect("127.0.0.1", port, null, LONG))
                    .getMessage();
            assertTrue(
                    refused.startsWith("the store at 127.0.0.1:" + port
                            + " can't be observed: the store has a secret, and this process has none"),
                    refused);
        }
    }

    @Test
    void refusalHasTheReasonOfTheStore() throws Exception {
        try (TestListener store = new TestListener()) {
            CompletableFuture<ObserverClient> connecting = connecting(store, null, LONG);
            Rank client = store.greet();
            client.send(new Wire.Frame().number8(Wire.FAILED).text("too many"));
            assertEquals(
                    endpoint(store) + " can't be observed: too many",
                    TestSession.failure(connecting).getMessage());
            client.requireEnd();
        }
    }

    @Test
    void placeWithoutAStoreIsNamed() {
        int port = Ports.free();
        assertEquals(
                "no store responds at 127.0.0.1:" + port + ": " + Ports.refusal(port),
                assertThrows(RendezvousException.class, () -> ObserverClient.connect("127.0.0.1", port, null, LONG))
                        .getMessage());
        assertEquals(
                "the host name no such host can't be resolved",
                assertThrows(RendezvousException.class, () -> ObserverClient.connect("no such host", port, null, LONG))
                        .getMessage());
    }

    private static void requireLate(TestListener store, Throwable failure) {
        RendezvousTimeoutException late = assertInstanceOf(RendezvousTimeoutException.class, failure);
        assertEquals(
                endpoint(store) + " did not respond within 0.5 s: the process that keeps it, which is rank 0 under most"
                        + " launchers, is stopped or can't be reached",
                late.getMessage());
        assertEquals(List.of(), late.missing());
    }

    /** Also if the time ends between two bytes of a frame, or before the first one is sent. */
    @Test
    void storeThatDoesNotRespondIsNamed() throws Exception {
        try (TestListener store = new TestListener()) {
            CompletableFuture<ObserverClient> connecting = connecting(store, null, SHORT);
            Rank client = store.accept();
            client.sendRaw(new byte[] {0, 0});
            requireLate(store, TestSession.failure(connecting));
            client.requireEnd();
            assertEquals(
                    endpoint(store)
                            + " did not respond within 0 s: the process that keeps it, which is rank 0 under most"
                            + " launchers, is stopped or can't be reached",
                    TestSession.failure(connecting(store, null, Duration.ZERO)).getMessage());
        }
    }

    @Test
    void framesMayArriveInParts() throws Exception {
        try (TestListener store = new TestListener()) {
            CompletableFuture<ObserverClient> connecting = connecting(store, null, LONG);
            Rank client = join(store);
            ObserverClient observer = TestSession.get(connecting);
            CompletableFuture<List<JobStatus>> look = TestSession.start(() -> observer.look(LONG));
            client.receive();
            for (byte one : new byte[] {0, 0, 0, 5, 0, 0, 0, 1, (byte) Wire.Look.END.ordinal()}) {
                client.sendRaw(new byte[] {one});
                Thread.sleep(2);
            }
            assertEquals(List.of(), TestSession.get(look));
            observer.close();
        }
    }

    /** The store ends a look at its timeout, and gets two more seconds for the last part. */
    @Test
    void storeThatDoesNotEndALookIsNamed() throws Exception {
        try (TestListener store = new TestListener()) {
            CompletableFuture<ObserverClient> connecting = connecting(store, null, LONG);
            join(store);
            try (ObserverClient observer = TestSession.get(connecting)) {
                RendezvousTimeoutException late =
                        assertThrows(RendezvousTimeoutException.class, () -> observer.look(Duration.ofMillis(1)));
                assertEquals(
                        endpoint(store) + " did not respond within 2.001 s: the process that keeps it, which is rank 0"
                                + " under most launchers, is stopped or can't be reached",
                        late.getMessage());
            }
        }
    }

    private static String ended(Wire.Frame part) throws Exception {
        try (TestListener store = new TestListener()) {
            CompletableFuture<ObserverClient> connecting = connecting(store, null, LONG);
            Rank client = join(store);
            try (ObserverClient observer = TestSession.get(connecting)) {
                CompletableFuture<List<JobStatus>> look = TestSession.start(() -> observer.look(LONG));
                client.receive();
                if (part == null) {
                    client.close();
                } else {
                    client.send(part);
                }
                String message = TestSession.failure(look).getMessage();
                String prefix = "the connection to " + endpoint(store) + " has ended: ";
                assertTrue(message.startsWith(prefix), message);
                return message.substring(prefix.length());
            }
        }
    }

    @Test
    void endOfTheConnectionEndsALook() throws Exception {
        assertEquals("the store has closed the connection", ended(null));
        assertEquals(
                "rank 0 has closed its store",
                ended(new Wire.Frame()
                        .number32(Wire.CLOSE_NOTICE)
                        .number8(Wire.FAILED)
                        .text("rank 0 has closed its store")));
        assertEquals(
                "number of a response must be 1: 2",
                ended(new Wire.Frame().number32(2).number8(Wire.Look.END.ordinal())));
        assertEquals("a frame is too short", ended(new Wire.Frame().number32(1)));
        assertEquals("a frame is too short", ended(new Wire.Frame()));
    }

    /** Before the join, frames have a lower limit. */
    @Test
    void lengthOfAFrameIsChecked() throws Exception {
        for (int wrong : new int[] {-1, Wire.MAX_JOIN + 1}) {
            try (TestListener store = new TestListener()) {
                CompletableFuture<ObserverClient> connecting = connecting(store, null, LONG);
                Rank client = store.accept();
                client.sendRaw(ByteBuffer.allocate(4).putInt(wrong).array());
                assertEquals(
                        "no store responds at 127.0.0.1:" + store.address().getPort()
                                + ": another service listens at this address, or a frame is too long: "
                                + Integer.toUnsignedString(wrong) + " bytes",
                        TestSession.failure(connecting).getMessage());
                client.requireEnd();
            }
        }
        // The greeting may have this length.
        try (TestListener store = new TestListener()) {
            CompletableFuture<ObserverClient> connecting = connecting(store, null, LONG);
            Rank client = store.accept();
            client.send(new Wire.Frame().raw(new byte[Wire.MAX_JOIN]));
            assertTrue(
                    TestSession.failure(connecting).getMessage().endsWith(": another service listens at this address"));
        }
        int longest = Wire.MAX_REPORT + Wire.LOOK_HEADER_BYTES + Seal.OVERHEAD;
        assertEquals(
                "number of a response must be 1: 7",
                ended(new Wire.Frame().number32(7).raw(new byte[longest - 4])));
        assertEquals(
                "another service listens at this address, or a frame is too long: " + (longest + 1) + " bytes",
                ended(new Wire.Frame().number32(7).raw(new byte[longest - 3])));
    }
}
