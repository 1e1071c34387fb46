package io.github.nccl4j.launch.store;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import io.github.nccl4j.launch.store.TestStore.Client;
import io.github.nccl4j.launch.wire.Arguments;
import io.github.nccl4j.launch.wire.Wire;
import io.github.nccl4j.launch.wire.Wire.Operation;
import io.github.nccl4j.testing.TestLog;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests of what precedes the requests of a rank at a store: its handshake and its join. */
@Timeout(60)
class ServerHandshakeTest {
    private static final long SECOND = TestStore.SECOND;
    private static final String TEXT = "a secret of more than sixteen bytes";
    private static final String OTHER = "another secret of sixteen bytes";

    private TestStore store = TestStore.ofJob(2, null);

    @AfterEach
    void close() throws IOException {
        store.close();
    }

    private void restart(TestStore other) throws IOException {
        store.close();
        store = other;
    }

    private static Secret secret(String text) {
        return new Secret(text.getBytes(StandardCharsets.UTF_8), "the secret");
    }

    /** Reads the response of a refused client, whose connection then ends. */
    private static String refusal(Client client, byte status) throws IOException {
        ByteBuffer response = client.receive();
        assertEquals(status, response.get());
        String reason = Wire.text(response);
        assertEquals(0, response.remaining());
        client.requireEnd();
        return reason;
    }

    private static byte[] nonce(ByteBuffer greeting, byte mode) {
        assertEquals(Wire.MAGIC, greeting.getLong());
        assertEquals(Wire.VERSION, greeting.get());
        assertEquals(mode, greeting.get());
        byte[] nonce = new byte[Wire.NONCE_BYTES];
        greeting.get(nonce);
        assertEquals(0, greeting.remaining());
        return nonce;
    }

    private static Wire.Frame hello(long magic, int version, byte mode) {
        return new Wire.Frame().number64(magic).number8(version).number8(mode).raw(new byte[Wire.NONCE_BYTES]);
    }

    /* Handshake. */

    @Test
    void greetingTellsWhetherTheStoreHasASecret() throws Exception {
        assertArrayEquals(new byte[Wire.NONCE_BYTES], nonce(store.connect().receive(), Wire.WITHOUT_SECRET));
        restart(TestStore.ofJob(2, secret(TEXT)));
        byte[] first = nonce(store.connect().receive(), Wire.WITH_SECRET);
        assertFalse(Arrays.equals(new byte[Wire.NONCE_BYTES], first));
        assertFalse(Arrays.equals(nonce(store.connect().receive(), Wire.WITH_SECRET), first));
    }

    @Test
    void anotherProtocolIsRefused() throws Exception {
        try (TestLog log = new TestLog()) {
            for (Wire.Frame wrong : List.of(
                    hello(Wire.MAGIC + 1, Wire.VERSION, Wire.WITHOUT_SECRET),
                    hello(Wire.MAGIC + 2, Wire.VERSION, Wire.WITHOUT_SECRET))) {
                Client client = store.connect();
                client.receive();
                client.send(wrong);
                client.requireEnd();
            }
            assertEquals(
                    List.of(
                            "WARNING: the store refused a connection from 127.0.0.1: the client does not use the store's"
                                    + " protocol"),
                    log.lines());
            // The refusals 2 to 9 are not logged.
            for (int i = 3; i <= 11; i++) {
                Client client = store.connect();
                client.receive();
                client.send(new Wire.Frame());
                client.requireEnd();
            }
            assertEquals(2, log.lines().size());
            assertEquals(
                    "WARNING: the store refused a connection from 127.0.0.1: a frame is too short (10 refused so far)",
                    log.lines().get(1));
        }
    }

    @Test
    void helloHasALimit() throws Exception {
        Client client = store.connect();
        client.receive();
        client.send(new Wire.Frame()
                .raw(hello(Wire.MAGIC, Wire.VERSION, Wire.WITHOUT_SECRET)
                        .raw(new byte[Wire.PROOF_BYTES])
                        .toBytes()));
        assertEquals(Wire.OK, client.receive().get());
        Client other = store.connect();
        other.receive();
        other.sendRaw(ByteBuffer.allocate(4).putInt(Wire.MAX_HELLO + 1).array());
        other.requireEnd();
    }

    @Test
    void bothEndsMustHaveASecretOrNone() throws Exception {
        try (TestLog log = new TestLog()) {
            Client client = store.connect();
            client.receive();
            client.send(hello(Wire.MAGIC, Wire.VERSION, Wire.WITH_SECRET).raw(new byte[Wire.PROOF_BYTES]));
            assertEquals("rank 0 has no secret, and this rank has one", refusal(client, Wire.FAILED));
            restart(TestStore.ofJob(2, secret(TEXT)));
            client = store.connect();
            client.receive();
            client.send(hello(Wire.MAGIC, Wire.VERSION, Wire.WITHOUT_SECRET));
            assertEquals("rank 0 has a secret, and this rank has none", refusal(client, Wire.FAILED));
            assertEquals(
                    List.of(
                            "WARNING: the store refused a connection from 127.0.0.1: the client has a secret, the store has"
                                    + " none",
                            "WARNING: the store refused a connection from 127.0.0.1: the client has no secret, the store has"
                                    + " one"),
                    log.lines());
        }
    }

    @Test
    void withoutASecretTheProofIsEmpty() throws Exception {
        Client client = store.connect();
        client.receive();
        client.send(hello(Wire.MAGIC, Wire.VERSION, Wire.WITHOUT_SECRET));
        ByteBuffer proof = client.receive();
        assertEquals(1 + Wire.PROOF_BYTES, proof.remaining());
        assertEquals(ByteBuffer.allocate(1 + Wire.PROOF_BYTES), proof);
    }

    @Test
    void bothEndsProveTheirSecret() throws Exception {
        restart(TestStore.ofJob(2, secret(TEXT)));
        // Reads the proof of the store, and seals all that follows.
        Client client = store.join(1, 2);
        assertEquals(
                Wire.OK,
                client.ask(Operation.SET, new Wire.Frame().text("key").text("value"))
                        .get());
        ByteBuffer value =
                client.ask(Operation.GET, new Wire.Frame().number64(0).text("key"));
        assertEquals(Wire.OK, value.get());
        assertEquals("value", StandardCharsets.UTF_8.decode(value).toString());
        try (TestLog log = new TestLog()) {
            Client stranger = store.connect();
            ClientHandshake handshake = new ClientHandshake(secret(OTHER), "the store", "this test");
            stranger.send(new Wire.Frame().raw(handshake.hello(stranger.receive())));
            assertEquals("the secret of this rank differs from that of rank 0", refusal(stranger, Wire.FAILED));
            assertEquals(
                    List.of(
                            "WARNING: the store refused a connection from 127.0.0.1: the secret of the client differs from"
                                    + " that of the store"),
                    log.lines());
        }
    }

    @Test
    void handshakeMustBeDoneInTime() throws Exception {
        Client silent = store.connect();
        silent.receive();
        Client proven = store.greet();
        Client rank = store.join(1, 2);
        Client observer = store.observe();
        store.advance(5 * SECOND - 1);
        Client late = store.greet();
        silent.send(new Wire.Frame()
                .raw(hello(Wire.MAGIC, Wire.VERSION, Wire.WITHOUT_SECRET).toBytes()));
        assertEquals(Wire.OK, silent.receive().get());
        store.advance(1);
        silent.requireEnd();
        proven.requireEnd();
        assertEquals(Wire.OK, rank.ask(Operation.HEARTBEAT, new Wire.Frame()).get());
        assertEquals(
                List.of("job"), observer.look().stream().map(one -> one.name()).toList());
        late.join(late.claim(0, 2, 0, 0));
        assertEquals(Wire.OK, late.receive().get());
    }

    /** Two ranks may be missing, and 64 more connections may be in their handshake. */
    @Test
    void oldestHandshakeEndsWhenThereAreTooMany() throws Exception {
        List<Client> clients = new ArrayList<>();
        for (int i = 0; i < 66; i++) {
            clients.add(store.connect());
            clients.get(i).receive();
        }
        store.settle();
        clients.get(0).send(hello(Wire.MAGIC, Wire.VERSION, Wire.WITHOUT_SECRET));
        assertEquals(Wire.OK, clients.get(0).receive().get());
        store.connect().receive();
        clients.get(0).requireEnd();
        // One that has ended or joined does not count.
        clients.get(1).close();
        store.settle();
        store.connect().receive();
        store.settle();
        clients.get(2).send(hello(Wire.MAGIC, Wire.VERSION, Wire.WITHOUT_SECRET));
        assertEquals(Wire.OK, clients.get(2).receive().get());
        clients.get(2).join(clients.get(2).claim(0, 2, 0, 0));
        assertEquals(Wire.OK, clients.get(2).receive().get());
        store.settle();
        clients.get(3).send(hello(Wire.MAGIC, Wire.VERSION, Wire.WITHOUT_SECRET));
        assertEquals(Wire.OK, clients.get(3).receive().get());
        // One rank less is missing, so that the limit is 65 now.
        store.connect().receive();
        clients.get(3).requireEnd();
    }

    /* Join. */

    @Test
    void rankJoinsWithItsAttempt() throws Exception {
        for (int attempt = 0; attempt < 3; attempt++) {
            Client client = store.greet();
            client.join(client.claim(1, 2, 0, 0));
            ByteBuffer response = client.receive();
            assertEquals(Wire.OK, response.get());
            assertEquals(attempt, response.getInt());
            assertEquals(0, response.remaining());
            client.close();
            store.settle();
        }
    }

    private String refused(Wire.Frame claim, byte status) throws IOException {
        Client client = store.greet();
        client.join(claim);
        return refusal(client, status);
    }

    @Test
    void rankOfAnotherJobIsRefused() throws Exception {
        Client client = store.greet();
        assertEquals(
                "rank 0 is in job 'job', attempt 0; this rank is in job 'other', attempt 0",
                refused(client.claim(1, 2, "other", 0).number64(0).number64(0), Wire.ANOTHER_JOB));
        assertEquals(
                "rank 0 is in job 'job', attempt 0; this rank is in job 'job', attempt 1",
                refused(client.claim(1, 2, "job", 1).number64(0).number64(0), Wire.ANOTHER_JOB));
        // That is no failure of this job.
        assertEquals(
                Wire.OK,
                store.join(1, 2).ask(Operation.HEARTBEAT, new Wire.Frame()).get());
    }

    @Test
    void rankOutsideOfTheWorldIsRefused() throws Exception {
        Client client = store.greet();
        assertEquals(
                "rank 1 (127.0.0.1, process 7) expects 3 ranks, rank 0 expects 2",
                refused(client.claim(1, 3, 0, 0), Wire.FAILED));
        for (int rank : new int[] {-2, 2}) {
            assertEquals(
                    "rank must be >= 0 and < 2: " + rank + " (127.0.0.1, process 7)",
                    refused(client.claim(rank, 2, 0, 0), Wire.FAILED));
        }
    }

    @Test
    void allRanksKnowTheirLocalRankOrNone() throws Exception {
        Wire.Frame claim = new Wire.Frame()
                .number32(1)
                .number32(2)
                .number32(0)
                .number8(0)
                .text("local rank not known yet")
                .text("job")
                .text("process 8")
                .number64(0)
                .number64(0);
        assertEquals(
                "all ranks must know their local rank, or none: rank 1 (127.0.0.1, process 8): local rank not known yet;"
                        + " rank 0: 0 of 2 on its host; set LOCAL_RANK and LOCAL_WORLD_SIZE for all ranks or for none",
                refused(claim, Wire.FAILED));
    }

    /** The first refusal fails the requests of all ranks, unless all ranks have joined. */
    @Test
    void twoProcessesMustNotBeOneRank() throws Exception {
        Client first = store.join(0, 2);
        String refusal = refused(first.claim(0, 2, 0, 0), Wire.FAILED);
        assertEquals("two processes claim to be rank 0 of 2: 127.0.0.1, process 7 and 127.0.0.1, process 7", refusal);
        ByteBuffer response =
                first.ask(Operation.SET, new Wire.Frame().text("key").text("value"));
        assertEquals(Wire.FAILED, response.get());
        assertEquals(refusal, Wire.text(response));
        restart(TestStore.ofJob(2, null));
        first = store.join(0, 2);
        store.join(1, 2);
        refused(first.claim(1, 2, 0, 0), Wire.FAILED);
        assertEquals(
                Wire.OK,
                first.ask(Operation.SET, new Wire.Frame().text("key").text("value"))
                        .get());
    }

    @Test
    void intervalAndPatienceHaveLimits() throws Exception {
        long max = Arguments.MAX_NANOSECONDS;
        for (long[] wrong : new long[][] {{-1, 0}, {max + 1, 0}, {0, -1}, {0, max + 1}}) {
            Client client = store.greet();
            client.join(client.claim(1, 2, wrong[0], wrong[1]));
            client.requireEnd();
        }
        for (long[] right : new long[][] {{0, 0}, {max, 0}, {0, max}}) {
            Client client = store.greet();
            client.join(client.claim(1, 2, right[0], right[1]));
            assertEquals(Wire.OK, client.receive().get());
            client.close();
            store.settle();
        }
    }

    /** The longest request is a collective with the longest key and value, the ranks and their attempts. */
    @Test
    void requestHasALimit() throws Exception {
        int longest = Wire.REQUEST_HEADER_BYTES + Wire.MAX_KEY + Arguments.LONGEST_VALUE + 2 * 2 * 4 + Seal.OVERHEAD;
        Client client = store.join(1, 2);
        client.send(new Wire.Frame().number32(1).operation(Operation.HEARTBEAT).raw(new byte[longest - 5]));
        assertEquals(1, client.receive().getInt());
        client.sendRaw(ByteBuffer.allocate(4).putInt(longest + 1).array());
        client.requireEnd();
        Client observer = store.observe();
        observer.sendRaw(ByteBuffer.allocate(4)
                .putInt(Wire.REQUEST_HEADER_BYTES + Seal.OVERHEAD + 1)
                .array());
        observer.requireEnd();
        // What joins has a limit, too.
        Client joining = store.greet();
        joining.sendRaw(ByteBuffer.allocate(4).putInt(Wire.MAX_JOIN + 1).array());
        joining.requireEnd();
    }
}
