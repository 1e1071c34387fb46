package io.github.nccl4j.tests.highlevel;

import static io.github.nccl4j.testing.Expect.refused;
import static io.github.nccl4j.tests.highlevel.RankThreads.STREAM;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;

import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Lengths and places of buffers on every rank. {@link OperationMisuses} has one rank. */
@Timeout(value = 5, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LengthsTest {
    @Test
    void collectivesWithoutARootCheckLengthsAtEveryRank() throws Exception {
        RankThreads.run(3, communicator -> {
            try (DeviceBuffer<Int32> small = Device.host().allocate(ElementType.INT32, 4);
                    DeviceBuffer<Int32> large = Device.host().allocate(ElementType.INT32, 13)) {
                refused(
                        "send.length() must be size() * recv.length(): 13 != 3 * 4",
                        () -> communicator.reduceScatter(large, small, ReduceOp.SUM, STREAM));
                refused(
                        "recv.length() must be size() * send.length(): 13 != 3 * 4",
                        () -> communicator.allGather(small, large, STREAM));
            }
        });
    }

    @Test
    void theRootAloneChecksTheLengthOfAllBlocks() throws Exception {
        RankThreads.run(2, communicator -> {
            try (DeviceBuffer<Int32> block = Device.host().allocate(ElementType.INT32, 4);
                    DeviceBuffer<Int32> all = Device.host().allocate(ElementType.INT32, 8);
                    DeviceBuffer<Int32> none = Device.host().allocate(ElementType.INT32, 1)) {
                DeviceBuffer<Int32> whole = communicator.rank() == 1 ? all : none;
                block.fill(7 + communicator.rank());
                communicator.gather(block, whole, 1, STREAM);
                communicator.scatter(whole, block, 1, STREAM);
                if (communicator.rank() == 1) {
                    int[] gathered = new int[8];
                    all.copyTo(gathered);
                    assertArrayEquals(new int[] {7, 7, 7, 7, 8, 8, 8, 8}, gathered);
                    refused(
                            "recv.length() must be size() * send.length(): 1 != 2 * 4",
                            () -> communicator.gather(block, none, 1, STREAM));
                    refused(
                            "send.length() must be size() * recv.length(): 1 != 2 * 4",
                            () -> communicator.scatter(none, block, 1, STREAM));
                }
            }
        });
    }

    @Test
    void buffersMayBeNextToEachOther() throws Exception {
        RankThreads.run(2, communicator -> {
            try (DeviceBuffer<Int32> buffer = Device.host().allocate(ElementType.INT32, 12)) {
                buffer.fill(1);
                DeviceBuffer<Int32> left = buffer.slice(0, 4);
                DeviceBuffer<Int32> right = buffer.slice(4, 4);
                communicator.allReduce(left, right, ReduceOp.SUM, STREAM);
                communicator.allReduce(right, left, ReduceOp.SUM, STREAM);
                // Beside its block in place.
                communicator.allGather(buffer.slice(8, 4), buffer.slice(0, 8), STREAM);
                long address = buffer.address();
                communicator
                        .onAddresses()
                        .allReduce(address, address + 16, 4, ElementType.INT32.dataType(), ReduceOp.SUM, STREAM);
                int[] values = new int[12];
                buffer.copyTo(values);
                assertArrayEquals(new int[] {1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 1, 1}, values);
            }
        });
    }
}
