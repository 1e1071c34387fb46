package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclRemoteException;
import io.github.nccl4j.highlevel.Recovery;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.Held;
import io.github.nccl4j.tests.launch.Proxy;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Ranks that are lost and come back: {@link Recovery#admit}, {@link Recovery#broadcastState}. */
@Timeout(value = 5, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ReturningRanksTest {
    private static final int STEPS = 8;

    /** Each of four ranks is lost five times and comes back. */
    @Test
    void cyclesAreExactAndLeaveNothing() {
        ChildJvm jvm = new ChildJvm();
        Held.FIXED_HEAP.forEach(jvm::option);
        ChildJvm.Outcome outcome = jvm.property("nccl4j.engine", "host")
                .environment("MALLOC_ARENA_MAX", Held.ARENAS)
                .limit(Duration.ofMinutes(4))
                .run(ReturningRanksCheck.class, "20");
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertTrue(outcome.output().contains("20 cycles left nothing"), outcome::output);
    }

    private static String waits(int rank, int attempt) {
        return "sums-waits-" + rank + "-" + attempt;
    }

    private static long[] result(Future<long[]> rank) throws Exception {
        return rank.get(60, TimeUnit.SECONDS);
    }

    /** Two ranks are lost at once and come back at once: all see both in the same round. */
    @Test
    void twoJoinTogether() throws Exception {
        try (ReturningRanks ranks = new ReturningRanks(4)) {
            List<Future<long[]>> running = new ArrayList<>();
            for (int rank = 0; rank < 4; rank++) {
                int self = rank;
                running.add(ranks.start(rank, STEPS, (recovery, store, step) -> {
                    if (step == 5 && self % 2 == 1 && recovery.members().size() < 4) {
                        store.await(List.of(waits(0, 1), waits(2, 1)), ReturningRanks.PATIENCE);
                    }
                    return step != 3 || self % 2 == 1;
                }));
            }
            assertNull(result(running.get(0)));
            assertNull(result(running.get(2)));
            // The next call of admit is the one that waits for both.
            ranks.awaitStep(4);
            running.set(0, ranks.start(0, STEPS, (recovery, store, step) -> true));
            running.set(2, ranks.start(2, STEPS, (recovery, store, step) -> true));
            for (Future<long[]> rank : running) {
                assertArrayEquals(ReturningRanks.expected(STEPS), result(rank));
            }
            assertEquals(2, ranks.sizes.get(3));
            assertEquals(4, ranks.sizes.get(5));
        }
    }

    /** A process announces itself and is gone before the others admit it; another one is admitted later. */
    @Test
    void joinerThatEndsWhileItWaitsIsLeftOut() throws Exception {
        try (ReturningRanks ranks = new ReturningRanks(3)) {
            List<Future<long[]>> running = new ArrayList<>();
            for (int rank = 0; rank < 3; rank++) {
                int self = rank;
                running.add(ranks.start(rank, STEPS, (recovery, store, step) -> {
                    if (step == 4 && recovery.members().size() < 3) {
                        Waiting.until(
                                "loss of rank 2, whose next process waits",
                                () -> store.attempts().get(2) == -1 && exists(store, waits(2, 1)));
                    }
                    if (step == 6 && recovery.members().size() < 3) {
                        assertEquals(2, ranks.sizes.get(5));
                        store.await(List.of(waits(2, 2)), ReturningRanks.PATIENCE);
                    }
                    return step != 2 || self != 2;
                }));
            }
            assertNull(result(running.get(2)));
            ranks.awaitStep(3);
            try (TcpStore announces = ranks.open(2)) {
                announces.set(waits(2, 1), new byte[] {2});
            }
            ranks.awaitStep(4);
            running.set(2, ranks.start(2, STEPS, (recovery, store, step) -> true));
            for (Future<long[]> rank : running) {
                assertArrayEquals(ReturningRanks.expected(STEPS), result(rank));
            }
            assertEquals(3, ranks.sizes.get(6));
        }
    }

    private static boolean exists(TcpStore store, String key) {
        try {
            store.get(key, Duration.ZERO);
            return true;
        } catch (RendezvousTimeoutException none) {
            return false;
        }
    }

    /** A process is admitted, and ends before the communicator exists: the others begin another round without it. */
    @Test
    void joinerThatEndsDuringGrowthIsLeftOut() throws Exception {
        for (int ability = 0; ability <= 2; ability += 2) {
            byte[] able = {(byte) ability};
            try (ReturningRanks ranks = new ReturningRanks(3)) {
                List<Future<long[]>> running = new ArrayList<>();
                for (int rank = 0; rank < 3; rank++) {
                    int self = rank;
                    running.add(ranks.start(rank, STEPS, (recovery, store, step) -> {
                        if (step == 4 && recovery.members().size() < 3 && !exists(store, "sums-admitted-2-1")) {
                            store.await(List.of(waits(2, 1)), ReturningRanks.PATIENCE);
                        }
                        return step != 2 || self != 2;
                    }));
                }
                assertNull(result(running.get(2)));
                ranks.awaitStep(2);
                try (TcpStore announces = ranks.open(2)) {
                    announces.set(waits(2, 1), able);
                    // Set by the round that admits it.
                    announces.get("sums-admitted-2-1", ReturningRanks.PATIENCE);
                }
                assertArrayEquals(ReturningRanks.expected(STEPS), result(running.get(0)));
                assertArrayEquals(ReturningRanks.expected(STEPS), result(running.get(1)));
                assertEquals(2, ranks.sizes.get(4));
            }
        }
    }

    /** A member ends when it has agreed on a round that admits another process. */
    @Test
    void memberThatEndsDuringGrowthIsLeftOut() throws Exception {
        try (ReturningRanks ranks = new ReturningRanks(3)) {
            List<Future<long[]>> running = new ArrayList<>();
            for (int rank = 0; rank < 2; rank++) {
                running.add(ranks.start(rank, STEPS, (recovery, store, step) -> {
                    if (step == 4 && recovery.members().size() < 3 && !exists(store, "sums-admitted-2-1")) {
                        store.await(List.of(waits(2, 1)), ReturningRanks.PATIENCE);
                    }
                    return store.rank() != 1 || step != 4 || takesPartOnly(recovery, store);
                }));
            }
            Future<long[]> lost = ranks.start(2, STEPS, (recovery, store, step) -> step != 2);
            assertNull(result(lost));
            ranks.awaitStep(3);
            Future<long[]> back = ranks.start(2, STEPS, (recovery, store, step) -> true);
            assertNull(result(running.get(1)));
            assertArrayEquals(ReturningRanks.expected(STEPS), result(running.get(0)));
            assertArrayEquals(ReturningRanks.expected(STEPS), result(back));
            assertEquals(2, ranks.sizes.get(STEPS - 1));
        }
    }

    /** Votes for the next round as a member does, waits for its decision, and is lost. */
    private static boolean takesPartOnly(Recovery recovery, TcpStore store) {
        if (recovery.members().size() == 3) {
            return true;
        }
        store.set("sums-2-alive-1", new byte[] {2});
        store.get("sums-2-decider", ReturningRanks.PATIENCE);
        return false;
    }

    /** A communicator that has grown is watched at the store: its new rank is reported as soon as its connection ends. */
    @Test
    void lossOfARankThatCameBackIsReported() throws Exception {
        int steps = 5;
        try (ReturningRanks ranks = new ReturningRanks(2)) {
            Future<long[]> first = ranks.start(0, steps, (recovery, store, step) -> {
                if (step == 2 && recovery.members().size() < 2) {
                    store.await(List.of(waits(1, 1)), ReturningRanks.PATIENCE);
                }
                if (step == 3 && recovery.members().size() == 2) {
                    assertFalse(exists(store, waits(1, 1)));
                    try (DeviceBuffer<Int32> waits = Device.host().allocate(ElementType.INT32, 1)) {
                        NcclRemoteException lost = assertThrows(NcclRemoteException.class, () -> {
                            recovery.communicator().allReduce(waits, ReduceOp.SUM, RankThreads.STREAM);
                            recovery.communicator().work(RankThreads.STREAM).await();
                        });
                        assertEquals(List.of(1), lost.lostRanks());
                        throw lost;
                    }
                }
                return true;
            });
            assertNull(result(ranks.start(1, steps, (recovery, store, step) -> step < 1)));
            ranks.awaitStep(1);
            try (Proxy proxy = new Proxy(ranks.port())) {
                Future<long[]> back =
                        ranks.submit(() -> ranks.run(ranks.rankAt(1, proxy.port()), steps, (recovery, store, step) -> {
                            if (step == 3) {
                                // A rank that still waits for the end of step 2 would repeat it.
                                ranks.awaitStep(2);
                                // The communicator stays open: only the store can tell the other rank.
                                proxy.cut();
                                ranks.awaitStep(4);
                            }
                            return step < 3;
                        }));
                assertArrayEquals(ReturningRanks.expected(steps), result(first));
                assertNull(result(back));
                assertEquals(2, ranks.sizes.get(2));
                assertEquals(1, ranks.sizes.get(3));
            }
        }
    }

    @Test
    void rankThatIsAliveCannotBeTaken() throws Exception {
        try (ReturningRanks ranks = new ReturningRanks(2)) {
            Future<long[]> second = ranks.start(1, 1, (recovery, store, step) -> true);
            Future<long[]> first = ranks.start(0, 1, (recovery, store, step) -> {
                String twice = assertThrows(RendezvousException.class, () -> ranks.open(1))
                        .getMessage();
                assertTrue(twice.contains("two processes claim to be rank 1 of 2"), twice);
                return true;
            });
            assertArrayEquals(ReturningRanks.expected(1), result(first));
            assertArrayEquals(ReturningRanks.expected(1), result(second));
        }
    }

    @Test
    void waitsOnlyWhileAMemberIsLeft() throws Exception {
        try (ReturningRanks ranks = new ReturningRanks(2);
                TcpStore keepsJob = ranks.open(0)) {
            ranks.open(1).close();
            keepsJob.set("sums-members", "1".getBytes(StandardCharsets.UTF_8));
            try (TcpStore back = ranks.open(1)) {
                String none = assertThrows(
                                RendezvousException.class,
                                () -> Recovery.begin(back, "sums", ReturningRanks.settings()))
                        .getMessage();
                assertEquals(
                        "rank 1, attempt 1, can't be admitted to 'sums': all its members have ended, rank 1", none);
                assertFalse(exists(back, waits(1, 1)));
            }
            try (TcpStore back = ranks.open(1)) {
                keepsJob.set("sums-members", "0".getBytes(StandardCharsets.UTF_8));
                String late = assertThrows(
                                RendezvousTimeoutException.class,
                                () -> Recovery.begin(
                                        back, "sums", ReturningRanks.settings().deadline(Duration.ofMillis(1))))
                        .getMessage();
                assertTrue(late.startsWith("rank 1, attempt 2, was not admitted to 'sums' within 0.001 s"), late);
            }
        }
    }

    @Test
    void differentStatesAreRefusedAtAllRanks() throws Exception {
        try (ReturningRanks ranks = new ReturningRanks(2)) {
            List<Future<Void>> running = new ArrayList<>();
            for (int rank = 0; rank < 2; rank++) {
                int self = rank;
                running.add(ranks.submit(() -> {
                    refuseStates(ranks, self);
                    return null;
                }));
            }
            for (Future<Void> rank : running) {
                rank.get(60, TimeUnit.SECONDS);
            }
        }
    }

    private static void refuseStates(ReturningRanks ranks, int self) {
        try (TcpStore store = ranks.open(self);
                CudaStream stream = CudaStream.nonBlocking(Device.host());
                DeviceBuffer<Float32> floats = Device.host().allocate(ElementType.FLOAT32, 3 + self);
                DeviceBuffer<Int32> numbers = Device.host().allocate(ElementType.INT32, 3);
                Recovery recovery = Recovery.begin(store, "sums", ReturningRanks.settings())) {
            String length = assertThrows(
                            IllegalArgumentException.class,
                            () -> recovery.broadcastState(self, stream, numbers, floats))
                    .getMessage();
            assertEquals(
                    "buffer 1 of the state must be the same on all ranks: rank 1 has 4 float32, rank 0 has 3 float32",
                    length);
            String type = assertThrows(
                            IllegalArgumentException.class,
                            () -> recovery.broadcastState(self, stream, self == 0 ? floats : numbers))
                    .getMessage();
            assertEquals(
                    "buffer 0 of the state must be the same on all ranks: rank 1 has 3 int32, rank 0 has 3 float32",
                    type);
            String count = assertThrows(
                            IllegalArgumentException.class,
                            () -> recovery.broadcastState(
                                    self,
                                    stream,
                                    self == 0
                                            ? List.of().toArray(DeviceBuffer[]::new)
                                            : new DeviceBuffer<?>[] {numbers}))
                    .getMessage();
            assertEquals("the state must have the same buffers on all ranks: rank 1 has 1, rank 0 has 0", count);
            numbers.fill(self + 5);
            assertEquals(0, recovery.broadcastState(self, stream, numbers));
            int[] got = new int[3];
            numbers.copyTo(got);
            assertArrayEquals(new int[] {5, 5, 5}, got);
            // Ranks of the same step keep what they have.
            recovery.rendezvous("end").barrier("end", ReturningRanks.PATIENCE);
        }
    }

    /** A process that has come back cannot make calls of all ranks. */
    @Test
    void onlyRecoveryTakesARankBack() throws Exception {
        try (ReturningRanks ranks = new ReturningRanks(2);
                TcpStore first = ranks.open(0)) {
            ranks.open(1).close();
            try (TcpStore back = ranks.open(1)) {
                Future<Void> barrier = ranks.submit(() -> {
                    back.barrier("start", ReturningRanks.PATIENCE);
                    return null;
                });
                ExecutionException failed =
                        assertThrows(ExecutionException.class, () -> barrier.get(10, TimeUnit.SECONDS));
                assertInstanceOf(RendezvousException.class, failed.getCause());
                assertEquals(List.of(0, 1), first.attempts());
                assertThrows(IllegalArgumentException.class, () -> back.among("x", List.of(0, 1), List.of(0, 0)));
                assertThrows(IllegalArgumentException.class, () -> back.among("x", List.of(0, 1), List.of(0)));
            }
        }
    }
}
