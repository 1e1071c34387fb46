package io.github.nccl4j.launch.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.store.PendingCollective.Kind;
import io.github.nccl4j.launch.store.PendingCollective.Signature;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** Tests of {@link StoreState} without connections: keys, waits, aborts, ranks and the limit of its memory. */
class StoreStateTest {
    private static final long SECOND = TestTime.SECOND;

    private final TestTime time = new TestTime();
    private final StoreState state = new StoreState(3, "node0:29500", new Refusals(time.timers()), time.timers());

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static TestResponse responseTo(Consumer<TestResponse> request) {
        TestResponse response = new TestResponse();
        request.accept(response);
        return response;
    }

    private String set(String key, String value) {
        return responseTo(response -> state.set(key, bytes(value), response)).outcome();
    }

    private String add(String key, long delta) {
        return responseTo(response -> state.add(key, delta, response)).outcome();
    }

    private byte[] delete(String key) {
        return responseTo(response -> state.delete(key, response)).content();
    }

    private TestResponse get(String key, long timeout) {
        return responseTo(response -> state.await(List.of(key), true, timeout, response));
    }

    private TestResponse await(long timeout, String... keys) {
        return responseTo(response -> state.await(List.of(keys), false, timeout, response));
    }

    private long bytesInUse() {
        return Long.parseLong(state.describeFull(0).replaceFirst(".* bytes: (\\d+) are in use.*", "$1"));
    }

    /* Keys. */

    @Test
    void returnsLastValueOfKey() {
        assertEquals("ok: ", set("a", "1"));
        assertEquals("ok: ", set("a", "22"));
        assertEquals("ok: 22", get("a", 0).outcome());
        assertTrue(time.timers().isEmpty());
        assertEquals("ok: ", await(0, "a").outcome());
    }

    @Test
    void responseArrivesWhenKeyIsSet() {
        TestResponse first = get("a", 5 * SECOND);
        TestResponse second = get("a", 5 * SECOND);
        time.advance(5 * SECOND - 1);
        assertNull(first.outcome());
        set("a", "1");
        assertEquals("ok: 1", first.outcome());
        assertEquals("ok: 1", second.outcome());
        assertTrue(time.timers().isEmpty());
        // The next value wakes nobody again.
        delete("a");
        set("a", "2");
    }

    @Test
    void waitTimesOutAtItsTime() {
        TestResponse shorter = get("a", 2 * SECOND);
        TestResponse longer = get("a", 3 * SECOND);
        TestResponse other = get("b", 2 * SECOND);
        time.advance(2 * SECOND - 1);
        assertNull(shorter.outcome());
        time.advance(1);
        assertEquals("timed out: 'a' was not set within 2 s []", shorter.outcome());
        assertEquals("timed out: 'b' was not set within 2 s []", other.outcome());
        set("b", "0");
        set("a", "1");
        assertEquals("ok: 1", longer.outcome());
    }

    @Test
    void awaitsAllKeysInAnyOrder() {
        TestResponse all = await(2 * SECOND, "a", "b", "c");
        set("c", "3");
        set("a", "1");
        assertNull(all.outcome());
        TestResponse late = await(SECOND, "c", "d");
        time.advance(SECOND);
        assertEquals("timed out: 'd' was not set within 1 s []", late.outcome());
        set("b", "2");
        assertEquals("ok: ", all.outcome());
        assertTrue(time.timers().isEmpty());
    }

    /** A key that is deleted after a wait has passed it does not matter any more. */
    @Test
    void awaitNamesFirstMissingKey() {
        TestResponse both = await(SECOND, "a", "b");
        set("a", "1");
        delete("a");
        time.advance(SECOND);
        assertEquals("timed out: 'b' was not set within 1 s []", both.outcome());
    }

    @Test
    void deleteReturnsWhetherKeyWasSet() {
        assertEquals(List.of((byte) 0), List.of(delete("a")[0]));
        set("a", "1");
        assertEquals(List.of((byte) 1), List.of(delete("a")[0]));
        assertEquals(1, delete("b").length);
        TestResponse waits = get("a", SECOND);
        assertNull(waits.outcome());
    }

    @Test
    void addCreatesAndChangesCounter() {
        assertEquals("ok: 5", add("n", 5));
        assertEquals("ok: -2", add("n", -7));
        assertEquals("ok: -2", get("n", 0).outcome());
        TestResponse waits = get("m", SECOND);
        add("m", 1);
        assertEquals("ok: 1", waits.outcome());
    }

    @Test
    void addRejectsTextAndOverflow() {
        set("text", "x");
        assertEquals("failed: 'text': the value of a counter must be a decimal number: 'x'", add("text", 1));
        add("n", Long.MAX_VALUE);
        assertEquals(
                "failed: 'n': the sum must be from -9223372036854775808 to 9223372036854775807:"
                        + " 9223372036854775807 + 1",
                add("n", 1));
        assertEquals("ok: 9223372036854775806", add("n", -1));
    }

    /* Memory. */

    @Test
    void entriesCountWithTheirOverhead() {
        set("key", "12345");
        assertEquals(3 + 5 + 128, bytesInUse());
        set("key", "12");
        assertEquals(3 + 2 + 128, bytesInUse());
        add("n", 10);
        assertEquals(3 + 2 + 128 + 1 + 2 + 128, bytesInUse());
        delete("key");
        delete("key");
        assertEquals(1 + 2 + 128, bytesInUse());
        delete("n");
        assertEquals(0, bytesInUse());
    }

    @Test
    void refusesValueBeyondLimit() {
        assertTrue(state.reserve(StoreState.MAX_BYTES - 131));
        assertEquals("ok: ", set("a", "12"));
        assertFalse(state.reserve(1));
        assertEquals(
                "failed: 'a': the store must hold <= 67108864 bytes: 67108864 are in use, 1 are to be added",
                set("a", "123"));
        assertEquals("ok: 12", get("a", 0).outcome());
        assertEquals(
                "failed: the store must hold <= 67108864 bytes: 67108864 are in use, 130 are to be added"
                        .replace("failed: ", "failed: 'n': "),
                add("n", 7));
        assertTrue(state.reserve(-130));
        assertEquals("ok: 7", add("n", 7));
    }

    /* Ranks. */

    @Test
    void nextProcessOfRankHasNextAttempt() {
        assertEquals(List.of(0, 1, 2), state.allRanks());
        assertNull(state.process(1));
        assertEquals(0, state.markJoined(1, "first"));
        assertFalse(state.isAnyGone());
        assertFalse(state.isGone(1));
        assertEquals(List.of(), state.laterAttempts());
        state.markGone(1, true);
        assertTrue(state.isGone(1) && state.isAnyGone() && state.hasClosed(1));
        assertEquals(List.of(1), state.gone());
        assertTrue(state.isGone(1, 0));
        assertEquals("rank 1 (first) has closed its store", state.describeGone(1));
        assertEquals("rank 1 (first) has closed its store", state.describeGone(1, 0));
        assertEquals(1, state.markJoined(1, "second"));
        assertEquals(1, state.attempt(1));
        assertEquals("second", state.process(1));
        assertFalse(state.isGone(1) || state.hasClosed(1));
        assertTrue(state.isAnyGone());
        assertEquals(List.of(), state.gone());
        assertEquals(List.of(1, 1), state.laterAttempts());
        assertTrue(state.isGone(1, 0));
        assertFalse(state.isGone(1, 1));
        assertEquals("rank 1 was lost, and second has taken its place", state.describeGone(1, 0));
        state.markGone(1, false);
        assertEquals("rank 1 (second) is lost", state.describeGone(1, 1));
        assertFalse(state.hasClosed(1));
    }

    @Test
    void namesRanksThatNeverConnected() {
        state.markJoined(1, "p");
        assertEquals(List.of(0, 2), state.neverConnected(List.of(0, 1, 2)));
        assertEquals(List.of(), state.neverConnected(List.of(1)));
        assertEquals(
                "Rank 2 of 3 never connected to node0:29500 (300 s). Was it started?",
                state.describeNeverConnected(List.of(2), 300 * TestTime.SECOND));
        assertEquals(
                "Ranks 0, 2 of 3 never connected to node0:29500 (0.5 s). Were they started?",
                state.describeNeverConnected(List.of(0, 2), TestTime.SECOND / 2));
    }

    /* Aborts. */

    @Test
    void abortFailsCurrentAndLaterRequestsWithPrefix() {
        TestResponse inScope = get("a/x", SECOND);
        TestResponse oneOfTwo = await(SECOND, "b", "a/y");
        TestResponse beside = get("b", SECOND);
        state.abort("a/", "no device");
        assertEquals("failed: no device", inScope.outcome());
        assertEquals("failed: no device", oneOfTwo.outcome());
        assertNull(beside.outcome());
        assertEquals("failed: no device", get("a/z", SECOND).outcome());
        assertEquals("failed: no device", await(SECOND, "b", "a/z").outcome());
        assertEquals("failed: no device", set("a/z", "1"));
        assertEquals("failed: no device", add("a/z", 1));
        assertEquals("failed: no device", arrive("a/z", 0).outcome());
        assertEquals(0, bytesInUse());
        // A second reason does not replace the first one.
        state.abort("a/", "no memory");
        assertEquals("failed: no device", set("a/z", "1"));
        set("b", "1");
        assertEquals("ok: 1", beside.outcome());
        assertTrue(time.timers().isEmpty());
    }

    @Test
    void forgetsOldestOfManyAborts() {
        for (int i = 0; i < 1024; i++) {
            state.abort(i + "/", "reason " + i);
        }
        assertEquals("failed: reason 0", set("0/x", "1"));
        state.abort("1024/", "reason 1024");
        assertEquals("ok: ", set("0/x", "1"));
        assertEquals("failed: reason 1", set("1/x", "1"));
        assertEquals("failed: reason 1024", set("1024/x", "1"));
    }

    @Test
    void closingStoreRepeatsFirstAbort() {
        assertEquals("rank 0 has closed its store", state.closeReason("rank 0"));
        assertEquals("the store has been closed", state.closeReason("the store"));
        assertFalse(state.hasUnnotifiedRank());
        state.abort("a/", "no device");
        state.abort("b/", "no memory");
        assertEquals("rank 0 has closed its store; earlier: no device", state.closeReason("rank 0"));
        assertEquals("the store has been closed; earlier: no device", state.closeReason("the store"));
        assertTrue(state.hasUnnotifiedRank());
        for (int rank = 0; rank < 3; rank++) {
            state.markJoined(rank, "p");
        }
        assertFalse(state.hasUnnotifiedRank());
    }

    /* Collectives. */

    private TestResponse arrive(String key, Signature signature, int index) {
        return responseTo(response -> state.arrive(key, signature, index, bytes("v" + index), SECOND, response));
    }

    private TestResponse arrive(String key, int rank) {
        return arrive(key, new Signature(Kind.GATHER, state.allRanks(), List.of(), 0), rank);
    }

    @Test
    void abortFailsCollectivesWithPrefix() {
        TestResponse inScope = arrive("a/x", 0);
        TestResponse beside = arrive("b/x", 0);
        state.abort("a/", "no device");
        assertEquals("failed: no device", inScope.outcome());
        assertNull(beside.outcome());
    }

    @Test
    void ranksMustMakeTheSameCall() {
        arrive("x", 0);
        assertEquals(
                "failed: ranks must make the same call with key 'x': rank 2 calls barrier with 2 ranks,"
                        + " others gather with 3 ranks",
                arrive("x", new Signature(Kind.BARRIER, List.of(0, 2), List.of(), 0), 1)
                        .outcome());
        assertEquals(
                "failed: ranks must make the same call with key 'x': rank 1 calls broadcast from rank 2 with 3 ranks,"
                        + " others gather with 3 ranks",
                arrive("x", new Signature(Kind.BROADCAST, state.allRanks(), List.of(), 2), 1)
                        .outcome());
    }

    @Test
    void completedCollectiveReleasesItsBytesAndItsKey() {
        for (int round = 0; round < 2; round++) {
            List<TestResponse> all = List.of(arrive("x", 0), arrive("x", 1));
            assertEquals(4, bytesInUse());
            assertNull(all.get(0).outcome());
            TestResponse last = arrive("x", 2);
            byte[] values = {0, 0, 0, 2, 'v', '0', 0, 0, 0, 2, 'v', '1', 0, 0, 0, 2, 'v', '2'};
            assertTrue(Arrays.equals(values, last.content()), last::outcome);
            assertEquals(last.outcome(), all.get(0).outcome());
            assertEquals(last.outcome(), all.get(1).outcome());
            assertEquals(0, bytesInUse());
        }
    }

    @Test
    void goneRankFailsCollectivesThatExpectIt() {
        state.markJoined(2, "p");
        TestResponse all = arrive("x", 0);
        Signature some = new Signature(Kind.GATHER, List.of(0, 1), List.of(), 0);
        TestResponse others = arrive("y", some, 0);
        state.markGone(2, false);
        assertEquals("failed: 'x': rank 2 (p) is lost", all.outcome());
        assertNull(others.outcome());
        arrive("y", some, 1);
        assertTrue(others.outcome().startsWith("ok: "), others.outcome());
        // The last rank that comes gets the same failure; then the key is free and the bytes are released.
        assertEquals(2, bytesInUse());
        assertEquals("failed: 'x': rank 2 (p) is lost", arrive("x", 1).outcome());
        assertEquals(0, bytesInUse());
    }

    @Test
    void rankThatGoesLastReleasesFailedCollective() {
        state.markJoined(1, "p");
        state.markJoined(2, "q");
        arrive("x", 0);
        state.markGone(2, false);
        assertEquals(2, bytesInUse());
        state.markGone(1, true);
        assertEquals(0, bytesInUse());
    }

    @Test
    void broadcastIsUndeliveredUntilAllRanksHaveTheValue() {
        for (int rank = 0; rank < 3; rank++) {
            state.markJoined(rank, "p");
        }
        Signature signature = new Signature(Kind.BROADCAST, state.allRanks(), List.of(), 1);
        TestResponse early = arrive("x", signature, 0);
        assertFalse(state.hasUndelivered());
        assertEquals("ok: v1", arrive("x", signature, 1).outcome());
        assertEquals("ok: v1", early.outcome());
        assertTrue(state.hasUndelivered());
        assertEquals("ok: v1", arrive("x", signature, 2).outcome());
        assertFalse(state.hasUndelivered());
        assertEquals(0, bytesInUse());
    }
}
