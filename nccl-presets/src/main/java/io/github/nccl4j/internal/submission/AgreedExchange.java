package io.github.nccl4j.internal.submission;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.AlltoAllvForm;
import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.communicator.Resource;
import io.github.nccl4j.internal.cuda.NativeBuffer;
import io.github.nccl4j.internal.cuda.NativeStream;
import io.github.nccl4j.internal.memory.NativeMemory;
import io.github.nccl4j.internal.operation.BlockLayout;
import io.github.nccl4j.internal.operation.Deferred;
import io.github.nccl4j.internal.operation.OperationKind;
import io.github.nccl4j.internal.operation.Operator;
import io.github.nccl4j.internal.threads.Gate;
import java.io.IOException;
import java.nio.LongBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * An all-to-all with a count for each pair of ranks, on which all ranks have agreed. It calls {@code ncclAlltoAllv} or
 * groups sends and receives. For the communicator's thread.
 */
public final class AgreedExchange implements AutoCloseable {
    /** Number of words that a rank sends to the others before its rows. */
    private static final int HEADER = 5;

    private static final int PROBLEM = 0;
    private static final int TYPE = 1;
    private static final int MACHINE = 2;
    private static final int NATIVE = 3;
    private static final int WINDOW_OFFSET = 4;

    /* Values of the word NATIVE; 0 if the rank can't call any form. */
    private static final int VCCL = 1;
    private static final int RCCL = 2;

    private final AllToAllvOperations operations;
    private final CommunicatorCore core;
    private final int size;
    private final NativeStream stream;

    /** Null if the arguments are wrong, which the exchange reports to the other ranks. */
    private NativeBuffer send;

    private NativeBuffer recv;
    private BlockLayout sends;
    private BlockLayout receives;
    private RuntimeException problem;

    /** Memory of the exchange; null after its evaluation. */
    private ExchangeBuffers.Rows rows;

    /** The form of ncclAlltoAllv that the ranks have agreed to call; null if sends and receives are grouped. */
    private AlltoAllvForm form;

    /**
     * The four tables of the native call, consecutive: for VCCL the matrices of all ranks, row by row; for RCCL the
     * rows of this rank. Null without a native call.
     */
    private NativeMemory tables;

    private NativeBuffer barrier;

    private boolean agreed;
    private final Resource resource;

    private AgreedExchange(AllToAllvOperations operations) {
        this.operations = operations;
        core = operations.core();
        stream = operations.streams().ownStream();
        size = core.size();
        resource = new Resource(core, this, () -> {}, this::release);
    }

    /** Creates a plan from this rank's arguments; the exchange reports wrong arguments. */
    public static AgreedExchange of(AllToAllvOperations operations, Blocks send, Blocks recv) {
        AgreedExchange plan = new AgreedExchange(operations);
        try {
            operations.checks().separate(send.buffer(), recv.buffer());
            plan.sends = send.layout("send", plan.core, false);
            plan.receives = recv.layout("recv", plan.core, true);
            plan.pin(send.buffer(), recv.buffer());
        } catch (RuntimeException e) {
            // The other ranks wait for this rank: the exchange reports the problem first, and throws it afterwards.
            plan.problem = e;
        }
        return plan;
    }

    private void pin(NativeBuffer toSend, NativeBuffer toRecv) {
        toSend.pin();
        try {
            toRecv.pin();
        } catch (IllegalStateException closed) {
            toSend.unpin();
            throw closed;
        }
        send = toSend;
        recv = toRecv;
    }

    /* Agreeing. */

    /** Exchanges the rows of all ranks: at once, or at the launch of the open group. */
    public void exchange() {
        Exchange exchange = new Exchange();
        boolean begun = false;
        try {
            long[] words = words();
            rows = operations.buffers().take(words.length, size);
            rows.own().transfer(LongBuffer.wrap(words), 0, true);
            try (GroupScope group = GroupScope.open()) {
                Batch.current().add(core, exchange);
                begun = true;
                group.launch();
            }
        } finally {
            if (!begun) {
                exchange.discarded();
            }
        }
    }

    private long[] words() {
        long[] words = new long[HEADER + 4 * size];
        if (problem != null) {
            words[PROBLEM] = 1;
            return words;
        }
        words[TYPE] = send.typeCode;
        words[MACHINE] = Machine.ID;
        describeNativeCall(words);
        for (int matrix = 0; matrix < 4; matrix++) {
            System.arraycopy(rowOf(matrix), 0, words, HEADER + matrix * size, size);
        }
        return words;
    }

    /** Sets the words for the form of ncclAlltoAllv that this rank can call with its buffers. */
    private void describeNativeCall(long[] words) {
        AlltoAllvForm own = core.library().alltoAllvForm();
        if (own == AlltoAllvForm.NINE_ARGUMENTS) {
            words[NATIVE] = RCCL;
            return;
        }
        NativeWindow sendWindow = operations.windows().symmetricWindowOf(send);
        NativeWindow recvWindow = operations.windows().symmetricWindowOf(recv);
        boolean isVccl = own == AlltoAllvForm.TEN_ARGUMENTS || own == AlltoAllvForm.ELEVEN_ARGUMENTS;
        if (sendWindow != null && recvWindow != null && isVccl) {
            words[NATIVE] = VCCL;
            words[WINDOW_OFFSET] = recv.address - recvWindow.address();
        }
    }

    /** The all-gather of the rows, and their evaluation. */
    private final class Exchange implements Deferred {
        @Override
        public void record(Gate.Pass pass, int group) {
            core.operationLog()
                    .record(
                            pass.next(),
                            OperationKind.ALL_GATHER.code(),
                            rows.own().length,
                            DataType.INT64.code(),
                            0,
                            0,
                            group,
                            stream.handle);
            pass.count();
        }

        @Override
        public int call() {
            return nccl.ncclAllGather(
                    rows.own().address,
                    rows.ofAll().address,
                    rows.own().length,
                    DataType.INT64.code(),
                    core.handle(),
                    stream.handle);
        }

        @Override
        public void completed() {
            boolean done = false;
            try {
                agree();
                done = true;
            } finally {
                if (!done) {
                    resource.cancel();
                }
            }
        }

        @Override
        public void discarded() {
            resource.cancel();
        }

        @Override
        public String toString() {
            return "ncclAllGather of the counts of allToAllv";
        }
    }

    private long[] rowOf(int matrix) {
        return switch (matrix) {
            case 0 -> sends.counts();
            case 1 -> sends.displacements();
            case 2 -> receives.counts();
            default -> receives.displacements();
        };
    }

    /** Evaluates the rows of all ranks. Either no rank throws, or all ranks throw. */
    private void agree() {
        operations.streams().mark(stream).await();
        long[] all = new long[Math.toIntExact(rows.ofAll().length)];
        rows.ofAll().transfer(LongBuffer.wrap(all), 0, false);
        requireAgreement(all);
        prepareNative(all);
        agreed = true;
        endExchange();
    }

    private void endExchange() {
        if (rows != null) {
            operations.buffers().giveBack(rows);
            rows = null;
        }
    }

    private long word(long[] all, int rank, int index) {
        return all[rank * (HEADER + 4 * size) + index];
    }

    private long count(long[] all, int rank, int matrix, int peer) {
        return word(all, rank, HEADER + matrix * size + peer);
    }

    private void requireAgreement(long[] all) {
        if (problem != null) {
            throw problem;
        }
        for (int rank = 0; rank < size; rank++) {
            if (word(all, rank, PROBLEM) != 0) {
                throw new IllegalStateException(
                        "rank " + rank + " has wrong arguments for allToAllv; its own exception names them");
            }
            if (word(all, rank, TYPE) != send.typeCode) {
                throw new IllegalArgumentException("all ranks must have the same element type: " + send.format
                        + ", rank " + rank + " has " + ElementType.values().get((int) word(all, rank, TYPE)));
            }
        }
        String first = null;
        int more = -1;
        for (int from = 0; from < size; from++) {
            for (int to = 0; to < size; to++) {
                long sent = count(all, from, 0, to);
                long expected = count(all, to, 2, from);
                if (sent != expected) {
                    more++;
                    if (first == null) {
                        first = "rank " + from + " sends " + sent + " elements to rank " + to + ", which expects "
                                + expected;
                    }
                }
            }
        }
        if (first != null) {
            throw new IllegalArgumentException(
                    "ranks must agree on the counts: " + first + (more > 0 ? ", and " + more + " more differ" : ""));
        }
    }

    private void prepareNative(long[] all) {
        long can = word(all, 0, NATIVE);
        for (int rank = 1; rank < size; rank++) {
            boolean onOneMachine = word(all, rank, MACHINE) == word(all, 0, MACHINE)
                    && word(all, rank, WINDOW_OFFSET) == word(all, 0, WINDOW_OFFSET);
            if (word(all, rank, NATIVE) != can || can == VCCL && !onOneMachine) {
                return;
            }
        }
        if (can == VCCL) {
            fillTables(all, 0, size);
            barrier = operations.buffers().barrier();
        } else if (can == RCCL) {
            fillTables(all, core.rank(), core.rank() + 1);
        }
    }

    /** Writes the rows of a range of ranks; the end is exclusive. */
    private void fillTables(long[] all, int from, int to) {
        tables = new NativeMemory(Math.toIntExact(4L * (to - from) * size * Long.BYTES));
        LongBuffer cells = tables.buffer().asLongBuffer();
        for (int matrix = 0; matrix < 4; matrix++) {
            for (int rank = from; rank < to; rank++) {
                for (int peer = 0; peer < size; peer++) {
                    cells.put(count(all, rank, matrix, peer));
                }
            }
        }
        form = core.library().alltoAllvForm();
    }

    /* Running. */

    /** True if the plan calls {@code ncclAlltoAllv}. */
    public boolean usesNativeCall() {
        return form != null;
    }

    public boolean isOpen() {
        return resource.isOpen();
    }

    public void check(CommunicatorCore user) {
        resource.check();
        if (user != core) {
            throw new IllegalArgumentException("plan belongs to " + core + ", not to " + user);
        }
        if (!agreed) {
            throw new IllegalStateException(this + " is pending: it can be used when its group has been launched");
        }
    }

    public void run(NativeStream on) {
        boolean isRccl = form == AlltoAllvForm.NINE_ARGUMENTS;
        if (!usesNativeCall() || isRccl && Batch.current() != null) {
            operations.composed().exchangeBlocks(send, sends, recv, receives, on);
            return;
        }
        if (!isRccl && on.isCapturing()) {
            throw new IllegalStateException(
                    "VCCL's ncclAlltoAllv can't be captured in a CUDA graph, it would end the process: " + on);
        }
        GroupScope.run(() -> {
            Batch batch = Batch.current();
            batch.add(core, isRccl ? new RcclCall(on.handle) : new VcclCall(on.handle));
            batch.pin(send);
            batch.pin(recv);
            batch.pin(resource);
        });
    }

    private abstract class NativeCall implements Deferred {
        final long streamHandle;

        NativeCall(long streamHandle) {
            this.streamHandle = streamHandle;
        }

        /** The address of a table of counts or displacements. */
        final long table(int index) {
            return tables.address() + index * (tables.buffer().capacity() / 4L);
        }

        @Override
        public void record(Gate.Pass pass, int group) {
            long count = Arrays.stream(sends.counts()).sum();
            core.operationLog()
                    .record(
                            pass.next(),
                            OperationKind.ALL_TO_ALLV.code(),
                            count,
                            send.typeCode,
                            0,
                            0,
                            group,
                            streamHandle);
            pass.count();
        }

        @Override
        public String function() {
            return "ncclAlltoAllv";
        }

        @Override
        public void completed() {}

        @Override
        public void discarded() {}

        @Override
        public String toString() {
            return "ncclAlltoAllv of " + send.format;
        }
    }

    /**
     * RCCL's call. It may gather the counts of all ranks and wait for them; within a native group, that wait never
     * ends.
     */
    private final class RcclCall extends NativeCall {
        RcclCall(long streamHandle) {
            super(streamHandle);
        }

        @Override
        public boolean mustBeUngrouped() {
            return true;
        }

        @Override
        public int call() {
            return nccl.ncclAlltoAllv(
                    send.address,
                    table(0),
                    table(1),
                    recv.address,
                    table(2),
                    table(3),
                    send.typeCode,
                    core.handle(),
                    streamHandle);
        }
    }

    /** VCCL's call, which must not begin before all ranks have reached it. */
    private final class VcclCall extends NativeCall {
        VcclCall(long streamHandle) {
            super(streamHandle);
        }

        @Override
        public boolean waitsForOtherRanks() {
            return false;
        }

        /** VCCL overwrites its data about the other operations of a group. */
        @Override
        public boolean mustBeAlone() {
            return true;
        }

        @Override
        public int prepare() {
            long address = barrier.address;
            return nccl.ncclAllReduce(
                    address, address, 1, DataType.INT8.code(), Operator.MAX.code, core.handle(), streamHandle);
        }

        @Override
        public int call() {
            long handle = core.handle();
            int type = send.typeCode;
            return form == AlltoAllvForm.TEN_ARGUMENTS
                    ? nccl.ncclAlltoAllv(
                            send.address,
                            table(0),
                            table(1),
                            recv.address,
                            table(2),
                            table(3),
                            0,
                            type,
                            handle,
                            streamHandle)
                    : nccl.ncclAlltoAllv(
                            send.address,
                            table(0),
                            table(1),
                            recv.address,
                            table(2),
                            table(3),
                            0,
                            0,
                            type,
                            handle,
                            streamHandle);
        }
    }

    /* Ending. */

    private void release() {
        endExchange();
        if (send != null) {
            send.unpin();
            recv.unpin();
        }
        if (tables != null) {
            tables.close();
        }
    }

    @Override
    public void close() {
        resource.close();
    }

    @Override
    public String toString() {
        return "plan of allToAllv of " + core;
    }

    /** Distinguishes machines as NCCL does: a container with its own host name is a machine. */
    private static final class Machine {
        static final long ID = id();

        private static long id() {
            try {
                String given = System.getenv().getOrDefault("NCCL_HOSTID", "");
                return (given + read("hostname") + read("random/boot_id")).hashCode();
            } catch (IOException e) {
                // Without a readable id, every process counts as a machine of its own.
                return ProcessHandle.current().pid();
            }
        }

        private static String read(String name) throws IOException {
            return Files.readString(Path.of("/proc/sys/kernel", name));
        }
    }
}
