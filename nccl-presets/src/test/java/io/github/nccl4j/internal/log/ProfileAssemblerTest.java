package io.github.nccl4j.internal.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

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

    @Test
    void operationWithoutReportedKernelsIsCompleteAtOnce() {
        communicator(1, 3);
        assembler.add(text(record(3, 1, 1, 500, 1, 2), 56, "AllReduce").put(55, (byte) 1), 1);
        assertEquals(List.of("AllReduce 1 rank 3 from 0 to 0"), seen);
        assertEquals(0, assembler.pending());
        assertEquals(0, assembler.incomplete());
    }

    private static final int RECORD_SIZE = 120;

    private static ByteBuffer text(ByteBuffer record, int at, String text) {
        return record.put(at, text.getBytes(StandardCharsets.UTF_8));
    }

    /** Several records in one buffer, with all values of an operation and of its communicator. */
    @Test
    void valuesAreThoseOfTheRecords() {
        List<ProfileAssembler.Operation> all = new ArrayList<>();
        ProfileAssembler full = new ProfileAssembler(all::add);
        ByteBuffer begin = text(record(1, 4, 0x1234, 99, 0, 6), 56, "n".repeat(64));
        begin.putLong(32, 8).putLong(40, 2).putInt(48, 3);
        ByteBuffer launch = record(3, 4, 11, 500, 7, 200);
        launch.putLong(32, 1000).putLong(40, 42).putInt(48, 5).put(53, (byte) 160);
        text(text(text(text(launch, 56, "AllReduce"), 72, "ncclFloat32"), 88, "RING"), 104, "sixteen letters!");
        ByteBuffer records = ByteBuffer.allocate(2 * RECORD_SIZE).order(ByteOrder.nativeOrder());
        records.put(0, begin.array()).put(RECORD_SIZE, launch.array());
        full.add(records, 2);
        full.add(record(2, 4, 0, 0, 0, 0), 1);
        ProfileAssembler.Operation operation = all.get(0);
        assertEquals(new ProfileAssembler.Member(0x1234, "n".repeat(64), 3, 8, 2, 6, 99), operation.member);
        assertEquals(
                "AllReduce ncclFloat32 RING sixteen letters! number 7 of 1000 tag 42 peer 5 channels 200 warps 160 at 500"
                        + " message false",
                operation.function + " " + operation.datatype + " " + operation.algorithm + " " + operation.protocol
                        + " number " + operation.number + " of " + operation.count + " tag " + operation.tag + " peer "
                        + operation.peer + " channels " + operation.channels + " warps " + operation.warps + " at "
                        + operation.launched + " message " + operation.message);
    }

    @Test
    void messagesAreNumberedByCommunicator() {
        communicator(1, 0);
        communicator(2, 1);
        for (int communicator : new int[] {1, 1, 2, 1}) {
            ByteBuffer message = record(3, communicator, 9, 0, 77, 0).put(54, (byte) 2);
            assembler.add(text(message, 56, "Send"), 1);
        }
        assertEquals(
                List.of(
                        "Send 0 rank 0 from 0 to 0",
                        "Send 1 rank 0 from 0 to 0",
                        "Send 0 rank 1 from 0 to 0",
                        "Send 2 rank 0 from 0 to 0"),
                seen);
    }

    @Test
    void rejectsUnknownKind() {
        assertEquals(
                "a record of kind 6",
                assertThrows(IllegalStateException.class, () -> assembler.add(record(6, 0, 0, 0, 0, 0), 1))
                        .getMessage());
    }

    /** The limits of the pauses themselves are no pause. */
    @Test
    void pausesAreMeasuredFromTheLastRecord() {
        communicator(1, 0);
        launch(1, 1, 0, 2);
        starts(1, 0, 1000, 50);
        stops(1, 0, 2000, 150);
        assembler.sweep(2000 + SECOND / 5);
        assertEquals(1, assembler.pending());
        assembler.sweep(2001 + SECOND / 5);
        assertEquals(0, assembler.pending());
        // The launch, or the last record, of an operation without a kernel.
        launch(1, 2, 3000, 1);
        launch(1, 3, 3000, 1);
        starts(3, 0, 4000, 60);
        launch(1, 4, 5000, 1);
        starts(4, 0, 5001, 70);
        stops(4, 0, 5002, 80);
        assembler.sweep(3000 + 2 * SECOND);
        assertEquals(2, assembler.pending());
        assembler.sweep(3001 + 2 * SECOND);
        assertEquals(1, assembler.pending());
        assembler.sweep(4000 + 2 * SECOND);
        assertEquals(1, assembler.pending());
        assembler.sweep(4001 + 2 * SECOND);
        assertEquals(0, assembler.pending());
    }

    /** The last operation: no later one is done. */
    @Test
    void operationWithoutKernelStaysWhileItIsTheLast() {
        communicator(1, 0);
        launch(1, 1, 0, 1);
        launch(1, 2, 0, 2);
        starts(2, 0, 10, 5);
        stops(2, 0, 20, 15);
        starts(2, 1, 30, 25);
        assembler.sweep(100 * SECOND);
        assertEquals(2, assembler.pending());
        assertEquals(List.of(), seen);
    }

    /** A channel that stops before it starts was not recorded from its start. */
    @Test
    void kernelEndsWithTheLatestChannel() {
        communicator(1, 0);
        launch(1, 1, 0, 2);
        starts(1, 0, 100, 50);
        stops(1, 0, 300, 250);
        starts(1, 1, 310, 60);
        stops(1, 1, 320, 70);
        assertEquals(List.of("AllReduce 1 rank 0 from 50 to 250 after 100"), seen);
        // A channel more than was announced ends the operation when it stops.
        launch(1, 2, 400, 1);
        starts(2, 0, 500, 450);
        starts(2, 1, 510, 460);
        stops(2, 0, 520, 470);
        assertEquals(1, seen.size());
        stops(2, 1, 530, 480);
        assertEquals("AllReduce 2 rank 0 from 450 to 480 after 100", seen.get(1));
        assertEquals(0, assembler.incomplete());
    }

    private void operation(long id, long at, long delay) {
        launch(1, id, at, 1);
        starts(id, 0, at + delay, at);
        stops(id, 0, at + delay, at);
    }

    /** The smallest delay of the last 10 to 20 seconds counts. */
    @Test
    void differenceOfClocksIsForgotten() {
        communicator(1, 0);
        operation(1, SECOND, 100);
        operation(2, 11 * SECOND, 300);
        operation(3, 12 * SECOND, 400);
        operation(4, 21 * SECOND - 50, 350);
        operation(5, 21 * SECOND, 301);
        List<Long> delays = List.of(100L, 100L, 100L, 100L, 300L);
        for (int i = 0; i < delays.size(); i++) {
            assertTrue(seen.get(i).endsWith(" after " + delays.get(i)), seen.get(i));
        }
    }

    @Test
    void numberOfCommunicatorsHasALimit() {
        for (int i = 0; i < 1 << 12; i++) {
            communicator(i, i);
        }
        launch(0, 1, 0, 1);
        launch(1, 2, 0, 1);
        communicator(9999, 5);
        assertEquals(List.of("AllReduce 1 rank 0 from 0 to 0"), seen);
        assertEquals(1, assembler.pending());
        launch(0, 3, 0, 0);
        assertEquals("AllReduce 3 rank -1 from 0 to 0", seen.get(seen.size() - 1));
    }

    /** More texts than are kept. */
    @Test
    void manyTextsAreKeptApart() {
        communicator(1, 0);
        for (int round = 0; round < 2; round++) {
            seen.clear();
            for (int i = 0; i < 1500; i++) {
                assembler.add(text(record(3, 1, 1, 0, 0, 0), 56, "f" + i), 1);
            }
            for (int i = 0; i < 1500; i++) {
                assertEquals("f" + i + " 0 rank 0 from 0 to 0", seen.get(i));
            }
        }
        assembler.add(record(3, 1, 1, 0, 0, 0), 1);
        assertEquals(" 0 rank 0 from 0 to 0", seen.get(1500));
    }

    /** Texts that differ in their second half only. */
    @Test
    void textsAreComparedAsAWhole() {
        communicator(1, 0);
        for (String name : List.of("ReduceScatter", "ReduceSc", "ReduceScan")) {
            assembler.add(text(record(3, 1, 1, 0, 0, 0), 56, name), 1);
        }
        assertEquals(
                List.of(
                        "ReduceScatter 0 rank 0 from 0 to 0",
                        "ReduceSc 0 rank 0 from 0 to 0",
                        "ReduceScan 0 rank 0 from 0 to 0"),
                seen);
    }

    @Test
    void equalTextsAreOneObject() {
        List<String> names = new ArrayList<>();
        ProfileAssembler shared = new ProfileAssembler(operation -> names.add(operation.function));
        for (int i = 0; i < 2; i++) {
            shared.add(text(record(3, 1, 1, 0, 0, 0), 56, "Broadcast"), 1);
        }
        assertSame(names.get(0), names.get(1));
    }
}
