package io.github.nccl4j.tests.highlevel;

import static io.github.nccl4j.tests.highlevel.RankThreads.STREAM;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Communicator.State;
import io.github.nccl4j.highlevel.CommunicatorBuilder;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.FailurePolicy;
import io.github.nccl4j.highlevel.NcclException;
import io.github.nccl4j.highlevel.NcclRemoteException;
import io.github.nccl4j.highlevel.Recovery;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.testing.Ports;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tools.support.Threads;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Ranks that go on without those that they lose; ranks are threads, each with its own connection to the store. */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class RecoveryTest {
    private static final Duration LIMIT = Duration.ofSeconds(50);
    private static final Duration LONG = Duration.ofSeconds(40);

    /** What a rank does. */
    private interface Body {
        void run(Recovery recovery, TcpStore store) throws Exception;
    }

    private static void ranks(int size, CommunicatorBuilder builder, Body body) throws Exception {
        int port = Ports.free();
        CountDownLatch over = new CountDownLatch(size);
        List<Callable<Void>> ranks = new ArrayList<>();
        for (int r = 0; r < size; r++) {
            RankInfo self = RankInfo.from(
                    Map.of(
                            "nccl4j.rank",
                            "" + r,
                            "nccl4j.worldSize",
                            "" + size,
                            "nccl4j.localRank",
                            "" + r,
                            "nccl4j.localWorldSize",
                            "" + size,
                            "nccl4j.masterAddress",
                            "127.0.0.1",
                            "nccl4j.masterPort",
                            "" + port),
                    Map.of());
            ranks.add(() -> {
                try (TcpStore store = TcpStore.builder().withoutSecret().open(self);
                        Recovery recovery = Recovery.begin(store, "test", builder)) {
                    try {
                        body.run(recovery, store);
                    } finally {
                        over.countDown();
                        if (store.rank() == 0) {
                            // Rank 0 runs the store.
                            over.await();
                        }
                    }
                }
                return null;
            });
        }
        Threads.together(ranks, LIMIT);
    }

    private static int sum(Communicator communicator, int mine) {
        try (DeviceBuffer<Int32> number = Device.host().allocate(ElementType.INT32, 1)) {
            number.fill(mine);
            communicator.allReduce(number, ReduceOp.SUM, STREAM);
            int[] sum = new int[1];
            number.copyTo(sum);
            return sum[0];
        }
    }

    /** As {@link #sum}; nobody goes on, and ends what it was summed by, before all have the sum. */
    private static int sumOfAll(Recovery recovery, TcpStore store) {
        int sum = sum(recovery.communicator(), store.rank());
        List<Integer> members = recovery.members();
        store.among("sum of " + members, members).barrier("summed", LONG);
        return sum;
    }

    private static void failsSoon(Communicator communicator) {
        for (; ; ) {
            try {
                sum(communicator, 1);
            } catch (NcclException | IllegalStateException lost) {
                return;
            }
        }
    }

    /** Ranks that give up their part, store included, as the end of a process does. */
    private static void leave(Recovery recovery, TcpStore store) {
        recovery.communicator().abort();
        store.close();
    }

    @Test
    void survivorsShrinkRepeatedly() throws Exception {
        ranks(4, Communicator.builder(), (recovery, store) -> {
            int self = store.rank();
            assertEquals(6, sumOfAll(recovery, store));
            if (self == 2) {
                leave(recovery, store);
                return;
            }
            Communicator before = recovery.communicator();
            failsSoon(before);
            Communicator three = recovery.recover(LONG);
            assertSame(three, recovery.communicator());
            assertEquals(State.ABORTED, before.state());
            assertEquals(List.of(0, 1, 3), recovery.members());
            assertEquals(recovery.members().indexOf(self), three.rank());
            // Derived from the old one: its name shows it.
            assertTrue(
                    three.flightRecorder().toJson().contains(".0.0\""),
                    three.flightRecorder().toJson());
            assertEquals(4, sumOfAll(recovery, store));
            if (self == 1) {
                leave(recovery, store);
                return;
            }
            failsSoon(three);
            assertEquals(3, sum(recovery.recover(LONG), self));
            assertEquals(List.of(0, 3), recovery.members());
        });
    }

    @Test
    void createsNewCommunicatorIfARankAborted() throws Exception {
        ranks(4, Communicator.builder(), (recovery, store) -> {
            int self = store.rank();
            assertEquals(6, sumOfAll(recovery, store));
            if (self == 2) {
                leave(recovery, store);
                return;
            }
            failsSoon(recovery.communicator());
            if (self == 1) {
                recovery.communicator().abort();
            }
            Communicator three = recovery.recover(LONG);
            assertEquals(3, three.size());
            assertTrue(three.flightRecorder().toJson().matches("(?s).*\"id\": \"[0-9a-f]{8}\",.*"));
            assertEquals(4, sum(three, self));
        });
    }

    @Test
    void recoversWithoutLostRanks() throws Exception {
        ranks(3, Communicator.builder().onFailure(FailurePolicy.ABORT), (recovery, store) -> {
            Communicator before = recovery.communicator();
            assertEquals(3, sumOfAll(recovery, store));
            assertNotSame(before, recovery.recover(LONG));
            assertEquals(List.of(0, 1, 2), recovery.members());
            assertEquals(3, sum(recovery.communicator(), store.rank()));
        });
    }

    @Test
    void lateRankGetsException() throws Exception {
        CountDownLatch recovered = new CountDownLatch(2);
        ranks(3, Communicator.builder(), (recovery, store) -> {
            int self = store.rank();
            assertEquals(3, sumOfAll(recovery, store));
            if (self == 1) {
                // Behaves as a rank that was stopped.
                recovered.await();
                RendezvousException told =
                        assertThrows(RendezvousException.class, () -> recovery.recover(Duration.ZERO));
                assertTrue(told.getMessage().contains("rank 1 was declared lost"), told.getMessage());
                assertTrue(told.getMessage().contains("[0, 2]"), told.getMessage());
                recovery.communicator().abort();
                return;
            }
            // The other rank may be late on a busy machine.
            assertEquals(2, sum(recovery.recover(Duration.ofSeconds(2)), self));
            recovered.countDown();
        });
    }

    /** Rank 2 has said that it is alive, and is lost before the others decide. */
    @Test
    void leavesOutRankLostAfterItsVote() throws Exception {
        CompletableFuture<TcpStore> lost = new CompletableFuture<>();
        ranks(3, Communicator.builder(), (recovery, store) -> {
            int self = store.rank();
            assertEquals(3, sumOfAll(recovery, store));
            if (self == 2) {
                lost.complete(store);
                // A pending request to the store fails differently from a later request.
                assertThrows(RuntimeException.class, () -> recovery.recover(LONG));
                recovery.communicator().abort();
                return;
            }
            store.await(List.of("test-1-alive-2"), LONG);
            if (self == 0) {
                lost.get().close();
            }
            Waiting.until("loss of rank 2", () -> store.gone().equals(List.of(2)));
            assertEquals(1, sum(recovery.recover(Duration.ofSeconds(5)), self));
            assertEquals(List.of(0, 1), recovery.members());
        });
    }

    /** Rank 0 gets the failure in its step, and never makes the call in which rank 1 waits for it. */
    @Test
    void rankThatWaitsInAdmitIsToldOfALoss() throws Exception {
        ranks(4, Communicator.builder(), (recovery, store) -> {
            int self = store.rank();
            assertEquals(6, sumOfAll(recovery, store));
            if (self == 3) {
                leave(recovery, store);
                return;
            }
            failsSoon(recovery.communicator());
            recovery.recover(LONG);
            assertTrue(recovery.admit(LONG));
            assertEquals(3, sumOfAll(recovery, store));
            if (self == 2) {
                leave(recovery, store);
                return;
            }
            if (self == 1) {
                // While a rank is missing, the call communicates.
                assertThrows(NcclRemoteException.class, () -> recovery.admit(LONG));
            } else {
                failsSoon(recovery.communicator());
            }
            assertEquals(1, sum(recovery.recover(LONG), self));
            assertEquals(List.of(0, 1), recovery.members());
        });
    }

    /** The others count it as lost, and would not take part in the end. */
    @Test
    void rankThatHasLostTheStoreAbortsItsCommunicator() throws Exception {
        CountDownLatch ended = new CountDownLatch(1);
        ranks(3, Communicator.builder(), (recovery, store) -> {
            int self = store.rank();
            assertEquals(3, sumOfAll(recovery, store));
            if (self == 2) {
                leave(recovery, store);
                return;
            }
            failsSoon(recovery.communicator());
            recovery.recover(LONG);
            assertTrue(recovery.admit(LONG));
            assertEquals(1, sumOfAll(recovery, store));
            if (self == 1) {
                ended.await();
                assertThrows(RendezvousException.class, () -> recovery.admit(LONG));
                recovery.close();
                assertEquals(Communicator.State.ABORTED, recovery.communicator().state());
            } else {
                store.close();
                ended.countDown();
                failsSoon(recovery.communicator());
                recovery.communicator().abort();
            }
        });
    }

    @Test
    void wrongArgumentsAreRefused() throws Exception {
        assertThrows(NullPointerException.class, () -> Recovery.begin(null, "test", Communicator.builder()));
        ranks(1, Communicator.builder(), (recovery, store) -> {
            assertThrows(NullPointerException.class, () -> Recovery.begin(store, null, Communicator.builder()));
            assertThrows(NullPointerException.class, () -> Recovery.begin(store, "test", null));
            IllegalArgumentException negative =
                    assertThrows(IllegalArgumentException.class, () -> recovery.recover(Duration.ofSeconds(-1)));
            assertTrue(negative.getMessage().contains("-1 s"), negative.getMessage());
            // The communicator is unchanged.
            assertEquals(State.OPEN, recovery.communicator().state());
        });
    }
}
