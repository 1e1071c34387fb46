package io.github.nccl4j.samples;

import io.github.nccl4j.highlevel.AllToAllvPlan;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.FailurePolicy;
import io.github.nccl4j.highlevel.Window;
import io.github.nccl4j.highlevel.WindowFlag;
import java.util.Arrays;
import java.util.stream.IntStream;

/**
 * Sends a different number of elements, possibly none, to each rank, as programs do that distribute rows or tokens.
 *
 * <p>Each rank passes the counts that it sends to and receives from every other rank. Each call compares the counts of all ranks
 * first; a plan compares them once, for repeated calls with the same counts.
 */
public final class AllToAllV {

    /** Alignment of buffers in elements; every transport is fastest with buffers aligned to it. */
    private static final long ALIGNMENT = 128;

    public static void main(String[] args) {
        int scale = 10_000;
        boolean inWindow = false;
        for (int i = 0; i < args.length; i++) {
            switch (args[i]) {
                case "-c" -> scale = Integer.parseInt(args[++i]);
                case "--window" -> inWindow = true;
                default -> throw new IllegalArgumentException("no such option: " + args[i]);
            }
        }
        if (scale < 1) {
            throw new IllegalArgumentException("-c must be at least 1: " + scale);
        }
        // ABORT: if a rank is lost, operations end that would otherwise keep the buffers.
        int elements = scale;
        boolean registered = inWindow;
        Communicator ranks =
                Communicator.builder().onFailure(FailurePolicy.ABORT).fromEnvironment();
        ranks.run(communicator -> exchange(communicator, elements, registered));
    }

    private static void exchange(Communicator communicator, int scale, boolean inWindow) {
        int rank = communicator.rank();
        int size = communicator.size();
        long[] sendCounts = new long[size];
        long[] recvCounts = new long[size];
        long[] sendDisplacements = new long[size];
        long[] recvDisplacements = new long[size];
        long sent = 0;
        long received = 0;
        for (int peer = 0; peer < size; peer++) {
            sendCounts[peer] = count(rank, peer, scale);
            recvCounts[peer] = count(peer, rank, scale);
            sendDisplacements[peer] = sent;
            recvDisplacements[peer] = received;
            sent += sendCounts[peer];
            received += recvCounts[peer];
        }
        // A symmetric window has the same size and layout on all ranks: half of it can hold what any rank sends or
        // receives.
        long half = IntStream.range(0, size)
                .mapToLong(one -> IntStream.range(0, size)
                        .mapToLong(peer -> Math.max(count(one, peer, scale), count(peer, one, scale)))
                        .sum())
                .max()
                .orElseThrow();
        half = (half + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;

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
                send.slice(sendDisplacements[to], sendCounts[to]).copyFrom(numbers(rank, to, sendCounts[to]));
            }
            recv.fill(Float.NaN);
            communicator.allToAllv(send, sendCounts, sendDisplacements, recv, recvCounts, recvDisplacements, stream);
            communicator.work(stream).await();
            check(rank, recv, recvCounts, recvDisplacements);

            recv.fill(Float.NaN);
            try (AllToAllvPlan<Float32> plan = communicator.planAllToAllv(
                    send, sendCounts, sendDisplacements, recv, recvCounts, recvDisplacements)) {
                communicator.allToAllv(plan, stream);
                communicator.work(stream).await();
                method = (plan.usesNativeCall() ? "ncclAlltoAllv" : "grouped sends and receives")
                        + (window == null ? "" : " in a window");
            }
            check(rank, recv, recvCounts, recvDisplacements);
        }
        System.out.println("rank " + rank + " sent " + sent + " elements and received " + received + " from " + size
                + (size == 1 ? " rank" : " ranks") + " with " + method
                + ", without and with a plan, every element checked");
    }

    /** The number of elements between two ranks: uneven, asymmetric, and 0 for some pairs, including a rank and itself. */
    private static long count(int from, int to, int scale) {
        int times = (from + 2 * to + 1) % 4;
        return times == 0 ? 0 : (long) times * scale + from + 3L * to;
    }

    /** The elements that one rank sends to another. */
    private static float[] numbers(int from, int to, long count) {
        float[] numbers = new float[Math.toIntExact(count)];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = (from * 31 + to * 17) % 1000 * 127 + i % 127;
        }
        return numbers;
    }

    private static void check(int rank, DeviceBuffer<Float32> recv, long[] counts, long[] displacements) {
        for (int from = 0; from < counts.length; from++) {
            float[] expected = numbers(from, rank, counts[from]);
            float[] got = recv.slice(displacements[from], counts[from]).toFloatArray();
            int wrong = Arrays.mismatch(got, expected);
            if (wrong >= 0) {
                throw new IllegalStateException("rank " + rank + ": " + got.length + " floats from rank " + from
                        + ": element " + wrong + " is wrong: expected " + expected[wrong] + ", got " + got[wrong]);
            }
        }
    }
}
