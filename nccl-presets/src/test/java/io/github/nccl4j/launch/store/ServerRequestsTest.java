package io.github.nccl4j.launch.store;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.nccl4j.launch.store.PendingCollective.Kind;
import io.github.nccl4j.launch.store.TestStore.Client;
import io.github.nccl4j.launch.wire.Arguments;
import io.github.nccl4j.launch.wire.Wire;
import io.github.nccl4j.launch.wire.Wire.Operation;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests of the requests of ranks, as frames: the response to each, and the end of a connection whose request is invalid. */
@Timeout(60)
class ServerRequestsTest {
    private static final long SECOND = TestStore.SECOND;
    private static final int MAX_PENDING = 4096;

    private TestStore store = TestStore.ofJob(3, null);

    @AfterEach
    void close() throws IOException {
        store.close();
    }

    private static Wire.Frame frame() {
        return new Wire.Frame();
    }

    private static Wire.Frame text(String text) {
        return frame().text(text);
    }

    /** The response in words, such as "ok: value". */
    private static String outcome(ByteBuffer response) throws IOException {
        byte status = response.get();
        String text;
        if (status == Wire.OK) {
            text = "ok: " + StandardCharsets.UTF_8.decode(response);
        } else if (status == Wire.FAILED) {
            text = "failed: " + Wire.text(response);
        } else {
            assertEquals(Wire.TIMED_OUT, status);
            text = "timed out: " + Wire.text(response) + " " + Wire.numbers(response);
        }
        assertEquals(0, response.remaining());
        return text;
    }

    private static String outcome(Client client, Operation operation, Wire.Frame arguments) throws IOException {
        return outcome(client.ask(operation, arguments));
    }

    /** Reads the response to an earlier request. */
    private static String outcome(Client client, int number) throws IOException {
        ByteBuffer response = client.receive();
        assertEquals(number, response.getInt());
        return outcome(response);
    }

    private static String set(Client client, String key, String value) throws IOException {
        return outcome(client, Operation.SET, text(key).text(value));
    }

    private static Wire.Frame get(long timeout, String key) {
        return frame().number64(timeout).text(key);
    }

    private static Wire.Frame await(long timeout, String... keys) {
        Wire.Frame arguments = frame().number64(timeout).number32(keys.length);
        for (String key : keys) {
            arguments.text(key);
        }
        return arguments;
    }

    /** A request ends the connection, and the other ranks get the reason as that of a loss. */
    private void endsConnection(Operation operation, Wire.Frame arguments, String reason) throws Exception {
        Client wrong = store.join(2, 3);
        Client other = store.join(1, 3);
        outcome(wrong, Operation.ENTER, text("group").number32(2));
        outcome(other, Operation.ENTER, text("group").number32(1));
        wrong.request(operation, arguments);
        wrong.requireEnd();
        store.settle();
        assertEquals(
                "rank 2 (127.0.0.1, process 7) is lost: its connection to the store has ended (" + reason + ")",
                TestStore.notice(other.receive()));
        other.close();
        store.settle();
    }

    /* Keys. */

    @Test
    void keysHaveValues() throws Exception {
        Client client = store.join(0, 3);
        assertEquals("ok: ", set(client, "a", "1"));
        assertEquals("ok: 1", outcome(client, Operation.GET, get(0, "a")));
        assertEquals("ok: ", outcome(client, Operation.AWAIT, await(0, "a")));
        assertEquals("ok: 3", outcome(client, Operation.ADD, text("n").number64(3)));
        assertEquals("ok: 1", outcome(client, Operation.ADD, text("n").number64(-2)));
        assertEquals("ok: \1", outcome(client, Operation.DELETE, text("a")));
        assertEquals("ok: \0", outcome(client, Operation.DELETE, text("a")));
        assertEquals(
                "timed out: 'a' was not set within 0 s []",
                expired(client, client.request(Operation.GET, get(0, "a"))));
    }

    private String expired(Client client, int number) throws Exception {
        store.settle();
        return outcome(client, number);
    }

    @Test
    void waitsEndWithTheValuesOrTheTimeout() throws Exception {
        Client waiting = store.join(0, 3);
        Client other = store.join(1, 3);
        int get = waiting.request(Operation.GET, get(2 * SECOND, "a"));
        int await = waiting.request(Operation.AWAIT, await(2 * SECOND, "a", "b"));
        int late = waiting.request(Operation.AWAIT, await(2 * SECOND, "a", "c"));
        store.settle();
        set(other, "a", "1");
        assertEquals("ok: 1", outcome(waiting, get));
        set(other, "b", "2");
        assertEquals("ok: ", outcome(waiting, await));
        store.advance(2 * SECOND - 1);
        // No response precedes this one.
        assertEquals("ok: ", outcome(waiting, Operation.HEARTBEAT, frame()));
        store.advance(1);
        assertEquals("timed out: 'c' was not set within 2 s []", outcome(waiting, late));
    }

    @Test
    void timeoutsHaveLimits() throws Exception {
        long max = Arguments.MAX_NANOSECONDS;
        for (long wrong : new long[] {-1, max + 1}) {
            String reason = "timeout must be from 0 to " + max + " ns: " + wrong;
            endsConnection(Operation.GET, get(wrong, "a"), reason);
            endsConnection(Operation.AWAIT, await(wrong, "a"), reason);
            endsConnection(Operation.COLLECTIVE, frame().number64(wrong), reason);
        }
        Client client = store.join(0, 3);
        int longest = client.request(Operation.GET, get(max, "a"));
        assertEquals("ok: ", set(client, "b", ""));
        set(store.join(1, 3), "a", "1");
        assertEquals("ok: 1", outcome(client, longest));
    }

    @Test
    void numberOfKeysFitsTheFrame() throws Exception {
        endsConnection(
                Operation.AWAIT,
                frame().number64(0).number32(-1).number32(0),
                "number of keys must be from 0 to 1: -1");
        endsConnection(
                Operation.AWAIT, frame().number64(0).number32(2).number32(0), "number of keys must be from 0 to 1: 2");
        Client client = store.join(0, 3);
        assertEquals("ok: ", outcome(client, Operation.AWAIT, await(0)));
        set(client, "", "1");
        assertEquals(
                "ok: ",
                outcome(client, Operation.AWAIT, frame().number64(0).number32(1).number32(0)));
    }

    @Test
    void invalidRequestsEndTheConnection() throws Exception {
        int last = Operation.values().length - 1;
        Client client = store.join(1, 3);
        client.send(frame().number32(1).number8(last + 1));
        client.requireEnd();
        store.settle();
        endsConnection(Operation.SET, text("a"), "a frame is too short");
        endsConnection(Operation.SET, frame().number32(9), "length of a value must be from 0 to 0: 9");
    }

    /** Responses make room for more requests. */
    @Test
    void requestsWithoutAResponseHaveALimit() throws Exception {
        Client client = store.join(2, 3);
        Client other = store.join(1, 3);
        for (int i = 0; i < MAX_PENDING; i++) {
            client.request(Operation.GET, get(SECOND, "a"));
        }
        store.settle();
        store.advance(SECOND);
        for (int i = 0; i < MAX_PENDING; i++) {
            assertEquals("timed out: 'a' was not set within 1 s []", outcome(client, i + 1));
        }
        outcome(client, Operation.ENTER, text("group").number32(2));
        outcome(other, Operation.ENTER, text("group").number32(1));
        for (int i = 0; i < MAX_PENDING - 1; i++) {
            client.request(Operation.GET, get(SECOND, "a"));
        }
        assertEquals("ok: ", outcome(client, Operation.HEARTBEAT, frame()));
        client.request(Operation.GET, get(SECOND, "a"));
        client.request(Operation.HEARTBEAT, frame());
        client.requireEnd();
        assertEquals(
                "rank 2 (127.0.0.1, process 7) is lost: its connection to the store has ended (pending requests of a rank"
                        + " must be <= 4096: 4097)",
                TestStore.notice(other.receive()));
    }

    /* Collectives. */

    private static Wire.Frame collective(
            Kind kind, int root, List<Integer> ranks, List<Integer> attempts, String value) {
        return collective(kind.ordinal(), root, ranks, attempts, value);
    }

    private static Wire.Frame collective(
            int kind, int root, List<Integer> ranks, List<Integer> attempts, String value) {
        return frame().number64(SECOND)
                .number8(kind)
                .number32(root)
                .numbers(ranks)
                .numbers(attempts)
                .text("key")
                .text(value);
    }

    @Test
    void gatherReturnsTheValuesInTheOrderOfTheRanks() throws Exception {
        List<Client> clients = List.of(store.join(0, 3), store.join(1, 3), store.join(2, 3));
        // All ranks.
        for (int rank : new int[] {2, 0, 1}) {
            clients.get(rank)
                    .request(Operation.COLLECTIVE, collective(Kind.GATHER, 0, List.of(), List.of(), "v" + rank));
            store.settle();
        }
        for (Client client : clients) {
            assertEquals("ok: \0\0\0\2v0\0\0\0\2v1\0\0\0\2v2", outcome(client, 1));
        }
        // Some, in an order of their own, the last as the root.
        clients.get(2).request(Operation.COLLECTIVE, collective(Kind.GATHER, 1, List.of(2, 0), List.of(0, 0), "a"));
        store.settle();
        clients.get(0).request(Operation.COLLECTIVE, collective(Kind.GATHER, 1, List.of(2, 0), List.of(0, 0), "b"));
        assertEquals("ok: \0\0\0\1a\0\0\0\1b", outcome(clients.get(0), 2));
        assertEquals("ok: \0\0\0\1a\0\0\0\1b", outcome(clients.get(2), 2));
        clients.get(1).request(Operation.COLLECTIVE, collective(Kind.BARRIER, 2, List.of(), List.of(), ""));
        store.settle();
        store.advance(SECOND);
        assertEquals(
                "timed out: 1 of 3 ranks arrived at 'key' within 1 s; missing: ranks 0, 2 [0, 2]",
                outcome(clients.get(1), 2));
    }

    @Test
    void invalidCollectivesEndTheConnection() throws Exception {
        List<Integer> none = List.of();
        List<Integer> pair = List.of(1, 2);
        int kinds = Kind.values().length;
        record Wrong(int kind, int root, List<Integer> ranks, List<Integer> attempts) {}
        List<Wrong> all = List.of(
                new Wrong(-1, 0, pair, none),
                new Wrong(kinds, 0, pair, none),
                new Wrong(0, -1, pair, none),
                new Wrong(0, 2, pair, none),
                new Wrong(0, 0, List.of(0, 1), none),
                new Wrong(0, 0, List.of(2, -1), none),
                new Wrong(0, 0, List.of(2, 3), none),
                new Wrong(0, 0, List.of(2, 2), none),
                new Wrong(0, 0, pair, List.of(0)));
        for (Wrong one : all) {
            endsConnection(
                    Operation.COLLECTIVE,
                    collective(one.kind, one.root, one.ranks, one.attempts, ""),
                    "invalid collective of rank 2: kind " + one.kind + ", root " + one.root + ", ranks " + one.ranks);
        }
        endsConnection(
                Operation.COLLECTIVE,
                collective(0, 3, none, none, ""),
                "invalid collective of rank 2: kind 0, root 3, ranks [0, 1, 2]");
    }

    /** The process that comes second is told that the call is one of the first. */
    @Test
    void callOfAnEarlierAttemptFails() throws Exception {
        store.join(1, 3).close();
        store.settle();
        Client second = store.join(1, 3);
        for (List<Integer> attempts : List.of(List.<Integer>of(), List.of(0, 0))) {
            assertEquals(
                    "failed: 'key': rank 1 has taken the place of a process that was lost, as attempt 1, and this call is"
                            + " one of attempt 0; Recovery.begin lets the other ranks admit it",
                    outcome(second, Operation.COLLECTIVE, collective(Kind.BARRIER, 0, List.of(1, 0), attempts, "")));
        }
        assertEquals(
                "ok: ", outcome(second, Operation.COLLECTIVE, collective(Kind.BARRIER, 0, List.of(1), List.of(1), "")));
    }

    /* The other requests. */

    @Test
    void abortFailsTheRequestsOfOthers() throws Exception {
        Client client = store.join(0, 3);
        Client other = store.join(1, 3);
        int waits = other.request(Operation.GET, get(SECOND, "job/a"));
        store.settle();
        assertEquals("ok: ", outcome(client, Operation.ABORT, text("job/").text("no memory")));
        assertEquals("failed: rank 0 has aborted: no memory", outcome(other, waits));
        assertEquals("failed: rank 0 has aborted: no memory", outcome(other, Operation.GET, get(SECOND, "job/b")));
        assertEquals("ok: ", set(other, "other/a", ""));
    }

    @Test
    void goneRanksAndLaterAttemptsAreNamed() throws Exception {
        Client client = store.join(0, 3);
        Client leaving = store.join(1, 3);
        ByteBuffer response = client.ask(Operation.GONE, frame());
        assertEquals(Wire.OK, response.get());
        assertEquals(List.of(), Wire.numbers(response));
        assertEquals(List.of(), Wire.numbers(response));
        store.join(2, 3).close();
        assertEquals("ok: ", outcome(leaving, Operation.LEAVE, frame()));
        leaving.close();
        store.settle();
        store.join(2, 3);
        response = client.ask(Operation.GONE, frame());
        assertEquals(Wire.OK, response.get());
        assertEquals(List.of(1), Wire.numbers(response));
        assertEquals(List.of(2, 1), Wire.numbers(response));
        assertEquals(0, response.remaining());
    }

    @Test
    void membersAreToldOfLostMembers() throws Exception {
        Client client = store.join(0, 3);
        assertEquals("ok: ", outcome(client, Operation.ENTER, text("group").number32(0)));
        // Neither a member that has left the group nor a rank that has left the store is lost.
        Client exited = store.join(1, 3);
        assertEquals("rank 0 (127.0.0.1, process 7) keeps the store", TestStore.notice(exited.enter("group", 1)));
        assertEquals("ok: ", outcome(exited, Operation.EXIT, text("group")));
        exited.close();
        store.settle();
        Client left = store.join(1, 3);
        left.enter("group", 1);
        assertEquals("ok: ", outcome(left, Operation.LEAVE, frame()));
        left.close();
        store.settle();
        Client lost = store.join(1, 3);
        lost.enter("group", 5);
        lost.close();
        store.settle();
        assertEquals(
                "rank 5 (127.0.0.1, process 7) is lost: its connection to the store has ended",
                TestStore.notice(client.receive()));
        assertEquals("ok: ", outcome(client, Operation.HEARTBEAT, frame()));
    }

    @Test
    void membershipsHaveLimits() throws Exception {
        String longest = "x".repeat(Wire.MAX_KEY);
        endsConnection(Operation.ENTER, text("group").number32(-1), "invalid membership of rank 2: number -1");
        endsConnection(Operation.ENTER, text(longest + "x").number32(3), "invalid membership of rank 2: number 3");
        Client client = store.join(1, 3);
        assertEquals("ok: ", outcome(client, Operation.ENTER, text(longest).number32(0)));
        for (int i = 1; i < MemberGroups.MAX_GROUPS; i++) {
            assertEquals(
                    "ok: ", outcome(client, Operation.ENTER, text("group " + i).number32(0)));
        }
        assertEquals(
                "failed: a rank must be a member of <= 4096 groups: 4097",
                outcome(client, Operation.ENTER, text("one more").number32(0)));
    }
}
