package io.github.nccl4j.tests.host;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.nccl.ncclCollConfig_t;
import io.github.nccl4j.tools.oracle.ElementFormat;
import io.github.nccl4j.tools.oracle.Reduction;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.SizeTPointer;

/**
 * Every collective, with every type and operator, out of place and in place, with several counts: what one rank does, and
 * what it must see. Inputs follow from the rank and the case alone, so each rank knows those of the others.
 */
final class CollectiveSuite {
    private static final int[] COUNTS = {0, 1, 5, 1000};
    /** Larger than a socket's buffer, and no multiple of anything. */
    private static final int LARGE = 100_003;

    /** Larger than what the engine reduces at a time. */
    private static final int HUGE = 2_000_003;

    /**
     * Elements of inputs, and so of results, repeat after this number. A prime, so that a part of the size of one of the engine's
     * buffers differs from the parts beside it.
     */
    private static final int PERIOD = 8191;

    private final Rank self;
    private final Map<ElementFormat, BytePointer> scalars = new EnumMap<>(ElementFormat.class);
    private final ncclCollConfig_t unset = new ncclCollConfig_t();
    private final ncclCollConfig_t set = new ncclCollConfig_t()
            .minCTAs(2)
            .maxCTAs(8)
            .cgaClusterSize(2)
            .CTAPolicy(1)
            .userProfilerTag(7);
    // A field too: the structure alone would not keep the text.
    private final BytePointer ring = new BytePointer("ring");
    private final ncclCollConfig_t selecting = new ncclCollConfig_t().algSelection(ring);
    private int cases;

    CollectiveSuite(Rank self) {
        this.self = self;
    }

    /**
     * Of five cases, one is a plain call, and the others have a configuration: NULL, nothing set, something set, an algorithm
     * selected. Five has no factor in common with the cases of a type and count, so that each collective meets each.
     */
    private boolean isPlain() {
        return cases % 5 == 0;
    }

    /** The configuration of this case, the same on all ranks. */
    private long config(boolean hasAlgorithms) {
        return switch (cases % 5) {
            case 1 -> 0;
            case 2 -> unset.address();
            case 3 -> set.address();
            default -> (hasAlgorithms ? selecting : set).address();
        };
    }

    /** Runs all cases; the number of cases that were checked. */
    int run() {
        for (ElementFormat type : ElementFormat.values()) {
            for (int count : COUNTS) {
                for (Reduction op : Reduction.values()) {
                    reductions(type, op, count);
                }
                copies(type, count);
            }
        }
        reductions(ElementFormat.INT32, Reduction.SUM, LARGE);
        reductions(ElementFormat.BFLOAT16, Reduction.AVG, LARGE);
        copies(ElementFormat.FLOAT64, LARGE);
        copies(ElementFormat.INT8, LARGE);
        hugeAllReduce();
        allToAllV();
        return cases;
    }

    private void reductions(ElementFormat type, Reduction op, int count) {
        int n = self.count();
        int code = op == Reduction.PRE_MUL_SUM ? createPreMulSum(type) : op.code;
        for (boolean inPlace : new boolean[] {false, true}) {
            String what = type + " " + op + " of " + count + (inPlace ? " in place" : "");
            long stream = 0;
            try (Buffers b = new Buffers(type, count, count, inPlace ? 0 : -1)) {
                check(
                        isPlain()
                                ? nccl.ncclAllReduce(b.send, b.recv, count, type.code, code, self.comm(), stream)
                                : nccl.ncclAllReduceConfig(
                                        b.send, b.recv, count, type.code, code, self.comm(), stream, config(true)),
                        "AllReduce " + what);
                b.expectAllReduced(op, count, "AllReduce " + what);
            }
            int root = cases % n;
            try (Buffers b = new Buffers(type, count, count, inPlace ? 0 : -1)) {
                check(
                        isPlain()
                                ? nccl.ncclReduce(b.send, b.recv, count, type.code, code, root, self.comm(), stream)
                                : nccl.ncclReduceConfig(
                                        b.send,
                                        b.recv,
                                        count,
                                        type.code,
                                        code,
                                        root,
                                        self.comm(),
                                        stream,
                                        config(true)),
                        "Reduce " + what);
                if (self.rank() == root) {
                    b.expectReduced(op, 0, count, "Reduce " + what);
                }
            }
            try (Buffers b = new Buffers(type, n * count, count, inPlace ? self.rank() * count : -1)) {
                check(
                        isPlain()
                                ? nccl.ncclReduceScatter(b.send, b.recv, count, type.code, code, self.comm(), stream)
                                : nccl.ncclReduceScatterConfig(
                                        b.send, b.recv, count, type.code, code, self.comm(), stream, config(true)),
                        "ReduceScatter " + what);
                b.expectReduced(op, self.rank() * count, count, "ReduceScatter " + what);
            }
        }
        if (op == Reduction.PRE_MUL_SUM) {
            check(nccl.ncclRedOpDestroy(code, self.comm()), "ncclRedOpDestroy");
        }
    }

    private void hugeAllReduce() {
        ElementFormat type = ElementFormat.FLOAT32;
        for (int place : new int[] {-1, 0}) {
            try (Buffers b = new Buffers(type, HUGE, HUGE, place)) {
                check(
                        isPlain()
                                ? nccl.ncclAllReduce(b.send, b.recv, HUGE, type.code, nccl.ncclSum, self.comm(), 0)
                                : nccl.ncclAllReduceConfig(
                                        b.send, b.recv, HUGE, type.code, nccl.ncclSum, self.comm(), 0, config(true)),
                        "AllReduce of " + HUGE);
                b.expectAllReduced(Reduction.SUM, HUGE, "AllReduce of " + HUGE);
            }
        }
    }

    /** With a scalar on the host for types of even code, on the device for the others. */
    private int createPreMulSum(ElementFormat type) {
        int[] op = new int[1];
        int residence = type.code % 2 == 0 ? nccl.ncclScalarHostImmediate : nccl.ncclScalarDevice;
        long scalar = scalars.computeIfAbsent(type, this::scalar).address();
        check(
                nccl.ncclRedOpCreatePreMulSum(op, scalar, type.code, residence, self.comm()),
                "ncclRedOpCreatePreMulSum " + type);
        return op[0];
    }

    private BytePointer scalar(ElementFormat type) {
        BytePointer memory = new BytePointer(8);
        ByteBuffer buffer = memory.asByteBuffer().order(ByteOrder.nativeOrder());
        int value = Reduction.scalar(self.rank());
        if (type.isInteger()) {
            type.putBits(buffer, 0, value);
        } else {
            type.putNumber(buffer, 0, value);
        }
        return memory;
    }

    private void copies(ElementFormat type, int count) {
        int n = self.count();
        int me = self.rank();
        for (boolean inPlace : new boolean[] {false, true}) {
            String what = type + " of " + count + (inPlace ? " in place" : "");
            int root = cases % n;
            long stream = 0;
            try (Buffers b = new Buffers(type, count, count, inPlace ? 0 : -1)) {
                check(
                        isPlain()
                                ? nccl.ncclBroadcast(b.send, b.recv, count, type.code, root, self.comm(), stream)
                                : nccl.ncclBroadcastConfig(
                                        b.send, b.recv, count, type.code, root, self.comm(), stream, config(true)),
                        "Broadcast " + what);
                b.expectCopied(root, 0, 0, count, "Broadcast " + what);
            }
            try (Buffers b = new Buffers(type, count, count, 0)) {
                check(nccl.ncclBcast(b.recv, count, type.code, root, self.comm(), stream), "Bcast " + what);
                b.expectCopied(root, 0, 0, count, "Bcast " + what);
            }
            try (Buffers b = new Buffers(type, count, n * count, inPlace ? -2 - me * count : -1)) {
                check(
                        isPlain()
                                ? nccl.ncclAllGather(b.send, b.recv, count, type.code, self.comm(), stream)
                                : nccl.ncclAllGatherConfig(
                                        b.send, b.recv, count, type.code, self.comm(), stream, config(true)),
                        "AllGather " + what);
                for (int r = 0; r < n; r++) {
                    b.expectCopied(r, 0, r * count, count, "AllGather " + what);
                }
            }
            try (Buffers b = new Buffers(type, count, n * count, inPlace && me == root ? -2 - me * count : -1)) {
                check(
                        isPlain()
                                ? nccl.ncclGather(b.send, b.recv, count, type.code, root, self.comm(), stream)
                                : nccl.ncclGatherConfig(
                                        b.send, b.recv, count, type.code, root, self.comm(), stream, config(false)),
                        "Gather " + what);
                for (int r = 0; r < n && me == root; r++) {
                    b.expectCopied(r, 0, r * count, count, "Gather " + what);
                }
            }
            try (Buffers b = new Buffers(type, n * count, count, inPlace && me == root ? me * count : -1)) {
                check(
                        isPlain()
                                ? nccl.ncclScatter(b.send, b.recv, count, type.code, root, self.comm(), stream)
                                : nccl.ncclScatterConfig(
                                        b.send, b.recv, count, type.code, root, self.comm(), stream, config(false)),
                        "Scatter " + what);
                b.expectCopied(root, me * count, 0, count, "Scatter " + what);
            }
        }
        String what = type + " of " + count;
        try (Buffers b = new Buffers(type, n * count, n * count, -1)) {
            check(
                    isPlain()
                            ? nccl.ncclAlltoAll(b.send, b.recv, count, type.code, self.comm(), 0)
                            : nccl.ncclAlltoAllConfig(b.send, b.recv, count, type.code, self.comm(), 0, config(false)),
                    "AlltoAll " + what);
            for (int r = 0; r < n; r++) {
                b.expectCopied(r, me * count, r * count, count, "AlltoAll " + what);
            }
        }
        try (Buffers b = new Buffers(type, n * count, n * count, -1)) {
            // Sends first, all of them: only a group makes this end.
            check(nccl.ncclGroupStart(), "ncclGroupStart");
            for (int r = 0; r < n; r++) {
                long offset = (long) r * count * type.size;
                check(nccl.ncclSend(b.send + offset, count, type.code, r, self.comm(), 0), "Send " + what);
            }
            for (int r = 0; r < n; r++) {
                long offset = (long) r * count * type.size;
                check(nccl.ncclRecv(b.recv + offset, count, type.code, r, self.comm(), 0), "Recv " + what);
            }
            check(nccl.ncclGroupEnd(), "ncclGroupEnd " + what);
            for (int r = 0; r < n; r++) {
                b.expectCopied(r, me * count, r * count, count, "Send and Recv " + what);
            }
        }
    }

    /** Uneven counts, some of them zero, those to lower ranks large; VCCL's matrices. */
    private void allToAllV() {
        int n = self.count();
        int me = self.rank();
        ElementFormat type = ElementFormat.INT32;
        try (SizeTPointer sendCounts = new SizeTPointer((long) n * n);
                SizeTPointer sendOffsets = new SizeTPointer((long) n * n);
                SizeTPointer recvCounts = new SizeTPointer((long) n * n);
                SizeTPointer recvOffsets = new SizeTPointer((long) n * n)) {
            int largest = 0;
            for (int i = 0; i < n; i++) {
                int sent = 0;
                int received = 0;
                for (int j = 0; j < n; j++) {
                    sendCounts.put((long) i * n + j, count(i, j));
                    sendOffsets.put((long) i * n + j, sent);
                    sent += count(i, j);
                    recvCounts.put((long) i * n + j, count(j, i));
                    recvOffsets.put((long) i * n + j, received);
                    received += count(j, i);
                }
                largest = Math.max(largest, Math.max(sent, received));
            }
            try (Buffers b = new Buffers(type, largest, largest, -1)) {
                check(
                        nccl.ncclAlltoAllv(
                                b.send,
                                sendCounts.address(),
                                sendOffsets.address(),
                                b.recv,
                                recvCounts.address(),
                                recvOffsets.address(),
                                0,
                                0,
                                type.code,
                                self.comm(),
                                0),
                        "AlltoAllv");
                for (int r = 0; r < n; r++) {
                    int from = (int) sendOffsets.get((long) r * n + me);
                    int to = (int) recvOffsets.get((long) me * n + r);
                    b.expectCopied(r, from, to, count(r, me), "AlltoAllv");
                }
            }
        }
    }

    private static int count(int from, int to) {
        int few = 100 * from + 7 * to + 1;
        return (from + to) % 3 == 0 ? 0 : from > to ? LARGE + few : few;
    }

    private static void check(int result, String call) {
        Rank.check(result, call);
    }

    /** The buffers of one case: this rank's filled with its input, and what the others have. */
    private final class Buffers implements AutoCloseable {
        private final ElementFormat type;
        private final int sendCount;
        private final BytePointer sendMemory;
        private final BytePointer recvMemory;
        private final ByteBuffer received;
        private final List<ByteBuffer> inputs = new ArrayList<>();
        final long send;
        final long recv;

        /**
         * Place -1 is out of place. From 0 on, the receive buffer is the part of the send buffer from that element on. From
         * -2 down, the send buffer is the part of the receive buffer from element -2 - place on.
         */
        Buffers(ElementFormat type, int sendCount, int recvCount, int place) {
            this.type = type;
            this.sendCount = sendCount;
            for (int r = 0; r < self.count(); r++) {
                ByteBuffer input = ByteBuffer.allocate(sendCount * type.size).order(ByteOrder.nativeOrder());
                SplittableRandom random = new SplittableRandom(31L * cases + r);
                int distinct = Math.min(sendCount, PERIOD);
                for (int i = 0; i < distinct; i++) {
                    type.putRandom(input, i, random);
                }
                repeat(input, distinct * type.size);
                inputs.add(input);
            }
            sendMemory = new BytePointer(Math.max(sendCount, place < -1 ? recvCount : 0) * (long) type.size + 8);
            recvMemory = new BytePointer((long) recvCount * type.size + 8);
            recvMemory.fill(0x5a);
            sendMemory.fill(0x5a);
            long sendOffset = place < -1 ? (-2L - place) * type.size : 0;
            send = sendMemory.address() + sendOffset;
            long recvOffset = place >= 0 ? (long) place * type.size : 0;
            BytePointer target = place == -1 ? recvMemory : sendMemory;
            recv = target.address() + recvOffset;
            received = new BytePointer(target)
                    .position(recvOffset)
                    .capacity(recvOffset + (long) recvCount * type.size)
                    .asByteBuffer()
                    .slice()
                    .order(ByteOrder.nativeOrder());
            new BytePointer(sendMemory)
                    .position(sendOffset)
                    .put(inputs.get(self.rank()).array());
            cases++;
        }

        /** Expects the result of a reduction that ends with this rank. */
        void expectReduced(Reduction op, int from, int count, String what) {
            ByteBuffer expected = reduced(op, from, count, self.rank());
            compare(expected, 0, count, what);
        }

        /** Of several ranks in their order; each element of two ranks may be reduced in another order. */
        void expectAllReduced(Reduction op, int count, String what) {
            ByteBuffer expected = reduced(op, 0, count, self.count() - 1);
            for (int i = 0; i < count && self.count() == 2; i++) {
                if (type.bits(expected, i) != type.bits(received, i)
                        && op.isResult(type, inputs, i % PERIOD, received, i)) {
                    type.putBits(expected, i, type.bits(received, i));
                }
            }
            compare(expected, 0, count, what);
        }

        private ByteBuffer reduced(Reduction op, int from, int count, int last) {
            ByteBuffer expected = ByteBuffer.allocate(count * type.size).order(ByteOrder.nativeOrder());
            int distinct = Math.min(count, PERIOD);
            for (int i = 0; i < distinct; i++) {
                op.put(type, inputs, from + i, last, expected, i);
            }
            repeat(expected, distinct * type.size);
            return expected;
        }

        /** The elements of a rank's input from {@code from} on must be received from {@code to} on. */
        void expectCopied(int rank, int from, int to, int count, String what) {
            if (from + count > sendCount) {
                throw new IllegalArgumentException(what + ": " + from + " + " + count + " > " + sendCount);
            }
            compare(slice(inputs.get(rank), from, count), to, count, what + " from rank " + rank);
        }

        /** All expected elements must be received from {@code to} on. */
        private void compare(ByteBuffer expected, int to, int count, String what) {
            int wrong = expected.mismatch(slice(received, to, count));
            if (wrong >= 0) {
                int index = wrong / type.size;
                throw new AssertionError("rank " + self.rank() + " of " + self.count() + ", " + what + ", element "
                        + (to + index) + ": expected bits " + Long.toHexString(type.bits(expected, index))
                        + ", received " + Long.toHexString(type.bits(received, to + index)));
            }
        }

        private ByteBuffer slice(ByteBuffer elements, int from, int count) {
            return elements.slice(from * type.size, count * type.size).order(ByteOrder.nativeOrder());
        }

        /** Repeats the first bytes of a buffer until it is full. */
        private void repeat(ByteBuffer elements, int period) {
            for (int filled = period; filled < elements.capacity(); filled *= 2) {
                elements.put(filled, elements, 0, Math.min(filled, elements.capacity() - filled));
            }
        }

        @Override
        public void close() {
            sendMemory.close();
            recvMemory.close();
        }
    }
}
