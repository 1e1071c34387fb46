package io.github.nccl4j.pytorch;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.NcclException;
import io.github.nccl4j.highlevel.Recovery;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.tools.launch.Signals;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Locale;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.bytedeco.pytorch.global.torch.ScalarType;

/**
 * A rank that trains {@link ConvNet} with its part of each batch, and goes on when another rank is lost. It writes its weights
 * to {@code weights-RANK} in a folder.
 */
final class TrainingRank {
    /** Images in the batch of all ranks. */
    static final int BATCH = 16;

    static final int STEPS = 30;

    /** Nothing in the test takes as long on a busy machine. */
    private static final Duration LIMIT = Duration.ofMinutes(2);

    private TrainingRank() {}

    /**
     * Trains.
     *
     * @param arguments folder, type, and the rank that is killed in the middle, or -1
     */
    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[0]);
        ScalarType type = ScalarType.valueOf(arguments[1]);
        int killed = Integer.parseInt(arguments[2]);
        NativeLibrary.unpack(torch.class);
        torch.set_num_threads(1);
        try (TcpStore store = TcpStore.open(RankInfo.fromEnvironment());
                Recovery recovery =
                        Recovery.begin(store, "training", Communicator.builder().deadline(LIMIT));
                // Rank 0's weights are those of the seed 0; the others get them.
                ConvNet net = new ConvNet(recovery.communicator().rank(), type);
                DistributedDataParallel parallel = DistributedDataParallel.builder(net.module, recovery.communicator())
                        .bucketBytes(8192)
                        .optimizers(net.optimizer())
                        .create()) {
            int own = recovery.communicator().rank();
            long pointers = 0;
            for (int step = 0; step < STEPS; step++) {
                if (step == STEPS / 2 && own == killed) {
                    Signals.send("KILL", ProcessHandle.current().pid());
                }
                try (PointerScope scope = new PointerScope()) {
                    double loss = step(net, parallel, step);
                    System.out.printf(Locale.ROOT, "step %d loss %.6f%n", step, loss);
                } catch (NcclException lost) {
                    System.out.println(
                            "lost in step " + step + ": " + lost.getClass().getSimpleName());
                    parallel.replaceCommunicator(recovery.recover(LIMIT));
                    step = agreedStep(recovery.communicator(), step) - 1;
                }
                if (step == 3) {
                    pointers = Pointer.totalCount();
                }
            }
            System.out.println("pointers left: " + (Pointer.totalCount() - pointers));
            write(folder.resolve("weights-" + own), net.weights());
        }
    }

    private static double step(ConvNet net, DistributedDataParallel parallel, int step) {
        int size = parallel.communicator().size();
        int rank = parallel.communicator().rank();
        int first = step * BATCH;
        Tensor loss = net.loss(first + BATCH * rank / size, first + BATCH * (rank + 1) / size);
        net.optimizer().zero_grad();
        loss.backward();
        parallel.synchronize();
        net.optimizer().step();
        return loss.item_double();
    }

    /** All weights are rank 0's now, so the next step is rank 0's. */
    private static int agreedStep(Communicator communicator, int step) {
        Tensor agreed = torch.tensor(new long[] {step});
        TensorCollectives.of(communicator).broadcast(agreed, 0);
        return agreed.item_int();
    }

    static void write(Path file, double[] weights) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(weights.length * Double.BYTES);
        bytes.asDoubleBuffer().put(weights);
        Files.write(file, bytes.array());
    }

    static double[] read(Path file) throws IOException {
        DoubleBuffer doubles = ByteBuffer.wrap(Files.readAllBytes(file)).asDoubleBuffer();
        double[] weights = new double[doubles.remaining()];
        doubles.get(weights);
        return weights;
    }

    /** The same steps in this process, with the batches of all ranks as one. */
    static double[] joined(ScalarType type) {
        return reference(type, 1);
    }

    /** The same steps in this process, with the gradients of the parts added in the order of the ranks. */
    static double[] reference(ScalarType type, int parts) {
        torch.set_num_threads(1);
        try (ConvNet net = new ConvNet(0, type)) {
            for (int step = 0; step < STEPS; step++) {
                try (PointerScope scope = new PointerScope()) {
                    net.optimizer().zero_grad();
                    for (int part = 0; part < parts; part++) {
                        int first = step * BATCH;
                        net.loss(first + BATCH * part / parts, first + BATCH * (part + 1) / parts)
                                .div(new org.bytedeco.pytorch.Scalar((double) parts))
                                .backward();
                    }
                    net.optimizer().step();
                }
            }
            return net.weights();
        }
    }

    static double largestDifference(double[] first, double[] second) {
        double largest = first.length == second.length ? 0 : Double.POSITIVE_INFINITY;
        for (int i = 0; i < Math.min(first.length, second.length); i++) {
            largest = Math.max(largest, Math.abs(first[i] - second[i]));
        }
        return Arrays.stream(first).allMatch(Double::isFinite) ? largest : Double.NaN;
    }
}
