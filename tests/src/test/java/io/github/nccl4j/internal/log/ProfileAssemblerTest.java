package io.github.nccl4j.internal.log;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Operations from records that are not complete, as some releases of NCCL and a full queue leave them. */
class ProfileAssemblerTest {
    private static final long SECOND = 1_000_000_000;

    private final List<String> seen = new ArrayList<>();
    private final ProfileAssembler assembler = new ProfileAssembler(operation -> seen.add(operation.function + " "
            + operation.number + " rank " + operation.member.rank() + " from " + operation.kernelStart + " to "
            + operation.kernelEnd
            + (operation.kernelStart == 0 ? "" : " after " + (operation.started - operation.launched))));

    private static ByteBuffer record(int kind, int communicator, long id, long time, long number, int channels) {
        ByteBuffer record = ByteBuffer.allocate(120).order(ByteOrder.nativeOrder());
        record.putInt(kind).putInt(communicator).putLong(id).putLong(time).putLong(number);
        record.put(52, (byte) channels).put(54, (byte) 1);
        return record;
    }

    private void communicator(int number, int rank) {
        assembler.add(record(1, number, 77, 0, 0, 5).putInt(48, rank), 1);
    }

    private void launch(int communicator, long id, long time, int channels) {
        ByteBuffer record = record(3, communicator, id, time, id, channels);
        assembler.add(record.put(56, "AllReduce".getBytes(StandardCharsets.UTF_8)), 1);
    }

    private void starts(long id, int channel, long time, long gpu) {
        assembler.add(record(4, 0, id, time, gpu, channel), 1);
    }

    private void stops(long id, int channel, long time, long gpu) {
        assembler.add(record(5, 0, id, time, gpu, channel), 1);
    }

    @Test
    void kernelLastsFromTheFirstChannelToTheLast() {
        communicator(1, 3);
        launch(1, 1, 500, 2);
        // The delay between clocks is 100 at least.
        starts(1, 1, 1107, 1007);
        starts(1, 0, 1110, 1000);
        stops(1, 0, 1220, 1020);
        assertEquals(List.of(), seen);
        stops(1, 1, 1330, 1030);
        assertEquals(List.of("AllReduce 1 rank 3 from 1000 to 1030 after 600"), seen);
        assertEquals(0, assembler.incomplete());
        assertEquals(0, assembler.pending());
    }

    @Test
    void operationWithoutSomeChannelsEndsAfterAPause() {
        communicator(1, 0);
        launch(1, 1, 0, 4);
        starts(1, 0, 100, 50);
        assembler.sweep(10 * SECOND);
        assertEquals(1, assembler.pending());
        stops(1, 0, 200, 150);
        assembler.sweep(200 + SECOND / 10);
        assertEquals(List.of(), seen);
        assembler.sweep(200 + SECOND);
        assertEquals(List.of("AllReduce 1 rank 0 from 50 to 150 after 100"), seen);
        assertEquals(1, assembler.incomplete());
    }

    @Test
    void operationWithoutKernelEndsOnlyIfLaterOnesAreDone() {
        communicator(1, 0);
        launch(1, 1, 0, 1);
        launch(1, 2, 0, 1);
        starts(2, 0, 10, 5);
        assembler.sweep(100 * SECOND);
        assertEquals(2, assembler.pending());
        // A record that was dropped: the kernel of operation 2 seems to run for ever.
        launch(1, 3, 0, 1);
        starts(3, 0, 20, 15);
        stops(3, 0, 30, 25);
        assembler.sweep(SECOND);
        assertEquals(2, assembler.pending());
        assembler.sweep(3 * SECOND);
        assertEquals(
                List.of(
                        "AllReduce 3 rank 0 from 15 to 25 after 20",
                        "AllReduce 1 rank 0 from 0 to 0",
                        "AllReduce 2 rank 0 from 0 to 0"),
                seen);
        assertEquals(2, assembler.incomplete());
    }

    @Test
    void endOfTheCommunicatorEndsItsOperations() {
        communicator(1, 0);
        communicator(2, 1);
        launch(1, 1, 0, 1);
        launch(2, 2, 0, 1);
        assembler.add(record(2, 1, 0, 0, 0, 0), 1);
        assertEquals(List.of("AllReduce 1 rank 0 from 0 to 0"), seen);
        assertEquals(1, assembler.pending());
    }

    @Test
    void lostRecordsOfCommunicatorsAndOperationsDoNoHarm() {
        starts(5, 0, 1, 1);
        stops(5, 0, 2, 2);
        launch(9, 6, 3, 1);
        stops(6, 0, 4, 4);
        starts(6, 0, 5, 5);
        stops(6, 0, 6, 6);
        assertEquals(List.of("AllReduce 6 rank -1 from 5 to 6 after 2"), seen);
    }

    @Test
    void operationWithoutChannelsIsGivenAtOnce() {
        communicator(1, 0);
        launch(1, 1, 0, 0);
        assertEquals(List.of("AllReduce 1 rank 0 from 0 to 0"), seen);
    }

    @Test
    void numberOfPendingOperationsHasALimit() {
        communicator(1, 0);
        for (int id = 1; id <= 20_000; id++) {
            launch(1, id, id, 1);
        }
        assertEquals(1 << 14, assembler.pending());
        assertEquals(20_000 - (1 << 14), seen.size());
        assertEquals("AllReduce 1 rank 0 from 0 to 0", seen.get(0));
    }
}
