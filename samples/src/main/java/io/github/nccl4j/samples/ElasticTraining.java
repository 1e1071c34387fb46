package io.github.nccl4j.samples;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float64;
import io.github.nccl4j.highlevel.Element.Int64;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclRemoteException;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.Recovery;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStore;
import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.Random;
import java.util.stream.Stream;

/**
 * Trains with data parallelism while ranks are killed and come back: each rank in turn, rank 0 too. The weights at the end equal, in
 * every bit, those of a run that nothing disturbs.
 *
 * <p>The ranks of the current communicator share the points of each step. Gradients are summed as integers, so that a sum does not
 * depend on the number of ranks. A process that takes the place of a killed one gets the weights of the others. The
 * launcher must start a killed rank again and keep the store, as the command nccl4j does.
 */
public final class ElasticTraining {
    private static final Duration PATIENCE = Duration.ofSeconds(30);
    private static final int STEPS = 200;
    private static final int WEIGHTS = 5;
    private static final double SCALE = 1L << 32;

    public static void main(String[] args) throws IOException, InterruptedException {
        RankInfo self = RankInfo.fromEnvironment();
        int size = self.worldSize();
        int kills = size;
        for (int i = 0; i < args.length; i++) {
            switch (args[i]) {
                case "-k" -> kills = Integer.parseInt(args[++i]);
                default -> throw new IllegalArgumentException("no such option: " + args[i]);
            }
        }
        if (kills < 0 || kills > size || kills > STEPS / 4) {
            throw new IllegalArgumentException("-k must be from 0 to " + Math.min(size, STEPS / 4) + ": " + kills);
        }
        if (size < 2) {
            System.out.println("skipped: needs at least 2 ranks, each of which is killed once: -n 2");
            return;
        }
        // In the first step of an interval all ranks take part; in the second one, a rank is killed.
        int interval = STEPS / (kills + 1);
        boolean isVictim = self.rank() >= size - kills;
        Random random = new Random(1);
        double[][] data = Stream.generate(() -> point(random)).limit(1000).toArray(double[][]::new);
        TcpStore store = TcpStore.ofProcess(self, PATIENCE);
        var settings = Communicator.builder().deadline(PATIENCE);
        try (Recovery recovery = Recovery.begin(store, "training", settings);
                CudaStream stream =
                        CudaStream.nonBlocking(recovery.communicator().device());
                DeviceBuffer<Float64> weights =
                        recovery.communicator().device().allocate(ElementType.FLOAT64, WEIGHTS)) {
            // A process that comes back has no weights, and must not end with these.
            weights.fill(store.attempt() == 0 ? 0 : Double.NaN);
            int step = 0;
            while (step < STEPS || recovery.members().size() < size) {
                try {
                    if (recovery.admit(PATIENCE)) {
                        step = (int) recovery.broadcastState(step, stream, weights);
                    }
                    boolean mustWait = step % interval == 0 || step == STEPS;
                    if (mustWait && recovery.members().size() < size) {
                        Thread.sleep(10);
                    } else if (step < STEPS) {
                        if (isVictim && store.attempt() == 0 && step == interval * (size - self.rank()) + 1) {
                            // As the kernel kills a process when memory runs out.
                            String kill = "kill -KILL $PPID";
                            new ProcessBuilder("/bin/sh", "-c", kill).start().waitFor();
                        }
                        train(recovery.communicator(), data, weights, stream);
                        step++;
                    }
                } catch (NcclRemoteException | NcclTimeoutException lost) {
                    recovery.recover(PATIENCE);
                }
            }
            check(weights, data);
            System.out.println("rank " + self.rank() + (isVictim ? " was killed and came back: " : ": ") + STEPS
                    + " steps, the weights are those of an undisturbed run, every bit checked");
        }
    }

    private static void train(Communicator all, double[][] data, DeviceBuffer<Float64> weights, CudaStream stream) {
        double[] current = weights.toDoubleArray();
        try (DeviceBuffer<Int64> gradient = all.device().copyOf(gradient(current, data, all.rank(), all.size()))) {
            all.allReduce(gradient, ReduceOp.SUM, stream);
            all.work(stream).await();
            descend(current, gradient.toLongArray());
        }
        weights.copyFrom(current);
    }

    private static double[] point(Random random) {
        double x = random.nextDouble() * 2 - 1;
        double y = random.nextDouble() * 2 - 1;
        return new double[] {x * x, y * y, x, y, 1};
    }

    /** The part of every {@code count}-th point in the gradient of a logistic regression: which points are in a circle? */
    private static long[] gradient(double[] weights, double[][] data, int first, int count) {
        long[] gradient = new long[WEIGHTS];
        for (int p = first; p < data.length; p += count) {
            double[] point = data[p];
            double sum = 0;
            for (int i = 0; i < WEIGHTS; i++) {
                sum += weights[i] * point[i];
            }
            double error = 1 / (1 + StrictMath.exp(-sum)) - (point[0] + point[1] < 0.5 ? 1 : 0);
            for (int i = 0; i < WEIGHTS; i++) {
                gradient[i] += Math.round(error * point[i] / data.length * SCALE);
            }
        }
        return gradient;
    }

    private static void descend(double[] weights, long[] gradient) {
        Arrays.setAll(weights, i -> weights[i] - 2 * gradient[i] / SCALE);
    }

    private static void check(DeviceBuffer<Float64> trained, double[][] data) {
        double[] undisturbed = new double[WEIGHTS];
        for (int step = 0; step < STEPS; step++) {
            descend(undisturbed, gradient(undisturbed, data, 0, 1));
        }
        double[] weights = new double[WEIGHTS];
        trained.copyTo(weights);
        if (!Arrays.equals(weights, undisturbed)) {
            throw new IllegalStateException(
                    "the weights must be " + Arrays.toString(undisturbed) + ": " + Arrays.toString(weights));
        }
    }
}
