package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.internal.submission.BatchedCallGroup;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.library.HostEngine;
import io.github.nccl4j.testing.TestLog;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tools.support.Threads;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a group launches, records, refuses and leaves behind, on the host engine. */
@Timeout(value = 5, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class GroupTest {
    private static final Device HOST = Device.host();
    private static final CudaStream STREAM = CudaStream.defaultOf(HOST);
    private static final Duration LIMIT = Duration.ofSeconds(50);
    private static final int LENGTH = 6;
    private static final int[] UNTOUCHED = new int[LENGTH];
    private static final int[] NUMBERS = IntStream.range(7, 7 + LENGTH).toArray();

    private static CommunicatorBuilder named(String name, boolean blocking) {
        return Communicator.builder()
                .config(CommunicatorConfig.builder()
                        .commName(name)
                        .blocking(blocking)
                        .build());
    }

    private static Communicator alone(String name) {
        return named(name, true).create(UniqueId.create(), 0, 1);
    }

    private static DeviceBuffer<Int32> zeros() {
        DeviceBuffer<Int32> buffer = HOST.allocate(ElementType.INT32, LENGTH);
        buffer.fill(0);
        return buffer;
    }

    private static DeviceBuffer<Int32> numbers() {
        DeviceBuffer<Int32> buffer = zeros();
        buffer.copyFrom(NUMBERS);
        return buffer;
    }

    private static int[] content(DeviceBuffer<Int32> buffer) {
        int[] content = new int[LENGTH];
        buffer.copyTo(content);
        return content;
    }

    private static List<String> recorded(Communicator communicator) {
        return communicator.flightRecorder().operations().stream()
                .map(FlightRecorder.Operation::function)
                .toList();
    }

    private static void refused(Class<? extends Exception> type, Runnable code, String message) {
        assertEquals(message, assertThrows(type, code::run).getMessage());
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void launchesAndRecordsEveryOperation(boolean blocking) {
        List<DeviceBuffer<Int32>> results = new ArrayList<>();
        for (int i = 0; i < 9; i++) {
            results.add(zeros());
        }
        try (Communicator c = named("all", blocking).create(UniqueId.create(), 0, 1);
                DeviceBuffer<Int32> send = numbers()) {
            assertFalse(Group.isOpenInThisThread());
            Group.run(() -> {
                assertTrue(Group.isOpenInThisThread());
                c.allReduce(send, results.get(0), ReduceOp.SUM, STREAM);
                c.reduce(send, results.get(1), ReduceOp.SUM, 0, STREAM);
                c.broadcast(send, results.get(2), 0, STREAM);
                c.allGather(send, results.get(3), STREAM);
                c.reduceScatter(send, results.get(4), ReduceOp.SUM, STREAM);
                c.allToAll(send, results.get(5), STREAM);
                c.gather(send, results.get(6), 0, STREAM);
                c.scatter(send, results.get(7), 0, STREAM);
                c.send(send, 0, STREAM);
                c.recv(results.get(8), 0, STREAM);
                assertEquals(0, c.flightRecorder().recorded());
                assertArrayEquals(UNTOUCHED, content(results.get(0)));
            });
            assertFalse(Group.isOpenInThisThread());
            c.work(STREAM).await();
            results.forEach(result -> assertArrayEquals(NUMBERS, content(result)));
            assertEquals(
                    List.of(
                            "ncclAllReduce",
                            "ncclReduce",
                            "ncclBroadcast",
                            "ncclAllGather",
                            "ncclReduceScatter",
                            "ncclAlltoAll",
                            "ncclGather",
                            "ncclScatter",
                            "ncclSend",
                            "ncclRecv"),
                    recorded(c));
            c.allReduce(results.get(0), ReduceOp.SUM, STREAM);
            Group.run(() -> c.allReduce(results.get(0), ReduceOp.SUM, STREAM));
            List<FlightRecorder.Operation> operations = c.flightRecorder().operations();
            assertEquals(12, c.flightRecorder().recorded());
            assertEquals(OptionalInt.of(1), operations.get(9).group());
            assertEquals(OptionalInt.empty(), operations.get(10).group());
            assertEquals(OptionalInt.of(2), operations.get(11).group());
            assertEquals(12, operations.get(11).sequence());
        } finally {
            results.forEach(DeviceBuffer::close);
        }
    }

    @Test
    void emptyGroupAndNullCode() {
        Group.open().launch();
        assertFalse(Group.isOpenInThisThread());
        refused(NullPointerException.class, () -> Group.run(null), "body");
        assertFalse(Group.isOpenInThisThread());
    }

    @Test
    void endedOrEnclosingGroupRefusesLaunchAndSimulation() {
        Group outer = Group.open();
        Group inner = Group.open();
        refused(
                IllegalStateException.class,
                outer::launch,
                "a group within this one is open: launch or close it first");
        refused(IllegalStateException.class, inner::simulate, "a group within another can't be simulated");
        inner.launch();
        refused(IllegalStateException.class, inner::launch, "this group has ended, it can't be launched any more");
        refused(IllegalStateException.class, inner::simulate, "this group has ended, it can't be simulated any more");
        outer.close();
        refused(IllegalStateException.class, outer::launch, "this group has ended, it can't be launched any more");
        assertFalse(Group.isOpenInThisThread());
    }

    @Test
    void receivesFromItselfWhatItSends() {
        try (Communicator c = alone("self");
                DeviceBuffer<Int32> send = numbers();
                DeviceBuffer<Int32> recv = zeros()) {
            String must = c + " must send to itself and receive from itself as often in one group: only ";
            String other = c + " must receive from itself what it sends to itself: ";
            refused(
                    IllegalStateException.class,
                    () -> Group.run(() -> c.send(send.slice(0, 3), 0, STREAM)),
                    must + "ncclSend of 3 int32 to rank 0 is left");
            refused(
                    IllegalStateException.class,
                    () -> Group.run(() -> c.recv(recv.slice(0, 2), 0, STREAM)),
                    must + "ncclRecv of 2 int32 from rank 0 is left");
            refused(
                    IllegalStateException.class,
                    () -> Group.run(() -> {
                        c.send(send.slice(0, 1), 0, STREAM);
                        c.recv(recv.slice(0, 1), 0, STREAM);
                        c.send(send.slice(1, 2), 0, STREAM);
                    }),
                    must + "ncclSend of 2 int32 to rank 0 is left");
            refused(
                    IllegalStateException.class,
                    () -> Group.run(() -> {
                        c.send(send.slice(0, 3), 0, STREAM);
                        c.recv(recv.slice(0, 2), 0, STREAM);
                    }),
                    other + "ncclSend of 3 int32 to rank 0, but ncclRecv of 2 int32 from rank 0");
            refused(
                    IllegalStateException.class,
                    () -> Group.run(() -> {
                        c.send(send.slice(0, 3), 0, STREAM);
                        c.onAddresses().recv(recv.address(), 3, DataType.FLOAT32, 0, STREAM);
                    }),
                    other + "ncclSend of 3 int32 to rank 0, but ncclRecv of 3 float32 from rank 0");
            assertEquals(0, c.flightRecorder().recorded());
            assertArrayEquals(UNTOUCHED, content(recv));
            assertEquals(0, send.nativeBuffer.pins());
            // The order among sends and among receives counts, not that between them.
            Group.run(() -> {
                c.recv(recv.slice(0, 4), 0, STREAM);
                c.send(send.slice(0, 4), 0, STREAM);
                c.send(send.slice(4, 2), 0, STREAM);
                c.recv(recv.slice(4, 2), 0, STREAM);
            });
            assertArrayEquals(NUMBERS, content(recv));
            // What is left of a refused group does not count in the next.
            Group.run(() -> c.allReduce(send, recv, ReduceOp.SUM, STREAM));
        }
    }

    @Test
    void eachCommunicatorMatchesItsOwnTransfers() {
        List<Communicator> ranks = Communicator.createAll(List.of(HOST, HOST));
        try (DeviceBuffer<Int32> send = numbers();
                DeviceBuffer<Int32> first = zeros();
                DeviceBuffer<Int32> second = zeros()) {
            Communicator zero = ranks.get(0);
            Communicator one = ranks.get(1);
            Group.run(() -> {
                zero.send(send.slice(0, 2), 0, STREAM);
                one.send(send.slice(0, 3), 1, STREAM);
                zero.send(send.slice(3, 1), 1, STREAM);
                one.recv(second.slice(0, 3), 1, STREAM);
                one.recv(second.slice(3, 1), 0, STREAM);
                zero.recv(first.slice(0, 2), 0, STREAM);
            });
            assertArrayEquals(new int[] {7, 8, 0, 0, 0, 0}, content(first));
            assertArrayEquals(new int[] {7, 8, 9, 10, 0, 0}, content(second));
            assertEquals(List.of("ncclSend", "ncclSend", "ncclRecv"), recorded(zero));
            assertEquals(List.of("ncclSend", "ncclRecv", "ncclRecv"), recorded(one));
            refused(
                    IllegalStateException.class,
                    () -> Group.run(() -> {
                        zero.send(send.slice(0, 2), 0, STREAM);
                        one.recv(first.slice(0, 2), 1, STREAM);
                    }),
                    zero + " must send to itself and receive from itself as often in one group:"
                            + " only ncclSend of 2 int32 to rank 0 is left");
        } finally {
            ranks.forEach(Communicator::close);
        }
    }

    @Test
    void allBlockOrNone() {
        try (Communicator blocking = alone("one");
                Communicator not = named("two", false).create(UniqueId.create(), 0, 1);
                DeviceBuffer<Int32> buffer = zeros()) {
            String start = "communicators of one group must all block or all not block: ";
            refused(
                    IllegalArgumentException.class,
                    () -> Group.run(() -> {
                        blocking.allReduce(buffer, ReduceOp.SUM, STREAM);
                        not.allReduce(buffer, ReduceOp.SUM, STREAM);
                    }),
                    start + blocking.core() + " is blocking, " + not.core() + " is not blocking");
            refused(
                    IllegalArgumentException.class,
                    () -> Group.run(() -> {
                        not.allReduce(buffer, ReduceOp.SUM, STREAM);
                        blocking.allReduce(buffer, ReduceOp.SUM, STREAM);
                    }),
                    start + not.core() + " is not blocking, " + blocking.core() + " is blocking");
        }
    }

    @Test
    void callsWithResultsAreMadeWithTheOperations() {
        try (Communicator c = alone("parent");
                DeviceBuffer<Int32> send = numbers();
                DeviceBuffer<Int32> recv = zeros()) {
            List<Communicator> children = new ArrayList<>();
            Group.run(() -> {
                children.add(c.split(0, 0));
                c.allReduce(send.slice(0, 3), recv.slice(0, 3), ReduceOp.SUM, STREAM);
                children.add(c.split(1, 0));
                c.allReduce(send.slice(3, 3), recv.slice(3, 3), ReduceOp.SUM, STREAM);
                assertEquals(Communicator.State.PENDING, children.get(0).state());
            });
            assertArrayEquals(NUMBERS, content(recv));
            assertEquals(List.of("ncclAllReduce", "ncclAllReduce"), recorded(c));
            for (Communicator child : children) {
                assertEquals(Communicator.State.OPEN, child.state());
                child.allReduce(recv, ReduceOp.SUM, STREAM);
                child.close();
            }
        }
    }

    @Test
    void discardedGroupClosesItsCommunicatorsOnly() {
        try (Communicator c = alone("parent")) {
            List<Communicator> children = new ArrayList<>();
            Group.run(() -> {
                children.add(c.split(0, 0));
                Group inner = Group.open();
                children.add(c.split(0, 0));
                children.add(c.split(0, 0));
                inner.close();
                assertEquals(Communicator.State.CLOSED, children.get(1).state());
                assertEquals(Communicator.State.CLOSED, children.get(2).state());
            });
            assertEquals(Communicator.State.OPEN, children.get(0).state());
            children.get(0).close();
        }
    }

    @Test
    void aGroupThatIsClosedWithoutALaunchLogsItsCalls() {
        try (Communicator c = alone("one");
                DeviceBuffer<Int32> send = numbers();
                DeviceBuffer<Int32> recv = zeros();
                TestLog log = new TestLog()) {
            try (Group outer = Group.open()) {
                c.allReduce(send, recv, ReduceOp.SUM, STREAM);
                Group inner = Group.open();
                c.broadcast(send, recv, 0, STREAM);
                c.split(0, 0);
                inner.close();
                outer.launch();
            }
            assertEquals(
                    List.of(
                            "WARNING: a group was closed without launch(), which drops its calls (2): ncclBroadcast of 6"
                                    + " int32 from rank 0 of communicator 'one' (rank 0 of 1 on host memory);"
                                    + " ncclCommSplit of communicator 'one' (rank 0 of 1 on host memory)"),
                    log.lines());
            assertEquals("closed here", log.records().get(0).getThrown().getMessage());
            Group group = Group.open();
            for (int i = 0; i < 12; i++) {
                c.allReduce(send, recv, ReduceOp.SUM, STREAM);
            }
            group.close();
            String many = log.lines().get(1);
            assertTrue(many.contains("calls (12): ") && many.endsWith("; ..."), many);
            assertEquals(10, many.split("ncclAllReduce", -1).length - 1);
        }
    }

    /** The exception tells it. */
    @Test
    void aBodyThatThrowsLogsNothing() {
        try (Communicator c = alone("one");
                DeviceBuffer<Int32> send = numbers();
                DeviceBuffer<Int32> recv = zeros();
                TestLog log = new TestLog()) {
            refused(
                    IllegalStateException.class,
                    () -> Group.run(() -> {
                        c.allReduce(send, recv, ReduceOp.SUM, STREAM);
                        throw new IllegalStateException("body");
                    }),
                    "body");
            Group.open().close();
            assertEquals(List.of(), log.lines());
            assertFalse(Group.isOpenInThisThread());
            assertArrayEquals(UNTOUCHED, content(recv));
        }
    }

    private static AllToAllvPlan<Int32> plan(Communicator c, DeviceBuffer<Int32> memory, int send, int recv) {
        return c.planAllToAllv(
                memory.slice(send, 2),
                new long[] {2},
                new long[] {0},
                memory.slice(recv, 2),
                new long[] {2},
                new long[] {0});
    }

    /** As when a buffer was closed by another thread after the checks. */
    @Test
    @SuppressWarnings("try") // Nothing is added.
    void callsThatAreNotLaunchedLeaveNoOpenGroup() {
        try (Communicator one = alone("one")) {
            try (BatchedCallGroup calls = new BatchedCallGroup(one.core())) {
                assertTrue(Group.isOpenInThisThread());
            }
            assertFalse(Group.isOpenInThisThread());
        }
    }

    @Test
    void aPlanWithoutAgreementReleasesItsBuffers() {
        try (Communicator one = alone("one");
                DeviceBuffer<Int32> send = HOST.allocate(ElementType.INT32, 4);
                DeviceBuffer<Int32> recv = HOST.allocate(ElementType.INT32, 4)) {
            long[] first = {0};
            assertThrows(
                    IllegalArgumentException.class,
                    () -> one.planAllToAllv(send, new long[] {2}, first, recv, new long[] {3}, first));
            assertEquals(0, send.nativeBuffer.pins());
            assertEquals(0, recv.nativeBuffer.pins());
        }
    }

    @Test
    void operationsThatMustBeAlonePrecedeTheOthers() {
        try (Communicator one = alone("one");
                Communicator two = alone("two")) {
            DeviceBuffer<Int32> first = HOST.allocateForWindow(ElementType.INT32, 1024);
            DeviceBuffer<Int32> second = HOST.allocateForWindow(ElementType.INT32, 1024);
            one.registerWindow(first, WindowFlag.COLL_SYMMETRIC);
            two.registerWindow(second, WindowFlag.COLL_SYMMETRIC);
            for (DeviceBuffer<Int32> memory : List.of(first, second)) {
                memory.fill(0);
                memory.slice(0, LENGTH).copyFrom(NUMBERS);
            }
            AllToAllvPlan<Int32> oneA = plan(one, first, 0, 10);
            AllToAllvPlan<Int32> oneB = plan(one, first, 2, 12);
            AllToAllvPlan<Int32> twoA = plan(two, second, 4, 14);
            assertTrue(oneA.usesNativeCall() && oneB.usesNativeCall() && twoA.usesNativeCall());
            Group.run(() -> {
                one.allReduce(first.slice(0, 2), first.slice(20, 2), ReduceOp.SUM, STREAM);
                one.allToAllv(oneA, STREAM);
                two.allToAllv(twoA, STREAM);
                one.allToAllv(oneB, STREAM);
                two.allReduce(second.slice(0, 2), second.slice(20, 2), ReduceOp.SUM, STREAM);
            });
            int[] found = new int[1024];
            first.copyTo(found);
            assertArrayEquals(
                    new int[] {7, 8, 9, 10},
                    IntStream.range(10, 14).map(i -> found[i]).toArray());
            assertArrayEquals(
                    new int[] {7, 8}, IntStream.range(20, 22).map(i -> found[i]).toArray());
            second.copyTo(found);
            assertArrayEquals(
                    new int[] {11, 12},
                    IntStream.range(14, 16).map(i -> found[i]).toArray());
            assertArrayEquals(
                    new int[] {7, 8}, IntStream.range(20, 22).map(i -> found[i]).toArray());
            // The plans have compared their lengths before.
            assertEquals(
                    List.of("ncclAllGather", "ncclAllGather", "ncclAllReduce", "ncclAlltoAllv", "ncclAlltoAllv"),
                    recorded(one));
            assertEquals(List.of("ncclAllGather", "ncclAlltoAllv", "ncclAllReduce"), recorded(two));
        }
    }

    private static CollectiveConfig launching(CudaEvent event) {
        return CollectiveConfig.builder().launchCompletionEvent(event).build();
    }

    private static CollectiveConfig clusters(int size) {
        return CollectiveConfig.builder().cgaClusterSize(size).build();
    }

    @Test
    void configurationsOfAGroupMustAgree() {
        try (Communicator c = alone("one");
                Communicator other = alone("two");
                DeviceBuffer<Int32> send = numbers();
                DeviceBuffer<Int32> a = zeros();
                DeviceBuffer<Int32> b = zeros();
                DeviceBuffer<Int32> d = zeros();
                CudaEvent event = CudaEvent.create(HOST);
                CudaEvent second = CudaEvent.create(HOST)) {
            refused(
                    IllegalArgumentException.class,
                    () -> Group.run(() -> {
                        c.allReduce(send, a, ReduceOp.SUM, STREAM, launching(event));
                        c.allReduce(send, b, ReduceOp.SUM, STREAM, launching(second));
                    }),
                    "one call of a communicator in a group may have a launchCompletionEvent: " + event + " and "
                            + second + " of " + c.core());
            refused(
                    IllegalArgumentException.class,
                    () -> Group.run(() -> {
                        c.allReduce(send, a, ReduceOp.SUM, STREAM, clusters(2));
                        other.allReduce(send, b, ReduceOp.SUM, STREAM, clusters(4));
                    }),
                    "cgaClusterSize must be the same in all collectives of a group: 2, 4");
            assertArrayEquals(UNTOUCHED, content(a));
            Group.run(() -> {
                c.allReduce(send, a, ReduceOp.SUM, STREAM, launching(event));
                other.allReduce(send, b, ReduceOp.SUM, STREAM, launching(second));
                c.allReduce(send, d, ReduceOp.SUM, STREAM, clusters(2));
            });
            event.synchronize(LIMIT);
            second.synchronize(LIMIT);
            Group.run(() -> {
                c.broadcast(send, a, 0, STREAM, clusters(4));
                c.broadcast(send, b, 0, STREAM, clusters(4));
                c.allGather(
                        send, d, STREAM, CollectiveConfig.builder().maxCtas(8).build());
            });
            for (DeviceBuffer<Int32> each : List.of(a, b, d)) {
                assertArrayEquals(NUMBERS, content(each));
            }
            // An event that was used can be destroyed.
            assertTrue(event.isDone());
        }
    }

    @Test
    void aRefusalNamesCommunicatorOperationAndGroup() {
        CollectiveConfig unknown = CollectiveConfig.algorithm("no_such_name");
        try (Communicator one = alone("one");
                Communicator two = alone("two");
                DeviceBuffer<Int32> send = numbers();
                DeviceBuffer<Int32> recv = zeros();
                DeviceBuffer<Int32> last = zeros()) {
            for (boolean simulated : new boolean[] {false, true}) {
                NcclResultException refusal = assertThrows(NcclResultException.class, () -> {
                    try (Group group = Group.open()) {
                        one.allReduce(send, recv, ReduceOp.SUM, STREAM);
                        two.allReduce(
                                send,
                                recv,
                                ReduceOp.MAX,
                                STREAM,
                                CollectiveConfig.builder().maxCtas(8).build());
                        two.allReduce(send, recv, ReduceOp.SUM, STREAM, unknown);
                        one.allReduce(send, last, ReduceOp.SUM, STREAM);
                        if (simulated) {
                            group.simulate();
                        } else {
                            group.launch();
                        }
                    }
                });
                assertEquals(Result.INVALID_ARGUMENT, refusal.result());
                assertEquals("ncclAllReduceConfig", refusal.operation());
                assertEquals("two", refusal.communicatorName());
                String text = refusal.getMessage();
                assertTrue(
                        text.contains("ncclAllReduceConfig of 6 int32 with " + unknown + " in a group of 4 operations"),
                        text);
                assertEquals(0, send.nativeBuffer.pins());
            }
            // The operations up to the refusal, of the launch only: a simulation records none.
            assertEquals(List.of("ncclAllReduce"), recorded(one));
            assertEquals(List.of("ncclAllReduceConfig", "ncclAllReduceConfig"), recorded(two));
            assertArrayEquals(UNTOUCHED, content(last));
            Group.run(() -> one.allReduce(send, last, ReduceOp.SUM, STREAM));
            assertArrayEquals(NUMBERS, content(last));
        }
    }

    @Test
    void aRefusedOperationEndsTheCallsWithResults() {
        try (Communicator c = alone("parent");
                DeviceBuffer<Int32> buffer = numbers()) {
            List<Communicator> children = new ArrayList<>();
            NcclResultException refusal = assertThrows(
                    NcclResultException.class,
                    () -> Group.run(() -> {
                        c.allReduce(buffer, buffer, ReduceOp.SUM, STREAM, CollectiveConfig.algorithm("no_such_name"));
                        children.add(c.split(0, 0));
                    }));
            assertTrue(refusal.getMessage().contains("in a group of 2 operations"), refusal.getMessage());
            assertEquals(Communicator.State.CLOSED, children.get(0).state());
            c.allReduce(buffer, ReduceOp.SUM, STREAM);
        }
    }

    @Test
    void simulationLaunchesNothing() {
        try (Communicator c = alone("one");
                DeviceBuffer<Int32> send = numbers();
                DeviceBuffer<Int32> recv = zeros();
                DeviceBuffer<Int32> large = HOST.allocate(ElementType.INT32, 1 << 20)) {
            Duration small = simulated(() -> c.allReduce(send, recv, ReduceOp.SUM, STREAM));
            Duration more = simulated(() -> c.allReduce(large, ReduceOp.SUM, STREAM));
            assertTrue(more.compareTo(small) > 0, () -> more + " is not longer than " + small);
            assertTrue(more.compareTo(Duration.ofMinutes(1)) < 0, more::toString);
            assertArrayEquals(UNTOUCHED, content(recv));
            assertEquals(0, c.flightRecorder().recorded());
            assertEquals(0, send.nativeBuffer.pins());
            refused(
                    IllegalStateException.class,
                    () -> simulated(() -> c.send(send, 0, STREAM)),
                    c + " must send to itself and receive from itself as often in one group:"
                            + " only ncclSend of 6 int32 to rank 0 is left");
            List<Communicator> children = new ArrayList<>();
            refused(
                    IllegalStateException.class,
                    () -> simulated(() -> children.add(c.split(0, 0))),
                    "only operations on data can be simulated, this group has ncclCommSplit, too");
            assertEquals(Communicator.State.CLOSED, children.get(0).state());
            assertFalse(Group.isOpenInThisThread());
        }
        try (Communicator not = named("two", false).create(UniqueId.create(), 0, 1);
                DeviceBuffer<Int32> recv = zeros()) {
            refused(
                    IllegalStateException.class,
                    () -> simulated(() -> not.allReduce(recv, ReduceOp.SUM, STREAM)),
                    "operations of non-blocking communicators can't be simulated, NCCL would launch them: " + not.core()
                            + " is not blocking");
        }
    }

    private static Duration simulated(Runnable body) {
        try (Group group = Group.open()) {
            body.run();
            return group.simulate();
        }
    }

    @Test
    void endedCommunicatorIsNotCalled() {
        Communicator c = alone("one");
        try (DeviceBuffer<Int32> buffer = numbers();
                Group group = Group.open()) {
            c.allReduce(buffer, ReduceOp.SUM, STREAM);
            Threads.EACH.execute(c::abort);
            Waiting.until("the abort", () -> c.state() == Communicator.State.ABORTED);
            assertTrue(assertThrows(IllegalStateException.class, group::launch)
                    .getMessage()
                    .contains("was aborted"));
            assertEquals(0, buffer.nativeBuffer.pins());
        }
        Communicator other = alone("two");
        try (DeviceBuffer<Int32> buffer = numbers();
                Group group = Group.open()) {
            other.allReduce(buffer, ReduceOp.SUM, STREAM);
            Threads.EACH.execute(other::abort);
            Waiting.until("the abort", () -> other.state() == Communicator.State.ABORTED);
            assertTrue(assertThrows(IllegalStateException.class, group::simulate)
                    .getMessage()
                    .contains("was aborted"));
        }
    }

    /** Rank 0 of two; rank 1 never joins an operation, and aborts when rank 0 has finished. */
    private static void withoutTheOther(boolean blocking, Duration deadline, Consumer<Communicator> body) {
        while (true) {
            UniqueId id = UniqueId.create();
            CompletableFuture<Communicator> other = CompletableFuture.supplyAsync(
                    () -> named("second", blocking).create(id, 1, 2), Threads.EACH);
            Communicator c;
            try {
                c = named("first", blocking).deadline(deadline).create(id, 0, 2);
            } catch (NcclTimeoutException late) {
                // On a busy machine the creation may exceed the deadline; it is then repeated.
                other.thenAccept(Communicator::abort);
                continue;
            }
            try {
                other.join();
                body.accept(c);
            } finally {
                c.abort();
                other.thenAccept(Communicator::abort);
            }
            return;
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aLaunchThatWaitsForOtherRanksEndsAtTheDeadline(boolean blocking) {
        withoutTheOther(blocking, Duration.ofSeconds(3), c -> {
            try (DeviceBuffer<Int32> buffer = numbers()) {
                NcclTimeoutException late = assertThrows(
                        NcclTimeoutException.class,
                        () -> Group.run(() -> {
                            c.split(0, 0);
                            c.allReduce(buffer, ReduceOp.SUM, STREAM);
                        }));
                assertEquals("ncclGroupEnd", late.operation());
                assertTrue(late.getMessage().contains("ncclGroupEnd of 2 operations"), late.getMessage());
                assertEquals(Communicator.State.FAILED, c.state());
            }
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void anInterruptEndsTheLaunch(boolean blocking) {
        withoutTheOther(blocking, LIMIT, c -> {
            Thread.currentThread().interrupt();
            NcclInterruptedException interrupted =
                    assertThrows(NcclInterruptedException.class, () -> Group.run(() -> c.split(0, 0)));
            assertTrue(Thread.interrupted());
            assertTrue(interrupted.getMessage().contains("ncclGroupEnd of 1 operations"), interrupted.getMessage());
            assertFalse(c.state() == Communicator.State.OPEN, c::toString);
        });
    }

    /** A rendezvous of one rank that keeps what was gathered. */
    private static final class Alone implements Rendezvous {
        private final List<String> gathered = new ArrayList<>();
        private String answer;

        @Override
        public int rank() {
            return 0;
        }

        @Override
        public int size() {
            return 1;
        }

        @Override
        public List<byte[]> gather(String key, byte[] value, Duration timeout) {
            String text = new String(value, StandardCharsets.UTF_8);
            if (!text.isEmpty()) {
                gathered.add(text);
            }
            return answer == null ? List.of(value) : List.of(value, answer.getBytes(StandardCharsets.UTF_8));
        }

        @Override
        public void close() {}
    }

    @Test
    void theCollectivesOfAGroupAreComparedAtOnce() {
        Alone ranks = new Alone();
        Alone others = new Alone();
        CommunicatorConfig config =
                CommunicatorConfig.builder().commName("checked").build();
        try (Communicator c = Communicator.builder().config(config).check(ranks).create(UniqueId.create(), 0, 1);
                Communicator other = Communicator.builder().check(others).create(UniqueId.create(), 0, 1);
                Communicator unchecked = alone("two");
                DeviceBuffer<Int32> send = numbers();
                DeviceBuffer<Int32> recv = zeros()) {
            ranks.gathered.clear();
            others.gathered.clear();
            Runnable calls = () -> {
                c.allReduce(send, recv, ReduceOp.SUM, STREAM);
                other.broadcast(send.slice(0, 1), recv.slice(0, 1), 0, STREAM);
                unchecked.allReduce(send, recv, ReduceOp.SUM, STREAM);
                c.send(send.slice(0, 1), 0, STREAM);
                c.recv(recv.slice(0, 1), 0, STREAM);
                c.reduce(
                        send,
                        recv,
                        ReduceOp.MAX,
                        0,
                        STREAM,
                        CollectiveConfig.builder().maxCtas(8).build());
            };
            Group.run(calls);
            assertEquals(
                    List.of("ncclAllReduce of 6 int32, SUM; ncclReduceConfig of 6 int32 to rank 0, MAX, {maxCTAs=8}"),
                    ranks.gathered);
            assertEquals(List.of("ncclBroadcast of 1 int32 from rank 0"), others.gathered);
            // Without collectives there is nothing to compare.
            Group.run(() -> {
                c.send(send.slice(0, 1), 0, STREAM);
                c.recv(recv.slice(0, 1), 0, STREAM);
            });
            assertEquals(1, ranks.gathered.size());
            long before = c.flightRecorder().recorded();
            others.answer = "something else";
            CallMismatchException mismatch = assertThrows(CallMismatchException.class, () -> Group.run(calls));
            assertEquals(List.of("ncclBroadcast of 1 int32 from rank 0", "something else"), mismatch.calls());
            assertEquals(before, c.flightRecorder().recorded());
        }
    }

    @Test
    void aFailureOfAnotherRankNamesTheFirstOperation() throws Exception {
        CountDownLatch aborted = new CountDownLatch(1);
        UniqueId id = UniqueId.create();
        List<Callable<Void>> ranks = List.of(
                () -> {
                    Communicator c = named("left", true).create(id, 0, 2);
                    try (DeviceBuffer<Int32> buffer = numbers()) {
                        aborted.await();
                        Waiting.until("an error", () -> !c.asyncError().equals(Result.SUCCESS));
                        NcclRemoteException failure = assertThrows(
                                NcclRemoteException.class,
                                () -> Group.run(() -> {
                                    c.broadcast(buffer, 0, STREAM);
                                    c.allReduce(buffer, ReduceOp.SUM, STREAM);
                                }));
                        assertEquals("ncclBroadcast", failure.operation());
                        assertEquals("left", failure.communicatorName());
                        String text = failure.getMessage();
                        assertTrue(
                                text.contains("ncclBroadcast of 6 int32 from rank 0 in a group of 2 operations"), text);
                    } finally {
                        c.abort();
                    }
                    return null;
                },
                () -> {
                    named("gone", true).create(id, 1, 2).abort();
                    aborted.countDown();
                    return null;
                });
        Threads.together(ranks, LIMIT);
    }

    @Test
    void whatIsClosedBeforeTheEndOfAGroupIsKeptUntilThen() {
        List<String> calls = new ArrayList<>();
        CallInterceptor interceptor = new CallInterceptor() {
            @Override
            public void after(Call call, int result, long nanoseconds) {
                if (call.function().startsWith("ncclRedOp") || call.function().equals("ncclAllReduce")) {
                    synchronized (calls) {
                        calls.add(call.function());
                    }
                }
            }
        };
        try (Communicator c = alone("one");
                DeviceBuffer<Int32> send = numbers();
                DeviceBuffer<Int32> recv = zeros();
                DeviceBuffer<Int32> other = zeros()) {
            PreMulSum<Int32> triple = c.preMulSum(ElementType.INT32, 3);
            CudaStream stream = CudaStream.nonBlocking(HOST);
            CudaEvent event = CudaEvent.create(HOST);
            long streamHandle = stream.nativeHandle();
            long eventHandle = event.nativeHandle();
            CallInterceptor.Installed installed = NcclLibrary.intercept(interceptor);
            try (Group group = Group.open()) {
                c.allReduce(send, recv, triple, STREAM);
                c.allReduce(send, other, ReduceOp.SUM, stream);
                triple.close();
                stream.close();
                Group inner = Group.open();
                c.broadcast(send, other, 0, STREAM, launching(event));
                event.close();
                assertTrue(exists(HostEngine.eventQuery(eventHandle)), "the inner group needs the event");
                inner.close();
                assertFalse(exists(HostEngine.eventQuery(eventHandle)), "the inner group is discarded");
                assertTrue(exists(HostEngine.streamQuery(streamHandle)), "the group needs the stream");
                group.launch();
            } finally {
                installed.close();
            }
            assertFalse(exists(HostEngine.streamQuery(streamHandle)), "the stream is destroyed");
            assertEquals(List.of("ncclAllReduce", "ncclAllReduce", "ncclRedOpDestroy"), calls);
            assertArrayEquals(IntStream.of(NUMBERS).map(i -> 3 * i).toArray(), content(recv));
        }
    }

    private static boolean exists(int queried) {
        return queried != nccl.ncclInvalidArgument;
    }
}
