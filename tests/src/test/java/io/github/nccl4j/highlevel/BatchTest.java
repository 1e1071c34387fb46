package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.tests.Threads;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import org.junit.jupiter.api.Test;

/** How long a group keeps memory, which it need not pin once more for each operation. */
class BatchTest {
    private static final Device HOST = Device.host();
    private static final CudaStream STREAM = CudaStream.defaultOf(HOST);
    private static final int LENGTH = 100;

    private static Communicator alone() {
        return Communicator.create(UniqueId.create(), 0, 1);
    }

    private static DeviceBuffer<Int32> numbers() {
        return HOST.allocate(ElementType.INT32, LENGTH);
    }

    @Test
    void slicesOfOneBufferPinItOnce() {
        try (Communicator communicator = alone();
                DeviceBuffer<Int32> buffer = numbers();
                Group group = Group.open()) {
            for (int i = 0; i < LENGTH; i++) {
                communicator.allReduce(buffer.slice(i, 1), ReduceOp.SUM, STREAM);
            }
            assertEquals(1, buffer.pins());
            group.launch();
            assertEquals(0, buffer.pins());
        }
    }

    @Test
    void manyBuffersArePinnedUntilTheLaunch() {
        DeviceBuffer<?>[] buffers = new DeviceBuffer<?>[LENGTH];
        try (Communicator communicator = alone();
                Group group = Group.open()) {
            for (int i = 0; i < LENGTH; i++) {
                DeviceBuffer<Int32> buffer = numbers();
                communicator.allReduce(buffer, ReduceOp.SUM, STREAM);
                // Of no effect on the memory before the launch.
                buffer.close();
                buffers[i] = buffer;
                assertEquals(1, buffer.pins());
            }
            group.launch();
            for (DeviceBuffer<?> buffer : buffers) {
                assertEquals(0, buffer.pins());
            }
        }
    }

    @Test
    void whatIsGivenUpIsPinnedAgainByTheNext() {
        try (Communicator communicator = alone();
                DeviceBuffer<Int32> outer = numbers();
                DeviceBuffer<Int32> inner = numbers();
                Group group = Group.open()) {
            communicator.allReduce(outer, ReduceOp.SUM, STREAM);
            Group givenUp = Group.open();
            communicator.allReduce(inner, ReduceOp.SUM, STREAM);
            communicator.allReduce(outer, ReduceOp.MAX, STREAM);
            assertEquals(1, inner.pins());
            givenUp.close();
            assertEquals(0, inner.pins());
            assertEquals(1, outer.pins());
            communicator.allReduce(inner, ReduceOp.SUM, STREAM);
            assertEquals(1, inner.pins());
            group.launch();
            assertEquals(0, inner.pins());
            assertEquals(0, outer.pins());
        }
    }

    @Test
    void groupsOfTwoThreadsEachPinWhatBothUse() throws Exception {
        try (Communicator mine = alone();
                Communicator theirs = alone();
                DeviceBuffer<Int32> buffer = numbers();
                Group group = Group.open()) {
            mine.allReduce(buffer.slice(0, 1), ReduceOp.SUM, STREAM);
            Callable<Void> other = () -> {
                try (Group others = Group.open()) {
                    theirs.allReduce(buffer.slice(1, 1), ReduceOp.SUM, STREAM);
                    assertEquals(2, buffer.pins());
                    others.launch();
                }
                return null;
            };
            Threads.together(List.of(other), Duration.ofSeconds(30));
            assertEquals(1, buffer.pins());
            mine.allReduce(buffer.slice(2, 1), ReduceOp.SUM, STREAM);
            group.launch();
            assertEquals(0, buffer.pins());
        }
    }
}
