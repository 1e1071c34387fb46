package io.github.nccl4j.launch.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.LostRank;
import io.github.nccl4j.launch.Membership;
import io.github.nccl4j.launch.StatusEntry;
import io.github.nccl4j.launch.store.TestListener.Rank;
import io.github.nccl4j.launch.wire.Notice;
import io.github.nccl4j.launch.wire.Notice.Kind;
import io.github.nccl4j.launch.wire.Wire;
import io.github.nccl4j.launch.wire.Wire.Operation;
import io.github.nccl4j.testing.TestLog;
import io.github.nccl4j.testing.Waiting;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests of the memberships and of the status of a rank against a store of this test, which sends the notices and questions. */
@Timeout(60)
class MembershipsTest {
    private static final long SECOND = TestTime.SECOND;

    private final List<String> told = Collections.synchronizedList(new ArrayList<>());
    private TestSession opened = new TestSession(1, 3, true, TestSession.NO_HEARTBEAT);
    private StoreSession session = opened.session();
    private Rank store = opened.store();

    MembershipsTest() throws Exception {}

    @AfterEach
    void close() throws Exception {
        opened.close();
    }

    private void restart(boolean ofRank, Heartbeat heartbeat) throws Exception {
        opened.close();
        opened = new TestSession(1, 3, ofRank, heartbeat);
        session = opened.session();
        store = opened.store();
    }

    private CompletableFuture<Membership> entering(String group, int number, Consumer<LostRank> onLoss) {
        return TestSession.start(() -> session.memberships().enter(group, number, onLoss));
    }

    private Membership enter(String group, int number, Consumer<LostRank> onLoss) throws Exception {
        CompletableFuture<Membership> entering = entering(group, number, onLoss);
        ByteBuffer request = store.request(Operation.ENTER);
        assertEquals(group, Wire.text(request));
        assertEquals(number, request.getInt());
        assertEquals(0, request.remaining());
        store.respond(new byte[0]);
        return TestSession.get(entering);
    }

    private Membership enter(String group, int number) throws Exception {
        return enter(group, number, lost -> told.add(group + ": " + lost));
    }

    private void send(Kind kind, String group, int number, String reason, long nanos) throws Exception {
        store.send(new Wire.Frame().raw(new Notice(kind, group, number, "process " + number, reason, nanos).toBytes()));
    }

    private void awaitTold(int count) throws Exception {
        Waiting.value(count + " losses", told::size, size -> size >= count);
    }

    /* Memberships. */

    @Test
    void entryWaitsForTheStore() throws Exception {
        Thread entering = new Thread(() -> session.memberships().enter("group", 0, lost -> {}));
        entering.start();
        store.request(Operation.ENTER);
        Waiting.until(
                "an entry that waits", () -> !entering.isAlive() || entering.getState() == Thread.State.TIMED_WAITING);
        assertTrue(entering.isAlive());
        store.respond(new byte[0]);
        entering.join();
    }

    @Test
    void entryDoesNotFailWithTheConnection() throws Exception {
        CompletableFuture<Membership> entering = entering("group", 0, lost -> {});
        store.request(Operation.ENTER);
        store.close();
        TestSession.get(entering).close();
    }

    @Test
    void interruptIsKept() throws Exception {
        Thread.currentThread().interrupt();
        Membership membership = session.memberships().enter("group", 0, lost -> {});
        assertTrue(Thread.interrupted());
        store.request(Operation.ENTER);
        Thread.currentThread().interrupt();
        membership.close();
        assertTrue(Thread.interrupted());
        store.request(Operation.EXIT);
    }

    @Test
    void wrongArgumentsAreRefused() throws Exception {
        Memberships memberships = session.memberships();
        assertEquals(
                "number must be >= 0: -1",
                assertThrows(IllegalArgumentException.class, () -> memberships.enter("group", -1, lost -> {}))
                        .getMessage());
        Membership first = enter("group", 0);
        assertEquals(
                "a rank must be a member of a group once: group",
                assertThrows(IllegalArgumentException.class, () -> memberships.enter("group", 1, lost -> {}))
                        .getMessage());
        first.close();
        assertEquals("group", Wire.text(store.request(Operation.EXIT)));
        enter("group", 2);
    }

    @Test
    void lossesAreToldOnce() throws Exception {
        enter("group", 0);
        send(Kind.LOST, "group", 2, "no heartbeat", 0);
        send(Kind.LOST, "group", 2, "again", 0);
        send(Kind.LOST, "other", 3, "no heartbeat", 0);
        opened.settle();
        send(Kind.LOST, "group", 4, "cut", 0);
        opened.settle();
        assertEquals(
                List.of("group: rank 2 (process 2) is lost: no heartbeat", "group: rank 4 (process 4) is lost: cut"),
                List.copyOf(told));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void failureOfAListenerIsLogged(boolean isError) throws Exception {
        try (TestLog log = new TestLog()) {
            enter("group", 0, lost -> {
                if (isError) {
                    throw new StackOverflowError("a failure of a test");
                }
                throw new IllegalStateException("a failure of a test");
            });
            send(Kind.LOST, "group", 2, "cut", 0);
            opened.settle();
            assertEquals(List.of("WARNING: the loss of rank 2 (process 2) is lost: cut was not handled"), log.lines());
        }
    }

    @Test
    void groupThatWasLeftGetsNoNotices() throws Exception {
        Membership membership = enter("group", 0);
        CompletableFuture<Void> closed = TestSession.start(() -> {
            membership.close();
            membership.close();
            return null;
        });
        assertEquals("group", Wire.text(store.request(Operation.EXIT)));
        TestSession.get(closed);
        send(Kind.LOST, "group", 2, "cut", 0);
        // The second close has sent nothing.
        opened.settle();
        assertEquals(List.of(), List.copyOf(told));
    }

    /** After the end of the store, nothing is left to be closed. */
    @Test
    void membershipCanBeClosedAfterTheStore() throws Exception {
        Membership membership = enter("group", 0);
        Membership other = enter("other", 0);
        store.close();
        membership.close();
        session.close();
        for (String group : List.of("group", "other")) {
            assertEquals(
                    "the store is closed",
                    assertThrows(IllegalStateException.class, () -> session.memberships()
                                    .enter(group, 0, lost -> {}))
                            .getMessage());
        }
        other.close();
    }

    private static Map<Integer, Long> seconds(Map<Integer, Duration> silent) {
        Map<Integer, Long> seconds = new TreeMap<>();
        silent.forEach((number, time) -> seconds.put(number, time.toSeconds()));
        return seconds;
    }

    @Test
    void silentMembersAreNamedWithTheirTimes() throws Exception {
        Membership membership = enter("group", 0);
        assertEquals(Map.of(), membership.silent());
        // The store is not silent.
        send(Kind.KEEPER, "group", 7, "", 0);
        send(Kind.SILENT, "group", 2, "", 3600 * SECOND);
        send(Kind.SILENT, "group", 4, "", 7200 * SECOND);
        send(Kind.SILENT, "group", 5, "", 10800 * SECOND);
        opened.settle();
        assertEquals(Set.of(2, 4, 5), membership.silent().keySet());
        Map<Integer, Long> silent = seconds(membership.silent());
        assertTrue(silent.get(2) >= 3600 && silent.get(2) < 3700, silent::toString);
        assertTrue(silent.get(4) >= 7200 && silent.get(4) < 7300, silent::toString);
        send(Kind.HEARD, "group", 2, "", 0);
        send(Kind.LOST, "group", 4, "cut", 0);
        opened.settle();
        assertEquals(Set.of(5), membership.silent().keySet());
        assertEquals(List.of("group: rank 4 (process 4) is lost: cut"), List.copyOf(told));
    }

    /** The keeper of the store is silent if the store is. */
    @Test
    void silenceOfTheStoreIsThatOfItsKeeper() throws Exception {
        restart(true, new Heartbeat(30_000_000, 0));
        CompletableFuture<Membership> entering = entering("group", 0, lost -> {});
        CompletableFuture<Membership> other = entering("other", 0, lost -> {});
        for (int entered = 0; entered < 2; ) {
            ByteBuffer request = store.receive();
            int number = request.getInt();
            entered += Operation.read(request) == Operation.ENTER ? 1 : 0;
            store.respond(number, new byte[0]);
        }
        send(Kind.KEEPER, "group", 7, "", 0);
        Waiting.until("silence of the store", () -> session.silence() != 0);
        Map<Integer, Duration> silent = TestSession.get(entering).silent();
        assertEquals(Set.of(7), silent.keySet());
        assertTrue(silent.get(7).toNanos() > 90_000_000, silent::toString);
        assertEquals(Map.of(), TestSession.get(other).silent());
    }

    private String end(byte status) throws Exception {
        if (status == Wire.OK) {
            store.close();
            return "the peer has closed the connection";
        }
        store.sendCloseNotice(status, "why");
        return "why";
    }

    /** In an orderly end nobody is lost. */
    @Test
    void orderlyEndOfTheStoreIsNoLoss() throws Exception {
        try (TestLog log = new TestLog()) {
            enter("group", 0);
            send(Kind.KEEPER, "group", 7, "", 0);
            end(Wire.FAILED);
            store.requireEnd();
            assertThrows(RuntimeException.class, () -> session.gone(Duration.ZERO));
            assertEquals(List.of(), List.copyOf(told));
            assertEquals(List.of(), log.lines());
        }
    }

    @Test
    void endOfTheStoreIsTheLossOfItsKeeper() throws Exception {
        for (byte status : new byte[] {Wire.OK, Wire.KEEPER_LOST}) {
            try (TestLog log = new TestLog()) {
                restart(true, TestSession.NO_HEARTBEAT);
                told.clear();
                enter("group", 0);
                send(Kind.KEEPER, "group", 7, "", 0);
                String why = end(status);
                awaitTold(1);
                assertThrows(RuntimeException.class, () -> session.gone(Duration.ZERO));
                assertEquals(
                        List.of(
                                "group: rank 7 (process 7) is lost: it keeps the store, and the connection to the store has"
                                        + " ended (" + why + ")"),
                        List.copyOf(told));
                assertEquals(List.of(), log.lines());
            }
        }
    }

    @Test
    void lostConnectionIsLoggedForAMember() throws Exception {
        restart(false, TestSession.NO_HEARTBEAT);
        try (TestLog log = new TestLog()) {
            enter("group", 0);
            store.close();
            assertThrows(RuntimeException.class, () -> session.gone(Duration.ZERO));
            Waiting.until("a line of the log", () -> !log.lines().isEmpty());
            assertEquals(
                    List.of("WARNING: rank 1 has lost its connection to the store at " + opened.address()
                            + ": the peer has closed the connection. It is not told of lost ranks any more: NCCL or a"
                            + " deadline may detect them later"),
                    log.lines());
            assertEquals(List.of(), List.copyOf(told));
        }
        try (TestLog log = new TestLog()) {
            // Nobody is a member.
            restart(false, TestSession.NO_HEARTBEAT);
            store.close();
            assertThrows(RuntimeException.class, () -> session.gone(Duration.ZERO));
            assertEquals(List.of(), log.lines());
        }
    }

    /** The others count it as lost: it must not go on as if they were there. */
    @Test
    void rankThatWasDeclaredLostIsTold() throws Exception {
        try (TestLog log = new TestLog()) {
            enter("group", 4);
            send(Kind.KEEPER, "group", 7, "", 0);
            end(Wire.DECLARED_LOST);
            awaitTold(1);
            assertEquals(
                    List.of("group: rank 4 (this process) is lost: its connection to the store of rank 0 at "
                            + opened.address() + " has ended (why), and the other ranks count it as lost"),
                    List.copyOf(told));
            assertEquals(List.of(), log.lines());
        }
    }

    /** With the keeper among the members, that one is lost; otherwise this rank. */
    @Test
    void silenceBeyondThePatienceIsALoss() throws Exception {
        for (boolean withKeeper : new boolean[] {true, false}) {
            try (TestLog log = new TestLog()) {
                restart(true, TestSession.NO_HEARTBEAT);
                told.clear();
                enter("group", 4);
                if (withKeeper) {
                    send(Kind.KEEPER, "group", 7, "", 0);
                    opened.settle();
                }
                session.memberships().handleEnd("it was silent", StoreClient.End.SILENT);
                assertEquals(1, told.size());
                String lost = withKeeper ? "group: rank 7 (process 7)" : "group: rank 4 (this process)";
                assertTrue(told.get(0).startsWith(lost), told::toString);
                assertTrue(told.get(0).contains("(it was silent)"), told::toString);
                assertEquals(List.of(), log.lines());
            }
        }
    }

    /* The status. */

    private ByteBuffer report() throws Exception {
        store.send(new Wire.Frame().number32(Wire.QUESTION));
        return ByteBuffer.wrap(Wire.bytes(store.request(Operation.REPORT)));
    }

    private static Map<String, String> texts(ByteBuffer report, int omitted) throws Exception {
        assertEquals(omitted, report.getInt());
        Map<String, String> texts = new TreeMap<>();
        for (int left = report.getInt(); left > 0; left--) {
            texts.put(Wire.text(report), Wire.text(report));
        }
        assertEquals(0, report.remaining());
        return texts;
    }

    @Test
    void statusHasTheTextsOfAllTopics() throws Exception {
        StatusEntries status = session.status();
        assertEquals(Map.of(), texts(report(), 0));
        StatusEntry first = status.add("a", () -> "first");
        status.add("b", () -> {
            throw new IllegalStateException("no");
        });
        assertEquals(Map.of("a", "first", "b", "java.lang.IllegalStateException: no"), texts(report(), 0));
        assertEquals(
                "a topic must have one text at most: a",
                assertThrows(IllegalArgumentException.class, () -> status.add("a", () -> "second"))
                        .getMessage());
        first.close();
        status.add("a", () -> "second");
        first.close();
        assertEquals("second", texts(report(), 0).get("a"));
        opened.close();
        assertEquals(
                "the store is closed",
                assertThrows(IllegalStateException.class, () -> status.add("c", () -> ""))
                        .getMessage());
    }

    /** A report is limited; a text that does not fit leaves room for others. */
    @Test
    void textsThatDoNotFitAreCounted() throws Exception {
        StatusEntries status = session.status();
        // The two numbers, and two lengths and a topic.
        String longest = "x".repeat(Wire.MAX_REPORT - 2 * 4 - 2 * 4 - 1);
        StatusEntry fits = status.add("a", () -> longest);
        ByteBuffer report = report();
        assertEquals(Wire.MAX_REPORT, report.remaining());
        assertEquals(Map.of("a", longest), texts(report, 0));
        fits.close();
        StatusEntry tooLong = status.add("a", () -> longest + "y");
        assertEquals(Map.of(), texts(report(), 1));
        status.add("b", () -> "short");
        assertEquals(Map.of("b", "short"), texts(report(), 1));
        tooLong.close();
        for (int i = 0; i < 3; i++) {
            status.add("half " + i, () -> "x".repeat(Wire.MAX_REPORT / 2 - 100));
        }
        assertEquals(1, report().getInt());
    }
}
