package io.github.nccl4j.samples;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.FailurePolicy;
import io.github.nccl4j.highlevel.ReduceOp;
import java.util.Arrays;
import java.util.Random;

/**
 * Trains a neural network with data parallelism: each rank computes gradients on its share of the data.
 *
 * <p>Rank 0 broadcasts the initial parameters. In every step the ranks average their gradients, so that all keep the same
 * parameters. Rank 0 then trains the same network alone on all data: the results differ only by rounding.
 *
 * <p>The network learns, in plain Java, whether a point of the plane is in a circle. Parameters: for each hidden unit the weights
 * of both coordinates, its bias, and its weight in the output; then the bias of the output.
 */
public final class DataParallelTraining {
    private static final int UNITS = 12;

    public static void main(String[] args) {
        int points = 1000;
        int steps = 200;
        for (int i = 0; i < args.length; i++) {
            switch (args[i]) {
                case "-p" -> points = Integer.parseInt(args[++i]);
                case "-s" -> steps = Integer.parseInt(args[++i]);
                default -> throw new IllegalArgumentException("no such option: " + args[i]);
            }
        }
        if (points < 1 || steps < 1) {
            throw new IllegalArgumentException("-p and -s must be at least 1: " + points + ", " + steps);
        }
        float[][] data = new float[points][];
        Random random = new Random(1);
        Arrays.setAll(data, i -> new float[] {random.nextFloat() * 2 - 1, random.nextFloat() * 2 - 1});
        // ABORT: if a rank is lost, operations end that would otherwise keep the buffers.
        int last = steps;
        Communicator ranks =
                Communicator.builder().onFailure(FailurePolicy.ABORT).fromEnvironment();
        ranks.run(communicator -> train(communicator, data, last));
    }

    private static void train(Communicator communicator, float[][] data, int steps) {
        int rank = communicator.rank();
        // The seed differs by rank, so that a missing broadcast makes the comparison below fail.
        Random random = new Random(rank);
        float[] parameters = new float[4 * UNITS + 1];
        for (int i = 0; i < parameters.length; i++) {
            parameters[i] = (float) random.nextGaussian();
        }
        float[] alone = parameters.clone();
        try (CudaStream stream = CudaStream.nonBlocking(communicator.device());
                DeviceBuffer<Float32> buffer = communicator.device().allocate(ElementType.FLOAT32, parameters.length)) {
            broadcast(communicator, parameters, buffer, stream);
            int from = (int) ((long) data.length * rank / communicator.size());
            int to = (int) ((long) data.length * (rank + 1) / communicator.size());
            for (int step = 0; step < steps; step++) {
                float[] gradient = gradient(parameters, data, from, to);
                buffer.copyFrom(gradient);
                communicator.allReduce(buffer, ReduceOp.AVG, stream);
                communicator.work(stream).await();
                buffer.copyTo(gradient);
                // The average of the sums over shares: make it the average over all points, times the learning rate of
                // 2.
                descend(parameters, gradient, 2f * communicator.size() / data.length);
            }
            float[] ofRoot = parameters.clone();
            broadcast(communicator, ofRoot, buffer, stream);
            if (!Arrays.equals(parameters, ofRoot)) {
                throw new IllegalStateException("rank " + rank + ": parameters differ from those of rank 0");
            }
        }
        System.out.println("rank " + rank + " ended with the parameters of rank 0, every bit checked");
        if (rank == 0) {
            double untrained = loss(alone, data);
            for (int step = 0; step < steps; step++) {
                descend(alone, gradient(alone, data, 0, data.length), 2f / data.length);
            }
            double together = loss(parameters, data);
            double single = loss(alone, data);
            System.out.println(steps + " steps with " + data.length + " points: loss " + untrained + " untrained, "
                    + together + " by all ranks together, " + single + " by one rank");
            if (Math.abs(together - single) > 1e-4 || together >= untrained) {
                throw new IllegalStateException("rank 0: all ranks together must learn what one rank learns");
            }
        }
    }

    private static void broadcast(
            Communicator communicator, float[] parameters, DeviceBuffer<Float32> buffer, CudaStream stream) {
        buffer.copyFrom(parameters);
        communicator.broadcast(buffer, 0, stream);
        communicator.work(stream).await();
        buffer.copyTo(parameters);
    }

    private static void descend(float[] parameters, float[] gradient, float rate) {
        for (int i = 0; i < parameters.length; i++) {
            parameters[i] -= rate * gradient[i];
        }
    }

    private static boolean isInside(float[] point) {
        return point[0] * point[0] + point[1] * point[1] < 0.5f;
    }

    /** Computes the outputs of the hidden units, and returns the probability that the point is in the circle. */
    private static double forward(float[] parameters, float[] point, float[] units) {
        double sum = parameters[4 * UNITS];
        for (int i = 0; i < 4 * UNITS; i += 4) {
            units[i / 4] =
                    (float) Math.tanh(parameters[i] * point[0] + parameters[i + 1] * point[1] + parameters[i + 2]);
            sum += parameters[i + 3] * units[i / 4];
        }
        return 1 / (1 + Math.exp(-sum));
    }

    /** The gradient of the loss, summed over a range of points. */
    private static float[] gradient(float[] parameters, float[][] data, int from, int to) {
        float[] gradient = new float[parameters.length];
        float[] units = new float[UNITS];
        for (float[] point : Arrays.asList(data).subList(from, to)) {
            float error = (float) forward(parameters, point, units) - (isInside(point) ? 1 : 0);
            for (int i = 0; i < 4 * UNITS; i += 4) {
                float back = error * parameters[i + 3] * (1 - units[i / 4] * units[i / 4]);
                gradient[i] += back * point[0];
                gradient[i + 1] += back * point[1];
                gradient[i + 2] += back;
                gradient[i + 3] += error * units[i / 4];
            }
            gradient[4 * UNITS] += error;
        }
        return gradient;
    }

    /** The mean cross-entropy. */
    private static double loss(float[] parameters, float[][] data) {
        double loss = 0;
        for (float[] point : data) {
            double inside = forward(parameters, point, new float[UNITS]);
            loss -= Math.log(isInside(point) ? inside : 1 - inside);
        }
        return loss / data.length;
    }
}
