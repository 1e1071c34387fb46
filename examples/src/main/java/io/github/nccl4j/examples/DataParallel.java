package io.github.nccl4j.examples;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.NcclRemoteException;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.Recovery;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.pytorch.DistributedDataParallel;
import io.github.nccl4j.pytorch.TensorCollectives;
import java.io.IOException;
import java.time.Duration;
import java.util.Locale;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.AdamW;
import org.bytedeco.pytorch.AdamWOptions;
import org.bytedeco.pytorch.LinearImpl;
import org.bytedeco.pytorch.Module;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
import org.bytedeco.pytorch.global.torch.DeviceType;
import org.bytedeco.pytorch.global.torch.ScalarType;

/**
 * Data-parallel training: each rank has the whole model and a part of each batch, and gradients are averaged while the backward pass
 * runs. After a third of the steps the last rank is killed. The others recover and continue with larger parts; its process is
 * started again and takes part from two thirds of the steps on.
 *
 * <p>A batch is the same for any number of ranks, and whenever the ranks change, all continue with the weights, the state of the
 * optimizer and the step of rank 0. So the weights at the end are those of training that nothing disturbs.
 */
public final class DataParallel implements AutoCloseable {
    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final long BATCH = 48;
    private static final long INPUTS = 16;
    private static final long WIDTH = 64;
    /** In double. Only the order of sums differs; AdamW makes a small difference of a small gradient larger. */
    private static final double BOUND = 1e-10;

    private final Device device;
    private final Module model = new Module("model");
    private final LinearImpl first;
    private final LinearImpl second;
    private final LinearImpl last;
    private final AdamW optimizer;
    /** Null until the ranks have met. */
    private DistributedDataParallel parallel;

    private DataParallel(Device device) {
        this.device = device;
        torch.manual_seed(1);
        try (PointerScope scope = new PointerScope()) {
            first = model.register_module("first", new LinearImpl(INPUTS, WIDTH))
                    .retainReference();
            second = model.register_module("second", new LinearImpl(WIDTH, WIDTH))
                    .retainReference();
            last = model.register_module("last", new LinearImpl(WIDTH, 1)).retainReference();
            model.to(ScalarType.Double, false);
            if (device.isCuda()) {
                model.to(new org.bytedeco.pytorch.Device(DeviceType.CUDA, (byte) device.index()), false);
            }
            optimizer = new AdamW(model.parameters(), new AdamWOptions(3e-3)).retainReference();
        }
    }

    public static void main(String[] args) throws IOException, InterruptedException {
        int steps = Setup.option(args, "-s", 60, "-s");
        Setup.begin();
        RankInfo self = RankInfo.fromEnvironment();
        int size = self.worldSize();
        TcpStore store = TcpStore.ofProcess(self, PATIENCE);
        boolean isBack = store.attempt() > 0;
        boolean isVictim = size > 1 && self.rank() == size - 1 && !isBack;
        var settings = Communicator.builder().deadline(PATIENCE);
        try (Recovery recovery = Recovery.begin(store, "training", settings);
                DataParallel training = new DataParallel(recovery.communicator().device())) {
            int step = 0;
            int trained = 0;
            long nanoseconds = 0;
            while (step < steps) {
                try {
                    // True in all processes whenever the ranks have changed, also in one that has come back.
                    if (recovery.admit(PATIENCE) || training.parallel == null) {
                        step = training.begin(recovery.communicator(), step);
                    }
                    if (step == steps * 2 / 3 && recovery.members().size() < size) {
                        Thread.sleep(10);
                        continue;
                    }
                    if (isVictim && step == steps / 3) {
                        // As the kernel kills a process when memory runs out.
                        String kill = "kill -KILL $PPID";
                        new ProcessBuilder("/bin/sh", "-c", kill).start().waitFor();
                    }
                    long start = System.nanoTime();
                    training.train(step);
                    nanoseconds += System.nanoTime() - start;
                    trained++;
                    step++;
                } catch (NcclRemoteException | NcclTimeoutException lost) {
                    recovery.recover(PATIENCE);
                }
            }
            String checked = training.check(steps);
            System.out.println("rank " + self.rank() + ": " + (isBack ? "came back, and trained " : "trained ")
                    + trained + " of " + steps + " steps, weights as by one rank: " + checked);
            if (self.rank() == 0) {
                System.out.printf(Locale.ROOT, "%.0f samples/s%n", BATCH * trained / (nanoseconds / 1e9));
            }
        }
    }

    /** Gives all ranks the state of rank 0. Collective. Returns rank 0's step. */
    private int begin(Communicator communicator, int step) {
        if (parallel == null) {
            parallel = DistributedDataParallel.builder(model, communicator)
                    .optimizers(optimizer)
                    .create();
        } else {
            parallel.replaceCommunicator(communicator);
        }
        try (PointerScope scope = new PointerScope()) {
            Tensor agreed = Setup.on(device, torch.tensor(new long[] {step}));
            TensorCollectives.of(communicator).broadcast(agreed, 0);
            return agreed.item_int();
        }
    }

    /** Trains with this rank's part of a batch. Collective. */
    private void train(int step) {
        long rank = parallel.communicator().rank();
        long size = parallel.communicator().size();
        try (PointerScope scope = new PointerScope()) {
            optimizer.zero_grad();
            // The average over the ranks is the mean over the batch, also if it cannot be divided evenly.
            loss(step, BATCH * rank / size, BATCH * (rank + 1) / size)
                    .mul(new Scalar((double) size))
                    .backward();
            parallel.synchronize();
            optimizer.step();
        }
    }

    /** The part of some samples in the mean of the squared errors of a batch. */
    private Tensor loss(int step, long from, long to) {
        torch.manual_seed(1000 + step);
        Tensor batch = torch.randn(BATCH, INPUTS).to(ScalarType.Double);
        Tensor inputs = Setup.on(device, batch.narrow(0, from, to - from));
        Tensor targets = inputs.sin().sum(1);
        Tensor hidden = torch.gelu(second.forward(torch.gelu(first.forward(inputs))));
        return last.forward(hidden).view(-1).sub(targets).square().sum().div(new Scalar((double) BATCH));
    }

    private Tensor weights() {
        TensorVector parts = new TensorVector();
        TensorVector parameters = model.parameters();
        for (long i = 0; i < parameters.size(); i++) {
            parts.push_back(parameters.get(i).detach().flatten());
        }
        return torch.cat(parts);
    }

    /** Compares the weights with those of the same steps in this process alone. */
    private String check(int steps) {
        try (DataParallel alone = new DataParallel(device)) {
            for (int step = 0; step < steps; step++) {
                try (PointerScope scope = new PointerScope()) {
                    alone.optimizer.zero_grad();
                    alone.loss(step, 0, BATCH).backward();
                    alone.optimizer.step();
                }
            }
            try (PointerScope scope = new PointerScope()) {
                return Setup.requireClose("weights", weights(), alone.weights(), BOUND);
            }
        }
    }

    @Override
    public void close() {
        if (parallel != null) {
            parallel.close();
        }
        optimizer.close();
        model.close();
    }
}
