package io.github.nccl4j.tools;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.tools.support.Digits;
import io.github.nccl4j.tools.support.Perceptron;
import io.github.nccl4j.tools.support.Perceptron.Score;
import java.util.Arrays;
import java.util.Locale;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * Trains a neural network with data parallelism: each rank computes gradients on its share of the data.
 *
 * <p>Rank 0 broadcasts the initial parameters. In every step the ranks average their gradients, so that all keep the same
 * parameters. Rank 0 then trains the same network alone on all data: the results differ only by rounding.
 */
@Command(
        name = "05-data-parallel-training",
        aliases = {"05", "5", "data-parallel-training"},
        sortOptions = false,
        description = {
            "Trains a network on shares of the data, averages the gradients, and compares with training on one rank.",
            "",
            "The network classifies noisy pictures of digits. It computes in plain Java; device buffers carry parameters and "
                    + "gradients between the ranks.",
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
            description = "Training pictures of all ranks together. Default: ${DEFAULT-VALUE}.")
    private int pictures;

    @Option(
            names = {"-s", "--steps"},
            paramLabel = "N",
            defaultValue = "200",
            description = "Training steps. Default: ${DEFAULT-VALUE}.")
    private int steps;

    @Override
    void validate() {
        if (pictures < 1 || steps < 1) {
            throw invalid("-p and -s must be at least 1: " + pictures + ", " + steps);
        }
    }

    @Override
    void run(Communicator communicator) {
        Digits digits = Digits.generate(pictures, 1);
        Perceptron network = new Perceptron(HIDDEN_UNITS);
        // The seed differs by rank, so that a missing broadcast makes the comparison below fail.
        float[] parameters = network.initialParameters(communicator.rank());
        float[] initial = parameters.clone();
        Device device = communicator.device();
        try (CudaStream stream = CudaStream.nonBlocking(device);
                DeviceBuffer<Float32> buffer = device.allocate(ElementType.FLOAT32, parameters.length)) {
            broadcast(communicator, parameters, buffer, stream);
            train(communicator, network, parameters, digits, buffer, stream);

            float[] rootParameters = parameters.clone();
            broadcast(communicator, rootParameters, buffer, stream);
            int mismatch = Arrays.mismatch(parameters, rootParameters);
            if (mismatch >= 0) {
                throw new Failure("rank " + communicator.rank() + ": parameter " + mismatch
                        + " differs from that of rank 0: " + parameters[mismatch] + ", " + rootParameters[mismatch]);
            }
        }
        System.out.println("rank " + communicator.rank() + " ended with the parameters of rank 0, every bit checked");
        if (communicator.rank() == 0) {
            Score untrained = network.score(initial, digits);
            float[] alone = trainAlone(network, initial, digits);
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
            // Each gradient is a sum over a share: scale the average of the sums to the average over all pictures.
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
            throw new Failure(
                    "rank 0: all ranks together must learn the same as one rank alone: loss " + together.loss() + ", "
                            + alone.loss() + "; accuracy " + together.accuracy() + ", " + alone.accuracy());
        }
        System.out.println(
                steps + " steps with " + pictures + " pictures: all ranks together and one rank are equal within "
                        + LOSS_TOLERANCE + " in loss and " + ACCURACY_TOLERANCE + " in accuracy");
    }

    private static String text(String name, Score score) {
        return String.format(Locale.ROOT, "%-9s  loss %.6f  accuracy %.4f", name, score.loss(), score.accuracy());
    }
}
