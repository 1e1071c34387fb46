package io.github.nccl4j.tools;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.tools.support.Pattern;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * Arranges the ranks in a grid, as programs do that combine data and model parallelism, and sums along its rows and columns.
 *
 * <p>Two splits give each rank a communicator of its row and one of its column. A sum along the rows, followed by one along the
 * columns, is the sum over all ranks.
 */
@Command(
        name = "04-multi-communicator",
        aliases = {"04", "4", "multi-communicator"},
        sortOptions = false,
        description = {"Splits a grid of ranks into rows and columns and sums along each; checks every element.", ""})
final class MultiCommunicator extends Sample {

    @Option(
            names = {"-r", "--rows"},
            paramLabel = "R",
            description =
                    "Rows of the grid; must divide the number of ranks. Default: the grid is as square as possible.")
    private Integer rows;

    @Option(
            names = {"-c", "--count"},
            paramLabel = "N",
            defaultValue = "100000",
            description = "Elements of each rank. Default: ${DEFAULT-VALUE}.")
    private int count;

    @Override
    void validate() {
        if (rows != null && rows < 1) {
            throw invalid("-r must be at least 1: " + rows);
        }
        if (count < 1) {
            throw invalid("-c must be at least 1: " + count);
        }
    }

    @Override
    void run(Communicator world) {
        int rank = world.rank();
        int height = rows == null ? rowsOfSquarestGrid(world.size()) : rows;
        if (world.size() % height != 0) {
            throw new Failure("-r must divide the number of ranks: " + world.size() + " ranks, " + height + " rows");
        }
        int width = world.size() / height;
        Device device = world.device();
        // Ranks with the same color form a communicator, ordered by their keys.
        try (Communicator row = world.split(rank / width, rank);
                Communicator column = world.split(rank % width, rank);
                CudaStream stream = CudaStream.nonBlocking(device);
                DeviceBuffer<Float32> own = device.allocate(ElementType.FLOAT32, count);
                DeviceBuffer<Float32> rowSum = device.allocate(ElementType.FLOAT32, count);
                DeviceBuffer<Float32> columnSum = device.allocate(ElementType.FLOAT32, count)) {
            pattern(rank).write(own);
            // The group launches both together; without it, all ranks would have to use the same order.
            try (Group group = Group.open()) {
                row.allReduce(own, rowSum, ReduceOp.SUM, stream);
                column.allReduce(own, columnSum, ReduceOp.SUM, stream);
                group.launch();
            }
            row.work(stream).await();
            check(sum(world, peer -> peer / width == rank / width).compare(rowSum), world, "sum along the row");
            check(sum(world, peer -> peer % width == rank % width).compare(columnSum), world, "sum along the column");

            column.allReduce(rowSum, ReduceOp.SUM, stream);
            column.work(stream).await();
            check(sum(world, peer -> true).compare(rowSum), world, "sum of the rows");
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

    private static Pattern pattern(int rank) {
        return Pattern.of(rank * 37L);
    }

    private static Pattern sum(Communicator world, IntPredicate included) {
        return IntStream.range(0, world.size())
                .filter(included)
                .mapToObj(MultiCommunicator::pattern)
                .reduce(Pattern::plus)
                .orElseThrow();
    }
}
