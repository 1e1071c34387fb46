package io.github.nccl4j.samples;

import io.github.nccl4j.extensions.DistributedTensor;
import io.github.nccl4j.extensions.Mesh;
import io.github.nccl4j.extensions.Placement;
import io.github.nccl4j.extensions.Reshard;
import io.github.nccl4j.extensions.TensorLayout;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.FailurePolicy;
import java.util.List;

/**
 * Moves a matrix from the layout in which it is trained to the one in which it is served: each rank has rows before, and columns
 * after.
 *
 * <p>Needs the artifact nccl-extensions beside nccl-platform. The plan is made once; it runs after each step that changes the
 * matrix.
 */
public final class ReshardTensor {

    public static void main(String[] args) {
        int rows = 1000;
        int columns = 600;
        for (int i = 0; i < args.length; i++) {
            switch (args[i]) {
                case "-r" -> rows = Integer.parseInt(args[++i]);
                case "-c" -> columns = Integer.parseInt(args[++i]);
                default -> throw new IllegalArgumentException("no such option: " + args[i]);
            }
        }
        if (rows < 1 || columns < 1) {
            throw new IllegalArgumentException("-r and -c must be at least 1: " + rows + ", " + columns);
        }
        long[] shape = {rows, columns};
        // ABORT: if a rank is lost, operations end that would otherwise keep the buffers.
        Communicator.builder()
                .onFailure(FailurePolicy.ABORT)
                .fromEnvironment()
                .run(communicator -> move(communicator, shape));
    }

    private static void move(Communicator communicator, long[] shape) {
        Mesh all = Mesh.of("ranks", communicator.size());
        TensorLayout training = TensorLayout.of(all, List.of(Placement.shard(0)), shape);
        TensorLayout serving = TensorLayout.of(all, List.of(Placement.shard(1)), shape);
        try (CudaStream stream = CudaStream.nonBlocking(communicator.device());
                DistributedTensor<Float32> source =
                        DistributedTensor.allocate(communicator, training, ElementType.FLOAT32);
                DistributedTensor<Float32> target =
                        DistributedTensor.allocate(communicator, serving, ElementType.FLOAT32);
                Reshard<Float32> plan = Reshard.plan(communicator, source, target)) {
            for (int step = 1; step <= 3; step++) {
                int now = step;
                source.local().ifPresent(part -> part.copyFrom(numbers(training, communicator.rank(), now)));
                plan.run(stream);
                communicator.work(stream).await();
                target.local().ifPresent(part -> check(part, numbers(serving, communicator.rank(), now)));
            }
        }
        System.out.println("rank " + communicator.rank() + " had rows and has "
                + serving.shape(communicator.rank())[1] + " columns of " + shape[0] + " x " + shape[1]
                + " elements, every element checked");
    }

    /** The elements of a rank's part. Each has a number that tells its place in the whole matrix, and the step. */
    private static float[] numbers(TensorLayout layout, int rank, int step) {
        long[] shape = layout.shape(rank);
        long[] offset = layout.offset(rank);
        float[] numbers = new float[(int) layout.elements(rank)];
        for (int i = 0; i < numbers.length; i++) {
            long row = offset[0] + i / shape[1];
            long column = offset[1] + i % shape[1];
            numbers[i] = step * (row * layout.shape()[1] + column) % (1 << 24);
        }
        return numbers;
    }

    private static void check(DeviceBuffer<Float32> part, float[] expected) {
        float[] got = part.toFloatArray();
        for (int i = 0; i < got.length; i++) {
            if (got[i] != expected[i]) {
                throw new IllegalStateException(
                        "element " + i + " is wrong: expected " + expected[i] + ", got " + got[i]);
            }
        }
    }
}
