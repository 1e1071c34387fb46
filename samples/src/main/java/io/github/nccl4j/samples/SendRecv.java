package io.github.nccl4j.samples;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.FailurePolicy;
import io.github.nccl4j.highlevel.Group;
import java.util.Arrays;

/** Passes arrays around a ring: each rank sends to the next rank and receives from the previous one, in one group. */
public final class SendRecv {

    private static final int GROWTH_FACTOR = 8;

    public static void main(String[] args) {
        int largest = 1 << 20;
        for (int i = 0; i < args.length; i++) {
            switch (args[i]) {
                case "-e" -> largest = Math.toIntExact(bytes(args[++i]) / Float.BYTES);
                default -> throw new IllegalArgumentException("no such option: " + args[i]);
            }
        }
        if (largest < 1) {
            throw new IllegalArgumentException("-e must be at least the size of one float, 4");
        }
        int most = largest;
        // ABORT: if a rank is lost, operations end that would otherwise keep the buffers.
        Communicator ranks =
                Communicator.builder().onFailure(FailurePolicy.ABORT).fromEnvironment();
        ranks.run(communicator -> passAround(communicator, most));
    }

    private static void passAround(Communicator communicator, int largest) {
        try (CudaStream stream = CudaStream.nonBlocking(communicator.device())) {
            int next = (communicator.rank() + 1) % communicator.size();
            int previous = (communicator.rank() + communicator.size() - 1) % communicator.size();
            int sizes = 1;
            for (int count = 1; count < largest; count = (int) Math.min(largest, (long) count * GROWTH_FACTOR)) {
                pass(communicator, count, next, previous, stream);
                sizes++;
            }
            pass(communicator, largest, next, previous, stream);
            System.out.println("rank " + communicator.rank() + " sent to rank " + next + " and received from rank "
                    + previous + ": " + sizes + " sizes from 4 to " + (long) largest * Float.BYTES
                    + " bytes, every element checked");
        }
    }

    private static void pass(Communicator communicator, int count, int next, int previous, CudaStream stream) {
        Device device = communicator.device();
        try (DeviceBuffer<Float32> outgoing = device.copyOf(numbers(communicator.rank(), count));
                DeviceBuffer<Float32> incoming = device.allocate(ElementType.FLOAT32, count)) {
            incoming.fill(Float.NaN);
            // Without a group all ranks would deadlock: each would wait in send for a receiver.
            Group.run(() -> {
                communicator.send(outgoing, next, stream);
                communicator.recv(incoming, previous, stream);
            });
            communicator.work(stream).await();
            float[] got = incoming.toFloatArray();
            float[] expected = numbers(previous, count);
            int wrong = Arrays.mismatch(got, expected);
            if (wrong >= 0) {
                throw new IllegalStateException("rank " + communicator.rank() + ": " + count + " floats from rank "
                        + previous + ": element " + wrong + " is wrong: expected " + expected[wrong] + ", got "
                        + got[wrong]);
            }
        }
    }

    /** The array that a rank sends. */
    private static float[] numbers(int rank, int count) {
        float[] numbers = new float[count];
        for (int i = 0; i < count; i++) {
            numbers[i] = rank * 1000 + i % 127;
        }
        return numbers;
    }

    /** A number with K, M or G, or without. */
    private static long bytes(String text) {
        int unit = "KMG".indexOf(text.charAt(text.length() - 1)) + 1;
        return Long.parseLong(unit == 0 ? text : text.substring(0, text.length() - 1)) << 10 * unit;
    }
}
