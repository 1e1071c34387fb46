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
import java.util.function.BiConsumer;
import java.util.function.BiFunction;
import java.util.function.Consumer;

/** Wrong arguments of every operation on data. */
final class OperationMisuses {
    private static final int PART = 4;
    private static final String OVERLAP = "buffers overlap without being in place: ";

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
        table.inPlace("allReduce", c -> c.allReduce(null, ReduceOp.SUM, null));
        table.inPlace("reduce", c -> c.reduce(null, ReduceOp.SUM, 0, null));
        table.inPlace("broadcast", c -> c.broadcast(null, 0, null));
        table.inPlace("send", c -> c.send(null, 1, null));
        table.inPlace("recv", c -> c.recv(null, 1, null));
        table.addresses("allReduce", true, null, (c, s, r, n, type, op, root, st) -> c.onAddresses()
                .allReduce(s, r, n, type, op, st));
        table.addresses("reduce", true, "root", (c, s, r, n, type, op, root, st) -> c.onAddresses()
                .reduce(s, r, n, type, op, root, st));
        table.addresses("broadcast", false, "root", (c, s, r, n, type, op, root, st) -> c.onAddresses()
                .broadcast(s, r, n, type, root, st));
        table.addresses("allGather", false, null, (c, s, r, n, type, op, root, st) -> c.onAddresses()
                .allGather(s, r, n, type, st));
        table.addresses("reduceScatter", true, null, (c, s, r, n, type, op, root, st) -> c.onAddresses()
                .reduceScatter(s, r, n, type, op, st));
        table.addresses("send", false, "peer", (c, s, r, n, type, op, root, st) -> c.onAddresses()
                .send(s, n, type, root, st));
        table.addresses("recv", false, "peer", (c, s, r, n, type, op, root, st) -> c.onAddresses()
                .recv(r, n, type, root, st));
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

    /** The arguments of a call, right ones at first. */
    private static final class Arguments {
        DeviceBuffer<Float32> send;
        DeviceBuffer<Float32> recv;
        long sendAddress;
        long recvAddress;
        long count = 1;
        DataType type = DataType.FLOAT32;
        ReduceOp op = ReduceOp.SUM;
        int root;
        CudaStream stream;

        Arguments(MisuseWorld w, int root) {
            this.root = root;
            sendAddress = w.send.address();
            recvAddress = w.recv.address();
            stream = w.stream;
        }
    }

    /** Makes one of the arguments wrong. */
    @FunctionalInterface
    private interface Change {
        void make(MisuseWorld world, Arguments arguments);
    }

    /** An operation in one of its forms, of which wrong calls are added. */
    private final class Form {
        private final String prefix;
        private final BiFunction<MisuseWorld, Integer, Arguments> right;
        private final BiConsumer<Communicator, Arguments> call;
        private final int root;

        Form(
                String name,
                String kind,
                BiFunction<MisuseWorld, Integer, Arguments> right,
                BiConsumer<Communicator, Arguments> call) {
            prefix = name + " of " + kind + ": ";
            this.right = right;
            this.call = call;
            root = isTransfer(name) ? 1 : 0;
        }

        /** Adds a call that is right but for one change. */
        void refuses(String what, Class<? extends Throwable> type, Change change, String... parts) {
            add(prefix + what, w -> {
                Arguments arguments = right.apply(w, root);
                change.make(w, arguments);
                w.refuses(type, () -> call.accept(w.first, arguments), parts);
            });
        }
    }

    /** The message has the name of the only buffer. */
    private void inPlace(String name, Consumer<Communicator> call) {
        add(
                name + " with one buffer: null",
                w -> w.refuses(NullPointerException.class, () -> call.accept(w.first), "buffer"));
    }

    private void buffers(
            boolean onHost, String name, int sends, int recvs, boolean reduces, String rootName, Call call) {
        int sendLength = sends * PART;
        int recvLength = recvs * PART;
        Form form = new Form(
                name,
                "buffers",
                (w, root) -> {
                    Arguments right = new Arguments(w, root);
                    right.send = w.floats(sendLength);
                    right.recv = w.floats(recvLength);
                    return right;
                },
                (communicator, a) -> call.run(communicator, a.send, a.recv, a.op, a.root, a.stream));
        if (sends > 0) {
            form.refuses("null to send", NullPointerException.class, (w, a) -> a.send = null, "null");
            form.refuses(
                    "a closed buffer to send",
                    IllegalStateException.class,
                    (w, a) -> a.send = w.closedFloats(sendLength),
                    "DeviceBuffer of " + sendLength + " float32",
                    "is closed");
        }
        if (recvs > 0) {
            form.refuses("null to receive", NullPointerException.class, (w, a) -> a.recv = null, "null");
            form.refuses(
                    "a slice of a closed buffer to receive",
                    IllegalStateException.class,
                    (w, a) -> {
                        DeviceBuffer<Float32> whole = w.floats(100);
                        a.recv = whole.slice(4, recvLength);
                        whole.close();
                    },
                    "DeviceBuffer of 100 float32",
                    "is closed");
        }
        if (sends > 0 && recvs > 0) {
            pairs(form, name, sendLength, recvLength);
        }
        streams(form);
        if (!onHost) {
            form.refuses(
                    "a stream of another device",
                    IllegalArgumentException.class,
                    (w, a) -> a.stream = w.otherStream,
                    "CUDA device 1",
                    "CUDA device 0");
            form.refuses(
                    "a buffer of another device",
                    IllegalArgumentException.class,
                    (w, a) -> {
                        if (sends > 0) {
                            a.send = w.later(w.otherDevice.allocate(ElementType.FLOAT32, sendLength));
                        } else {
                            a.recv = w.later(w.otherDevice.allocate(ElementType.FLOAT32, recvLength));
                        }
                    },
                    "CUDA device 1",
                    "CUDA device 0");
        }
        if (reduces) {
            operators(form);
        }
        if (rootName != null) {
            for (int wrong : new int[] {-1, 2}) {
                root(form, rootName, wrong);
            }
        }
    }

    private static String addresses(DeviceBuffer<?> buffer) {
        return "[0x" + Long.toHexString(buffer.address()) + ", 0x"
                + Long.toHexString(buffer.address() + buffer.sizeInBytes()) + ")";
    }

    /** Buffers of which each would be right, but not both. */
    private static void pairs(Form form, String name, int sendLength, int recvLength) {
        form.refuses(
                "two types",
                IllegalArgumentException.class,
                (w, a) -> a.recv = disguised(w.later(w.device.allocate(ElementType.INT32, recvLength))),
                "float32",
                "int32");
        form.refuses(
                "buffers that overlap",
                IllegalArgumentException.class,
                (w, a) -> {
                    DeviceBuffer<Float32> whole = w.floats(100);
                    a.send = whole.slice(0, sendLength);
                    a.recv = whole.slice(sendLength - 1, recvLength);
                },
                OVERLAP,
                ") and [0x");
        if (!name.equals("sendRecv")) {
            form.refuses(
                    "a wrong length",
                    IllegalArgumentException.class,
                    (w, a) -> a.recv = w.floats(recvLength + 1),
                    "length() must be ",
                    String.valueOf(recvLength + 1),
                    (sendLength < recvLength ? "2 * " : "") + sendLength);
        }
    }

    private static void streams(Form form) {
        form.refuses("null as stream", NullPointerException.class, (w, a) -> a.stream = null, "stream");
        form.refuses(
                "a closed stream",
                IllegalStateException.class,
                (w, a) -> a.stream = w.closedStream(),
                "CudaStream",
                "is closed");
    }

    private static void root(Form form, String rootName, int wrong) {
        form.refuses(
                "the " + rootName + " " + wrong,
                IllegalArgumentException.class,
                (w, a) -> a.root = wrong,
                rootName + " must be >= 0 and < size(): " + wrong + ", size 2");
    }

    private static void operators(Form form) {
        form.refuses("null as operator", NullPointerException.class, (w, a) -> a.op = null, "op");
        form.refuses(
                "a closed operator",
                IllegalStateException.class,
                (w, a) -> {
                    PreMulSum<Float32> op = w.first.preMulSum(ElementType.FLOAT32, 2);
                    op.close();
                    a.op = op;
                },
                "PreMulSum of float32",
                "is closed");
        form.refuses(
                "another communicator's operator",
                IllegalArgumentException.class,
                (w, a) -> a.op = w.second.preMulSum(ElementType.FLOAT32, 2),
                "rank 1 of 2",
                "rank 0 of 2");
        form.refuses(
                "an operator for another type",
                IllegalArgumentException.class,
                (w, a) -> a.op = w.first.preMulSum(ElementType.FLOAT64, 2),
                "float64",
                "FLOAT32");
    }

    private void addresses(String name, boolean reduces, String rootName, AddressCall call) {
        boolean sends = !name.equals("recv");
        boolean recvs = !name.equals("send");
        Form form = new Form(
                name,
                "addresses",
                Arguments::new,
                (communicator, a) ->
                        call.run(communicator, a.sendAddress, a.recvAddress, a.count, a.type, a.op, a.root, a.stream));
        counts(form, name.equals("allGather") || name.equals("reduceScatter"));
        form.refuses("null as type", NullPointerException.class, (w, a) -> a.type = null, "type");
        streams(form);
        for (long wrong : new long[] {0, 6, -64}) {
            String part = wrong == 0 ? "must not be 0 with " : wrong == 6 ? "0x6 % 4 != 0" : "0xffffffffffffffc0";
            String what = wrong == 0
                    ? "zero"
                    : wrong == 6 ? "an address that is not aligned" : "an address beyond all memory";
            if (sends) {
                form.refuses(what + " to send", IllegalArgumentException.class, (w, a) -> a.sendAddress = wrong, part);
            }
            if (recvs) {
                form.refuses(
                        what + " to receive", IllegalArgumentException.class, (w, a) -> a.recvAddress = wrong, part);
            }
        }
        if (sends && recvs) {
            overlaps(form, name.equals("reduceScatter") ? 8 : 4, name.equals("allGather") ? 8 : 4);
        }
        if (reduces) {
            form.refuses("null as operator", NullPointerException.class, (w, a) -> a.op = null, "op");
            form.refuses(
                    "an operator for another type",
                    IllegalArgumentException.class,
                    (w, a) -> a.op = w.first.preMulSum(ElementType.INT32, 2),
                    "int32",
                    "FLOAT32");
        }
        if (rootName != null) {
            root(form, rootName, 7);
        }
    }

    private static void counts(Form form, boolean isOfAllRanks) {
        form.refuses(
                "a negative count", IllegalArgumentException.class, (w, a) -> a.count = -1, "count must be >= 0: -1");
        long half = Long.MAX_VALUE / 2;
        form.refuses(
                "a count beyond all memory",
                IllegalArgumentException.class,
                (w, a) -> a.count = half,
                "count * size",
                half + " * 4");
        if (isOfAllRanks) {
            form.refuses(
                    "a count whose product with the ranks wraps",
                    IllegalArgumentException.class,
                    (w, a) -> a.count = Long.MAX_VALUE / 4,
                    "count * size",
                    Long.MAX_VALUE / 4 + " * 4 * 2");
        }
        form.refuses(
                "a count that goes beyond the last address",
                IllegalArgumentException.class,
                (w, a) -> a.count = Long.MAX_VALUE / 4 / (isOfAllRanks ? 2 : 1),
                "to 0x7fffffffffffffff");
    }

    private static void overlaps(Form form, int sendBytes, int recvBytes) {
        form.refuses(
                "memory that overlaps",
                IllegalArgumentException.class,
                (w, a) -> {
                    a.sendAddress = w.send.address() + 4;
                    a.recvAddress = w.send.address();
                    a.count = 4;
                },
                OVERLAP,
                ") and [0x");
        form.refuses(
                "memory to receive whose last byte is the first to send",
                IllegalArgumentException.class,
                (w, a) -> {
                    a.sendAddress = w.recv.address() + recvBytes - 1;
                    a.count = 4;
                    a.type = DataType.INT8;
                },
                OVERLAP);
        form.refuses(
                "memory to send whose last byte is the first to receive",
                IllegalArgumentException.class,
                (w, a) -> {
                    a.recvAddress = w.send.address() + sendBytes - 1;
                    a.count = 4;
                    a.type = DataType.INT8;
                },
                OVERLAP);
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
                        OVERLAP + addresses(w.send) + " and " + addresses(w.send)));
        add(
                "allGather in place: another rank's part",
                w -> w.refuses(
                        IllegalArgumentException.class,
                        () -> w.first.allGather(w.recv.slice(4, 4), w.recv, w.stream),
                        OVERLAP));
        add(
                "reduceScatter in place: another rank's part",
                w -> w.refuses(
                        IllegalArgumentException.class,
                        () -> w.first.reduceScatter(w.send, w.send.slice(4, 4), ReduceOp.SUM, w.stream),
                        OVERLAP));
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
                        () -> w.first.onAddresses().send(w.send.address(), 1, DataType.INT8, 0, w.stream),
                        "peer 0, rank 0"));
        add(
                "recv at an address from oneself outside a group",
                w -> w.refuses(
                        IllegalStateException.class,
                        () -> w.first.onAddresses().recv(w.recv.address(), 1, DataType.INT8, 0, w.stream),
                        "peer 0, rank 0"));
    }
}
