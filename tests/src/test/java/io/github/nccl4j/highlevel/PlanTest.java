package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.internal.submission.GroupScope;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Plans on the host engine: operations that are checked once, and run often. */
@Timeout(value = 2, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class PlanTest {
    private static final int RANKS = 2;

    private final List<Communicator> ranks = Communicator.builder()
            .deadline(Duration.ofSeconds(30))
            .createAll(Collections.nCopies(RANKS, Device.host()));

    private final List<DeviceBuffer<Int32>> buffers = new ArrayList<>();

    @AfterEach
    void end() {
        ranks.forEach(Communicator::abort);
        buffers.forEach(DeviceBuffer::close);
    }

    private DeviceBuffer<Int32> numbers(int... numbers) {
        DeviceBuffer<Int32> buffer = Device.host().copyOf(numbers);
        buffers.add(buffer);
        return buffer;
    }

    private void await() {
        ranks.forEach(rank -> rank.work(rank.stream()).await());
    }

    private static List<String> recorded(Communicator communicator) {
        return communicator.flightRecorder().operations().stream()
                .map(FlightRecorder.Operation::function)
                .toList();
    }

    private static void refused(Class<? extends Exception> type, Runnable code, String message) {
        assertEquals(message, assertThrows(type, code::run).getMessage());
    }

    @Test
    void aPlanRunsItsOperationAsOftenAsItIsTold() {
        List<DeviceBuffer<Int32>> own = List.of(numbers(1, 10), numbers(2, 20));
        List<Plan> plans = new ArrayList<>();
        for (int rank = 0; rank < RANKS; rank++) {
            Communicator communicator = ranks.get(rank);
            DeviceBuffer<Int32> buffer = own.get(rank);
            plans.add(communicator.plan(() -> communicator.allReduce(buffer, ReduceOp.SUM, communicator.stream())));
            assertEquals(List.of(), recorded(communicator));
        }
        for (int round = 0; round < 3; round++) {
            plans.forEach(Plan::run);
            await();
        }
        assertArrayEquals(new int[] {12, 120}, own.get(0).toIntArray());
        assertArrayEquals(new int[] {12, 120}, own.get(1).toIntArray());
        assertEquals(Collections.nCopies(3, "ncclAllReduce"), recorded(ranks.get(0)));
        assertEquals(
                "plan of [ncclAllReduce of 2 int32] of " + ranks.get(0),
                plans.get(0).toString());
        plans.forEach(Plan::close);
        assertFalse(plans.get(0).isOpen());
        refused(IllegalStateException.class, plans.get(0)::run, plans.get(0) + " is closed");
    }

    @Test
    void severalOperationsAreLaunchedTogether() {
        List<DeviceBuffer<Int32>> incoming = List.of(numbers(0), numbers(0));
        List<DeviceBuffer<Int32>> gathered = List.of(numbers(0, 0), numbers(0, 0));
        List<Plan> plans = new ArrayList<>();
        for (int rank = 0; rank < RANKS; rank++) {
            Communicator communicator = ranks.get(rank);
            CudaStream stream = communicator.stream();
            DeviceBuffer<Int32> outgoing = numbers(7 + rank);
            int other = 1 - rank;
            DeviceBuffer<Int32> received = incoming.get(rank);
            DeviceBuffer<Int32> all = gathered.get(rank);
            CollectiveConfig config = CollectiveConfig.builder().maxCtas(4).build();
            plans.add(communicator.plan(() -> {
                communicator.sendRecv(outgoing, other, received, other, stream);
                communicator.allGather(outgoing, all, stream, config);
            }));
        }
        for (int round = 0; round < 2; round++) {
            incoming.forEach(buffer -> buffer.fill(0));
            plans.forEach(Plan::run);
            await();
            assertEquals(8, incoming.get(0).toIntArray()[0]);
            assertEquals(7, incoming.get(1).toIntArray()[0]);
            assertArrayEquals(new int[] {7, 8}, gathered.get(0).toIntArray());
        }
        // Both plans in one group with another operation.
        gathered.forEach(buffer -> buffer.fill(0));
        Group.run(() -> {
            for (int rank = 0; rank < RANKS; rank++) {
                plans.get(rank).run();
                // The launch needs it, the program does not.
                plans.get(rank).close();
            }
        });
        await();
        assertArrayEquals(new int[] {7, 8}, gathered.get(1).toIntArray());
    }

    @Test
    void aPlanKeepsTheMemoryOfClosedBuffers() {
        Communicator communicator = ranks.get(0);
        DeviceBuffer<Int32> send = numbers(5);
        DeviceBuffer<Int32> recv = numbers(0);
        Plan plan = communicator.plan(() -> communicator.send(send, 1, communicator.stream()));
        assertEquals(1, send.nativeBuffer.pins());
        send.close();
        plan.run();
        ranks.get(1).recv(recv, 0, ranks.get(1).stream());
        await();
        assertArrayEquals(new int[] {5}, recv.toIntArray());
        plan.close();
        assertEquals(0, send.nativeBuffer.pins());
    }

    /** The thread's next group has the same batch: it must not take the pins of the plan for its own. */
    @Test
    void groupsPinTheBuffersOfAPlanAgain() {
        Communicator communicator = ranks.get(0);
        DeviceBuffer<Int32> send = numbers(5);
        try (Plan plan = communicator.plan(() -> communicator.send(send, 1, communicator.stream()));
                GroupScope group = GroupScope.open()) {
            communicator.send(send, 1, communicator.stream());
            assertEquals(2, send.nativeBuffer.pins());
            assertTrue(plan.isOpen());
            group.discard();
        }
        assertEquals(0, send.nativeBuffer.pins());
    }

    @Test
    void whatIsNoOperationOfTheCommunicatorIsRefused() {
        Communicator communicator = ranks.get(0);
        DeviceBuffer<Int32> buffer = numbers(1);
        refused(
                IllegalArgumentException.class,
                () -> communicator.plan(() -> ranks.get(1).allReduce(buffer, ReduceOp.SUM, ranks.get(1).stream())),
                "a plan can only have operations of its communicator: " + communicator + ", not of " + ranks.get(1));
        assertThrows(
                IllegalArgumentException.class,
                () -> communicator.plan(() -> communicator.send(buffer, 2, communicator.stream())));
        refused(
                IllegalStateException.class,
                () -> Group.run(() -> communicator.plan(() -> {})),
                "a plan must be created outside of the open group of this thread");
        assertThrows(NullPointerException.class, () -> communicator.plan(null));
        assertEquals(0, buffer.nativeBuffer.pins());
        assertFalse(Group.isOpenInThisThread());
        try (Plan nothing = communicator.plan(() -> {})) {
            nothing.run();
        }
        assertEquals(List.of(), recorded(communicator));
    }

    @Test
    void aWindowAfterThePlanMakesItsChecksVoid() {
        try (Communicator alone = Communicator.create(UniqueId.create(), 0, 1);
                DeviceBuffer<Int32> memory = Device.host().allocateForWindow(ElementType.INT32, 1);
                Plan plan = alone.plan(() -> alone.allReduce(memory, ReduceOp.SUM, alone.stream()));
                Window window = alone.registerWindow(memory, WindowFlag.COLL_SYMMETRIC)) {
            assertTrue(window.isOpen());
            refused(
                    IllegalStateException.class,
                    plan::run,
                    plan + " was created before a window was registered: create the plan again");
            refused(
                    IllegalArgumentException.class,
                    () -> alone.plan(() -> alone.registerWindow(memory)),
                    "a plan can only have operations on data, not ncclCommWindowRegister");
        }
    }

    @Test
    void aCommunicatorClosesItsPlans() {
        Plan plan;
        try (Communicator alone = Communicator.create(UniqueId.create(), 0, 1)) {
            DeviceBuffer<Int32> buffer = numbers(3);
            plan = alone.plan(() -> alone.allReduce(buffer, ReduceOp.SUM, alone.stream()));
            assertEquals(1, buffer.nativeBuffer.pins());
        }
        assertFalse(plan.isOpen());
        assertEquals(0, buffers.get(0).nativeBuffer.pins());
    }
}
