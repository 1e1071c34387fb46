package io.github.nccl4j.samples;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.FailurePolicy;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.ReduceOp;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;

/**
 * Arranges the ranks in a grid, as programs do that combine data and model parallelism, and sums along its rows and columns.
 *
 * <p>Two splits give each rank a communicator of its row and one of its column. A sum along the rows, followed by one along the
 * columns, is the sum over all ranks.
 */
public final class MultiCommunicator {

    public static void main(String[] args) {
        Integer rows = null;
        int count = 100_000;
        for (int i = 0; i < args.length; i++) {
            switch (args[i]) {
                case "-r" -> rows = Integer.parseInt(args[++i]);
                case "-c" -> count = Integer.parseInt(args[++i]);
                default -> throw new IllegalArgumentException("no such option: " + args[i]);
            }
        }
        if (rows != null && rows < 1 || count < 1) {
            throw new IllegalArgumentException("-r and -c must be at least 1: " + rows + ", " + count);
        }
        Integer given = rows;
        int elements = count;
        // ABORT: if a rank is lost, operations end that would otherwise keep the buffers.
        Communicator.builder().onFailure(FailurePolicy.ABORT).fromEnvironment().run(world -> {
            int height = given == null ? rowsOfSquarestGrid(world.size()) : given;
            if (world.size() % height != 0) {
                throw new IllegalArgumentException(
                        "-r must divide the number of ranks: " + world.size() + " ranks, " + height + " rows");
            }
            sumAlongRowsAndColumns(world, world.size() / height, elements);
        });
    }

    private static void sumAlongRowsAndColumns(Communicator world, int width, int count) {
        int rank = world.rank();
        Device device = world.device();
        // Ranks with the same color form a communicator, ordered by their keys.
        try (Communicator row = world.split(rank / width, rank);
                Communicator column = world.split(rank % width, rank);
                CudaStream stream = CudaStream.nonBlocking(device);
                DeviceBuffer<Float32> own = device.allocate(ElementType.FLOAT32, count);
                DeviceBuffer<Float32> rowSum = device.allocate(ElementType.FLOAT32, count);
                DeviceBuffer<Float32> columnSum = device.allocate(ElementType.FLOAT32, count)) {
            float[] numbers = new float[count];
            for (int i = 0; i < count; i++) {
                numbers[i] = number(rank, i);
            }
            own.copyFrom(numbers);
            // The group launches both together; without it, all ranks would have to use the same order.
            Group.run(() -> {
                row.allReduce(own, rowSum, ReduceOp.SUM, stream);
                column.allReduce(own, columnSum, ReduceOp.SUM, stream);
            });
            row.work(stream).await();
            column.work(stream).await();
            check(world, rowSum, peer -> peer / width == rank / width, "sum along the row");
            check(world, columnSum, peer -> peer % width == rank % width, "sum along the column");

            column.allReduce(rowSum, ReduceOp.SUM, stream);
            column.work(stream).await();
            check(world, rowSum, peer -> true, "sum of the rows");
            System.out.println("rank " + rank + " is rank " + row.rank() + " of " + row.size() + " in row "
                    + rank / width + " and rank " + column.rank() + " of " + column.size() + " in column "
                    + rank % width + ": sums of the row, the column and the grid, " + count
                    + " elements each, every element checked");
        }
    }

    /** The largest divisor up to the square root. */
    private static int rowsOfSquarestGrid(int ranks) {
        return IntStream.rangeClosed(1, ranks)
                .filter(divisor -> ranks % divisor == 0 && divisor <= ranks / divisor)
                .max()
                .orElseThrow();
    }

    /** An element of a rank: a whole number, so that sums are exact. */
    private static float number(int rank, int element) {
        return (rank + 1) * (element % 127);
    }

    private static void check(Communicator world, DeviceBuffer<Float32> sum, IntPredicate included, String what) {
        int[] ranks = IntStream.range(0, world.size()).filter(included).toArray();
        float[] got = sum.toFloatArray();
        for (int i = 0; i < got.length; i++) {
            float expected = 0;
            for (int rank : ranks) {
                expected += number(rank, i);
            }
            if (got[i] != expected) {
                throw new IllegalStateException("rank " + world.rank() + ": " + what + ": element " + i
                        + " is wrong: expected " + expected + ", got " + got[i]);
            }
        }
    }
}
