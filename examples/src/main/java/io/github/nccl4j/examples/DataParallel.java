package io.github.nccl4j.examples;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.NcclRemoteException;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.Recovery;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.pytorch.DistributedDataParallel;
import io.github.nccl4j.pytorch.TensorBuffer;
import io.github.nccl4j.pytorch.TensorCollectives;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.AdamW;
import org.bytedeco.pytorch.AdamWOptions;
import org.bytedeco.pytorch.LinearImpl;
import org.bytedeco.pytorch.Module;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
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
    private static final long INPUTS = 16;
    /** In double. Only the order of sums differs; AdamW makes a small difference of a small gradient larger. */
    private static final double BOUND = 1e-10;

    private final Device device;
    private final Map<String, Integer> options;
    private final long batch;
    private final Module model = new Module("model");
    private final List<LinearImpl> layers = new ArrayList<>();
    private final AdamW optimizer;
    /** Null until the ranks have met. */
    private DistributedDataParallel parallel;

    private DataParallel(Device device, Map<String, Integer> options) {
        this.device = device;
        this.options = options;
        batch = options.get("-b");
        int count = options.get("-l") + 2;
        torch.manual_seed(1);
        try (PointerScope scope = new PointerScope()) {
            for (int i = 0; i < count; i++) {
                LinearImpl layer =
                        new LinearImpl(i == 0 ? INPUTS : options.get("-w"), i < count - 1 ? options.get("-w") : 1);
                layers.add(model.register_module("layer" + i, layer).retainReference());
            }
            model.to(ScalarType.Double, false);
            model.to(TensorBuffer.torchDevice(device), false);
            optimizer = new AdamW(model.parameters(), new AdamWOptions(Setup.learningRate(options.get("-w"))))
                    .retainReference();
        }
    }

    public static void main(String[] args) throws IOException, InterruptedException {
        Map<String, Integer> options = Setup.options(args, "-s 60 -u 5 -w 64 -l 1 -b 48 -q 0");
        int steps = options.get("-s");
        boolean isQuiet = options.get("-q") == 1;
        Setup.begin();
        RankInfo self = RankInfo.fromEnvironment();
        int size = self.worldSize();
        TcpStore store = TcpStore.ofProcess(self, PATIENCE);
        boolean isBack = store.attempt() > 0;
        boolean isVictim = !isQuiet && size > 1 && self.rank() == size - 1 && !isBack;
        var settings = Communicator.builder().deadline(PATIENCE);
        try (Recovery recovery = Recovery.begin(store, "training", settings);
                DataParallel training = new DataParallel(recovery.communicator().device(), options)) {
            Figures figures = new Figures(isQuiet ? options.get("-u") : 0);

            int step = 0;
            int trained = 0;
            while (step < steps) {
                try {
                    // True in all processes whenever the ranks have changed, also in one that has come back.
                    if (recovery.admit(PATIENCE) || training.parallel == null) {
                        step = training.begin(recovery.communicator(), step);
                        if (!isQuiet) {
                            figures.begin(recovery.communicator());
                        }
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
                    training.train(step);
                    trained++;
                    step++;
                    figures.step(recovery.communicator());
                } catch (NcclRemoteException | NcclTimeoutException lost) {
                    recovery.recover(PATIENCE);
                    System.out.println("rank " + self.rank() + ": continues with "
                            + recovery.members().size() + " of " + size + " ranks");
                }
            }
            String text = figures.end(recovery.communicator(), training.batch, "samples");
            String checked = training.check(steps);
            System.out.println("rank " + self.rank() + ": " + (isBack ? "came back, and trained " : "trained ")
                    + trained + " of " + steps + " steps, weights as by one rank: " + checked);
            if (self.rank() == 0) {
                System.out.println(text);
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
            Tensor agreed = Setup.zeros(device, ScalarType.Long, 1).fill_(new Scalar(step));
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
            loss(step, batch * rank / size, batch * (rank + 1) / size)
                    .mul(new Scalar((double) size))
                    .backward();
            parallel.synchronize();
            optimizer.step();
        }
    }

    /** The part of some samples in the mean of the squared errors of a batch. */
    private Tensor loss(int step, long from, long to) {
        torch.manual_seed(1000 + step);
        Tensor inputs = Setup.random(device, ScalarType.Double, batch, INPUTS).narrow(0, from, to - from);
        Tensor hidden = inputs;
        for (LinearImpl layer : layers.subList(0, layers.size() - 1)) {
            hidden = torch.gelu(layer.forward(hidden));
        }
        Tensor outputs = layers.get(layers.size() - 1).forward(hidden);
        Tensor errors = outputs.view(-1).sub(inputs.sin().sum(1));
        return errors.square().sum().div(new Scalar((double) batch));
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
        try (DataParallel alone = new DataParallel(device, options)) {
            for (int step = 0; step < steps; step++) {
                try (PointerScope scope = new PointerScope()) {
                    alone.optimizer.zero_grad();
                    alone.loss(step, 0, batch).backward();
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
