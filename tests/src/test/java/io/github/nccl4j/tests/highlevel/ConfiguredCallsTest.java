package io.github.nccl4j.tests.highlevel;

import static io.github.nccl4j.tests.highlevel.RankThreads.STREAM;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.AlgorithmSelection;
import io.github.nccl4j.highlevel.CollectiveConfig;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.CudaEvent;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.FlightRecorder.Operation;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.NcclResultException;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.Result;
import io.github.nccl4j.highlevel.Window;
import io.github.nccl4j.highlevel.WindowFlag;
import io.github.nccl4j.library.HostEngine;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tools.support.Threads;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Calls with a configuration, on the host engine: what is recorded, told and compared, and how long memory is kept. */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ConfiguredCallsTest {
    private static final Duration LIMIT = Duration.ofSeconds(50);
    private static final long PATIENCE = 30_000_000_000L;

    private static DeviceBuffer<Int32> ones(int length) {
        DeviceBuffer<Int32> buffer = Device.host().allocate(ElementType.INT32, length);
        buffer.fill(1);
        return buffer;
    }

    private static void allOf(int expected, DeviceBuffer<Int32> buffer) {
        int[] found = new int[(int) buffer.length()];
        buffer.copyTo(found);
        for (int one : found) {
            assertEquals(expected, one);
        }
    }

    /** Nothing refers to it any more, after some collections. */
    private static boolean isCollected(WeakReference<?> reference) throws InterruptedException {
        long start = System.nanoTime();
        while (reference.get() != null && System.nanoTime() - start < PATIENCE) {
            collect();
        }
        return reference.get() == null;
    }

    /** What is not kept is gone after it, and other things are where it was. */
    private static void collect() throws InterruptedException {
        for (int i = 0; i < 3; i++) {
            System.gc();
            Thread.sleep(5);
        }
    }

    @Test
    void theRecorderTellsTheFunctions() throws Exception {
        CollectiveConfig config = CollectiveConfig.builder().maxCtas(8).build();
        RankThreads.run(2, c -> {
            try (DeviceBuffer<Int32> two = ones(2);
                    DeviceBuffer<Int32> other = ones(2);
                    CudaStream stream = CudaStream.nonBlocking(Device.host())) {
                DeviceBuffer<Int32> one = two.slice(0, 1);
                c.allReduce(other, other, ReduceOp.SUM, stream, config);
                c.reduce(other, other, ReduceOp.MAX, 1, stream, config);
                c.broadcast(other, other, 1, stream, config);
                c.allGather(one, other, stream, config);
                c.reduceScatter(other, one, ReduceOp.MIN, stream, config);
                c.allToAll(two, other, stream, config);
                c.gather(one, c.rank() == 1 ? other : one, 1, stream, config);
                c.scatter(c.rank() == 1 ? other : one, one, 1, stream, config);
                c.work(stream).await();
            }
            assertEquals(
                    List.of(
                            "ncclAllReduceConfig SUM -1",
                            "ncclReduceConfig MAX 1",
                            "ncclBroadcastConfig - 1",
                            "ncclAllGatherConfig - -1",
                            "ncclReduceScatterConfig MIN -1",
                            "ncclAlltoAllConfig - -1",
                            "ncclGatherConfig - 1",
                            "ncclScatterConfig - 1"),
                    c.flightRecorder().operations().stream()
                            .map(one -> one.function() + " " + one.op().orElse("-") + " "
                                    + one.peer().orElse(-1))
                            .toList());
            for (Operation one : c.flightRecorder().operations()) {
                assertEquals(ElementType.INT32, one.type().orElseThrow());
                assertTrue(one.done().isPresent(), one.toString());
            }
        });
    }

    @Test
    void aRefusalTellsTheConfiguration() throws Exception {
        CollectiveConfig nvls = CollectiveConfig.builder()
                .algorithm(AlgorithmSelection.NVLS)
                .maxCtas(3)
                .build();
        RankThreads.run(2, c -> {
            try (DeviceBuffer<Int32> buffer = ones(5)) {
                for (boolean inGroup : new boolean[] {false, true}) {
                    Runnable call = () -> c.allReduce(buffer, buffer, ReduceOp.SUM, STREAM, nvls);
                    NcclResultException refusal =
                            assertThrows(NcclResultException.class, inGroup ? () -> Group.run(call) : call::run);
                    assertEquals(Result.INVALID_ARGUMENT, refusal.result());
                    assertEquals("ncclAllReduceConfig", refusal.operation());
                    String text = refusal.getMessage();
                    assertTrue(
                            text.contains("ncclAllReduceConfig of 5 int32 with"
                                    + " CollectiveConfig{maxCTAs=3, algSelection=nvls_}"),
                            text);
                    assertTrue(text.contains("cannot be had: the host engine has rings and trees"), text);
                }
                // Preferred only, it is done by another algorithm.
                CollectiveConfig preferred = nvls.toBuilder()
                        .preferAlgorithm(AlgorithmSelection.NVLS)
                        .build();
                c.allReduce(buffer, buffer, ReduceOp.SUM, STREAM, preferred);
                allOf(2, buffer);
            }
        });
    }

    /** What kernels for symmetric windows need: both buffers in one, and an operation that NCCL has such a kernel for. */
    @Test
    void kernelsForSymmetricWindowsNeedThese() throws Exception {
        CollectiveConfig symmetric = CollectiveConfig.algorithm("symk");
        RankThreads.run(2, c -> {
            try (DeviceBuffer<Float32> memory = Device.host().allocateForWindow(ElementType.FLOAT32, 8192);
                    DeviceBuffer<Float32> outside = Device.host().allocate(ElementType.FLOAT32, 8);
                    Window window = c.registerWindow(memory.slice(0, 4096), WindowFlag.COLL_SYMMETRIC)) {
                assertTrue(window.isOpen());
                DeviceBuffer<Float32> four = memory.slice(0, 4);
                DeviceBuffer<Float32> eight = memory.slice(8, 8);
                memory.fill(1);
                outside.fill(1);
                c.allReduce(four, eight.slice(0, 4), ReduceOp.SUM, STREAM, symmetric);
                c.allGather(four, eight, STREAM, symmetric);
                c.reduceScatter(eight, four, ReduceOp.SUM, STREAM, symmetric);
                CollectiveConfig plainKernel = CollectiveConfig.algorithm("symk_ld");
                c.reduceScatter(eight, four, ReduceOp.SUM, STREAM, plainKernel);
                List<Runnable> refused = List.of(
                        () -> c.allReduce(four, outside.slice(0, 4), ReduceOp.SUM, STREAM, symmetric),
                        () -> c.allReduce(outside.slice(0, 4), four, ReduceOp.SUM, STREAM, symmetric),
                        () -> c.allReduce(four, four, ReduceOp.MAX, STREAM, symmetric),
                        () -> c.allGather(four, outside, STREAM, symmetric),
                        () -> c.reduceScatter(outside, four, ReduceOp.SUM, STREAM, symmetric),
                        // Multicast, and rails of several nodes.
                        () -> c.allGather(four, eight, STREAM, CollectiveConfig.algorithm("symk_llmc")),
                        () -> c.allGather(four, eight, STREAM, CollectiveConfig.algorithm("symk_rail")));
                for (Runnable call : refused) {
                    NcclResultException refusal = assertThrows(NcclResultException.class, call::run);
                    assertTrue(refusal.getMessage().contains("where both buffers are in such"), refusal.getMessage());
                }
                // One that ends outside of the window.
                DeviceBuffer<Float32> beyond = memory.slice(4092, 8);
                assertThrows(NcclResultException.class, () -> c.allGather(four, beyond, STREAM, symmetric));
                assertNull(c.failure().orElse(null));
            }
        });
    }

    @Test
    void ranksThatDifferAreToldByTheEngine() throws Exception {
        RankThreads.run(3, c -> {
            CollectiveConfig config =
                    CollectiveConfig.builder().minCtas(c.rank() == 1 ? 5 : 4).build();
            try (DeviceBuffer<Int32> buffer = ones(5)) {
                NcclResultException failure = assertThrows(
                        NcclResultException.class, () -> c.allReduce(buffer, buffer, ReduceOp.SUM, STREAM, config));
                String text = failure.getMessage();
                assertTrue(text.contains("minCTAs 4") && text.contains("minCTAs 5"), text);
                assertTrue(text.contains("rank 1 called "), text);
                c.abort();
            }
        });
    }

    /** Adds a call to the open group, with a configuration that nothing else refers to. */
    private static WeakReference<CollectiveConfig> addAsConfigured(
            Communicator c, DeviceBuffer<Int32> buffer, int tag) {
        CollectiveConfig config = CollectiveConfig.builder()
                .algorithm("ring")
                .profilerTag(tag)
                .vendorOption(1, 2, "text")
                .build();
        c.allReduce(buffer, buffer, ReduceOp.SUM, STREAM, config);
        return new WeakReference<>(config);
    }

    @Test
    void aGroupKeepsConfigurationsUntilItsEnd() throws Exception {
        RankThreads.run(2, c -> {
            try (DeviceBuffer<Int32> buffer = ones(5);
                    DeviceBuffer<Int32> other = ones(5)) {
                WeakReference<CollectiveConfig> first;
                WeakReference<CollectiveConfig> second;
                try (Group group = Group.open()) {
                    first = addAsConfigured(c, buffer, 1);
                    second = addAsConfigured(c, other, 2);
                    collect();
                    assertNotNull(first.get(), "the group refers to it");
                    assertNotNull(second.get(), "the group refers to it");
                    // The engine compares what it finds in the memory of both ranks.
                    group.launch();
                }
                allOf(2, buffer);
                allOf(2, other);
                assertTrue(isCollected(first), "the group has ended");
                assertTrue(isCollected(second), "the group has ended");
                Group givenUp = Group.open();
                try {
                    first = addAsConfigured(c, buffer, 3);
                } finally {
                    givenUp.close();
                }
                assertTrue(isCollected(first), "the group was given up");
                allOf(2, buffer);
            }
        });
    }

    /** The engine still reads memory that is kept for a call which was given up. */
    @Test
    void aCallThatWasGivenUpKeepsItsConfigurationUntilTheCommunicatorEnds() throws Exception {
        CountDownLatch over = new CountDownLatch(1);
        RankThreads.run(
                2,
                Communicator.builder()
                        .deadline(Duration.ofSeconds(2))
                        .config(CommunicatorConfig.builder().blocking(false).build()),
                c -> {
                    if (c.rank() == 1) {
                        over.await();
                        c.abort();
                        return;
                    }
                    try (DeviceBuffer<Int32> buffer = ones(5)) {
                        WeakReference<CollectiveConfig> alone = givenUp(c, buffer);
                        collect();
                        boolean isKept = alone.get() != null;
                        c.abort();
                        assertTrue(isKept, "the call may still be in NCCL");
                        assertTrue(isCollected(alone), "the communicator has ended");
                    } finally {
                        over.countDown();
                    }
                });
    }

    private static WeakReference<CollectiveConfig> givenUp(Communicator c, DeviceBuffer<Int32> buffer) {
        CollectiveConfig config = CollectiveConfig.algorithm("ring");
        assertThrows(NcclTimeoutException.class, () -> c.allReduce(buffer, buffer, ReduceOp.SUM, STREAM, config));
        assertEquals(Communicator.State.FAILED, c.state());
        return new WeakReference<>(config);
    }

    private static boolean exists(long event) {
        return HostEngine.eventQuery(event) != nccl.ncclInvalidArgument;
    }

    /** Waits until an event is destroyed that was closed. */
    private static void awaitDestroyed(long event) {
        Waiting.until("end of the event", () -> {
            // Looks what is done, as calls that allocate and free do.
            ones(1).close();
            return !exists(event);
        });
    }

    @Test
    void theEventTellsOfTheLaunchAndLivesUntilTheCallIsDone() throws Exception {
        theEvent(false);
    }

    @Test
    void theEventOfAGroupTellsOfTheLaunchAndLivesUntilTheGroupIsDone() throws Exception {
        theEvent(true);
    }

    private static void theEvent(boolean inGroup) throws Exception {
        CountDownLatch blocked = new CountDownLatch(1);
        CountDownLatch launched = new CountDownLatch(1);
        RankThreads.run(2, c -> {
            long handle;
            try (DeviceBuffer<Int32> buffer = ones(3);
                    CudaStream stream = CudaStream.nonBlocking(Device.host());
                    CudaStream other = CudaStream.nonBlocking(Device.host())) {
                handle = stream.nativeHandle();
                boolean done = false;
                try {
                    if (c.rank() == 0) {
                        isFirst(inGroup, c, buffer, stream, other, blocked, launched);
                    } else {
                        isLast(inGroup, c, buffer, stream, blocked, launched);
                    }
                    done = true;
                } finally {
                    if (!done) {
                        // Closing the streams waits for what is in them.
                        c.abort();
                    }
                    blocked.countDown();
                    launched.countDown();
                }
            }
            assertEquals(nccl.ncclInvalidArgument, HostEngine.streamQuery(handle), "the stream was destroyed");
        });
    }

    private static CollectiveConfig with(CudaEvent event) {
        assertThrows(IllegalStateException.class, event::isDone, "not recorded yet");
        return CollectiveConfig.builder().launchCompletionEvent(event).build();
    }

    /** Its call waits for the last rank. */
    private static void isFirst(
            boolean inGroup,
            Communicator c,
            DeviceBuffer<Int32> buffer,
            CudaStream stream,
            CudaStream other,
            CountDownLatch blocked,
            CountDownLatch launched)
            throws Exception {
        CudaEvent event = CudaEvent.create(Device.host());
        long handle = event.nativeHandle();
        CollectiveConfig config = with(event);
        c.recv(buffer, 1, stream);
        if (inGroup) {
            Group.run(() -> {
                c.allReduce(buffer, buffer, ReduceOp.SUM, stream, config);
                assertThrows(IllegalStateException.class, event::isDone, "not launched yet");
            });
        } else {
            c.allReduce(buffer, buffer, ReduceOp.SUM, stream, config);
        }
        assertFalse(event.isDone(), "the stream has not come to the call");
        blocked.countDown();
        event.synchronize(LIMIT);
        // Another stream goes on, while the call waits for rank 1.
        other.waitFor(event);
        other.synchronize(LIMIT);
        assertFalse(stream.isDone(), "the call waits for rank 1");
        event.close();
        ones(1).close();
        assertTrue(exists(handle), "the call is not done");
        launched.countDown();
        c.work(stream).await();
        allOf(2, buffer);
        awaitDestroyed(handle);
    }

    /** Its event is closed before the launch, if that is possible. */
    private static void isLast(
            boolean inGroup,
            Communicator c,
            DeviceBuffer<Int32> buffer,
            CudaStream stream,
            CountDownLatch blocked,
            CountDownLatch launched)
            throws Exception {
        CudaEvent event = CudaEvent.create(Device.host());
        long handle = event.nativeHandle();
        CollectiveConfig config = with(event);
        blocked.await();
        c.send(buffer, 0, stream);
        launched.await();
        if (inGroup) {
            Group.run(() -> {
                c.allReduce(buffer, buffer, ReduceOp.SUM, stream, config);
                event.close();
                assertTrue(exists(handle), "the group needs it");
            });
        } else {
            c.allReduce(buffer, buffer, ReduceOp.SUM, stream, config);
        }
        c.work(stream).await();
        allOf(2, buffer);
        event.close();
        awaitDestroyed(handle);
    }

    @Test
    void anEventThatIsNotUsedIsReleased() throws Exception {
        RankThreads.run(1, c -> {
            try (DeviceBuffer<Int32> buffer = ones(3)) {
                // In a group that is given up, and in a call that is refused.
                for (Supplier<CollectiveConfig.Builder> make : List.<Supplier<CollectiveConfig.Builder>>of(
                        CollectiveConfig::builder,
                        () -> CollectiveConfig.builder().algorithm("no_such_name"))) {
                    CudaEvent event = CudaEvent.create(Device.host());
                    CollectiveConfig config =
                            make.get().launchCompletionEvent(event).build();
                    try (Group group = Group.open()) {
                        c.allReduce(buffer, buffer, ReduceOp.SUM, STREAM, config);
                        if (config.values().containsKey("algSelection")) {
                            assertThrows(NcclResultException.class, group::launch);
                        }
                    }
                    if (config.values().containsKey("algSelection")) {
                        assertThrows(
                                NcclResultException.class,
                                () -> c.allReduce(buffer, buffer, ReduceOp.SUM, STREAM, config));
                    }
                    long handle = event.nativeHandle();
                    event.close();
                    assertFalse(exists(handle), "nothing needs it");
                }
                allOf(1, buffer);
            }
        });
    }

    /** The first call of all, which fills the memory, is made by many threads at once. */
    @Test
    void manyThreadsUseOneConfiguration() throws Exception {
        int communicators = 3;
        for (int round = 0; round < 5; round++) {
            CollectiveConfig config = CollectiveConfig.builder()
                    .algorithm("ring")
                    .maxCtas(8)
                    .profilerTag(round)
                    .vendorOption(1, 1, "text")
                    .build();
            CyclicBarrier together = new CyclicBarrier(2 * communicators);
            List<Callable<Void>> all = new ArrayList<>();
            for (int i = 0; i < communicators; i++) {
                all.add(() -> {
                    RankThreads.run(2, c -> {
                        try (DeviceBuffer<Int32> buffer = ones(3)) {
                            together.await();
                            for (int call = 1; call <= 20; call++) {
                                c.allReduce(buffer, buffer, ReduceOp.SUM, STREAM, config);
                                allOf(1 << call, buffer);
                            }
                        }
                    });
                    return null;
                });
            }
            Threads.together(all, LIMIT);
        }
    }

    @Test
    void groupsCanBeSimulated() throws Exception {
        RankThreads.run(2, c -> {
            try (DeviceBuffer<Int32> buffer = ones(5);
                    CudaEvent event = CudaEvent.create(Device.host());
                    Group group = Group.open()) {
                CollectiveConfig config =
                        CollectiveConfig.builder().launchCompletionEvent(event).build();
                c.allReduce(buffer, buffer, ReduceOp.SUM, STREAM, config);
                assertFalse(group.simulate().isNegative());
                assertThrows(IllegalStateException.class, event::isDone, "nothing was launched");
                assertNull(c.failure().orElse(null));
            }
        });
    }
}
