package io.github.nccl4j.samples;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.samples.support.CountMatrix;
import io.github.nccl4j.samples.support.NcclError;
import io.github.nccl4j.samples.support.Pattern;
import io.github.nccl4j.samples.support.WindowMemory;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * Sends each rank a different number of elements, also none.
 *
 * <p>Uses VCCL's {@code ncclAlltoAllv} where the library has it, and otherwise what does the same on every NCCL: sends and receives in
 * one group.
 */
@Command(
        name = "03-all-to-all-v",
        aliases = {"03", "3", "all-to-all-v"},
        sortOptions = false,
        description = {
            "Sends every rank a different number of elements, also none (VCCL's AlltoAllv), checked element by element.",
            "",
            "VCCL's ncclAlltoAllv is used where the library has it, on a GPU with symmetric windows; else sends and receives in "
                    + "one group.",
            ""
        })
final class AllToAllV extends Sample {

    private static final int SHORT_FORM = 10;
    private static final int LONG_FORM = 11;

    @Option(
            names = {"-c", "--count"},
            paramLabel = "N",
            defaultValue = "10000",
            description =
                    "Scale of the counts: a rank sends 0 to 3 times as many elements to another, and a few. Default: ${DEFAULT-VALUE}.")
    private int scale;

    @Option(names = "--send-recv", description = "Use sends and receives even where the library has ncclAlltoAllv.")
    private boolean sendRecv;

    @Override
    void validate() {
        if (scale < 1) {
            throw invalid("-c must be at least 1: " + scale);
        }
    }

    @Override
    void run(Communicator communicator) {
        int ranks = communicator.size();
        int form = sendRecv ? 0 : NativeLibrary.alltoAllvArguments();
        boolean direct = form == SHORT_FORM || form == LONG_FORM;
        try (CountMatrix counts = new CountMatrix(ranks, this::count);
                CudaStream stream = CudaStream.nonBlocking(communicator.device());
                WindowMemory memory = WindowMemory.open(communicator, direct, counts.largestBuffer())) {
            fill(communicator, counts, memory);
            // With ncclAlltoAllv others write into this rank's memory: nobody may begin while one is still filling.
            barrier(communicator, stream);
            direct &= memory.registered();
            if (direct) {
                call(communicator, counts, memory, form, stream);
            } else {
                group(communicator, counts, memory, stream);
            }
            communicator.work(stream).await();
            long checked = verify(communicator, counts, memory);
            System.out.println("rank " + communicator.rank() + " got " + checked + " elements from " + ranks
                    + " ranks by "
                    + (direct ? "ncclAlltoAllv with " + form + " arguments" : "sends and receives in one group")
                    + ", every element checked");
            barrier(communicator, stream);
        }
    }

    private static void barrier(Communicator communicator, CudaStream stream) {
        try (DeviceBuffer<Float32> cell = communicator.device().allocate(ElementType.FLOAT32, 1)) {
            communicator.allReduce(cell, ReduceOp.SUM, stream);
            communicator.work(stream).await();
        }
    }

    /** Uneven, not symmetric, and zero for some pairs, also for a rank and itself. */
    private long count(int from, int to) {
        int times = (from + 2 * to + 1) % 4;
        return times == 0 ? 0 : (long) times * scale + from + 3L * to;
    }

    private static Pattern pattern(int from, int to) {
        return Pattern.of(from * 131L + to * 17L);
    }

    private static void fill(Communicator communicator, CountMatrix counts, WindowMemory memory) {
        int self = communicator.rank();
        memory.receive().fill(Float.NaN);
        for (int peer = 0; peer < counts.ranks(); peer++) {
            pattern(self, peer).write(outgoing(memory, counts, self, peer));
        }
    }

    private static DeviceBuffer<Float32> outgoing(WindowMemory memory, CountMatrix counts, int self, int peer) {
        return memory.send().slice(counts.sendDisplacement(self, peer), counts.sent(self, peer));
    }

    private static DeviceBuffer<Float32> incoming(WindowMemory memory, CountMatrix counts, int self, int peer) {
        return memory.receive().slice(counts.receiveDisplacement(self, peer), counts.sent(peer, self));
    }

    private static void call(
            Communicator communicator, CountMatrix counts, WindowMemory memory, int form, CudaStream stream) {
        int result = form == LONG_FORM
                ? nccl.ncclAlltoAllv(
                        memory.send().address(),
                        counts.sendCounts(),
                        counts.sendDisplacements(),
                        memory.receive().address(),
                        counts.receiveCounts(),
                        counts.receiveDisplacements(),
                        0,
                        0,
                        nccl.ncclFloat,
                        communicator.nativeHandle(),
                        stream.nativeHandle())
                : nccl.ncclAlltoAllv(
                        memory.send().address(),
                        counts.sendCounts(),
                        counts.sendDisplacements(),
                        memory.receive().address(),
                        counts.receiveCounts(),
                        counts.receiveDisplacements(),
                        0,
                        nccl.ncclFloat,
                        communicator.nativeHandle(),
                        stream.nativeHandle());
        NcclError.check(result, "ncclAlltoAllv", communicator.rank(), communicator.nativeHandle());
    }

    private static void group(Communicator communicator, CountMatrix counts, WindowMemory memory, CudaStream stream) {
        int self = communicator.rank();
        try (Group group = Group.open()) {
            for (int peer = 0; peer < counts.ranks(); peer++) {
                if (counts.sent(self, peer) > 0) {
                    communicator.send(outgoing(memory, counts, self, peer), peer, stream);
                }
                if (counts.sent(peer, self) > 0) {
                    communicator.recv(incoming(memory, counts, self, peer), peer, stream);
                }
            }
            group.launch();
        }
    }

    private static long verify(Communicator communicator, CountMatrix counts, WindowMemory memory) {
        int self = communicator.rank();
        long checked = 0;
        for (int peer = 0; peer < counts.ranks(); peer++) {
            DeviceBuffer<Float32> incoming = incoming(memory, counts, self, peer);
            check(pattern(peer, self).compare(incoming), communicator, incoming.length() + " floats from rank " + peer);
            checked += incoming.length();
        }
        return checked;
    }
}
