package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.cuda.NativeBuffer;
import io.github.nccl4j.internal.cuda.NativeStream;
import io.github.nccl4j.internal.operation.OperationKind;
import io.github.nccl4j.internal.submission.Blocks;
import io.github.nccl4j.internal.submission.ComposedOperations;
import io.github.nccl4j.internal.submission.OperationChecks;
import io.github.nccl4j.internal.submission.OperationSubmitter;
import io.github.nccl4j.tools.support.Threads;
import java.nio.IntBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Where the elements of operations of several calls go, and which arguments these operations refuse, at each of three ranks. */
@Timeout(value = 5, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ComposedOperationsTest {
    private static final Device HOST = Device.host();
    private static final NativeStream STREAM = CudaStream.defaultOf(HOST).nativeStream;
    private static final int RANKS = 3;
    private static final int LENGTH = 12;
    private static final String OVERLAP = "buffers overlap without being in place: ";

    private static NativeBuffer allocate(long length) {
        return NativeBuffer.allocate(HOST.nativeDevice, ElementType.INT32.format, length);
    }

    /** One of the ranks. Element i of its send buffer is 100 * rank + i, of its other buffer -1. */
    private static final class Rank {
        private final Communicator communicator;
        private final ComposedOperations operations;
        private final int rank;
        private final NativeBuffer send = allocate(LENGTH);
        private final NativeBuffer recv = allocate(LENGTH);

        Rank(Communicator communicator) {
            this.communicator = communicator;
            CommunicatorCore core = communicator.core();
            OperationChecks checks = new OperationChecks(core, communicator.windows);
            operations = new ComposedOperations(
                    core,
                    checks,
                    new OperationSubmitter(core, checks, communicator.windows, CollectiveConfig.EMPTY.call));
            rank = communicator.rank();
            reset();
        }

        void reset() {
            send.transfer(IntBuffer.wrap(range(100 * rank, LENGTH)), 0, true);
            recv.fill(-1);
        }

        private static int[] range(int first, int length) {
            int[] values = new int[length];
            Arrays.setAll(values, i -> first + i);
            return values;
        }

        /** Checks the first elements of the receive buffer; the others must be untouched. Then resets the buffers. */
        void received(int... expected) {
            content(recv, expected, -1);
        }

        private void content(NativeBuffer buffer, int[] expected, int other) {
            int[] all = new int[LENGTH];
            Arrays.fill(all, other);
            System.arraycopy(expected, 0, all, 0, expected.length);
            int[] found = new int[LENGTH];
            buffer.transfer(IntBuffer.wrap(found), 0, false);
            assertArrayEquals(all, found, () -> "rank " + rank + ": " + Arrays.toString(found));
            reset();
        }

        void receivedNothing() {
            received();
        }

        void refused(Class<? extends Exception> type, String message, Runnable call) {
            long before = communicator.flightRecorder().recorded();
            String text = assertThrows(type, call::run).getMessage();
            assertTrue(text.startsWith(message), text);
            assertEquals(before, communicator.flightRecorder().recorded());
        }

        void refused(String message, Runnable call) {
            refused(IllegalArgumentException.class, message, call);
        }
    }

    private interface Body {
        void run(Rank rank);
    }

    private static void atEachRank(Body body) throws Exception {
        List<Callable<Void>> ranks = new ArrayList<>();
        for (Communicator communicator : Communicator.createAll(List.of(HOST, HOST, HOST))) {
            ranks.add(() -> {
                Rank rank = new Rank(communicator);
                boolean done = false;
                try {
                    body.run(rank);
                    communicator.close();
                    done = true;
                } finally {
                    if (!done) {
                        // Otherwise the other ranks would wait for it.
                        communicator.abort();
                    }
                    rank.send.close();
                    rank.recv.close();
                }
                return null;
            });
        }
        Threads.together(ranks, Duration.ofMinutes(2));
    }

    private static long[] row(long... values) {
        return values;
    }

    @Test
    void blocksOfOneLength() throws Exception {
        atEachRank(r -> {
            r.operations.replace(OperationKind.ALL_TO_ALL, r.send.slice(0, 6), r.recv.slice(0, 6), 0, STREAM);
            int own = 2 * r.rank;
            r.received(own, own + 1, 100 + own, 101 + own, 200 + own, 201 + own);

            int[] gathered = {0, 1, 100, 101, 200, 201};
            r.operations.replace(OperationKind.GATHER, r.send.slice(0, 2), r.recv.slice(0, 6), 1, STREAM);
            r.received(r.rank == 1 ? gathered : new int[0]);
            NativeBuffer part = r.recv.slice(2, 2);
            part.transfer(IntBuffer.wrap(new int[] {100 * r.rank, 100 * r.rank + 1}), 0, true);
            r.operations.replace(OperationKind.GATHER, part, r.recv.slice(0, 6), 1, STREAM);
            r.received(r.rank == 1 ? gathered : new int[] {-1, -1, 100 * r.rank, 100 * r.rank + 1});

            r.operations.replace(OperationKind.SCATTER, r.send.slice(0, 6), r.recv.slice(0, 2), 2, STREAM);
            r.received(200 + own, 201 + own);
            r.operations.replace(
                    OperationKind.SCATTER,
                    r.send.slice(0, 6),
                    r.rank == 2 ? r.send.slice(4, 2) : r.recv.slice(0, 2),
                    2,
                    STREAM);
            r.received(r.rank == 2 ? new int[0] : new int[] {200 + own, 201 + own});
        });
    }

    @Test
    void blocksOfAnyLengthBetweenARootAndEachRank() throws Exception {
        atEachRank(r -> {
            long[] counts = {1, 0, 3};
            long[] displacements = {4, 1, 0};
            NativeBuffer part = r.send.slice(0, counts[r.rank]);
            int[] gathered = {200, 201, 202, -1, 0};
            r.operations.gatherv(part, r.recv, counts, displacements, 0, STREAM);
            r.received(r.rank == 0 ? gathered : new int[0]);
            // Only the root needs the layout.
            if (r.rank == 2) {
                r.recv.slice(0, 3).transfer(IntBuffer.wrap(new int[] {7, 8, 9}), 0, true);
                r.operations.gatherv(r.recv.slice(0, 3), r.recv, counts, displacements, 2, STREAM);
                r.received(7, 8, 9, -1, 0);
            } else {
                r.operations.gatherv(part, 2, STREAM);
                r.receivedNothing();
            }

            // Blocks that are only read may overlap.
            long[] overlapping = {2, 0, 1};
            int[] own = Rank.range((int) overlapping[r.rank], (int) counts[r.rank]);
            r.operations.scatterv(r.send, counts, overlapping, r.recv.slice(0, counts[r.rank]), 0, STREAM);
            r.received(own);
            if (r.rank == 0) {
                r.operations.scatterv(r.send, counts, overlapping, r.send.slice(2, 1), 0, STREAM);
                r.receivedNothing();
            } else {
                r.operations.scatterv(r.recv.slice(0, counts[r.rank]), 0, STREAM);
                r.received(own);
            }
        });
    }

    @Test
    void aSendAndAReceive() throws Exception {
        atEachRank(r -> {
            int next = (r.rank + 1) % RANKS;
            int previous = (r.rank + 2) % RANKS;
            r.operations.sendRecv(r.send.slice(0, 2), next, r.recv.slice(0, 2), previous, STREAM);
            r.received(100 * previous, 100 * previous + 1);
            r.operations.sendRecv(r.send.slice(3, 1), r.rank, r.recv.slice(0, 1), r.rank, STREAM);
            r.received(100 * r.rank + 3);
        });
    }

    @Test
    void blocksOfAnyLengthToAllRanks() throws Exception {
        atEachRank(r -> {
            long[] counts = {1, 0, 2};
            long[] displacements = {3, 2, 0};
            int[] gathered = {200, 201, -1, 0};
            r.operations.allGatherv(r.send.slice(0, counts[r.rank]), r.recv, counts, displacements, STREAM);
            r.received(gathered);
            NativeBuffer within = r.recv.slice(displacements[r.rank], counts[r.rank]);
            within.transfer(IntBuffer.wrap(Rank.range(100 * r.rank, (int) counts[r.rank])), 0, true);
            r.operations.allGatherv(within, r.recv, counts, displacements, STREAM);
            r.received(gathered);
        });
    }

    @Test
    void reductionsOfBlocksOfAnyLength() throws Exception {
        atEachRank(r -> {
            long[] counts = {1, 2, 3};
            int first = new int[] {0, 1, 3}[r.rank];
            NativeBuffer whole = r.send.slice(0, 6);
            r.operations.reduceScatterv(whole, r.recv.slice(0, counts[r.rank]), counts, ReduceOp.MAX.operator, STREAM);
            r.received(Rank.range(200 + first, (int) counts[r.rank]));
            r.operations.reduceScatterv(
                    whole, r.send.slice(first, counts[r.rank]), counts, ReduceOp.SUM.operator, STREAM);
            int[] own = new int[(int) counts[r.rank]];
            Arrays.setAll(own, i -> 300 + 3 * (first + i));
            int[] found = new int[LENGTH];
            r.send.transfer(IntBuffer.wrap(found), 0, false);
            int[] expected = Rank.range(100 * r.rank, LENGTH);
            System.arraycopy(own, 0, expected, first, own.length);
            assertArrayEquals(expected, found);
        });
    }

    @Test
    void blocksOfAnyLengthBetweenAllRanks() throws Exception {
        atEachRank(r -> {
            // Rank s sends s + d elements to rank d.
            long[] counts = {r.rank, r.rank + 1, r.rank + 2};
            // Blocks that are only read may overlap.
            long[] from = {0, r.rank > 0 ? 1 : 0, 2};
            long[] to = {0, 2, 5};
            r.operations.allToAllv(new Blocks(r.send, counts, from), new Blocks(r.recv, counts, to), STREAM);
            int[] expected = new int[5 + r.rank + 2];
            Arrays.fill(expected, -1);
            for (int source = 0; source < RANKS; source++) {
                int at = new int[] {0, source > 0 ? 1 : 0, 2}[r.rank];
                for (int i = 0; i < source + r.rank; i++) {
                    expected[(int) to[source] + i] = 100 * source + at + i;
                }
            }
            r.received(expected);
        });
    }

    @Test
    void rootsAndPeersAreChecked() throws Exception {
        atEachRank(r -> {
            ComposedOperations o = r.operations;
            long[] counts = {1, 1, 1};
            long[] places = {0, 1, 2};
            NativeBuffer one = r.send.slice(0, 1);
            String range = "root must be >= 0 and < size(): 3, size 3";
            r.refused(range, () -> o.replace(OperationKind.GATHER, one, r.recv.slice(0, 3), 3, STREAM));
            r.refused(range, () -> o.replace(OperationKind.SCATTER, r.recv.slice(0, 3), one, 3, STREAM));
            r.refused(range, () -> o.gatherv(one, r.recv, counts, places, 3, STREAM));
            r.refused(range, () -> o.scatterv(r.recv, counts, places, one, 3, STREAM));
            r.refused(range, () -> o.gatherv(one, 3, STREAM));
            r.refused(range, () -> o.scatterv(one, 3, STREAM));
            r.refused("the root needs a buffer 'recv': ", () -> o.gatherv(one, r.rank, STREAM));
            r.refused("the root needs a buffer 'send': ", () -> o.scatterv(one, r.rank, STREAM));
            NativeBuffer other = r.recv.slice(0, 1);
            r.refused("to must be", () -> o.sendRecv(one, 3, other, 0, STREAM));
            r.refused("from must be", () -> o.sendRecv(one, 0, other, -1, STREAM));
            int next = (r.rank + 1) % RANKS;
            String self = "a rank that sends to itself must receive from itself: ";
            r.refused(self, () -> o.sendRecv(one, r.rank, other, next, STREAM));
            r.refused(self, () -> o.sendRecv(one, next, other, r.rank, STREAM));
        });
    }

    @Test
    void lengthsAreChecked() throws Exception {
        atEachRank(r -> {
            ComposedOperations o = r.operations;
            long[] counts = {2, 2, 2};
            long[] places = {0, 2, 4};
            NativeBuffer one = r.send.slice(0, 1);
            NativeBuffer into = r.recv.slice(0, 1);
            String send = "send.length() must be counts[rank()]: 1 != 2";
            String recv = "recv.length() must be counts[rank()]: 1 != 2";
            r.refused(send, () -> o.gatherv(one, r.recv, counts, places, r.rank, STREAM));
            r.refused(recv, () -> o.scatterv(r.send, counts, places, into, r.rank, STREAM));
            r.refused(send, () -> o.allGatherv(one, r.recv, counts, places, STREAM));
            r.refused(recv, () -> o.reduceScatterv(r.send.slice(0, 6), into, counts, ReduceOp.SUM.operator, STREAM));
            r.refused(
                    "recv.length() must be send.length(): 2 != 1",
                    () -> o.sendRecv(one, r.rank, r.recv.slice(0, 2), r.rank, STREAM));
            long[] more = counts.clone();
            more[r.rank] = 3;
            r.refused(
                    "recvCounts[rank()] must be sendCounts[rank()]: 3 != 2",
                    () -> o.allToAllv(
                            new Blocks(r.send, counts, places), new Blocks(r.recv, more, row(0, 4, 8)), STREAM));
            r.refused(
                    "recv.length() must be send.length(): 4 != 6",
                    () -> o.replace(OperationKind.ALL_TO_ALL, r.send.slice(0, 6), r.recv.slice(0, 4), 0, STREAM));
        });
    }

    @Test
    void blocksAreChecked() throws Exception {
        atEachRank(r -> {
            ComposedOperations o = r.operations;
            long[] counts = {2, 2, 2};
            long[] places = {0, 1, 4};
            long[] apart = {0, 2, 4};
            long[] beyond = {0, 2, 11};
            NativeBuffer two = r.send.slice(0, 2);
            String blocks = "recv blocks must not overlap: ";
            r.refused(blocks, () -> o.gatherv(two, r.recv, counts, places, r.rank, STREAM));
            r.refused(blocks, () -> o.allGatherv(two, r.recv, counts, places, STREAM));
            r.refused(
                    blocks,
                    () -> o.allToAllv(new Blocks(r.send, counts, apart), new Blocks(r.recv, counts, places), STREAM));
            Class<IndexOutOfBoundsException> out = IndexOutOfBoundsException.class;
            r.refused(out, "recv", () -> o.gatherv(two, r.recv, counts, beyond, r.rank, STREAM));
            r.refused(out, "recv", () -> o.allGatherv(two, r.recv, counts, beyond, STREAM));
            r.refused(out, "send", () -> o.scatterv(r.send, counts, beyond, r.recv.slice(0, 2), r.rank, STREAM));
            r.refused(
                    out,
                    "send",
                    () -> o.allToAllv(new Blocks(r.send, counts, beyond), new Blocks(r.recv, counts, apart), STREAM));
            r.refused(
                    out,
                    "recv",
                    () -> o.allToAllv(new Blocks(r.send, counts, apart), new Blocks(r.recv, counts, beyond), STREAM));
            r.refused(
                    "send.length() must be the sum of the counts: 12 != 6",
                    () -> o.reduceScatterv(r.send, r.recv.slice(0, 2), counts, ReduceOp.SUM.operator, STREAM));
        });
    }

    @Test
    void buffersMustBeApartOrInPlace() throws Exception {
        atEachRank(r -> {
            ComposedOperations o = r.operations;
            long[] counts = {2, 2, 2};
            long[] places = {0, 2, 4};
            NativeBuffer six = r.recv.slice(0, 6);
            // Not the block of any rank.
            NativeBuffer odd = r.recv.slice(1, 2);
            r.refused(OVERLAP, () -> o.replace(OperationKind.ALL_TO_ALL, six, r.recv.slice(5, 6), 0, STREAM));
            r.refused(OVERLAP, () -> o.replace(OperationKind.GATHER, odd, six, r.rank, STREAM));
            r.refused(OVERLAP, () -> o.replace(OperationKind.SCATTER, six, odd, r.rank, STREAM));
            r.refused(OVERLAP, () -> o.gatherv(odd, r.recv, counts, places, r.rank, STREAM));
            r.refused(OVERLAP, () -> o.scatterv(r.recv, counts, places, odd, r.rank, STREAM));
            r.refused(OVERLAP, () -> o.allGatherv(odd, r.recv, counts, places, STREAM));
            r.refused(OVERLAP, () -> o.reduceScatterv(six, odd, counts, ReduceOp.SUM.operator, STREAM));
            r.refused(OVERLAP, () -> o.sendRecv(odd, r.rank, r.recv.slice(2, 2), r.rank, STREAM));
            r.refused(
                    OVERLAP,
                    () -> o.allToAllv(new Blocks(r.recv, counts, places), new Blocks(r.recv, counts, places), STREAM));
        });
    }

    /** Without elements there are no calls, which would refuse them as well. */
    @Test
    void closedBuffersAreRefused() throws Exception {
        atEachRank(r -> {
            ComposedOperations o = r.operations;
            long[] none = {0, 0, 0};
            int other = (r.rank + 1) % RANKS;
            NativeBuffer closed = allocate(0);
            closed.close();
            NativeBuffer open = r.recv.slice(0, 0);
            List<Runnable> calls = List.of(
                    () -> o.replace(OperationKind.ALL_TO_ALL, closed, open, 0, STREAM),
                    () -> o.replace(OperationKind.ALL_TO_ALL, open, closed, 0, STREAM),
                    () -> o.replace(OperationKind.GATHER, closed, open, r.rank, STREAM),
                    () -> o.replace(OperationKind.GATHER, open, closed, r.rank, STREAM),
                    () -> o.replace(OperationKind.SCATTER, closed, open, r.rank, STREAM),
                    () -> o.replace(OperationKind.SCATTER, open, closed, r.rank, STREAM),
                    () -> o.gatherv(closed, open, none, none, r.rank, STREAM),
                    () -> o.gatherv(open, closed, none, none, r.rank, STREAM),
                    () -> o.gatherv(closed, other, STREAM),
                    () -> o.scatterv(closed, none, none, open, r.rank, STREAM),
                    () -> o.scatterv(open, none, none, closed, r.rank, STREAM),
                    () -> o.scatterv(closed, other, STREAM),
                    () -> o.sendRecv(closed, other, open, other, STREAM),
                    () -> o.sendRecv(open, other, closed, other, STREAM),
                    () -> o.allGatherv(closed, open, none, none, STREAM),
                    () -> o.allGatherv(open, closed, none, none, STREAM),
                    () -> o.reduceScatterv(closed, open, none, ReduceOp.SUM.operator, STREAM),
                    () -> o.reduceScatterv(open, closed, none, ReduceOp.SUM.operator, STREAM),
                    () -> o.allToAllv(new Blocks(closed, none, none), new Blocks(open, none, none), STREAM),
                    () -> o.allToAllv(new Blocks(open, none, none), new Blocks(closed, none, none), STREAM));
            for (Runnable call : calls) {
                r.refused(IllegalStateException.class, "", call);
            }
        });
    }

    @Test
    void operatorsOfOtherCommunicatorsAreRefused() throws Exception {
        atEachRank(r -> {
            long[] counts = {2, 2, 2};
            NativeBuffer part = r.recv.slice(0, 2);
            Communicator stranger = Communicator.create(UniqueId.create(), 0, 1);
            try (PreMulSum<?> operator = stranger.preMulSum(ElementType.INT32, 2)) {
                r.refused(
                        "",
                        () -> r.operations.reduceScatterv(r.send.slice(0, 6), part, counts, operator.operator, STREAM));
            } finally {
                stranger.close();
            }
        });
    }
}
