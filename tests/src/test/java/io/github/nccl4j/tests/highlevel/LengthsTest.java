package io.github.nccl4j.tests.highlevel;

import static io.github.nccl4j.testing.Expect.fails;
import static io.github.nccl4j.testing.Expect.refused;
import static io.github.nccl4j.tests.highlevel.RankThreads.STREAM;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element;
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

    /** Also at the ranks that agree with all others. */
    @Test
    void allRanksRefuseCountsOnWhichTwoDisagree() throws Exception {
        RankThreads.run(3, communicator -> {
            try (DeviceBuffer<Int32> send = Device.host().allocate(ElementType.INT32, 3);
                    DeviceBuffer<Int32> recv = Device.host().allocate(ElementType.INT32, 6)) {
                long[] sent = {1, 1, 1};
                long[] expected = communicator.rank() == 2 ? new long[] {2, 1, 0} : sent;
                long[] places = {0, 2, 4};
                refused(
                        "ranks must agree on the counts: rank 0 sends 1 elements to rank 2, which expects 2, and 1 more differ",
                        () -> communicator.planAllToAllv(send, sent, new long[] {0, 1, 2}, recv, expected, places));
                communicator
                        .planAllToAllv(send, sent, new long[] {0, 1, 2}, recv, sent, places)
                        .close();
            }
        });
    }

    @Test
    void allRanksRefuseAPlanForWhichOneHasWrongArguments() throws Exception {
        RankThreads.run(3, communicator -> {
            try (DeviceBuffer<Int32> send = Device.host().allocate(ElementType.INT32, 3);
                    DeviceBuffer<Int32> recv = Device.host().allocate(ElementType.INT32, 3)) {
                boolean wrong = communicator.rank() == 1;
                long[] counts = {1, 1, wrong ? 2 : 1};
                long[] ones = {1, 1, 1};
                long[] places = {0, 1, 2};
                fails(
                        wrong ? IndexOutOfBoundsException.class : IllegalStateException.class,
                        () -> communicator.planAllToAllv(send, counts, places, recv, ones, places),
                        wrong ? "send" : "rank 1 has wrong arguments for allToAllv; its own exception names them");
            }
        });
    }

    @Test
    void allRanksRefuseAPlanOfTwoTypes() throws Exception {
        RankThreads.run(2, communicator -> {
            boolean first = communicator.rank() == 0;
            ElementType<?> own = first ? ElementType.INT32 : ElementType.FLOAT32;
            String others = first ? "int32, rank 1 has float32" : "float32, rank 0 has int32";
            refusesAPlan(communicator, own, "all ranks must have the same element type: " + others);
        });
    }

    private static <T extends Element> void refusesAPlan(
            Communicator communicator, ElementType<T> type, String message) {
        try (DeviceBuffer<T> send = Device.host().allocate(type, 2);
                DeviceBuffer<T> recv = Device.host().allocate(type, 2)) {
            long[] counts = {1, 1};
            long[] places = {0, 1};
            refused(message, () -> communicator.planAllToAllv(send, counts, places, recv, counts, places));
        }
    }
}
