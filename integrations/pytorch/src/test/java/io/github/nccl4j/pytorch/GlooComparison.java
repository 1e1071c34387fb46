package io.github.nccl4j.pytorch;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.tools.launch.JavaCommand;
import io.github.nccl4j.tools.launch.Launcher;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.FileStore;
import org.bytedeco.pytorch.GlooDeviceVector;
import org.bytedeco.pytorch.LinearImpl;
import org.bytedeco.pytorch.Module;
import org.bytedeco.pytorch.ProcessGroupGloo;
import org.bytedeco.pytorch.SGD;
import org.bytedeco.pytorch.SGDOptions;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
import org.bytedeco.pytorch.gloo.Device;

/**
 * Time of a training step with {@link DistributedDataParallel} on the host engine, and with the presets' own {@code
 * ProcessGroupGloo}, which all-reduces one flat tensor of all gradients after the backward pass. The ways take turns, round by
 * round, in the same processes, with the same network.
 *
 * <p>{@code ./nccl4j test -Ppytorch -pl integrations/pytorch -am -Dtest=GlooComparisonTest -Dsurefire.failIfNoSpecifiedTests=false
 * -Dnccl4j.test.gloo.rounds=15} runs it, on a machine that does nothing else.
 */
public final class GlooComparison {
    private static final int STEPS = 10;
    private static final int IMAGES = 16;
    private static final int LAYERS = 4;

    private GlooComparison() {}

    private interface Exchange {
        void averageGradients();
    }

    /**
     * Measures.
     *
     * @param ranks the number of processes
     * @param width the inputs and outputs of each of the four layers
     * @param rounds how often each way has its turn
     * @param out receives the line with the result
     */
    static void run(int ranks, int width, int rounds, PrintStream out) throws Exception {
        NativeLibrary.unpack(torch.class);
        Path file = Files.createTempFile("gloo", null);
        Files.delete(file);
        try {
            List<String> command = JavaCommand.of(
                    List.of("-Dnccl4j.engine=host"),
                    GlooComparison.class.getName(),
                    List.of(Integer.toString(width), Integer.toString(rounds), file.toString()));
            int code = new Launcher(command, ranks, Map.of(), Duration.ofMinutes(10), out, System.err, false).run();
            if (code != 0) {
                throw new IllegalStateException("the ranks ended with " + code);
            }
        } finally {
            Files.deleteIfExists(file);
        }
    }

    /**
     * A rank.
     *
     * @param arguments width, rounds, and the file in which Gloo's ranks meet
     */
    public static void main(String[] arguments) {
        rank(Integer.parseInt(arguments[0]), Integer.parseInt(arguments[1]), Path.of(arguments[2]));
    }

    private static void rank(int width, int rounds, Path file) {
        torch.set_num_threads(1);
        try (Communicator communicator = Communicator.fromEnvironment();
                Module model = new Module("model")) {
            int ranks = communicator.size();
            List<LinearImpl> layers = new ArrayList<>();
            for (int i = 0; i < LAYERS; i++) {
                layers.add(model.register_module("layer" + i, new LinearImpl(width, width)));
            }
            FileStore store = new FileStore(file.toString(), ranks);
            Device device = ProcessGroupGloo.createDeviceForHostname("127.0.0.1");
            ProcessGroupGloo.Options options = ProcessGroupGloo.Options.create();
            options.devices(new GlooDeviceVector(device));
            ProcessGroupGloo gloo = new ProcessGroupGloo(store, communicator.rank(), ranks, options);
            TensorVector parameters = model.parameters();
            SGD optimizer = new SGD(parameters, new SGDOptions(1e-6));
            Tensor inputs = torch.rand(IMAGES, width);

            Exchange none = () -> {};
            Exchange withGloo = () -> gloo(gloo, parameters, ranks);
            double[][] millis = new double[3][rounds];
            for (int round = -1; round < rounds; round++) {
                double first = millis(layers, optimizer, inputs, none);
                double second = millis(layers, optimizer, inputs, withGloo);
                double third;
                try (DistributedDataParallel parallel =
                        DistributedDataParallel.builder(model, communicator).create()) {
                    third = millis(layers, optimizer, inputs, parallel::synchronize);
                }
                if (round >= 0) {
                    millis[0][round] = first;
                    millis[1][round] = second;
                    millis[2][round] = third;
                }
            }
            if (communicator.rank() == 0) {
                double alone = median(millis[0]);
                double other = median(millis[1]);
                double ours = median(millis[2]);
                System.out.printf(
                        Locale.ROOT,
                        "%d ranks, %.1f MiB of gradients, ms a step, medians of %d rounds of %d steps: alone %.2f, Gloo %.2f,"
                                + " nccl4j %.2f, nccl4j / Gloo %.2f; exchange alone %.2f%n",
                        ranks,
                        LAYERS * (width * (width + 1.0)) * Float.BYTES / (1 << 20),
                        rounds,
                        STEPS,
                        alone,
                        other,
                        ours,
                        ours / other,
                        (ours - alone) / (other - alone));
            }
        }
    }

    private static double millis(List<LinearImpl> layers, SGD optimizer, Tensor inputs, Exchange exchange) {
        step(layers, optimizer, inputs, exchange);
        long start = System.nanoTime();
        for (int i = 0; i < STEPS; i++) {
            step(layers, optimizer, inputs, exchange);
        }
        return (System.nanoTime() - start) / 1e6 / STEPS;
    }

    private static void step(List<LinearImpl> layers, SGD optimizer, Tensor inputs, Exchange exchange) {
        try (PointerScope scope = new PointerScope()) {
            Tensor hidden = inputs;
            for (LinearImpl layer : layers) {
                hidden = layer.forward(hidden).relu();
            }
            optimizer.zero_grad();
            hidden.sum().backward();
            exchange.averageGradients();
            optimizer.step();
        }
    }

    private static void gloo(ProcessGroupGloo gloo, TensorVector parameters, int ranks) {
        TensorVector parts = new TensorVector();
        for (long i = 0; i < parameters.size(); i++) {
            parts.push_back(parameters.get(i).grad().flatten());
        }
        Tensor flat = torch.cat(parts);
        gloo.allreduce(new TensorVector(flat))._wait();
        flat.div_(new Scalar((float) ranks));
        long offset = 0;
        for (long i = 0; i < parameters.size(); i++) {
            Tensor gradient = parameters.get(i).grad();
            gradient.copy_(flat.narrow(0, offset, gradient.numel()).view(gradient.sizes()));
            offset += gradient.numel();
        }
    }

    private static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        return sorted[sorted.length / 2];
    }
}
