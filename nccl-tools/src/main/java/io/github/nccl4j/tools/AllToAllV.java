package io.github.nccl4j.tools;

import io.github.nccl4j.highlevel.AllToAllvPlan;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Window;
import io.github.nccl4j.highlevel.WindowFlag;
import io.github.nccl4j.tools.support.Pattern;
import java.util.Arrays;
import java.util.function.IntToLongFunction;
import java.util.stream.IntStream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * Sends a different number of elements, possibly none, to each rank, as programs do that distribute rows or tokens.
 *
 * <p>Each rank passes the counts that it sends to and receives from every other rank. Each call compares the counts of all ranks
 * first; a plan compares them once, for repeated calls with the same counts.
 */
@Command(
        name = "03-all-to-all-v",
        aliases = {"03", "3", "all-to-all-v"},
        sortOptions = false,
        description = {
            "Sends a different number of elements to each rank, with a call and with a plan; checks every element.",
            ""
        })
final class AllToAllV extends Sample {

    /** Alignment of buffers in elements; every transport is fastest with buffers aligned to it. */
    private static final long ALIGNMENT = 128;

    @Option(
            names = {"-c", "--count"},
            paramLabel = "N",
            defaultValue = "10000",
            description =
                    "Scale of the counts: a rank sends 0 to 3 times as many elements to another. Default: ${DEFAULT-VALUE}.")
    private int scale;

    @Option(
            names = {"-w", "--window"},
            description = "Use memory in a symmetric window, which VCCL's native call needs.")
    private boolean inWindow;

    @Override
    void validate() {
        if (scale < 1) {
            throw invalid("-c must be at least 1: " + scale);
        }
    }

    @Override
    void run(Communicator communicator) {
        int rank = communicator.rank();
        int size = communicator.size();
        long[] sendCounts =
                IntStream.range(0, size).mapToLong(to -> count(rank, to)).toArray();
        long[] recvCounts =
                IntStream.range(0, size).mapToLong(from -> count(from, rank)).toArray();
        long[] sendDisplacements = displacements(sendCounts);
        long[] recvDisplacements = displacements(recvCounts);
        long sent = Arrays.stream(sendCounts).sum();
        long received = Arrays.stream(recvCounts).sum();
        long half = largestBuffer(size);

        Device device = communicator.device();
        String method;
        try (CudaStream stream = CudaStream.nonBlocking(device);
                DeviceBuffer<Float32> memory = inWindow
                        ? device.allocateForWindow(ElementType.FLOAT32, 2 * half)
                        : device.allocate(ElementType.FLOAT32, 2 * half);
                Window window = inWindow ? communicator.registerWindow(memory, WindowFlag.COLL_SYMMETRIC) : null) {
            DeviceBuffer<Float32> send = memory.slice(0, sent);
            DeviceBuffer<Float32> recv = memory.slice(half, received);
            for (int to = 0; to < size; to++) {
                pattern(rank, to).write(send.slice(sendDisplacements[to], sendCounts[to]));
            }
            recv.fill(Float.NaN);
            communicator.allToAllv(send, sendCounts, sendDisplacements, recv, recvCounts, recvDisplacements, stream);
            communicator.work(stream).await();
            verify(communicator, recv, recvCounts, recvDisplacements);

            recv.fill(Float.NaN);
            try (AllToAllvPlan<Float32> plan = communicator.planAllToAllv(
                    send, sendCounts, sendDisplacements, recv, recvCounts, recvDisplacements)) {
                communicator.allToAllv(plan, stream);
                communicator.work(stream).await();
                method = (plan.usesNativeCall() ? "ncclAlltoAllv" : "grouped sends and receives")
                        + (window == null ? "" : " in a window");
            }
            verify(communicator, recv, recvCounts, recvDisplacements);
        }
        System.out.println("rank " + rank + " sent " + sent + " elements and received " + received + " from " + size
                + (size == 1 ? " rank" : " ranks") + " with " + method
                + ", without and with a plan, every element checked");
    }

    /** The number of elements between two ranks: uneven, asymmetric, and 0 for some pairs, including a rank and itself. */
    private long count(int from, int to) {
        int times = (from + 2 * to + 1) % 4;
        return times == 0 ? 0 : (long) times * scale + from + 3L * to;
    }

    /** The largest buffer of any rank, in elements: a symmetric window has the same size and layout on all ranks. */
    private long largestBuffer(int size) {
        long largest = 0;
        for (int rank = 0; rank < size; rank++) {
            int self = rank;
            largest = Math.max(largest, sum(size, peer -> count(self, peer)));
            largest = Math.max(largest, sum(size, peer -> count(peer, self)));
        }
        return (largest + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }

    private static long sum(int size, IntToLongFunction counts) {
        return IntStream.range(0, size).mapToLong(counts).sum();
    }

    /** Displacements of contiguous blocks. */
    private static long[] displacements(long[] counts) {
        long[] displacements = new long[counts.length];
        for (int i = 1; i < counts.length; i++) {
            displacements[i] = displacements[i - 1] + counts[i - 1];
        }
        return displacements;
    }

    private static Pattern pattern(int from, int to) {
        return Pattern.of(from * 131L + to * 17L);
    }

    private static void verify(
            Communicator communicator, DeviceBuffer<Float32> recv, long[] counts, long[] displacements) {
        for (int from = 0; from < counts.length; from++) {
            DeviceBuffer<Float32> part = recv.slice(displacements[from], counts[from]);
            check(
                    pattern(from, communicator.rank()).compare(part),
                    communicator,
                    counts[from] + " floats from rank " + from);
        }
    }
}
