package io.github.nccl4j.samples;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.samples.support.Digits;
import io.github.nccl4j.samples.support.Perceptron;
import io.github.nccl4j.samples.support.Perceptron.Score;
import java.util.Arrays;
import java.util.Locale;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * Trains a network, each rank on its share of the data: rank 0's parameters go to all, and before every step the ranks average their
 * gradients, so that all take the same step.
 *
 * <p>Rank 0 then trains the same network alone on all data. Only the rounding of sums differs, and so both end alike.
 */
@Command(
        name = "05-data-parallel-training",
        aliases = {"05", "5", "data-parallel-training"},
        sortOptions = false,
        description = {
            "Trains a network on shares of the data and averages the gradients, compared with training on one rank.",
            "",
            "The network tells noisy pictures of digits apart. What it computes is plain Java; parameters and gradients travel "
                    + "through device buffers.",
            ""
        })
final class DataParallelTraining extends Sample {

    private static final int HIDDEN_UNITS = 24;
    private static final float LEARNING_RATE = 1.5f;
    private static final double LOSS_TOLERANCE = 1e-4;
    private static final double ACCURACY_TOLERANCE = 0.002;

    @Option(
            names = {"-p", "--pictures"},
            paramLabel = "N",
            defaultValue = "1000",
            description = "Pictures to learn from, in all. Default: ${DEFAULT-VALUE}.")
    private int pictures;

    @Option(
            names = {"-s", "--steps"},
            paramLabel = "N",
            defaultValue = "200",
            description = "Steps. Default: ${DEFAULT-VALUE}.")
    private int steps;

    @Override
    void validate() {
        if (pictures < 1 || steps < 1) {
            throw invalid("-p and -s must be at least 1: " + pictures + ", " + steps);
        }
    }

    @Override
    void run(Communicator communicator) {
        Digits digits = Digits.make(pictures, 1);
        Perceptron network = new Perceptron(HIDDEN_UNITS);
        // Each rank begins with other parameters: without the broadcast the comparison fails.
        float[] parameters = network.initialParameters(communicator.rank());
        float[] first = parameters.clone();
        Device device = communicator.device();
        try (CudaStream stream = CudaStream.nonBlocking(device);
                DeviceBuffer<Float32> buffer = device.allocate(ElementType.FLOAT32, parameters.length)) {
            broadcast(communicator, parameters, buffer, stream);
            train(communicator, network, parameters, digits, buffer, stream);

            float[] ofRoot = parameters.clone();
            broadcast(communicator, ofRoot, buffer, stream);
            int different = Arrays.mismatch(parameters, ofRoot);
            if (different >= 0) {
                throw new Failure("rank " + communicator.rank() + ": parameter " + different + " is "
                        + parameters[different] + ", at rank 0 it is " + ofRoot[different]);
            }
        }
        System.out.println("rank " + communicator.rank() + " ended with the parameters of rank 0, every bit checked");
        if (communicator.rank() == 0) {
            Score untrained = network.score(first, digits);
            float[] alone = trainAlone(network, first, digits);
            compare(untrained, network.score(parameters, digits), network.score(alone, digits));
        }
    }

    private static void broadcast(
            Communicator communicator, float[] parameters, DeviceBuffer<Float32> buffer, CudaStream stream) {
        buffer.copyFrom(parameters);
        communicator.broadcast(buffer, 0, stream);
        communicator.work(stream).await();
        buffer.copyTo(parameters);
    }

    private void train(
            Communicator communicator,
            Perceptron network,
            float[] parameters,
            Digits digits,
            DeviceBuffer<Float32> buffer,
            CudaStream stream) {
        int from = (int) ((long) pictures * communicator.rank() / communicator.size());
        int to = (int) ((long) pictures * (communicator.rank() + 1) / communicator.size());
        for (int step = 0; step < steps; step++) {
            float[] gradient = network.gradient(parameters, digits, from, to);
            buffer.copyFrom(gradient);
            communicator.allReduce(buffer, ReduceOp.AVG, stream);
            communicator.work(stream).await();
            buffer.copyTo(gradient);
            // The average of sums over shares, which may be of different sizes, is not yet that over pictures.
            descend(parameters, gradient, (float) communicator.size() / pictures);
        }
    }

    private float[] trainAlone(Perceptron network, float[] parameters, Digits digits) {
        for (int step = 0; step < steps; step++) {
            descend(parameters, network.gradient(parameters, digits, 0, pictures), 1f / pictures);
        }
        return parameters;
    }

    private static void descend(float[] parameters, float[] gradient, float scale) {
        for (int i = 0; i < parameters.length; i++) {
            parameters[i] -= LEARNING_RATE * scale * gradient[i];
        }
    }

    private void compare(Score untrained, Score together, Score alone) {
        System.out.println(text("untrained", untrained));
        System.out.println(text("all ranks", together));
        System.out.println(text("one rank", alone));
        boolean equal = Math.abs(together.loss() - alone.loss()) <= LOSS_TOLERANCE
                && Math.abs(together.accuracy() - alone.accuracy()) <= ACCURACY_TOLERANCE;
        if (!equal || together.loss() >= untrained.loss()) {
            throw new Failure("rank 0: the ranks together did not learn what one rank learns alone");
        }
        System.out.println(
                steps + " steps with " + pictures + " pictures: all ranks together and one rank are equal within "
                        + LOSS_TOLERANCE + " in loss and " + ACCURACY_TOLERANCE + " in accuracy");
    }

    private static String text(String who, Score score) {
        return String.format(Locale.ROOT, "%-9s  loss %.6f  accuracy %.4f", who, score.loss(), score.accuracy());
    }
}
