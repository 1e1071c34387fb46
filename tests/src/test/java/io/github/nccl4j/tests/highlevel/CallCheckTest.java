package io.github.nccl4j.tests.highlevel;

import static io.github.nccl4j.tests.highlevel.RankThreads.STREAM;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.CallMismatchException;
import io.github.nccl4j.highlevel.CollectiveConfig;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaEvent;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.NcclInterruptedException;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.tools.support.Threads;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Calls that are compared before they are made: what differs is named on every rank. */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class CallCheckTest {
    private static final int SIZE = 4;
    private static final Duration LIMIT = Duration.ofMinutes(5);

    /** What a rank does with a buffer of 12 numbers. */
    private interface Body {
        void run(Communicator communicator, DeviceBuffer<Int32> numbers) throws Exception;
    }

    private static void checked(Duration deadline, Body body) throws Exception {
        UniqueId id = UniqueId.create();
        List<Callable<Void>> ranks = new ArrayList<>();
        for (Rendezvous each : ThreadRendezvous.of(SIZE)) {
            ranks.add(() -> {
                Communicator communicator =
                        Communicator.builder().deadline(deadline).check(each).create(id, each.rank(), SIZE);
                try (DeviceBuffer<Int32> numbers = Device.host().allocate(ElementType.INT32, 12)) {
                    numbers.fill(1);
                    body.run(communicator, numbers);
                    if (deadline.equals(LIMIT)) {
                        communicator.close();
                    } else {
                        // A busy machine may need longer for the end of all ranks.
                        communicator.abort();
                    }
                } catch (Throwable failure) {
                    communicator.abort();
                    throw failure;
                }
                return null;
            });
        }
        Threads.together(ranks, LIMIT);
    }

    /** Rank 2 does something else than the others, after a call that is right; then all do the same again. */
    private static void oddOneIsNamed(String odd, String usual, Body ofRank2, Body ofOthers) throws Exception {
        checked(LIMIT, (communicator, numbers) -> {
            communicator.allReduce(numbers, ReduceOp.SUM, STREAM);
            Body mine = communicator.rank() == 2 ? ofRank2 : ofOthers;
            CallMismatchException failure =
                    assertThrows(CallMismatchException.class, () -> mine.run(communicator, numbers));
            String text = failure.getMessage();
            assertTrue(text.contains("differ in collective call 2: "), text);
            assertTrue(text.contains("rank 2 calls " + odd + "; ranks 0, 1, 3 call " + usual + "."), text);
            assertEquals(List.of(2), failure.oddRanks());
            assertEquals(List.of(usual, usual, odd, usual), failure.calls());
            // The communicator is unchanged.
            assertEquals(1, communicator.flightRecorder().recorded());
            communicator.allReduce(numbers, ReduceOp.SUM, STREAM);
            int[] sums = new int[12];
            numbers.copyTo(sums);
            assertEquals(SIZE * SIZE, sums[11]);
        });
    }

    @Test
    void anotherCount() throws Exception {
        oddOneIsNamed(
                "ncclAllReduce of 11 int32, SUM",
                "ncclAllReduce of 12 int32, SUM",
                (c, numbers) -> c.allReduce(numbers.slice(0, 11), ReduceOp.SUM, STREAM),
                (c, numbers) -> c.allReduce(numbers, ReduceOp.SUM, STREAM));
    }

    @Test
    void anotherOperator() throws Exception {
        oddOneIsNamed(
                "ncclAllReduce of 12 int32, MAX",
                "ncclAllReduce of 12 int32, SUM",
                (c, numbers) -> c.allReduce(numbers, ReduceOp.MAX, STREAM),
                (c, numbers) -> c.allReduce(numbers, ReduceOp.SUM, STREAM));
    }

    @Test
    void anotherType() throws Exception {
        oddOneIsNamed(
                "ncclAllReduce of 12 uint32, SUM",
                "ncclAllReduce of 12 int32, SUM",
                (c, numbers) -> c.onAddresses()
                        .allReduce(
                                numbers.address(),
                                numbers.address(),
                                12,
                                ElementType.UINT32.dataType(),
                                ReduceOp.SUM,
                                STREAM),
                (c, numbers) -> c.allReduce(numbers, ReduceOp.SUM, STREAM));
    }

    @Test
    void anotherRoot() throws Exception {
        oddOneIsNamed(
                "ncclBroadcast of 12 int32 from rank 1",
                "ncclBroadcast of 12 int32 from rank 0",
                (c, numbers) -> c.broadcast(numbers, 1, STREAM),
                (c, numbers) -> c.broadcast(numbers, 0, STREAM));
    }

    /** The last of the collectives. */
    @Test
    void anotherRootOfAScatter() throws Exception {
        oddOneIsNamed(
                "ncclScatter of 3 int32 from rank 1",
                "ncclScatter of 3 int32 from rank 0",
                (c, numbers) -> c.scatter(numbers, numbers.slice(3 * c.rank(), 3), 1, STREAM),
                (c, numbers) -> c.scatter(numbers, numbers.slice(3 * c.rank(), 3), 0, STREAM));
    }

    @Test
    void anotherFunction() throws Exception {
        oddOneIsNamed(
                "ncclReduce of 12 int32 to rank 0, SUM",
                "ncclAllReduce of 12 int32, SUM",
                (c, numbers) -> c.reduce(numbers, ReduceOp.SUM, 0, STREAM),
                (c, numbers) -> c.allReduce(numbers, ReduceOp.SUM, STREAM));
    }

    @Test
    void anotherOrderInAGroup() throws Exception {
        oddOneIsNamed(
                "ncclBroadcast of 6 int32 from rank 0; ncclAllReduce of 6 int32, SUM",
                "ncclAllReduce of 6 int32, SUM; ncclBroadcast of 6 int32 from rank 0",
                (c, numbers) -> Group.run(() -> {
                    c.broadcast(numbers.slice(0, 6), 0, STREAM);
                    c.allReduce(numbers.slice(6, 6), ReduceOp.SUM, STREAM);
                }),
                (c, numbers) -> Group.run(() -> {
                    c.allReduce(numbers.slice(6, 6), ReduceOp.SUM, STREAM);
                    c.broadcast(numbers.slice(0, 6), 0, STREAM);
                }));
    }

    @Test
    void anotherConfiguration() throws Exception {
        CollectiveConfig ring =
                CollectiveConfig.builder().algorithm("ring").profilerTag(1).build();
        CollectiveConfig tree = ring.toBuilder().algorithm("tree").build();
        oddOneIsNamed(
                "ncclAllReduceConfig of 12 int32, SUM, {algSelection=tree, userProfilerTag=1}",
                "ncclAllReduceConfig of 12 int32, SUM, {algSelection=ring, userProfilerTag=1}",
                (c, numbers) -> c.allReduce(numbers, numbers, ReduceOp.SUM, STREAM, tree),
                (c, numbers) -> c.allReduce(numbers, numbers, ReduceOp.SUM, STREAM, ring));
    }

    @Test
    void aConfigurationAtOneRankInAGroup() throws Exception {
        CollectiveConfig ring = CollectiveConfig.algorithm("ring");
        oddOneIsNamed(
                "ncclBroadcastConfig of 12 int32 from rank 0, {algSelection=ring}",
                "ncclBroadcast of 12 int32 from rank 0",
                (c, numbers) -> Group.run(() -> c.broadcast(numbers, numbers, 0, STREAM, ring)),
                (c, numbers) -> Group.run(() -> c.broadcast(numbers, 0, STREAM)));
    }

    /** Events, addresses and the order of options are each rank's own. */
    @Test
    void whatMayDifferInConfigurationsIsNotCompared() throws Exception {
        checked(LIMIT, (communicator, numbers) -> {
            try (CudaEvent event = CudaEvent.create(Device.host())) {
                boolean odd = communicator.rank() == 2;
                CollectiveConfig config = CollectiveConfig.builder()
                        .launchCompletionEvent(event)
                        .vendorOption(1, odd ? 1 : 2, 5)
                        .vendorOption(1, odd ? 2 : 1, 5)
                        .vendorAddress(2, 1, 4096 * communicator.rank())
                        .build();
                communicator.allReduce(numbers, numbers, ReduceOp.SUM, STREAM, config);
                Group.run(() -> communicator.broadcast(numbers, numbers, 0, STREAM, config));
            }
        });
    }

    @Test
    void doesNotCompareOtherThanCollectiveCalls() throws Exception {
        checked(LIMIT, (communicator, numbers) -> {
            int peer = communicator.rank() ^ 1;
            try (CudaStream stream = CudaStream.nonBlocking(Device.host())) {
                if (communicator.rank() < 2) {
                    communicator.sendRecv(numbers.slice(0, 1), peer, numbers.slice(1, 1), peer, stream);
                }
                communicator.allReduce(numbers, ReduceOp.SUM, stream);
            }
        });
    }

    @Test
    void checksCommunicatorOfAllRanksOfASplit() throws Exception {
        checked(LIMIT, (communicator, numbers) -> {
            try (Communicator same = communicator.split(0, communicator.rank());
                    Communicator part = communicator.split(communicator.rank() / 2, 0)) {
                part.allReduce(numbers, ReduceOp.SUM, STREAM);
                CallMismatchException failure = assertThrows(
                        CallMismatchException.class, () -> same.broadcast(numbers, same.rank() / 3, STREAM));
                assertEquals(List.of(3), failure.oddRanks());
            }
        });
    }

    /** The property is for jobs whose program says nothing. */
    @Test
    void propertyEnablesTheCheck() throws Exception {
        System.setProperty("nccl4j.check", "true");
        try {
            List<Callable<Void>> ranks = new ArrayList<>();
            for (Rendezvous each : ThreadRendezvous.of(2)) {
                ranks.add(() -> {
                    try (Communicator communicator = Communicator.builder().create(each);
                            DeviceBuffer<Int32> numbers = Device.host().allocate(ElementType.INT32, 2)) {
                        assertThrows(
                                CallMismatchException.class,
                                () -> communicator.broadcast(numbers, communicator.rank(), STREAM));
                    }
                    return null;
                });
            }
            Threads.together(ranks, LIMIT);
        } finally {
            System.clearProperty("nccl4j.check");
        }
    }

    @Test
    void namesRankThatDoesNotJoin() throws Exception {
        CountDownLatch over = new CountDownLatch(SIZE - 1);
        checked(Duration.ofMillis(500), (communicator, numbers) -> {
            if (communicator.rank() == 1) {
                over.await();
                return;
            }
            NcclTimeoutException failure = assertThrows(
                    NcclTimeoutException.class, () -> communicator.allReduce(numbers, ReduceOp.SUM, STREAM));
            assertTrue(failure.getMessage().contains("rank 1 has not reached collective call 1"), failure.getMessage());
            assertEquals("ncclAllReduce", failure.operation());
            over.countDown();
        });
    }

    @Test
    void anInterruptEndsTheComparison() throws Exception {
        CountDownLatch over = new CountDownLatch(SIZE - 1);
        checked(LIMIT, (communicator, numbers) -> {
            if (communicator.rank() == 1) {
                over.await();
                return;
            }
            Thread.currentThread().interrupt();
            assertThrows(NcclInterruptedException.class, () -> communicator.allReduce(numbers, ReduceOp.SUM, STREAM));
            assertTrue(Thread.interrupted());
            assertEquals(Communicator.State.ABORTED, communicator.state());
            over.countDown();
        });
    }
}
