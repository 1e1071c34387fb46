package io.github.nccl4j.samples;

import io.github.nccl4j.extensions.ExpertParallel;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.FailurePolicy;

/**
 * Sends tokens to their experts, which are spread over the ranks, and combines the experts' results.
 *
 * <p>Needs the artifact nccl-extensions beside nccl-platform. A token goes to two experts, whose results are added with the
 * token's weights. An expert here multiplies by its number; in a model it is a network.
 */
public final class MixtureOfExperts {
    private static final int EXPERTS_PER_RANK = 2;

    public static void main(String[] args) {
        int tokens = 100;
        int hidden = 64;
        for (int i = 0; i < args.length; i++) {
            switch (args[i]) {
                case "-t" -> tokens = Integer.parseInt(args[++i]);
                case "-e" -> hidden = Integer.parseInt(args[++i]);
                default -> throw new IllegalArgumentException("no such option: " + args[i]);
            }
        }
        if (tokens < 1 || hidden < 1) {
            throw new IllegalArgumentException("-t and -e must be at least 1: " + tokens + ", " + hidden);
        }
        int count = tokens;
        int length = hidden;
        // ABORT: if a rank is lost, operations end that would otherwise keep the buffers.
        Communicator.builder()
                .onFailure(FailurePolicy.ABORT)
                .fromEnvironment()
                .run(communicator -> serve(communicator, count, length));
    }

    private static void serve(Communicator communicator, int tokens, int hidden) {
        int rank = communicator.rank();
        int experts = EXPERTS_PER_RANK * communicator.size();
        ExpertParallel<Float32> parallel = ExpertParallel.create(communicator, ElementType.FLOAT32, experts, hidden);
        // A router's choice. Uneven: an expert of a small number gets more tokens.
        int[][] chosen = new int[tokens][];
        float[][] weights = new float[tokens][];
        for (int token = 0; token < tokens; token++) {
            int first = token * token % experts;
            chosen[token] = new int[] {first, (first + 1 + token % (experts - 1)) % experts};
            weights[token] = new float[] {0.75f, 0.25f};
        }
        Device device = communicator.device();
        try (CudaStream stream = CudaStream.nonBlocking(device);
                DeviceBuffer<Float32> send = device.copyOf(tokens(rank, tokens, hidden));
                DeviceBuffer<Float32> recv = device.allocate(ElementType.FLOAT32, (long) tokens * hidden);
                ExpertParallel.Dispatch<Float32> dispatch = parallel.dispatch(send, chosen, weights, stream)) {
            int[] counts = dispatch.counts();
            dispatch.tokens().ifPresent(received -> multiply(received, counts, rank * EXPERTS_PER_RANK, hidden));
            dispatch.combine(recv, stream);
            communicator.work(stream).await();
            check(recv.toFloatArray(), tokens(rank, tokens, hidden), chosen, hidden);
            System.out.println("rank " + rank + ": experts got " + counts[0] + " and " + counts[1] + " tokens; "
                    + tokens + " own tokens of " + hidden + " elements, every element checked");
        }
    }

    /** The tokens of a rank: whole numbers, so that sums are exact. */
    private static float[] tokens(int rank, int tokens, int hidden) {
        float[] numbers = new float[tokens * hidden];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = 4 * (rank + i % 1021);
        }
        return numbers;
    }

    /** The experts of this rank: their tokens follow each other, in the order of the experts. */
    private static void multiply(DeviceBuffer<Float32> received, int[] counts, int firstExpert, int hidden) {
        float[] numbers = received.toFloatArray();
        int at = 0;
        for (int expert = 0; expert < counts.length; expert++) {
            for (int end = at + counts[expert] * hidden; at < end; at++) {
                numbers[at] *= firstExpert + expert;
            }
        }
        received.copyFrom(numbers);
    }

    private static void check(float[] got, float[] sent, int[][] chosen, int hidden) {
        for (int i = 0; i < got.length; i++) {
            int[] experts = chosen[i / hidden];
            float expected = sent[i] * (0.75f * experts[0] + 0.25f * experts[1]);
            if (got[i] != expected) {
                throw new IllegalStateException("element " + i + " is wrong: expected " + expected + ", got " + got[i]);
            }
        }
    }
}
