package io.github.nccl4j.tests.highlevel;

import static io.github.nccl4j.testing.Expect.fails;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.ControlData;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArraySet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Small data that ranks exchange by their communicator. */
class ControlDataTest {
    private static final Duration LONG = Duration.ofMinutes(2);

    /** Different in each byte, rank and round; the length of some is 0. */
    private static byte[] data(int rank, int round) {
        byte[] bytes = new byte[rank * round * 1000 + (rank + round) % 3];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) (31 * i + 7 * rank + round);
        }
        return bytes;
    }

    private static void assertExchanged(Communicator communicator, int round) {
        byte[] own = data(communicator.rank(), round);
        List<byte[]> all = communicator.control().exchange(own);
        assertEquals(communicator.size(), all.size());
        for (int rank = 0; rank < all.size(); rank++) {
            assertArrayEquals(data(rank, round), all.get(rank), "rank " + rank + ", round " + round);
        }
        assertNotSame(own, all.get(communicator.rank()));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3})
    void everyRankGetsTheDataOfAll(int size) throws Exception {
        RankThreads.run(size, communicator -> {
            for (int round : new int[] {0, 3, 1, 40, 2}) {
                assertExchanged(communicator, round);
            }
        });
    }

    @Test
    void everyRankGetsTheDataOfTheRoot() throws Exception {
        RankThreads.run(3, communicator -> {
            for (int root = 0; root < 3; root++) {
                boolean isRoot = communicator.rank() == root;
                for (int round : new int[] {1, 30, 0}) {
                    byte[] expected = data(root, round);
                    byte[] others = round == 1 ? null : new byte[] {99};
                    byte[] own = isRoot ? expected : others;
                    byte[] received = communicator.control().broadcast(own, root);
                    assertArrayEquals(expected, received);
                    assertNotSame(own, received);
                }
            }
        });
    }

    @Test
    void valuesAreEncodedAndDecoded() throws Exception {
        RankThreads.run(2, communicator -> {
            int rank = communicator.rank();
            ControlData control = communicator.control();
            assertEquals(List.of("größe 0", "größe 1"), control.exchange("größe " + rank, ControlData.TEXT));
            assertEquals("of 1", control.broadcast(rank == 1 ? "of 1" : null, 1, ControlData.TEXT));
        });
    }

    @Test
    void communicatorsOfASplitHaveTheirOwn() throws Exception {
        RankThreads.run(3, communicator -> {
            try (Communicator part = communicator.split(communicator.rank() == 1 ? 1 : 0, 0)) {
                List<String> ranks = part.control().exchange("" + communicator.rank(), ControlData.TEXT);
                assertEquals(communicator.rank() == 1 ? List.of("1") : List.of("0", "2"), ranks);
            }
        });
    }

    @Test
    void aBarrierWaitsForAllRanksUntilItsLimit() throws Exception {
        CountDownLatch late = new CountDownLatch(1);
        AtomicBoolean entered = new AtomicBoolean();
        RankThreads.run(2, communicator -> {
            if (communicator.rank() == 0) {
                assertThrows(
                        NcclTimeoutException.class, () -> communicator.control().barrier(Duration.ofMillis(50)));
                late.countDown();
            } else {
                late.await();
                // Meets the one that was late.
                communicator.control().barrier(LONG);
                entered.set(true);
            }
            communicator.control().barrier(LONG);
            assertEquals(true, entered.get(), "the barrier of rank " + communicator.rank() + " waited for rank 1");
        });
    }

    @Test
    void whatCanNotWorkIsRefusedBeforeACall() throws Exception {
        RankThreads.run(2, communicator -> {
            ControlData control = communicator.control();
            assertThrows(NullPointerException.class, () -> control.exchange(null));
            assertThrows(NullPointerException.class, () -> control.broadcast(null, communicator.rank()));
            assertThrows(NullPointerException.class, () -> control.barrier(null));
            for (int root : new int[] {-1, 2}) {
                fails(
                        IllegalArgumentException.class,
                        () -> control.broadcast(new byte[1], root),
                        "root must be from 0 to 1: " + root);
            }
            fails(IllegalArgumentException.class, () -> control.barrier(Duration.ofMillis(-1)), "-0.001 s");
            for (Runnable call : Arrays.<Runnable>asList(
                    () -> control.exchange(new byte[1]),
                    () -> control.broadcast(new byte[1], 0),
                    () -> control.barrier(LONG))) {
                fails(IllegalStateException.class, () -> Group.run(call::run), "open group");
            }
            assertExchanged(communicator, 2);
        });
    }

    @Test
    void aCommunicatorThatIsClosedExchangesNothing() throws Exception {
        Set<ControlData> closed = new CopyOnWriteArraySet<>();
        RankThreads.run(2, communicator -> {
            assertExchanged(communicator, 1);
            closed.add(communicator.control());
        });
        closed.forEach(control -> fails(IllegalStateException.class, () -> control.exchange(new byte[1]), "closed"));
    }
}
