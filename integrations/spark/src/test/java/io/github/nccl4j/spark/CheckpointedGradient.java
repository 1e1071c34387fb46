package io.github.nccl4j.spark;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float64;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.spark.AveragedGradient.Point;
import java.io.IOException;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * A sample: {@link AveragedGradient} that survives the loss of an executor. Rank 0 writes a checkpoint every few steps. When
 * Spark runs the stage again, rank 0 reads the last checkpoint, and all ranks continue from it.
 */
public final class CheckpointedGradient {
    private static final long STEPS = 200;
    private static final long STEPS_PER_CHECKPOINT = 10;
    private static final double RATE = 0.5;

    private CheckpointedGradient() {}

    /**
     * The state after some steps.
     *
     * @param step the number of steps
     * @param slope the slope of the line
     * @param intercept its value at 0
     */
    public record State(double step, double slope, double intercept) implements Serializable {
        private static final int NUMBERS = 3;
        private static final State FIRST = new State(0, 0, 0);

        private static State of(double[] numbers) {
            return new State(numbers[0], numbers[1], numbers[2]);
        }

        private double[] numbers() {
            return new double[] {step, slope, intercept};
        }

        /** Reads the last checkpoint; without one, the descent begins. */
        static State read(String folder) throws IOException {
            Path file = Path.of(folder, "state");
            if (!Files.exists(file)) {
                return FIRST;
            }
            double[] numbers = new double[NUMBERS];
            ByteBuffer.wrap(Files.readAllBytes(file)).asDoubleBuffer().get(numbers);
            return of(numbers);
        }

        private void write(String folder) throws IOException {
            ByteBuffer bytes = ByteBuffer.allocate(NUMBERS * Double.BYTES);
            bytes.asDoubleBuffer().put(numbers());
            Path next = Files.write(Path.of(folder, "next-state"), bytes.array());
            // If the executor dies during the write, the checkpoint before remains.
            Files.move(next, Path.of(folder, "state"), StandardCopyOption.ATOMIC_MOVE);
        }
    }

    /**
     * Runs the sample.
     *
     * @param arguments Spark's master, and a folder that all executors share
     */
    public static void main(String[] arguments) {
        SparkConf conf = new SparkConf().setAppName("checkpointed gradient").setMaster(arguments[0]);
        String folder = arguments[1];
        try (JavaSparkContext spark = new JavaSparkContext(conf)) {
            JavaRDD<Point> points = spark.parallelize(AveragedGradient.points(), 2);
            List<State> states = NcclRdd.of(points)
                    .deadline(Duration.ofSeconds(60))
                    .mapPartitions((communicator, rows) -> descend(communicator, rows, folder, STEPS))
                    // Spark runs a barrier stage again only if a shuffle follows.
                    .repartition(1)
                    .collect();
            System.out.println(states);
        }
    }

    /** Continues from the last checkpoint up to a number of steps. Returns the first and the last state. */
    static Iterator<State> descend(Communicator communicator, Iterator<Point> rows, String folder, long steps)
            throws IOException {
        List<Point> own = new ArrayList<>();
        rows.forEachRemaining(own::add);
        Device device = communicator.device();
        try (CudaStream stream = CudaStream.nonBlocking(device);
                DeviceBuffer<Float64> numbers = device.allocate(ElementType.FLOAT64, State.NUMBERS);
                DeviceBuffer<Float64> gradients = device.allocate(ElementType.FLOAT64, 2)) {
            // The other ranks may be on machines that see another version of the file.
            numbers.copyFrom((communicator.rank() == 0 ? State.read(folder) : State.FIRST).numbers());
            communicator.broadcast(numbers, 0, stream);
            communicator.work(stream).await();
            double[] begin = new double[State.NUMBERS];
            numbers.copyTo(begin);
            State state = State.of(begin);
            while (state.step < steps) {
                double[] gradient = gradient(own, state);
                gradients.copyFrom(gradient);
                communicator.allReduce(gradients, ReduceOp.AVG, stream);
                communicator.work(stream).await();
                gradients.copyTo(gradient);
                state = new State(
                        state.step + 1, state.slope - RATE * gradient[0], state.intercept - RATE * gradient[1]);
                if (communicator.rank() == 0 && state.step % STEPS_PER_CHECKPOINT == 0) {
                    state.write(folder);
                }
            }
            return List.of(State.of(begin), state).iterator();
        }
    }

    private static double[] gradient(List<Point> points, State state) {
        double[] gradient = new double[2];
        for (Point point : points) {
            double error = state.slope * point.x() + state.intercept - point.y();
            gradient[0] += error * point.x() / points.size();
            gradient[1] += error / points.size();
        }
        return gradient;
    }
}
