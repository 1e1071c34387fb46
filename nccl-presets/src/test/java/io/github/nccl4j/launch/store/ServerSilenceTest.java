package io.github.nccl4j.launch.store;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.nccl4j.launch.store.TestStore.Client;
import io.github.nccl4j.launch.wire.Wire;
import io.github.nccl4j.launch.wire.Wire.Operation;
import io.github.nccl4j.testing.TestLog;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests of the heartbeats of ranks at a store, whose time is set, and of the looks of observers at the ranks. */
@Timeout(60)
class ServerSilenceTest {
    private static final long SECOND = TestStore.SECOND;
    private static final String PROCESS = "(127.0.0.1, process 7)";

    private final TestStore store = TestStore.ofJob(3, null);

    @AfterEach
    void close() throws IOException {
        store.close();
    }

    private Client join(int rank, long interval, long patience) throws IOException {
        Client client = store.greet();
        client.join(client.claim(rank, 3, interval, patience));
        assertEquals(Wire.OK, client.receive().get());
        return client;
    }

    private static void enter(Client client, int number) throws IOException {
        assertEquals(
                Wire.OK,
                client.ask(Operation.ENTER, new Wire.Frame().text("group").number32(number))
                        .get());
    }

    private static void beat(Client client) throws IOException {
        assertEquals(Wire.OK, client.ask(Operation.HEARTBEAT, new Wire.Frame()).get());
    }

    /* Heartbeats. */

    @Test
    void silenceIsToldAfterThreeIntervals() throws Exception {
        Client silent = join(1, SECOND, 0);
        Client member = join(2, 0, 0);
        enter(silent, 1);
        enter(member, 2);
        try (TestLog log = new TestLog()) {
            store.pass(3 * SECOND);
            // No notice precedes the response.
            beat(member);
            assertEquals(List.of(), log.lines());
            store.pass(SECOND / 4);
            assertEquals("rank 1 " + PROCESS + " is silent for 3.25 s", TestStore.notice(member.receive()));
            // It is told once, and is no loss.
            store.pass(30 * SECOND);
            beat(member);
            assertEquals(List.of("WARNING: rank 1 " + PROCESS + " has been silent for 3.25 s"), log.lines());
            beat(silent);
            assertEquals("rank 1 " + PROCESS + " is heard", TestStore.notice(member.receive()));
            assertEquals("INFO: rank 1 " + PROCESS + " continues", log.lines().get(1));
            beat(silent);
            beat(member);
            store.pass(3 * SECOND);
            beat(member);
            store.pass(SECOND / 4);
            assertEquals("rank 1 " + PROCESS + " is silent for 3.25 s", TestStore.notice(member.receive()));
            assertEquals(3, log.lines().size());
        }
    }

    @Test
    void anyRequestEndsTheSilence() throws Exception {
        Client client = join(1, SECOND, 4 * SECOND);
        try (TestLog log = new TestLog()) {
            for (int i = 0; i < 5; i++) {
                store.pass(3 * SECOND);
                assertEquals(
                        Wire.OK, client.ask(Operation.GONE, new Wire.Frame()).get());
            }
            assertEquals(List.of(), log.lines());
        }
    }

    @Test
    void silenceBeyondThePatienceIsALoss() throws Exception {
        Client silent = join(1, SECOND, 5 * SECOND);
        Client member = join(2, 100 * SECOND, 0);
        enter(silent, 1);
        enter(member, 2);
        store.pass(5 * SECOND);
        assertEquals("rank 1 " + PROCESS + " is silent for 3.25 s", TestStore.notice(member.receive()));
        beat(member);
        store.pass(SECOND / 4);
        assertEquals("rank 1 " + PROCESS + " is lost: it was silent for 5.25 s", TestStore.notice(member.receive()));
        assertEquals("rank 1 was declared lost: it was silent for 5.25 s", silent.closeNotice(Wire.DECLARED_LOST));
        ByteBuffer gone = member.ask(Operation.GONE, new Wire.Frame());
        assertEquals(Wire.OK, gone.get());
        assertEquals(List.of(1), Wire.numbers(gone));
    }

    /** A server that had no processor has not read what the ranks have sent meanwhile. */
    @Test
    void timeByWhichTheCheckIsLateIsNoSilence() throws Exception {
        Client client = join(1, SECOND, 5 * SECOND);
        for (int i = 0; i < 3; i++) {
            store.advance(60 * SECOND);
        }
        beat(client);
    }

    @Test
    void rankWithoutHeartbeatsIsNeverSilent() throws Exception {
        Client client = join(1, 0, 5 * SECOND);
        join(2, SECOND, 0);
        store.pass(10 * SECOND);
        beat(client);
        assertEquals(
                List.of("1 NO_ANSWER " + PROCESS + " 0 ms, ", "2 SILENT " + PROCESS + " 10000 ms, "),
                store.observe().look().get(0).ranks());
    }

    /* Observers. */

    private static void report(Client rank, String text) throws IOException {
        assertEquals(
                Wire.OK, rank.ask(Operation.REPORT, new Wire.Frame().text(text)).get());
    }

    @Test
    void looksSeeTheStatesOfTheRanks() throws Exception {
        Client lost = store.join(2, 3);
        Client left = store.join(0, 3);
        store.join(1, 3);
        lost.close();
        assertEquals(Wire.OK, left.ask(Operation.LEAVE, new Wire.Frame()).get());
        left.close();
        store.settle();
        assertEquals(
                List.of(new TestStore.Job(
                        "job",
                        0,
                        3,
                        List.of(
                                "0 LEFT " + PROCESS + " 0 ms, ",
                                "2 LOST " + PROCESS + " 0 ms, ",
                                "1 NO_ANSWER " + PROCESS + " 0 ms, "))),
                store.observe().look());
    }

    /** A rank is asked once, for any number of observers, until it has answered. */
    @Test
    void reportGoesToAllThatWait() throws Exception {
        Client rank = store.join(1, 3);
        Client first = store.observe();
        Client second = store.observe();
        for (int i = 0; i < 2; i++) {
            int one = first.beginLook(SECOND);
            store.settle();
            int other = second.beginLook(SECOND);
            store.settle();
            rank.requireQuestion();
            report(rank, "text " + i);
            List<String> answered = List.of("1 ANSWERED " + PROCESS + " 0 ms, text " + i);
            assertEquals(answered, first.readLook(one).get(0).ranks());
            assertEquals(answered, second.readLook(other).get(0).ranks());
        }
    }

    /** A look that has given up, or whose observer has ended, gets no answer. */
    @Test
    void lateReportGoesToTheNextLook() throws Exception {
        Client rank = store.join(1, 3);
        Client observer = store.observe();
        assertEquals(
                List.of("1 NO_ANSWER " + PROCESS + " 0 ms, "),
                observer.look().get(0).ranks());
        Client ended = store.observe();
        ended.beginLook(SECOND);
        store.settle();
        ended.close();
        store.settle();
        int begun = observer.beginLook(SECOND);
        store.settle();
        rank.requireQuestion();
        report(rank, "text");
        assertEquals(
                List.of("1 ANSWERED " + PROCESS + " 0 ms, text"),
                observer.readLook(begun).get(0).ranks());
        assertEquals(Wire.OK, rank.ask(Operation.HEARTBEAT, new Wire.Frame()).get());
    }

    @Test
    void rankThatEndsDoesNotAnswer() throws Exception {
        Client lost = store.join(1, 3);
        Client left = store.join(2, 3);
        Client observer = store.observe();
        int begun = observer.beginLook(SECOND);
        store.settle();
        left.requireQuestion();
        assertEquals(Wire.OK, left.ask(Operation.LEAVE, new Wire.Frame()).get());
        lost.requireQuestion();
        lost.close();
        store.settle();
        left.close();
        assertEquals(
                List.of("1 LOST " + PROCESS + " 0 ms, ", "2 LEFT " + PROCESS + " 0 ms, "),
                observer.readLook(begun).get(0).ranks());
    }

    private void endsConnection(Client rank, Client member, String reason) throws Exception {
        rank.requireEnd();
        store.settle();
        assertEquals(
                "rank 1 " + PROCESS + " is lost: its connection to the store has ended (a status must be asked for, and"
                        + " have <= 16384 bytes: " + reason + ")",
                TestStore.notice(member.receive()));
    }

    @Test
    void reportMustBeAskedForAndHasALimit() throws Exception {
        Client member = store.join(2, 3);
        enter(member, 2);
        Client rank = store.join(1, 3);
        enter(rank, 1);
        rank.request(Operation.REPORT, new Wire.Frame().text(""));
        endsConnection(rank, member, "0 bytes of rank 1");
        rank = store.join(1, 3);
        // The history of the group.
        assertEquals("rank 1", TestStore.notice(rank.enter("group", 1)).substring(0, 6));
        Client observer = store.observe();
        observer.look();
        rank.requireQuestion();
        member.requireQuestion();
        report(rank, "x".repeat(Wire.MAX_REPORT));
        // Once for each question.
        rank.request(Operation.REPORT, new Wire.Frame().text(""));
        endsConnection(rank, member, "0 bytes of rank 1");
        rank = store.join(1, 3);
        observer.look();
        rank.requireQuestion();
        rank.request(Operation.REPORT, new Wire.Frame().text("x".repeat(Wire.MAX_REPORT + 1)));
        rank.requireEnd();
    }

    @Test
    void observersHaveALimit() throws Exception {
        Client first = store.observe();
        for (int i = 1; i < 16; i++) {
            store.observe();
        }
        Client more = store.greet();
        more.send(new Wire.Frame().number32(Wire.OBSERVER));
        ByteBuffer response = more.receive();
        assertEquals(Wire.FAILED, response.get());
        assertEquals("observers of a store must be <= 16: 17", Wire.text(response));
        more.requireEnd();
        first.close();
        store.settle();
        assertEquals("job", store.observe().look().get(0).name());
    }

    @Test
    void invalidLookEndsTheConnection() throws Exception {
        Client observer = store.observe();
        observer.beginLook(-1);
        observer.requireEnd();
        observer = store.observe();
        observer.send(new Wire.Frame().number32(1));
        observer.requireEnd();
    }
}
