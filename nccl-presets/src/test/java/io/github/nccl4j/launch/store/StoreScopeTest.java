package io.github.nccl4j.launch.store;

import static io.github.nccl4j.testing.Expect.refused;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.Inquiry;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.env.Launcher;
import io.github.nccl4j.launch.env.RankValues;
import io.github.nccl4j.launch.store.PendingCollective.Kind;
import io.github.nccl4j.launch.store.TestListener.Rank;
import io.github.nccl4j.launch.wire.BroadcastMessage;
import io.github.nccl4j.launch.wire.Wire;
import io.github.nccl4j.launch.wire.Wire.Operation;
import io.github.nccl4j.testing.Ports;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests of {@link StoreScope}: the requests that its calls send, and what they return. The store is that of the test. */
@Timeout(60)
class StoreScopeTest {
    private static final Duration TIMEOUT = Duration.ofSeconds(15);

    private final TestSession opened = new TestSession(1, 4, true, TestSession.NO_HEARTBEAT);
    private final Rank store = opened.store();
    private final StoreScope whole = new StoreScope(opened.session());

    StoreScopeTest() throws Exception {}

    @AfterEach
    void close() throws Exception {
        opened.close();
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** A collective as the store reads it. */
    private record Call(
            Duration timeout,
            Kind kind,
            int root,
            List<Integer> ranks,
            List<Integer> attempts,
            String key,
            String value) {}

    private Call read() throws Exception {
        ByteBuffer request = store.request(Operation.COLLECTIVE);
        Call call = new Call(
                Duration.ofNanos(request.getLong()),
                Kind.values()[request.get()],
                request.getInt(),
                Wire.numbers(request),
                Wire.numbers(request),
                Wire.text(request),
                Wire.text(request));
        assertEquals(0, request.remaining());
        return call;
    }

    /** Makes a call, which the store answers. */
    private <T> T answered(Callable<T> call, Call expected, byte[] answer) throws Exception {
        CompletableFuture<T> result = TestSession.start(call);
        assertEquals(expected, read());
        store.respond(answer);
        return TestSession.get(result);
    }

    private static Call call(Kind kind, int root, String key, String value) {
        return new Call(TIMEOUT, kind, root, List.of(), List.of(), key, value);
    }

    @Test
    void callsOfAllRanks() throws Exception {
        assertEquals(1, whole.rank());
        assertEquals(4, whole.size());
        byte[] four = new Wire.Frame().text("a").text("b").text("").text("d").toBytes();
        List<byte[]> values =
                answered(() -> whole.gather("key", bytes("b"), TIMEOUT), call(Kind.GATHER, 0, "key", "b"), four);
        assertEquals(4, values.size());
        assertArrayEquals(bytes("d"), values.get(3));
        answered(
                () -> {
                    whole.barrier("key", TIMEOUT);
                    return null;
                },
                call(Kind.BARRIER, 0, "key", ""),
                new byte[0]);
    }

    @Test
    void rootSendsItsValueAndOthersGetIt() throws Exception {
        List<byte[]> message = new ArrayList<>();
        BroadcastMessage.send(() -> bytes("id"), message::add);
        byte[] received = answered(
                () -> whole.broadcast("key", 3, () -> bytes("not this"), TIMEOUT),
                call(Kind.BROADCAST, 3, "key", ""),
                message.get(0));
        assertArrayEquals(bytes("id"), received);
        byte[] sent = answered(
                () -> whole.broadcast("key", 1, () -> bytes("id"), TIMEOUT),
                call(Kind.BROADCAST, 1, "key", new String(message.get(0), StandardCharsets.UTF_8)),
                new byte[0]);
        assertArrayEquals(bytes("id"), sent);
        for (int root : new int[] {-1, 4}) {
            assertEquals(
                    "root must be >= 0 and < size: " + root + ", size 4",
                    assertThrows(
                                    IllegalArgumentException.class,
                                    () -> whole.broadcast("key", root, () -> new byte[0], TIMEOUT))
                            .getMessage());
        }
    }

    @Test
    void scopesHaveTheirPrefixAndSomeRanks() throws Exception {
        Rendezvous scope = whole.scope("outer").scope("inner");
        assertEquals(1, scope.rank());
        assertEquals(4, scope.size());
        answered(
                () -> {
                    scope.barrier("key", TIMEOUT);
                    return null;
                },
                call(Kind.BARRIER, 0, "outer/inner/key", ""),
                new byte[0]);
        Rendezvous some = whole.among("some", List.of(3, 1), List.of(0, TestSession.ATTEMPT));
        assertEquals(1, some.rank());
        assertEquals(2, some.size());
        byte[] two = new Wire.Frame().text("d").text("b").toBytes();
        List<byte[]> values = answered(
                () -> some.gather("key", bytes("b"), TIMEOUT),
                new Call(TIMEOUT, Kind.GATHER, 0, List.of(3, 1), List.of(0, 2), "some/key", "b"),
                two);
        assertEquals(2, values.size());
        answered(
                () -> {
                    whole.among("some", List.of(1, 0)).scope("inner").barrier("key", TIMEOUT);
                    return null;
                },
                new Call(TIMEOUT, Kind.BARRIER, 0, List.of(1, 0), List.of(), "some/inner/key", ""),
                new byte[0]);
        // Closing a scope does nothing.
        scope.close();
        opened.settle();
    }

    @Test
    void ranksOfAScopeAreChecked() {
        assertEquals("ranks must be >= 0 and < size: -1, size 4", refused(() -> whole.among("some", List.of(1, -1))));
        assertEquals("ranks must be >= 0 and < size: 4, size 4", refused(() -> whole.among("some", List.of(4, 1))));
        assertEquals("ranks must be distinct: [1, 0, 1]", refused(() -> whole.among("some", List.of(1, 0, 1))));
        assertEquals("ranks must include this rank: [0, 2], rank 1", refused(() -> whole.among("some", List.of(0, 2))));
        assertEquals(3, whole.among("some", List.of(3, 0, 1)).size());
    }

    @Test
    void abortsGroupsAndTextsHaveThePrefix() throws Exception {
        Rendezvous scope = whole.scope("scope");
        CompletableFuture<Void> aborted = TestSession.start(() -> {
            scope.abort("why");
            return null;
        });
        ByteBuffer abort = store.request(Operation.ABORT);
        assertEquals("scope/", Wire.text(abort));
        assertEquals("why", Wire.text(abort));
        store.respond(new byte[0]);
        TestSession.get(aborted);
        CompletableFuture<Boolean> entered =
                TestSession.start(() -> scope.membership("group", 7, lost -> {}).isPresent());
        ByteBuffer enter = store.request(Operation.ENTER);
        assertEquals("scope/group", Wire.text(enter));
        assertEquals(7, enter.getInt());
        store.respond(new byte[0]);
        assertTrue(TestSession.get(entered));
        assertTrue(scope.status("topic", () -> "text").isPresent());
        store.send(new Wire.Frame().number32(Wire.QUESTION));
        ByteBuffer report = ByteBuffer.wrap(Wire.bytes(store.request(Operation.REPORT)));
        assertEquals(List.of(0, 1), List.of(report.getInt(), report.getInt()));
        assertEquals("scope/topic", Wire.text(report));
        assertEquals("text", Wire.text(report));
    }

    @Test
    void responseWithTooFewValuesIsRefused() throws Exception {
        CompletableFuture<List<byte[]>> gather = TestSession.start(() -> whole.gather("key", bytes("b"), TIMEOUT));
        read();
        store.respond(new Wire.Frame().text("a").toBytes());
        Throwable refused = TestSession.failure(gather);
        assertEquals(RendezvousException.class, refused.getClass());
        assertEquals("the response of the store must have 4 values: it has 1", refused.getMessage());
    }

    /** The sessions of the three ranks of a store. */
    private static List<StoreSession> openThree() throws Exception {
        int port = Ports.free();
        List<CompletableFuture<StoreSession>> opening = new ArrayList<>();
        for (int rank = 0; rank < 3; rank++) {
            RankValues self = new RankValues(
                    new RankValues.Numbers(rank, 3, rank, 3), "127.0.0.1", port, "job", 0, Launcher.PROPERTIES);
            opening.add(TestSession.start(
                    () -> StoreSession.open(self, TestSession.settings(TIMEOUT, true, TestSession.NO_HEARTBEAT))));
        }
        List<StoreSession> sessions = new ArrayList<>();
        for (CompletableFuture<StoreSession> one : opening) {
            sessions.add(TestSession.get(one));
        }
        return sessions;
    }

    /** Rank 0 last, which has the store. */
    private static void close(List<StoreSession> sessions) {
        for (int rank = sessions.size() - 1; rank >= 0; rank--) {
            sessions.get(rank).close();
        }
    }

    private static Map<Integer, String> texts(Map<Integer, byte[]> answers) {
        Map<Integer, String> texts = new TreeMap<>();
        answers.forEach((rank, answer) -> texts.put(rank, new String(answer, StandardCharsets.UTF_8)));
        return texts;
    }

    /** An inquiry among few ranks has the ranks of its scope. */
    @Test
    void inquiriesAskTheRanksOfTheScope() throws Exception {
        List<StoreSession> sessions = openThree();
        try {
            List<Inquiry> inquiries = new ArrayList<>();
            for (int rank : new int[] {2, 1, 0}) {
                StoreScope scope = new StoreScope(sessions.get(rank));
                inquiries.add(scope.inquiry("topic", () -> bytes("of " + rank)).orElseThrow());
                inquiries.add(scope.among("some", List.of(2, 1, 0))
                        .inquiry("topic", () -> bytes("of " + rank))
                        .orElseThrow());
            }
            assertEquals(
                    Map.of(0, "of 0", 1, "of 1", 2, "of 2"),
                    texts(inquiries.get(0).ask(TIMEOUT)));
            assertEquals(
                    Map.of(0, "of 2", 1, "of 1", 2, "of 0"),
                    texts(inquiries.get(1).ask(TIMEOUT)));
            for (Inquiry inquiry : inquiries) {
                inquiry.close();
            }
        } finally {
            close(sessions);
        }
    }

    /** Nobody waits for the answer of a rank that is gone, whose number is that of the scope. */
    @Test
    void inquiriesDoNotWaitForGoneRanks() throws Exception {
        List<StoreSession> sessions = openThree();
        try {
            sessions.get(1).close();
            List<Inquiry> inquiries = new ArrayList<>();
            for (int rank : new int[] {2, 0}) {
                StoreScope scope = new StoreScope(sessions.get(rank));
                inquiries.add(scope.inquiry("all", () -> bytes("of " + rank)).orElseThrow());
                inquiries.add(scope.among("some", List.of(2, 0, 1))
                        .inquiry("topic", () -> bytes("of " + rank))
                        .orElseThrow());
            }
            assertEquals(Map.of(0, "of 0", 2, "of 2"), texts(inquiries.get(0).ask(TIMEOUT)));
            assertEquals(Map.of(0, "of 2", 1, "of 0"), texts(inquiries.get(1).ask(TIMEOUT)));
            for (Inquiry inquiry : inquiries) {
                inquiry.close();
            }
        } finally {
            close(sessions);
        }
    }

    /** The answers of so many ranks would be too much for the store. */
    @Test
    void thereIsNoInquiryAmongManyRanks() throws Exception {
        assertTrue(whole.inquiry("topic", () -> new byte[0]).isPresent());
        for (int more : new int[] {0, 1}) {
            int size = Inquiries.MAX_RANKS + more;
            try (TestSession large = new TestSession(1, size, true, TestSession.NO_HEARTBEAT)) {
                StoreScope scope = new StoreScope(large.session());
                assertEquals(
                        more == 0, scope.inquiry("topic", () -> new byte[0]).isPresent());
            }
        }
    }
}
