package io.github.nccl4j.tests.highlevel;

import static io.github.nccl4j.testing.Expect.refused;
import static io.github.nccl4j.tests.highlevel.RankThreads.STREAM;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.nccl4j.highlevel.AddressOperations;
import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Operations on plain addresses at each of three ranks, with other roots, peers and operators than the first. */
@Timeout(value = 5, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class AddressOperationsTest {
    private static final int LENGTH = 6;
    private static final DataType TYPE = DataType.INT32;

    /** The elements of the receive buffer, which is then filled with -1. */
    private static int[] taken(DeviceBuffer<Int32> buffer) {
        int[] elements = new int[LENGTH];
        buffer.copyTo(elements);
        buffer.fill(-1);
        return elements;
    }

    /** Some elements at a place, and -1 elsewhere. */
    private static int[] only(int... first) {
        int[] all = new int[LENGTH];
        Arrays.fill(all, -1);
        System.arraycopy(first, 0, all, 0, first.length);
        return all;
    }

    @Test
    void elementsGoWhereTheArgumentsSay() throws Exception {
        RankThreads.run(3, communicator -> {
            try (DeviceBuffer<Int32> source = Device.host().allocate(ElementType.INT32, LENGTH);
                    DeviceBuffer<Int32> target = Device.host().allocate(ElementType.INT32, LENGTH)) {
                int rank = communicator.rank();
                int[] numbers = new int[LENGTH];
                Arrays.setAll(numbers, i -> 10 * rank + i);
                source.copyFrom(numbers);
                target.fill(-1);
                long send = source.address();
                long recv = target.address();
                AddressOperations operations = communicator.onAddresses();
                operations.allReduce(send, recv, 2, TYPE, ReduceOp.MAX, STREAM);
                assertArrayEquals(only(20, 21), taken(target));
                operations.reduce(send, recv, 2, TYPE, ReduceOp.MIN, 1, STREAM);
                assertArrayEquals(rank == 1 ? only(0, 1) : only(), taken(target));
                operations.broadcast(send, recv, 2, TYPE, 2, STREAM);
                assertArrayEquals(only(20, 21), taken(target));
                operations.allGather(send, recv, 2, TYPE, STREAM);
                assertArrayEquals(only(0, 1, 10, 11, 20, 21), taken(target));
                operations.reduceScatter(send, recv, 2, TYPE, ReduceOp.MAX, STREAM);
                assertArrayEquals(only(20 + 2 * rank, 21 + 2 * rank), taken(target));
                if (rank == 1) {
                    operations.send(send, 3, TYPE, 2, STREAM);
                } else if (rank == 2) {
                    operations.recv(recv, 3, TYPE, 1, STREAM);
                }
                assertArrayEquals(rank == 2 ? only(10, 11, 12) : only(), taken(target));
            }
        });
    }

    @Test
    void argumentsAreCheckedForTheOperation() throws Exception {
        RankThreads.run(3, communicator -> {
            try (DeviceBuffer<Int32> source = Device.host().allocate(ElementType.INT32, LENGTH);
                    DeviceBuffer<Int32> target = Device.host().allocate(ElementType.INT32, LENGTH)) {
                long send = source.address();
                long recv = target.address();
                AddressOperations operations = communicator.onAddresses();
                String root = "root must be >= 0 and < size(): 3, size 3";
                refused(root, () -> operations.reduce(send, recv, 1, TYPE, ReduceOp.SUM, 3, STREAM));
                refused(root, () -> operations.broadcast(send, recv, 1, TYPE, 3, STREAM));
                String peer = "peer must be >= 0 and < size(): 3, size 3";
                refused(peer, () -> operations.send(send, 1, TYPE, 3, STREAM));
                refused(peer, () -> operations.recv(recv, 1, TYPE, 3, STREAM));
                assertThrows(
                        IllegalArgumentException.class,
                        () -> operations.allReduce(send, send + 4, 2, TYPE, ReduceOp.SUM, STREAM));
                // It overlaps the second and the third block, not the first, and is in place at no rank.
                long across = recv + 12;
                assertThrows(IllegalArgumentException.class, () -> operations.allGather(across, recv, 2, TYPE, STREAM));
                assertThrows(
                        IllegalArgumentException.class,
                        () -> operations.reduceScatter(recv, across, 2, TYPE, ReduceOp.SUM, STREAM));
            }
        });
    }
}
