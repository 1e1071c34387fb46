package io.github.nccl4j.launch.store;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.store.ClientHandshake.RefusedException;
import io.github.nccl4j.launch.store.StoreClient.End;
import io.github.nccl4j.launch.store.TestListener.Rank;
import io.github.nccl4j.launch.wire.Arguments;
import io.github.nccl4j.launch.wire.Notice;
import io.github.nccl4j.launch.wire.Wire;
import io.github.nccl4j.launch.wire.Wire.Operation;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests of {@link StoreClient} against a store of this test. The time of its heartbeats is set. */
@Timeout(60)
class StoreClientTest {
    private static final long SECOND = TestTime.SECOND;
    private static final long LIMIT_SECONDS = 20;
    private static final Heartbeat NONE = new Heartbeat(0, 0);

    /** Begins shortly before it wraps. */
    private final AtomicLong now = new AtomicLong(Long.MAX_VALUE - 2 * SECOND);

    private final EventLoop loop;
    private final TestListener store;
    private StoreClient client;
    private final List<String> events = Collections.synchronizedList(new ArrayList<>());

    StoreClientTest() throws IOException {
        loop = new EventLoop("test-client", now::get);
        store = new TestListener();
    }

    @AfterEach
    void end() throws Exception {
        loop.close();
        loop.awaitEnd(TimeUnit.SECONDS.toMillis(LIMIT_SECONDS));
        store.close();
    }

    private final class Recorder implements StoreClient.Listener {
        @Override
        public void handleNotice(Notice notice) {
            events.add("notice of " + notice.number());
        }

        @Override
        public void handleQuestion() {
            events.add("question");
        }

        @Override
        public void handleSilence(long nanos) {
            events.add("silence " + nanos / 1_000_000);
        }

        @Override
        public void handleEnd(String reason, End how) {
            events.add(how + ": " + reason);
        }
    }

    private static <T> T get(CompletableFuture<T> result) throws Exception {
        return result.get(LIMIT_SECONDS, TimeUnit.SECONDS);
    }

    private static Throwable failure(CompletableFuture<?> result) {
        return assertThrows(ExecutionException.class, () -> get(result)).getCause();
    }

    private void settle() throws Exception {
        TestStore.settle(loop);
    }

    private void advance(long nanos) throws Exception {
        settle();
        now.addAndGet(nanos);
        settle();
    }

    private void connect(Secret secret, Heartbeat heartbeat) throws IOException {
        client = StoreClient.connect(loop, store.address(), store.rank(1, 2), secret, "rank 0", heartbeat);
    }

    /** A client that has joined, before its start. */
    private Rank join(Heartbeat heartbeat) throws Exception {
        connect(null, heartbeat);
        Rank rank = store.join(0);
        get(client.joined());
        return rank;
    }

    private Rank start(Heartbeat heartbeat) throws Exception {
        Rank rank = join(heartbeat);
        client.start(new Recorder());
        settle();
        return rank;
    }

    private static String text(CompletableFuture<ByteBuffer> response) throws Exception {
        ByteBuffer content = get(response);
        assertEquals(Wire.OK, content.get());
        return StandardCharsets.UTF_8.decode(content).toString();
    }

    /* Handshake. */

    @Test
    void rankDescribesItself() throws Exception {
        connect(null, new Heartbeat(SECOND, 5 * SECOND));
        Rank rank = store.accept();
        rank.greet();
        ByteBuffer join = rank.receive();
        assertEquals(List.of(1, 2, 3), List.of(join.getInt(), join.getInt(), join.getInt()));
        assertEquals(1, join.get());
        assertEquals("1 of 2 on its host", Wire.text(join));
        assertEquals("job", Wire.text(join));
        assertEquals("process " + ProcessHandle.current().pid(), Wire.text(join));
        assertEquals(SECOND, join.getLong());
        assertEquals(5 * SECOND, join.getLong());
        assertEquals(0, join.remaining());
        assertFalse(client.joined().isDone());
        rank.send(new Wire.Frame().number8(Wire.OK).number32(4));
        assertEquals(client, get(client.joined()));
        assertEquals(4, client.attempt());
    }

    @Test
    void framesAreSealedWithASecret() throws Exception {
        Secret secret = new Secret(new byte[16], "the secret");
        connect(secret, NONE);
        Rank rank = store.accept();
        byte[] nonce = new byte[Wire.NONCE_BYTES];
        rank.send(TestListener.greeting(Wire.MAGIC, Wire.VERSION, Wire.WITH_SECRET));
        ByteBuffer hello = rank.receive();
        assertEquals(Wire.MAX_HELLO, hello.remaining());
        byte[] clientNonce = nonce(hello, Wire.WITH_SECRET);
        assertFalse(Arrays.equals(nonce, clientNonce));
        rank.send(new Wire.Frame().number8(Wire.OK).raw(secret.proof(true, nonce, clientNonce)));
        rank.seal(secret.seal(true, nonce, clientNonce));
        assertEquals(1, rank.receive().getInt());
        rank.send(new Wire.Frame().number8(Wire.OK).number32(0));
        get(client.joined());
        CompletableFuture<ByteBuffer> response = client.request(Operation.GET, new Wire.Frame().text("key"));
        assertEquals("key", Wire.text(rank.request(Operation.GET)));
        rank.respond("value".getBytes(StandardCharsets.UTF_8));
        assertEquals("value", text(response));
    }

    private static byte[] nonce(ByteBuffer hello, byte mode) {
        assertEquals(Wire.MAGIC, hello.getLong());
        assertEquals(Wire.VERSION, hello.get());
        assertEquals(mode, hello.get());
        byte[] nonce = new byte[Wire.NONCE_BYTES];
        hello.get(nonce);
        return nonce;
    }

    @Test
    void helloWithoutASecretProvesNothing() throws Exception {
        connect(null, NONE);
        Rank rank = store.accept();
        rank.send(TestListener.greeting(Wire.MAGIC, Wire.VERSION, Wire.WITHOUT_SECRET));
        ByteBuffer hello = rank.receive();
        assertArrayEquals(new byte[Wire.NONCE_BYTES], nonce(hello, Wire.WITHOUT_SECRET));
        assertEquals(0, hello.remaining());
    }

    private String refused(Secret secret, int version, byte mode) throws IOException {
        connect(secret, NONE);
        Rank rank = store.accept();
        rank.send(TestListener.greeting(Wire.MAGIC, version, mode));
        RefusedException refused = assertInstanceOf(RefusedException.class, failure(client.joined()));
        if (version != Wire.VERSION) {
            // The rank introduces itself, so that the store can tell the others why it does not join.
            ByteBuffer introduction = rank.receive();
            assertEquals(Wire.MAGIC, introduction.getLong());
            assertEquals(Wire.VERSION, introduction.get());
            assertEquals(1, introduction.getInt());
            assertEquals(Wire.RELEASE, Wire.text(introduction));
        }
        // A process that does not know the secret may have sent the greeting.
        assertEquals(secret != null, refused.isRetryable());
        rank.requireEnd();
        return refused.getMessage();
    }

    @Test
    void versionsAndSecretsOfBothEndsMustAgree() throws Exception {
        Secret secret = new Secret(new byte[16], "the secret");
        int other = Wire.VERSION + 1;
        assertEquals(
                "versions of the store's protocol must be equal: rank 0 has " + other + ", this rank has "
                        + Wire.VERSION + " (nccl4j " + Wire.RELEASE + ")",
                refused(null, other, Wire.WITHOUT_SECRET));
        assertEquals(
                "rank 0 has a secret, and this rank has none: set NCCL4J_STORE_SECRET or NCCL4J_STORE_SECRET_FILE for all"
                        + " ranks or for none",
                refused(null, Wire.VERSION, Wire.WITH_SECRET));
        assertEquals(
                "rank 0 has no secret, and this rank has one: set NCCL4J_STORE_SECRET or NCCL4J_STORE_SECRET_FILE for all"
                        + " ranks or for none",
                refused(secret, Wire.VERSION, Wire.WITHOUT_SECRET));
        connect(secret, NONE);
        Rank rank = store.accept();
        rank.send(TestListener.greeting(Wire.MAGIC, Wire.VERSION, Wire.WITH_SECRET));
        rank.receive();
        rank.send(new Wire.Frame().number8(Wire.OK).raw(new byte[Wire.PROOF_BYTES]));
        RefusedException unproven = assertInstanceOf(RefusedException.class, failure(client.joined()));
        assertEquals("the store does not prove that it has the secret of this rank", unproven.getMessage());
        assertTrue(unproven.isRetryable());
        connect(secret, NONE);
        rank = store.accept();
        rank.send(TestListener.greeting(Wire.MAGIC, Wire.VERSION, Wire.WITH_SECRET));
        rank.receive();
        rank.send(new Wire.Frame().number8(Wire.FAILED).text("no"));
        RefusedException forged = assertInstanceOf(RefusedException.class, failure(client.joined()));
        assertEquals("no", forged.getMessage());
        assertTrue(forged.isRetryable());
    }

    /** What the kernel does by chance, if the port of the store is in the range for clients and nobody listens there. */
    @Test
    void connectionToItselfIsClosed() throws Exception {
        SocketChannel channel = SocketChannel.open().bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        InetSocketAddress address = (InetSocketAddress) channel.getLocalAddress();
        client = StoreClient.connect(loop, channel, address, store.rank(1, 2), null, "rank 0", NONE);
        assertEquals(
                "no store listens at this address: the connection was to itself",
                failure(client.joined()).getMessage());
        assertFalse(channel.isOpen());
    }

    /** Refusals of the store end the attempt. */
    @Test
    void refusalsHaveTheReasonOfTheStore() throws Exception {
        connect(null, NONE);
        Rank rank = store.accept();
        rank.send(TestListener.greeting(Wire.MAGIC, Wire.VERSION, Wire.WITHOUT_SECRET));
        rank.receive();
        rank.send(new Wire.Frame().number8(Wire.FAILED).text("no"));
        assertEquals(
                "no",
                assertInstanceOf(RefusedException.class, failure(client.joined()))
                        .getMessage());
        rank.requireEnd();
        for (byte status : new byte[] {Wire.FAILED, Wire.ANOTHER_JOB}) {
            connect(null, NONE);
            rank = store.greet();
            rank.send(new Wire.Frame().number8(status).text("not you"));
            RefusedException refused = assertInstanceOf(RefusedException.class, failure(client.joined()));
            assertEquals("not you", refused.getMessage());
            assertEquals(status == Wire.ANOTHER_JOB, refused.isRetryable());
            rank.requireEnd();
        }
    }

    @Test
    void anotherServiceIsRefused() throws Exception {
        connect(null, NONE);
        Rank rank = store.accept();
        rank.send(TestListener.greeting(Wire.MAGIC + 1, Wire.VERSION, Wire.WITHOUT_SECRET));
        assertEquals(
                "another service listens at this address",
                failure(client.joined()).getMessage());
        rank.requireEnd();
    }

    @Test
    void addressWithoutAStoreFails() throws Exception {
        InetSocketAddress address = store.address();
        store.close();
        client = StoreClient.connect(loop, address, store.rank(1, 2), null, "rank 0", NONE);
        assertInstanceOf(ConnectException.class, failure(client.joined()));
        InetSocketAddress unresolved = InetSocketAddress.createUnresolved("none", 1);
        client = StoreClient.connect(loop, unresolved, store.rank(1, 2), null, "rank 0", NONE);
        assertEquals(
                "java.nio.channels.UnresolvedAddressException",
                assertInstanceOf(IOException.class, failure(client.joined())).getMessage());
    }

    @Test
    void attemptCanBeAbandoned() throws Exception {
        connect(null, NONE);
        Rank rank = store.accept();
        rank.send(TestListener.greeting(Wire.MAGIC, Wire.VERSION, Wire.WITHOUT_SECRET));
        rank.receive();
        client.abandon();
        assertEquals("closed by this rank", failure(client.joined()).getMessage());
        rank.requireEnd();
        // Again, and after an attempt that failed by itself.
        client.abandon();
        settle();
        assertTrue(client.isClosed());
    }

    @Test
    void framesHaveLimits() throws Exception {
        connect(null, NONE);
        Rank rank = store.greet();
        rank.sendRaw(ByteBuffer.allocate(4).putInt(Wire.MAX_JOIN + 1).array());
        assertEquals(
                "a frame must have <= 4096 bytes: 4097",
                failure(client.joined()).getMessage());
        // A value of each of two ranks.
        int longest = 2 * (4 + Arguments.LONGEST_VALUE) + Wire.MAX_JOIN;
        rank = start(NONE);
        CompletableFuture<ByteBuffer> response = client.request(Operation.GET, new Wire.Frame());
        rank.request(Operation.GET);
        rank.respond(new byte[longest - 5]);
        assertEquals(longest - 4, get(response).remaining());
        rank.sendRaw(ByteBuffer.allocate(4).putInt(longest + 1).array());
        rank.requireEnd();
        settle();
        assertEquals(
                List.of("BROKEN: a frame must have <= " + longest + " bytes: " + (longest + 1)), List.copyOf(events));
    }

    /* Requests. */

    @Test
    void responsesBelongToTheirRequests() throws Exception {
        Rank rank = start(NONE);
        CompletableFuture<ByteBuffer> first = client.request(Operation.GET, new Wire.Frame().text("a"));
        CompletableFuture<ByteBuffer> second = client.request(Operation.ADD, new Wire.Frame().text("b"));
        CompletableFuture<ByteBuffer> given = client.request(Operation.DELETE, new Wire.Frame());
        assertEquals("a", Wire.text(rank.request(Operation.GET)));
        int number = rank.number();
        assertEquals("b", Wire.text(rank.request(Operation.ADD)));
        rank.respond("for b".getBytes(StandardCharsets.UTF_8));
        assertEquals(0, rank.request(Operation.DELETE).remaining());
        given.cancel(false);
        // Nobody waits for these.
        rank.respond(new byte[0]);
        rank.respond(1000, new byte[0]);
        rank.respond(number, "for a".getBytes(StandardCharsets.UTF_8));
        assertEquals("for a", text(first));
        assertEquals("for b", text(second));
        assertEquals(List.of(), List.copyOf(events));
    }

    @Test
    void requestsFailWithTheReasonOfTheEnd() throws Exception {
        Rank rank = start(NONE);
        CompletableFuture<ByteBuffer> pending = client.request(Operation.GET, new Wire.Frame());
        rank.request(Operation.GET);
        rank.sendCloseNotice(Wire.FAILED, "rank 0 has closed its store");
        assertEquals("rank 0 has closed its store", failure(pending).getMessage());
        CompletableFuture<ByteBuffer> later = client.request(Operation.GET, new Wire.Frame());
        assertEquals("rank 0 has closed its store", failure(later).getMessage());
        // Nothing is left to be sent.
        get(client.send(Operation.EXIT, new Wire.Frame()));
        assertEquals(List.of("CLOSED: rank 0 has closed its store"), List.copyOf(events));
    }

    @Test
    void endHasItsKind() throws Exception {
        for (byte status : new byte[] {Wire.KEEPER_LOST, Wire.DECLARED_LOST, Wire.FAILED}) {
            Rank rank = start(NONE);
            rank.sendCloseNotice(status, "why");
            rank.requireEnd();
        }
        start(NONE).close();
        settle();
        start(NONE);
        client.abandon();
        settle();
        assertEquals(
                List.of(
                        "BROKEN: why",
                        "DECLARED_LOST: why",
                        "CLOSED: why",
                        "BROKEN: the peer has closed the connection",
                        "CLOSED: closed by this rank"),
                List.copyOf(events));
    }

    /** More than the kernel buffers: it is sent when the store has read the rest. */
    @Test
    void sentRequestsAreAwaited() throws Exception {
        Rank rank = start(NONE);
        get(client.send(Operation.EXIT, new Wire.Frame().text("group")));
        assertEquals("group", Wire.text(rank.request(Operation.EXIT)));
        byte[] large = new byte[16 << 20];
        CompletableFuture<Void> sent = client.send(Operation.SET, new Wire.Frame().raw(large));
        advance(SECOND);
        assertFalse(sent.isDone());
        assertEquals(large.length, rank.request(Operation.SET).remaining());
        settle();
        advance(SECOND / 1000 - 1);
        assertFalse(sent.isDone());
        advance(1);
        get(sent);
    }

    /* Messages that nobody has requested. */

    private static Wire.Frame notice(int number) {
        return new Wire.Frame().raw(new Notice(Notice.Kind.HEARD, "group", number, "process", "", 0).toBytes());
    }

    @Test
    void noticesAndQuestionsComeToTheListener() throws Exception {
        Rank rank = join(NONE);
        // Nobody listens yet: a notice is for nobody, since no group is entered; a question is kept.
        rank.send(notice(7));
        rank.send(new Wire.Frame().number32(Wire.QUESTION));
        settle();
        assertFalse(client.isClosed());
        client.start(new Recorder());
        settle();
        assertEquals(List.of("question"), List.copyOf(events));
        rank.send(notice(8));
        rank.send(new Wire.Frame().number32(Wire.QUESTION));
        settle();
        assertEquals(List.of("question", "notice of 8", "question"), List.copyOf(events));
    }

    @Test
    void questionsAreNotInventedAtTheStart() throws Exception {
        start(NONE);
        settle();
        assertEquals(List.of(), List.copyOf(events));
    }

    /* Heartbeats. */

    private void beat(Rank rank) throws Exception {
        rank.request(Operation.HEARTBEAT);
        rank.respond(new byte[0]);
        settle();
    }

    @Test
    void heartbeatsAreSentInIntervals() throws Exception {
        Rank rank = start(new Heartbeat(SECOND, 0));
        for (int i = 0; i < 3; i++) {
            advance(SECOND - 1);
            // No heartbeat precedes this request.
            client.request(Operation.GONE, new Wire.Frame());
            rank.request(Operation.GONE);
            advance(1);
            beat(rank);
        }
        assertEquals(0, client.silence());
        assertEquals(List.of(), List.copyOf(events));
    }

    @Test
    void noHeartbeatsWithoutAnInterval() throws Exception {
        Rank rank = start(NONE);
        advance(100 * SECOND);
        client.request(Operation.GONE, new Wire.Frame());
        rank.request(Operation.GONE);
        assertEquals(0, client.silence());
    }

    @Test
    void silenceOfTheStoreIsReported() throws Exception {
        Rank rank = start(new Heartbeat(SECOND, 0));
        for (int i = 0; i < 3; i++) {
            advance(SECOND);
            rank.request(Operation.HEARTBEAT);
        }
        assertEquals(0, client.silence());
        assertEquals(List.of(), List.copyOf(events));
        advance(SECOND);
        assertEquals(4 * SECOND, client.silence());
        assertEquals(List.of("silence 4000"), List.copyOf(events));
        advance(SECOND);
        assertEquals(List.of("silence 4000"), List.copyOf(events));
        rank.respond(new byte[0]);
        settle();
        assertEquals(0, client.silence());
        advance(SECOND);
        assertEquals(List.of("silence 4000", "silence 0"), List.copyOf(events));
    }

    private void requireNoTimers() throws Exception {
        settle();
        CompletableFuture<Boolean> idle = new CompletableFuture<>();
        loop.execute(() -> idle.complete(loop.timers().isEmpty()));
        assertTrue(get(idle));
    }

    /** The patience ends with a heartbeat, or between two. */
    @Test
    void storeThatIsSilentForTooLongIsLeft() throws Exception {
        for (long part : new long[] {0, SECOND / 2}) {
            events.clear();
            Rank rank = start(new Heartbeat(SECOND, 4 * SECOND + part));
            for (int i = 0; i < 4; i++) {
                advance(SECOND);
                rank.request(Operation.HEARTBEAT);
            }
            if (part > 0) {
                advance(part);
            }
            client.request(Operation.GONE, new Wire.Frame());
            rank.request(Operation.GONE);
            assertFalse(client.isClosed());
            advance(1);
            assertTrue(client.isClosed());
            rank.requireEnd();
            String seconds = part == 0 ? "4 s" : "4.5 s";
            assertEquals(List.of("silence 4000", "SILENT: it was silent for " + seconds), List.copyOf(events));
            requireNoTimers();
        }
    }

    @Test
    void endedConnectionSendsNoHeartbeats() throws Exception {
        Rank rank = join(new Heartbeat(SECOND, 0));
        rank.close();
        settle();
        client.start(new Recorder());
        requireNoTimers();
        start(new Heartbeat(SECOND, 0)).close();
        requireNoTimers();
    }
}
