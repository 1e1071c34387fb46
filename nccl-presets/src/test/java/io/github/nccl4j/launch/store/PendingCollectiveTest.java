package io.github.nccl4j.launch.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.store.PendingCollective.Kind;
import io.github.nccl4j.launch.store.PendingCollective.Signature;
import io.github.nccl4j.testing.TestLog;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests of {@link PendingCollective} at a time that the test sets: completion, timeouts, lost ranks and late ranks. */
class PendingCollectiveTest {
    private static final long SECOND = TestTime.SECOND;

    private final TestTime time = new TestTime();
    private final StoreState state = new StoreState(5, "node0:29500", new Refusals(time.timers()), time.timers());

    private PendingCollective collective(Kind kind, int root, Integer... ranks) {
        return new PendingCollective("id", new Signature(kind, List.of(ranks), List.of(), root), state);
    }

    private static TestResponse arrive(PendingCollective collective, int index, long timeout) {
        TestResponse response = new TestResponse();
        collective.arrive(index, new byte[] {(byte) ('a' + index)}, timeout, response);
        return response;
    }

    private void join(int... ranks) {
        for (int rank : ranks) {
            state.markJoined(rank, "process " + rank);
        }
    }

    @Test
    void barrierReturnsNoValueWhenLastRankArrives() {
        PendingCollective barrier = collective(Kind.BARRIER, 0, 2, 4);
        TestResponse first = arrive(barrier, 1, SECOND);
        assertNull(first.outcome());
        assertFalse(barrier.isOver());
        assertEquals("ok: ", arrive(barrier, 0, SECOND).outcome());
        assertEquals("ok: ", first.outcome());
        assertTrue(barrier.isOver());
        assertFalse(barrier.isUndelivered());
        assertTrue(time.timers().isEmpty());
        assertEquals("id", barrier.key());
        assertEquals(2, barrier.bytes());
    }

    /** After the response to the first rank its process may end, and the store with it. */
    @Test
    void firstRankOfListGetsItsResponseLast() {
        PendingCollective gather = collective(Kind.GATHER, 0, 0, 1, 2);
        List<Integer> order = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            int index = i;
            gather.arrive(index, new byte[0], SECOND, new Responder() {
                @Override
                public void succeed(byte[] content) {
                    order.add(index);
                }

                @Override
                public void fail(String reason) {
                    throw new AssertionError(reason);
                }

                @Override
                public void timeOut(String reason, List<Integer> missing) {
                    throw new AssertionError(reason);
                }
            });
        }
        assertEquals(List.of(2, 1, 0), order);
    }

    @Test
    void broadcastReturnsValueOfRootToEarlyAndLateRanks() {
        PendingCollective broadcast = collective(Kind.BROADCAST, 1, 0, 3, 4);
        TestResponse early = arrive(broadcast, 0, SECOND);
        assertNull(early.outcome());
        assertFalse(broadcast.isUndelivered());
        TestResponse root = arrive(broadcast, 1, SECOND);
        assertEquals("ok: b", root.outcome());
        assertEquals("ok: b", early.outcome());
        assertTrue(broadcast.isUndelivered());
        assertTrue(time.timers().isEmpty());
        assertEquals("ok: b", arrive(broadcast, 2, SECOND).outcome());
        assertFalse(broadcast.isUndelivered());
    }

    @Test
    void rankArrivesOnce() {
        PendingCollective gather = collective(Kind.GATHER, 0, 3, 4);
        TestResponse first = arrive(gather, 0, SECOND);
        assertEquals(
                "failed: rank 3 arrived at 'id' again before all ranks had arrived; a key can be used again when all"
                        + " ranks have returned from it",
                arrive(gather, 0, SECOND).outcome());
        assertNull(first.outcome());
        assertEquals(1, gather.bytes());
    }

    @Test
    void fullStoreRefusesValue() {
        state.reserve(StoreState.MAX_BYTES);
        PendingCollective gather = collective(Kind.GATHER, 0, 0, 1);
        assertEquals(
                "failed: 'id': the store must hold <= 67108864 bytes: 67108864 are in use, 1 are to be added",
                arrive(gather, 0, SECOND).outcome());
        // The rank may arrive again when there is room.
        state.reserve(-2);
        assertNull(arrive(gather, 0, SECOND).outcome());
    }

    /* Timeouts. */

    @Test
    void earliestTimeoutFailsAllRanks() {
        join(1, 3);
        PendingCollective gather = collective(Kind.GATHER, 0, 0, 1, 2, 3, 4);
        TestResponse patient = arrive(gather, 0, 10 * SECOND);
        TestResponse impatient = arrive(gather, 2, 3 * SECOND);
        TestResponse late = arrive(gather, 4, 20 * SECOND);
        time.advance(3 * SECOND - 1);
        assertNull(patient.outcome());
        time.advance(1);
        String expected = "timed out: 3 of 5 ranks arrived at 'id' within 3 s; missing: ranks 1, 3 [1, 3]";
        assertEquals(expected, patient.outcome());
        assertEquals(expected, impatient.outcome());
        assertEquals(expected, late.outcome());
        assertTrue(time.timers().isEmpty());
        assertFalse(gather.isOver());
        assertEquals(expected, arrive(gather, 1, SECOND).outcome());
        assertFalse(gather.isOver());
        assertEquals(expected, arrive(gather, 3, SECOND).outcome());
        assertTrue(gather.isOver());
        assertFalse(gather.isUndelivered());
    }

    /** The first rank is the impatient one: a later rank's timer does not replace its timer. */
    @Test
    void laterDeadlineDoesNotReplaceEarlierOne() {
        PendingCollective gather = collective(Kind.GATHER, 0, 0, 1, 2);
        TestResponse first = arrive(gather, 0, 3 * SECOND);
        arrive(gather, 1, 4 * SECOND);
        time.advance(3 * SECOND);
        assertEquals(
                "timed out: Rank 2 of 5 never connected to node0:29500 (3 s). Was it started? [2]", first.outcome());
    }

    @Test
    void timeoutOfBroadcastNamesRootOnly() {
        PendingCollective broadcast = collective(Kind.BROADCAST, 1, 0, 3, 4);
        TestResponse waits = arrive(broadcast, 0, SECOND);
        time.advance(SECOND);
        assertEquals(
                "timed out: Rank 3 of 5 never connected to node0:29500 (1 s). Was it started? [3]", waits.outcome());
    }

    /** A line after 10 s, and then each time that the wait has doubled; none after the end. */
    @Test
    void longWaitIsLogged() {
        join(1);
        PendingCollective gather = collective(Kind.GATHER, 0, 0, 1, 2);
        try (TestLog log = new TestLog()) {
            arrive(gather, 0, 60 * SECOND);
            time.advance(10 * SECOND - 1);
            assertEquals(List.of(), log.lines());
            time.advance(1);
            String first = "WARNING: 1 of 3 ranks arrived at 'id' within 10 s; missing: ranks 1, 2, of which never"
                    + " connected: rank 2";
            assertEquals(List.of(first), log.lines());
            arrive(gather, 1, 60 * SECOND);
            time.advance(10 * SECOND);
            String second = "WARNING: Rank 2 of 5 never connected to node0:29500 (20 s). Was it started?";
            assertEquals(List.of(first, second), log.lines());
            arrive(gather, 2, SECOND);
            time.advance(20 * SECOND);
            assertEquals(2, log.lines().size());
            assertTrue(time.timers().isEmpty());
        }
    }

    /** Of two deadlines at the same time, the first rank's timeout is named. */
    @Test
    void equalDeadlineDoesNotReplaceTimer() {
        PendingCollective gather = collective(Kind.GATHER, 0, 0, 1, 2);
        TestResponse first = arrive(gather, 0, 3 * SECOND);
        time.advance(SECOND);
        arrive(gather, 1, 2 * SECOND);
        time.advance(2 * SECOND);
        assertEquals(
                "timed out: Rank 2 of 5 never connected to node0:29500 (3 s). Was it started? [2]", first.outcome());
    }

    /* Lost ranks. */

    @Test
    void goneRankFailsThoseThatWait() {
        join(0, 1, 2);
        PendingCollective gather = collective(Kind.GATHER, 0, 0, 1, 2);
        TestResponse waits = arrive(gather, 0, SECOND);
        gather.failIfRankGone();
        assertNull(waits.outcome());
        state.markGone(2, false);
        gather.failIfRankGone();
        assertEquals("failed: 'id': rank 2 (process 2) is lost", waits.outcome());
        assertTrue(time.timers().isEmpty());
        // Later events do not change the failure.
        state.markGone(1, true);
        gather.failIfRankGone();
        gather.failIfPending("aborted");
        assertEquals(
                "failed: 'id': rank 2 (process 2) is lost",
                arrive(gather, 1, SECOND).outcome());
        assertTrue(gather.isOver());
    }

    @Test
    void rankFailsAtOnceIfMissingRankIsGone() {
        join(0, 1, 2);
        state.markGone(2, true);
        PendingCollective gather = collective(Kind.GATHER, 0, 0, 1, 2);
        assertEquals(
                "failed: 'id': rank 2 (process 2) has closed its store",
                arrive(gather, 0, SECOND).outcome());
        assertTrue(time.timers().isEmpty());
    }

    /** The rank that has yet to arrive may have failed because of the loss, and then never arrives. */
    @ParameterizedTest
    @EnumSource(Kind.class)
    void rankThatGoesAfterItsArrivalFailsThoseThatWait(Kind kind) {
        join(0, 1, 2);
        PendingCollective collective = collective(kind, 0, 0, 1, 2);
        TestResponse waits = arrive(collective, 1, SECOND);
        arrive(collective, 2, SECOND);
        state.markGone(2, false);
        collective.failIfRankGone();
        assertEquals("failed: 'id': rank 2 (process 2) is lost", waits.outcome());
        assertTrue(time.timers().isEmpty());
        assertFalse(collective.isOver());
        assertEquals(
                "failed: 'id': rank 2 (process 2) is lost",
                arrive(collective, 0, SECOND).outcome());
        assertTrue(collective.isOver());
    }

    @Test
    void goneReceiverFailsThoseThatWaitForTheRoot() {
        join(0, 1, 2, 3);
        PendingCollective broadcast = collective(Kind.BROADCAST, 0, 0, 1, 2, 3);
        TestResponse waits = arrive(broadcast, 1, SECOND);
        state.markGone(2, false);
        broadcast.failIfRankGone();
        assertEquals("failed: 'id': rank 2 (process 2) is lost", waits.outcome());
        // All ranks have the same outcome.
        assertEquals(
                "failed: 'id': rank 2 (process 2) is lost",
                arrive(broadcast, 0, SECOND).outcome());
        assertEquals(
                "failed: 'id': rank 2 (process 2) is lost",
                arrive(broadcast, 3, SECOND).outcome());
        assertTrue(broadcast.isOver());
    }

    @Test
    void receiverFailsAtOnceIfAnotherOneIsGone() {
        join(0, 1, 2);
        state.markGone(2, true);
        PendingCollective broadcast = collective(Kind.BROADCAST, 0, 0, 1, 2);
        assertEquals(
                "failed: 'id': rank 2 (process 2) has closed its store",
                arrive(broadcast, 1, SECOND).outcome());
        assertTrue(time.timers().isEmpty());
    }

    @Test
    void rootNeedsNoReceiver() {
        join(0, 1, 2);
        state.markGone(2, false);
        PendingCollective broadcast = collective(Kind.BROADCAST, 0, 0, 1, 2);
        assertEquals("ok: a", arrive(broadcast, 0, SECOND).outcome());
        broadcast.failIfRankGone();
        assertTrue(broadcast.isUndelivered());
        assertEquals("ok: a", arrive(broadcast, 1, SECOND).outcome());
        // The rank that is gone does not fetch the value.
        assertTrue(broadcast.isOver());
        assertFalse(broadcast.isUndelivered());
    }

    @Test
    void completedBroadcastDoesNotFail() {
        join(0, 1);
        PendingCollective broadcast = collective(Kind.BROADCAST, 0, 0, 1);
        arrive(broadcast, 0, SECOND);
        state.markGone(0, false);
        broadcast.failIfRankGone();
        broadcast.failIfPending("aborted");
        assertEquals("ok: a", arrive(broadcast, 1, SECOND).outcome());
    }

    @Test
    void expectsAttemptOfRank() {
        join(0, 1);
        state.markGone(1, false);
        join(1);
        PendingCollective second =
                new PendingCollective("id", new Signature(Kind.GATHER, List.of(0, 1), List.of(0, 1), 0), state);
        assertNull(arrive(second, 0, SECOND).outcome());
        PendingCollective first = collective(Kind.GATHER, 0, 0, 1);
        assertEquals(
                "failed: 'id': rank 1 was lost, and process 1 has taken its place",
                arrive(first, 0, SECOND).outcome());
    }

    @Test
    void abortFailsThoseThatWait() {
        PendingCollective gather = collective(Kind.GATHER, 0, 0, 1);
        TestResponse waits = arrive(gather, 1, SECOND);
        gather.failIfPending("no device");
        assertEquals("failed: no device", waits.outcome());
        assertTrue(time.timers().isEmpty());
        assertEquals("failed: no device", arrive(gather, 0, SECOND).outcome());
        assertTrue(gather.isOver());
        assertSame(Kind.GATHER, gather.signature().kind());
    }
}
