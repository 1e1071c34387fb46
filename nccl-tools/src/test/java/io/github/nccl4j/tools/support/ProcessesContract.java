package io.github.nccl4j.tools.support;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.Store;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** What {@link Store} promises of keys and of the processes of its ranks. */
public abstract class ProcessesContract extends StoreContract {
    /** The number of the ranks; the last one never joins. */
    protected static final int SIZE = 3;

    /** As the documentation of {@link Store} says: the next process is another attempt, which only its scopes name. */
    @Test
    void nextProcessTakesThePlaceOfOneThatHasClosedItsStore() throws Exception {
        Store first = one;
        assertEquals(List.of(0, 0, 0), zero.attempts());
        assertEquals(0, first.attempt());
        first.close();
        assertEquals(List.of(0, -1, 0), zero.attempts());
        Rendezvous gone = zero.among("gone", List.of(0, 1), List.of(0, 0));
        assertThrows(RendezvousException.class, () -> gone.barrier("start", LIMIT));
        one = open(1);
        assertEquals(1, one.attempt());
        assertEquals(List.of(0, 1, 0), zero.attempts());
        assertEquals(List.of(0, 1, 0), one.attempts());
        for (Executable call : List.<Executable>of(
                () -> gone.barrier("later", LIMIT),
                () -> zero.barrier("all", LIMIT),
                () -> one.barrier("all", LIMIT))) {
            RendezvousException lost = assertThrows(RendezvousException.class, call);
            assertEquals(RendezvousException.class, lost.getClass(), lost::toString);
        }
        List<Integer> ranks = List.of(1, 0);
        List<Integer> attempts = List.of(1, 0);
        Call<List<byte[]>> other =
                Call.waiting(() -> zero.among("both", ranks, attempts).gather("value", bytes("zero"), LIMIT));
        Rendezvous both = one.among("both", ranks, attempts);
        assertEquals(0, both.rank());
        assertEquals(2, both.size());
        List<String> expected = List.of("one", "zero");
        assertEquals(
                expected,
                both.gather("value", bytes("one"), LIMIT).stream()
                        .map(StoreContract::text)
                        .toList());
        assertEquals(expected, other.result().stream().map(StoreContract::text).toList());
        both.close();
        one.set("a", new byte[0]);
    }

    @Test
    void wrongMembersAreRefused() {
        assertMembers("ranks and attempts must have the same length: 1, 2", List.of(1), 0, 0);
        assertMembers("ranks must be >= 0 and < size: 3, size 3", List.of(1, 3), 0, 0);
        assertMembers("ranks must be >= 0 and < size: -1, size 3", List.of(-1, 1), 0, 0);
        assertMembers("ranks must be distinct: [1, 1]", List.of(1, 1), 0, 0);
        assertMembers("ranks must include this rank: [0, 2], rank 1", List.of(0, 2), 0, 0);
        assertMembers("the attempt of rank 1, which is this rank, must be 0: 1", List.of(0, 1), 0, 1);
        for (String name : List.of("", "a/b")) {
            assertThrows(IllegalArgumentException.class, () -> one.among(name, List.of(1), List.of(0)));
        }
    }

    private void assertMembers(String reason, List<Integer> ranks, Integer... attempts) {
        assertEquals(
                reason,
                assertThrows(IllegalArgumentException.class, () -> one.among("some", ranks, Arrays.asList(attempts)))
                        .getMessage());
    }

    @Test
    void abortEndsCallsWithKeysButDeletes() throws Exception {
        zero.set("a", bytes("1"));
        Call<byte[]> waits = waitingGet(one, "never");
        zero.abort("no device");
        assertAborted(waits.failure());
        for (Executable call : List.<Executable>of(
                () -> one.set("a", new byte[0]),
                () -> one.get("a", LIMIT),
                () -> one.await(List.of("a"), Duration.ZERO),
                () -> one.add("a", 1))) {
            assertAborted(assertThrows(RendezvousException.class, call));
        }
        assertEquals(List.of(0, 0, 0), one.attempts());
        assertTrue(one.delete("a"));
        assertFalse(zero.delete("a"));
        // Else a store waits at its end for this rank, which has to learn of the failure.
        open(2).close();
    }

    private static void assertAborted(RendezvousException failure) {
        assertEquals(RendezvousException.class, failure.getClass(), failure::toString);
        assertTrue(failure.getMessage().endsWith("no device"), failure::getMessage);
    }
}
