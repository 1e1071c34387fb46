package io.github.nccl4j.samples;

import io.github.nccl4j.highlevel.AllToAllvPlan;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Window;
import io.github.nccl4j.highlevel.WindowFlag;
import io.github.nccl4j.samples.support.Pattern;
import java.util.Arrays;
import java.util.function.IntToLongFunction;
import java.util.stream.IntStream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * Sends each rank a different number of elements, also none, as programs do that hand rows or tokens to the rank that works on them.
 *
 * <p>Each rank says how much it sends to and receives from each; the ranks compare that first. Where the same counts come again and
 * again, a plan does it once.
 */
@Command(
        name = "03-all-to-all-v",
        aliases = {"03", "3", "all-to-all-v"},
        sortOptions = false,
        description = {
            "Sends every rank a different number of elements, also none, by a call and by a plan, checked element by element.",
            ""
        })
final class AllToAllV extends Sample {

    /** In elements: every transport has its fastest way for buffers that begin at such a place. */
    private static final long ALIGNMENT = 128;

    @Option(
            names = {"-c", "--count"},
            paramLabel = "N",
            defaultValue = "10000",
            description =
                    "Scale of the counts: a rank sends 0 to 3 times as many elements to another, and a few. Default: ${DEFAULT-VALUE}.")
    private int scale;

    @Option(
            names = {"-w", "--window"},
            description = "Use memory in a symmetric window, where VCCL has a call of its own for this.")
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
        long[] sendDisplacements = oneAfterTheOther(sendCounts);
        long[] recvDisplacements = oneAfterTheOther(recvCounts);
        long sent = Arrays.stream(sendCounts).sum();
        long received = Arrays.stream(recvCounts).sum();
        long half = largestBuffer(size);

        Device device = communicator.device();
        String way;
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
                way = (plan.usesNativeCall() ? "ncclAlltoAllv" : "grouped sends and receives")
                        + (window == null ? "" : " in a window");
            }
            verify(communicator, recv, recvCounts, recvDisplacements);
        }
        System.out.println("rank " + rank + " sent " + sent + " elements and got " + received + " from " + size
                + (size == 1 ? " rank" : " ranks") + " by " + way + ", without and with a plan, every element checked");
    }

    /** Uneven, not symmetric, and zero for some pairs, also for a rank and itself. */
    private long count(int from, int to) {
        int times = (from + 2 * to + 1) % 4;
        return times == 0 ? 0 : (long) times * scale + from + 3L * to;
    }

    /** The elements of the largest buffer of any rank: a window has the same size and layout at all of them. */
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

    private static long[] oneAfterTheOther(long[] counts) {
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
