package io.github.nccl4j.tests.highlevel;

import static io.github.nccl4j.tests.highlevel.MisuseWorld.disguised;

import io.github.nccl4j.highlevel.CollectiveConfig;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.PreMulSum;
import io.github.nccl4j.highlevel.ReduceOp;
import java.util.ArrayList;
import java.util.List;

/** Wrong arguments of every operation on data. */
final class OperationMisuses {
    private static final int PART = 4;

    private final List<Misuse> all = new ArrayList<>();

    private OperationMisuses() {}

    /** An operation of rank 0 of 2 on buffers. */
    @FunctionalInterface
    private interface Call {
        void run(
                Communicator communicator,
                DeviceBuffer<Float32> send,
                DeviceBuffer<Float32> recv,
                ReduceOp op,
                int root,
                CudaStream stream);
    }

    /** An operation of rank 0 of 2 on addresses. */
    @FunctionalInterface
    private interface AddressCall {
        void run(
                Communicator communicator,
                long send,
                long recv,
                long count,
                DataType type,
                ReduceOp op,
                int root,
                CudaStream stream);
    }

    static List<Misuse> all(boolean onHost) {
        OperationMisuses table = new OperationMisuses();
        table.buffers(onHost, "allReduce", 1, 1, true, null, (c, s, r, op, root, st) -> c.allReduce(s, r, op, st));
        table.buffers(onHost, "reduce", 1, 1, true, "root", Communicator::reduce);
        table.buffers(onHost, "broadcast", 1, 1, false, "root", (c, s, r, op, root, st) -> c.broadcast(s, r, root, st));
        table.buffers(onHost, "allGather", 1, 2, false, null, (c, s, r, op, root, st) -> c.allGather(s, r, st));
        table.buffers(
                onHost, "reduceScatter", 2, 1, true, null, (c, s, r, op, root, st) -> c.reduceScatter(s, r, op, st));
        table.buffers(onHost, "allToAll", 2, 2, false, null, (c, s, r, op, root, st) -> c.allToAll(s, r, st));
        table.buffers(onHost, "gather", 1, 2, false, "root", (c, s, r, op, root, st) -> c.gather(s, r, root, st));
        table.buffers(onHost, "scatter", 2, 1, false, "root", (c, s, r, op, root, st) -> c.scatter(s, r, root, st));
        table.buffers(
                onHost, "sendRecv", 1, 1, false, "to", (c, s, r, op, root, st) -> c.sendRecv(s, root, r, root, st));
        table.buffers(onHost, "send", 1, 0, false, "peer", (c, s, r, op, root, st) -> c.send(s, root, st));
        table.buffers(onHost, "recv", 0, 1, false, "peer", (c, s, r, op, root, st) -> c.recv(r, root, st));
        table.addresses(
                "allReduce", true, null, (c, s, r, n, type, op, root, st) -> c.allReduce(s, r, n, type, op, st));
        table.addresses("reduce", true, "root", Communicator::reduce);
        table.addresses(
                "broadcast", false, "root", (c, s, r, n, type, op, root, st) -> c.broadcast(s, r, n, type, root, st));
        table.addresses("allGather", false, null, (c, s, r, n, type, op, root, st) -> c.allGather(s, r, n, type, st));
        table.addresses(
                "reduceScatter",
                true,
                null,
                (c, s, r, n, type, op, root, st) -> c.reduceScatter(s, r, n, type, op, st));
        table.addresses("send", false, "peer", (c, s, r, n, type, op, root, st) -> c.send(s, n, type, root, st));
        table.addresses("recv", false, "peer", (c, s, r, n, type, op, root, st) -> c.recv(r, n, type, root, st));
        table.single();
        return table.all;
    }

    /** The same of those that take a configuration. */
    static List<Misuse> ofConfigured(boolean onHost) {
        OperationMisuses table = new OperationMisuses();
        table.configured(onHost);
        return table.all;
    }

    private void configured(boolean onHost) {
        CollectiveConfig config = CollectiveConfig.builder().maxCtas(4).build();
        String as = " as configured";
        buffers(
                onHost,
                "allReduce" + as,
                1,
                1,
                true,
                null,
                (c, s, r, op, root, st) -> c.allReduce(s, r, op, st, config));
        buffers(
                onHost,
                "reduce" + as,
                1,
                1,
                true,
                "root",
                (c, s, r, op, root, st) -> c.reduce(s, r, op, root, st, config));
        buffers(
                onHost,
                "broadcast" + as,
                1,
                1,
                false,
                "root",
                (c, s, r, op, root, st) -> c.broadcast(s, r, root, st, config));
        buffers(onHost, "allGather" + as, 1, 2, false, null, (c, s, r, op, root, st) -> c.allGather(s, r, st, config));
        buffers(
                onHost,
                "reduceScatter" + as,
                2,
                1,
                true,
                null,
                (c, s, r, op, root, st) -> c.reduceScatter(s, r, op, st, config));
        buffers(onHost, "allToAll" + as, 2, 2, false, null, (c, s, r, op, root, st) -> c.allToAll(s, r, st, config));
        buffers(
                onHost,
                "gather" + as,
                1,
                2,
                false,
                "root",
                (c, s, r, op, root, st) -> c.gather(s, r, root, st, config));
        buffers(
                onHost,
                "scatter" + as,
                2,
                1,
                false,
                "root",
                (c, s, r, op, root, st) -> c.scatter(s, r, root, st, config));
    }

    private void add(String name, Misuse.Body body) {
        all.add(new Misuse(name, false, body));
    }

    private static boolean isTransfer(String name) {
        return name.startsWith("send") || name.startsWith("recv");
    }

    private void buffers(
            boolean onHost, String name, int sends, int recvs, boolean reduces, String rootName, Call call) {
        int sendLength = sends * PART;
        int recvLength = recvs * PART;
        int root = isTransfer(name) ? 1 : 0;
        String prefix = name + " of buffers: ";
        if (sends > 0) {
            add(
                    prefix + "null to send",
                    w -> w.refuses(
                            NullPointerException.class,
                            () -> call.run(w.first, null, w.floats(recvLength), ReduceOp.SUM, root, w.stream),
                            "null"));
            add(
                    prefix + "a closed buffer to send",
                    w -> w.refuses(
                            IllegalStateException.class,
                            () -> call.run(
                                    w.first,
                                    w.closedFloats(sendLength),
                                    w.floats(recvLength),
                                    ReduceOp.SUM,
                                    root,
                                    w.stream),
                            "DeviceBuffer of " + sendLength + " float32",
                            "is closed"));
        }
        if (recvs > 0) {
            add(
                    prefix + "null to receive",
                    w -> w.refuses(
                            NullPointerException.class,
                            () -> call.run(w.first, w.floats(sendLength), null, ReduceOp.SUM, root, w.stream),
                            "null"));
            add(prefix + "a slice of a closed buffer to receive", w -> {
                DeviceBuffer<Float32> whole = w.floats(100);
                DeviceBuffer<Float32> slice = whole.slice(4, recvLength);
                whole.close();
                w.refuses(
                        IllegalStateException.class,
                        () -> call.run(w.first, w.floats(sendLength), slice, ReduceOp.SUM, root, w.stream),
                        "DeviceBuffer of 100 float32",
                        "is closed");
            });
        }
        if (sends > 0 && recvs > 0) {
            add(
                    prefix + "two types",
                    w -> w.refuses(
                            IllegalArgumentException.class,
                            () -> call.run(
                                    w.first,
                                    w.floats(sendLength),
                                    disguised(w.later(w.device.allocate(ElementType.INT32, recvLength))),
                                    ReduceOp.SUM,
                                    root,
                                    w.stream),
                            "float32",
                            "int32"));
            add(prefix + "buffers that overlap", w -> {
                DeviceBuffer<Float32> whole = w.floats(100);
                w.refuses(
                        IllegalArgumentException.class,
                        () -> call.run(
                                w.first,
                                whole.slice(0, sendLength),
                                whole.slice(sendLength - 1, recvLength),
                                ReduceOp.SUM,
                                root,
                                w.stream),
                        "must not overlap",
                        " with " + 4 * sendLength,
                        " with " + 4 * recvLength);
            });
            if (!name.equals("sendRecv")) {
                add(
                        prefix + "a wrong length",
                        w -> w.refuses(
                                IllegalArgumentException.class,
                                () -> call.run(
                                        w.first,
                                        w.floats(sendLength),
                                        w.floats(recvLength + 1),
                                        ReduceOp.SUM,
                                        root,
                                        w.stream),
                                "length() must be ",
                                String.valueOf(recvLength + 1),
                                sends > recvs || sends == recvs ? String.valueOf(sendLength) : "2 * " + sendLength));
            }
        }
        add(
                prefix + "null as stream",
                w -> w.refuses(
                        NullPointerException.class,
                        () -> call.run(w.first, w.floats(sendLength), w.floats(recvLength), ReduceOp.SUM, root, null),
                        "stream"));
        add(
                prefix + "a closed stream",
                w -> w.refuses(
                        IllegalStateException.class,
                        () -> call.run(
                                w.first,
                                w.floats(sendLength),
                                w.floats(recvLength),
                                ReduceOp.SUM,
                                root,
                                w.closedStream()),
                        "CudaStream",
                        "is closed"));
        if (!onHost) {
            add(
                    prefix + "a stream of another device",
                    w -> w.refuses(
                            IllegalArgumentException.class,
                            () -> call.run(
                                    w.first,
                                    w.floats(sendLength),
                                    w.floats(recvLength),
                                    ReduceOp.SUM,
                                    root,
                                    w.otherStream),
                            "CUDA device 1",
                            "CUDA device 0"));
            add(
                    prefix + "a buffer of another device",
                    w -> w.refuses(
                            IllegalArgumentException.class,
                            () -> call.run(
                                    w.first,
                                    sends == 0
                                            ? null
                                            : w.later(w.otherDevice.allocate(ElementType.FLOAT32, sendLength)),
                                    w.later((sends == 0 ? w.otherDevice : w.device)
                                            .allocate(ElementType.FLOAT32, recvLength)),
                                    ReduceOp.SUM,
                                    root,
                                    w.stream),
                            "CUDA device 1",
                            "CUDA device 0"));
        }
        if (reduces) {
            operators(prefix, sendLength, recvLength, root, call);
        }
        if (rootName != null) {
            for (int wrong : new int[] {-1, 2}) {
                add(
                        prefix + "the " + rootName + " " + wrong,
                        w -> w.refuses(
                                IllegalArgumentException.class,
                                () -> call.run(
                                        w.first,
                                        w.floats(sendLength),
                                        w.floats(recvLength),
                                        ReduceOp.SUM,
                                        wrong,
                                        w.stream),
                                rootName + " must be >= 0 and < size(): " + wrong + ", size 2"));
            }
        }
    }

    private void operators(String prefix, int sendLength, int recvLength, int root, Call call) {
        add(
                prefix + "null as operator",
                w -> w.refuses(
                        NullPointerException.class,
                        () -> call.run(w.first, w.floats(sendLength), w.floats(recvLength), null, root, w.stream),
                        "op"));
        add(prefix + "a closed operator", w -> {
            PreMulSum<Float32> op = w.first.preMulSum(ElementType.FLOAT32, 2);
            op.close();
            w.refuses(
                    IllegalStateException.class,
                    () -> call.run(w.first, w.floats(sendLength), w.floats(recvLength), op, root, w.stream),
                    "PreMulSum of float32",
                    "is closed");
        });
        add(prefix + "another communicator's operator", w -> {
            PreMulSum<Float32> op = w.second.preMulSum(ElementType.FLOAT32, 2);
            w.refuses(
                    IllegalArgumentException.class,
                    () -> call.run(w.first, w.floats(sendLength), w.floats(recvLength), op, root, w.stream),
                    "rank 1 of 2",
                    "rank 0 of 2");
        });
        add(prefix + "an operator for another type", w -> {
            PreMulSum<?> op = w.first.preMulSum(ElementType.FLOAT64, 2);
            w.refuses(
                    IllegalArgumentException.class,
                    () -> call.run(w.first, w.floats(sendLength), w.floats(recvLength), op, root, w.stream),
                    "float64",
                    "FLOAT32");
        });
    }

    private void addresses(String name, boolean reduces, String rootName, AddressCall call) {
        String prefix = name + " of addresses: ";
        int root = isTransfer(name) ? 1 : 0;
        boolean sends = !name.equals("recv");
        boolean recvs = !name.equals("send");
        boolean whole = name.equals("allGather") || name.equals("reduceScatter");
        int ranks = whole ? 2 : 1;
        long half = Long.MAX_VALUE / 2;
        add(
                prefix + "a negative count",
                w -> w.refuses(
                        IllegalArgumentException.class,
                        () -> call.run(
                                w.first,
                                w.send.address(),
                                w.recv.address(),
                                -1,
                                DataType.FLOAT32,
                                ReduceOp.SUM,
                                root,
                                w.stream),
                        "count must be >= 0: -1"));
        add(
                prefix + "a count beyond all memory",
                w -> w.refuses(
                        IllegalArgumentException.class,
                        () -> call.run(
                                w.first,
                                w.send.address(),
                                w.recv.address(),
                                half,
                                DataType.FLOAT32,
                                ReduceOp.SUM,
                                root,
                                w.stream),
                        "count * size",
                        half + " * 4"));
        if (whole) {
            add(
                    prefix + "a count whose product with the ranks wraps",
                    w -> w.refuses(
                            IllegalArgumentException.class,
                            () -> call.run(
                                    w.first,
                                    w.send.address(),
                                    w.recv.address(),
                                    Long.MAX_VALUE / 4,
                                    DataType.FLOAT32,
                                    ReduceOp.SUM,
                                    root,
                                    w.stream),
                            "count * size",
                            Long.MAX_VALUE / 4 + " * 4 * 2"));
        }
        add(
                prefix + "a count that goes beyond the last address",
                w -> w.refuses(
                        IllegalArgumentException.class,
                        () -> call.run(
                                w.first,
                                w.send.address(),
                                w.recv.address(),
                                Long.MAX_VALUE / 4 / ranks,
                                DataType.FLOAT32,
                                ReduceOp.SUM,
                                root,
                                w.stream),
                        "to 0x7fffffffffffffff"));
        add(
                prefix + "null as type",
                w -> w.refuses(
                        NullPointerException.class,
                        () -> call.run(
                                w.first, w.send.address(), w.recv.address(), 1, null, ReduceOp.SUM, root, w.stream),
                        "type"));
        add(
                prefix + "null as stream",
                w -> w.refuses(
                        NullPointerException.class,
                        () -> call.run(
                                w.first,
                                w.send.address(),
                                w.recv.address(),
                                1,
                                DataType.FLOAT32,
                                ReduceOp.SUM,
                                root,
                                null),
                        "stream"));
        add(
                prefix + "a closed stream",
                w -> w.refuses(
                        IllegalStateException.class,
                        () -> call.run(
                                w.first,
                                w.send.address(),
                                w.recv.address(),
                                1,
                                DataType.FLOAT32,
                                ReduceOp.SUM,
                                root,
                                w.closedStream()),
                        "CudaStream",
                        "is closed"));
        for (long wrong : new long[] {0, 6, -64}) {
            String part = wrong == 0 ? "must not be 0 with " : wrong == 6 ? "0x6 % 4 != 0" : "0xffffffffffffffc0";
            String what = wrong == 0
                    ? "zero"
                    : wrong == 6 ? "an address that is not aligned" : "an address beyond all memory";
            if (sends) {
                add(
                        prefix + what + " to send",
                        w -> w.refuses(
                                IllegalArgumentException.class,
                                () -> call.run(
                                        w.first,
                                        wrong,
                                        w.recv.address(),
                                        1,
                                        DataType.FLOAT32,
                                        ReduceOp.SUM,
                                        root,
                                        w.stream),
                                part));
            }
            if (recvs) {
                add(
                        prefix + what + " to receive",
                        w -> w.refuses(
                                IllegalArgumentException.class,
                                () -> call.run(
                                        w.first,
                                        w.send.address(),
                                        wrong,
                                        1,
                                        DataType.FLOAT32,
                                        ReduceOp.SUM,
                                        root,
                                        w.stream),
                                part));
            }
        }
        if (sends && recvs) {
            add(
                    prefix + "memory that overlaps",
                    w -> w.refuses(
                            IllegalArgumentException.class,
                            () -> call.run(
                                    w.first,
                                    w.send.address() + 4,
                                    w.send.address(),
                                    4,
                                    DataType.FLOAT32,
                                    ReduceOp.SUM,
                                    root,
                                    w.stream),
                            "must not overlap",
                            " 16 "));
            int sendBytes = name.equals("reduceScatter") ? 8 : 4;
            int recvBytes = name.equals("allGather") ? 8 : 4;
            add(
                    prefix + "memory to receive whose last byte is the first to send",
                    w -> w.refuses(
                            IllegalArgumentException.class,
                            () -> call.run(
                                    w.first,
                                    w.recv.address() + recvBytes - 1,
                                    w.recv.address(),
                                    4,
                                    DataType.INT8,
                                    ReduceOp.SUM,
                                    root,
                                    w.stream),
                            "must not overlap"));
            add(
                    prefix + "memory to send whose last byte is the first to receive",
                    w -> w.refuses(
                            IllegalArgumentException.class,
                            () -> call.run(
                                    w.first,
                                    w.send.address(),
                                    w.send.address() + sendBytes - 1,
                                    4,
                                    DataType.INT8,
                                    ReduceOp.SUM,
                                    root,
                                    w.stream),
                            "must not overlap"));
        }
        if (reduces) {
            add(
                    prefix + "null as operator",
                    w -> w.refuses(
                            NullPointerException.class,
                            () -> call.run(
                                    w.first,
                                    w.send.address(),
                                    w.recv.address(),
                                    1,
                                    DataType.FLOAT32,
                                    null,
                                    root,
                                    w.stream),
                            "op"));
            add(prefix + "an operator for another type", w -> {
                PreMulSum<?> op = w.first.preMulSum(ElementType.INT32, 2);
                w.refuses(
                        IllegalArgumentException.class,
                        () -> call.run(
                                w.first, w.send.address(), w.recv.address(), 1, DataType.FLOAT32, op, root, w.stream),
                        "int32",
                        "FLOAT32");
            });
        }
        if (rootName != null) {
            add(
                    prefix + "the " + rootName + " 7",
                    w -> w.refuses(
                            IllegalArgumentException.class,
                            () -> call.run(
                                    w.first,
                                    w.send.address(),
                                    w.recv.address(),
                                    1,
                                    DataType.FLOAT32,
                                    ReduceOp.SUM,
                                    7,
                                    w.stream),
                            rootName + " must be >= 0 and < size(): 7, size 2"));
        }
    }

    private void single() {
        add(
                "allToAll: a length that the ranks can't share",
                w -> w.refuses(
                        IllegalArgumentException.class,
                        () -> w.first.allToAll(w.floats(5), w.floats(5), w.stream),
                        "send.length() must be a multiple of size(): 5, size 2"));
        add(
                "allToAll: in place",
                w -> w.refuses(
                        IllegalArgumentException.class,
                        () -> w.first.allToAll(w.send, w.send, w.stream),
                        "must not overlap"));
        add(
                "allGather in place: another rank's part",
                w -> w.refuses(
                        IllegalArgumentException.class,
                        () -> w.first.allGather(w.recv.slice(4, 4), w.recv, w.stream),
                        "must not overlap"));
        add(
                "reduceScatter in place: another rank's part",
                w -> w.refuses(
                        IllegalArgumentException.class,
                        () -> w.first.reduceScatter(w.send, w.send.slice(4, 4), ReduceOp.SUM, w.stream),
                        "must not overlap"));
        add(
                "gather without a buffer to receive: as root",
                w -> w.refuses(
                        IllegalArgumentException.class,
                        () -> w.first.gather(w.send, 0, w.stream),
                        "the root needs a buffer 'recv': root 0, rank 0"));
        add(
                "scatter without a buffer to send: as root",
                w -> w.refuses(
                        IllegalArgumentException.class,
                        () -> w.first.scatter(w.recv, 0, w.stream),
                        "the root needs a buffer 'send': root 0, rank 0"));
        add(
                "gather without a buffer to receive: the root 2",
                w -> w.refuses(
                        IllegalArgumentException.class,
                        () -> w.first.gather(w.send, 2, w.stream),
                        "root must be >= 0 and < size(): 2, size 2"));
        add(
                "sendRecv: from the peer -1",
                w -> w.refuses(
                        IllegalArgumentException.class,
                        () -> w.first.sendRecv(w.send, 1, w.recv, -1, w.stream),
                        "from must be >= 0 and < size(): -1, size 2"));
        add(
                "sendRecv: to oneself, but from another",
                w -> w.refuses(
                        IllegalArgumentException.class,
                        () -> w.first.sendRecv(w.send, 0, w.recv, 1, w.stream),
                        "to 0, from 1, rank 0"));
        add(
                "sendRecv with oneself: two lengths",
                w -> w.refuses(
                        IllegalArgumentException.class,
                        () -> w.first.sendRecv(w.floats(4), 0, w.floats(5), 0, w.stream),
                        "recv.length() must be send.length(): 5 != 4"));
        add(
                "send to oneself outside a group",
                w -> w.refuses(IllegalStateException.class, () -> w.first.send(w.send, 0, w.stream), "peer 0, rank 0"));
        add(
                "recv from oneself outside a group",
                w -> w.refuses(IllegalStateException.class, () -> w.first.recv(w.recv, 0, w.stream), "peer 0, rank 0"));
        add(
                "send of an address to oneself outside a group",
                w -> w.refuses(
                        IllegalStateException.class,
                        () -> w.first.send(w.send.address(), 1, DataType.INT8, 0, w.stream),
                        "peer 0, rank 0"));
        add(
                "recv at an address from oneself outside a group",
                w -> w.refuses(
                        IllegalStateException.class,
                        () -> w.first.recv(w.recv.address(), 1, DataType.INT8, 0, w.stream),
                        "peer 0, rank 0"));
    }
}
