package io.github.nccl4j.examples;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.pytorch.TensorCollectives;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.AdamW;
import org.bytedeco.pytorch.AdamWOptions;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
import org.bytedeco.pytorch.global.torch.ScalarType;

/**
 * Data-parallel training in which each rank keeps the optimizer's state of a part of the parameters only (ZeRO, stage 1).
 *
 * <p>All parameters are views of one flat tensor, and so are their gradients. A reduce-scatter gives each rank the averages of its
 * part; the optimizer changes that part of the parameters, and an all-gather gives it to the others. Both together move as many
 * elements as one all-reduce. AdamW keeps two numbers for each parameter: with n ranks, a rank keeps an n-th of them.
 *
 * <p>The gradients are clipped by their global norm, for which the ranks add the squares of their parts.
 */
public final class ShardedOptimizer {
    private static final long INPUTS = 16;
    private static final double MAX_NORM = 0.5;
    /** In double. Only the order of sums differs; AdamW makes a small difference of a small gradient larger. */
    private static final double BOUND = 1e-10;

    private final Device device;
    private final int rank;
    private final int size;
    /** Null if this rank has all parameters. */
    private final TensorCollectives collectives;

    private final long batch;
    /** The shapes of a matrix and a bias in turn, and of the last matrix. */
    private final List<long[]> shapes = new ArrayList<>();

    /** All parameters, and zeros so that each rank has an equal part. */
    private final Tensor flat;
    /** This rank's part of {@link #flat}: the same memory. */
    private final Tensor part;
    /** The averages of the gradients of {@link #part}. */
    private final Tensor gradient;

    private final AdamW optimizer;

    private ShardedOptimizer(Device device, TensorCollectives collectives, Map<String, Integer> options) {
        long width = options.get("-w");
        batch = options.get("-b");
        this.device = device;
        this.collectives = collectives;
        rank = collectives == null ? 0 : collectives.communicator().rank();
        size = collectives == null ? 1 : collectives.communicator().size();
        torch.manual_seed(1);
        for (int i = 0; i <= options.get("-l"); i++) {
            shapes.add(new long[] {i == 0 ? INPUTS : width, width});
            shapes.add(new long[] {width});
        }
        shapes.add(new long[] {width, 1});
        long count = parameters();
        long length = (count + size - 1) / size;
        flat = Setup.kept(() -> {
            TensorVector initial = new TensorVector();
            for (long[] shape : shapes) {
                Tensor values = Setup.random(device, ScalarType.Double, shape);
                initial.push_back(values.flatten().div_(new Scalar(Math.sqrt(width))));
            }
            initial.push_back(Setup.zeros(device, ScalarType.Double, length * size - count));
            return torch.cat(initial).set_requires_grad(true);
        });
        part = flat.detach().narrow(0, rank * length, length).set_requires_grad(true);
        gradient = torch.zeros_like(part);
        optimizer = new AdamW(new TensorVector(part), new AdamWOptions(Setup.learningRate(width)));
    }

    public static void main(String[] args) {
        Map<String, Integer> options = Setup.options(args, "-s 50 -u 5 -w 96 -l 1 -b 48");
        int steps = options.get("-s");
        Setup.begin();
        try (Communicator communicator = Communicator.fromEnvironment();
                PointerScope scope = new PointerScope()) {
            int rank = communicator.rank();
            ShardedOptimizer training =
                    new ShardedOptimizer(communicator.device(), TensorCollectives.of(communicator), options);
            Figures figures = new Figures(options.get("-u"));
            for (int step = 0; step < steps; step++) {
                training.train(step);
                figures.step(communicator);
            }
            String text = figures.end(communicator, training.batch, "samples");

            ShardedOptimizer alone = new ShardedOptimizer(communicator.device(), null, options);
            for (int step = 0; step < steps; step++) {
                alone.train(step);
            }
            String checked = Setup.requireClose("weights", training.weights(), alone.weights(), BOUND);
            System.out.println("rank " + rank + ": state of " + training.part.numel() + " of " + training.parameters()
                    + " parameters, weights after " + steps + " steps as by one rank: " + checked);
            if (rank == 0) {
                System.out.println(text);
            }
        }
    }

    private long parameters() {
        long count = 0;
        for (long[] shape : shapes) {
            count += length(shape);
        }
        return count;
    }

    private static long length(long[] shape) {
        long length = 1;
        for (long each : shape) {
            length *= each;
        }
        return length;
    }

    private Tensor weights() {
        return flat.detach().narrow(0, 0, parameters());
    }

    /** Trains with this rank's part of a batch. Collective. */
    private void train(int step) {
        try (PointerScope scope = new PointerScope()) {
            flat.mutable_grad().put(new Tensor());
            // The average over the ranks is the mean over the batch, also if it cannot be divided evenly.
            loss(step, batch * rank / size, batch * (rank + 1) / size)
                    .mul(new Scalar((double) size))
                    .backward();
            Tensor squares;
            if (collectives == null) {
                gradient.copy_(flat.grad());
                squares = gradient.square().sum();
            } else {
                collectives.reduceScatter(flat.grad(), gradient, ReduceOp.AVG);
                squares = gradient.square().sum();
                collectives.allReduce(squares, ReduceOp.SUM);
            }
            // No copy to the host, for which a GPU would have to finish its work.
            gradient.mul_(squares.sqrt().reciprocal().mul(new Scalar(MAX_NORM)).clamp_max(new Scalar(1.0)));
            part.mutable_grad().put(gradient);
            optimizer.step();
            if (collectives != null) {
                collectives.allGather(part, flat);
            }
        }
    }

    /** The part of some samples in the mean of the squared errors of a batch. */
    private Tensor loss(int step, long from, long to) {
        torch.manual_seed(1000 + step);
        Tensor samples = Setup.random(device, ScalarType.Double, batch, INPUTS);
        Tensor inputs = samples.narrow(0, from, to - from);
        Tensor hidden = inputs;
        long offset = 0;
        for (int i = 0; i < shapes.size(); i += 2) {
            hidden = hidden.matmul(weight(i, offset));
            offset += length(shapes.get(i));
            if (i + 1 < shapes.size()) {
                hidden = torch.gelu(hidden.add(weight(i + 1, offset)));
                offset += length(shapes.get(i + 1));
            }
        }
        Tensor errors = hidden.view(-1).sub(inputs.sin().sum(1));
        return errors.square().sum().div(new Scalar((double) batch));
    }

    private Tensor weight(int index, long offset) {
        long[] shape = shapes.get(index);
        return flat.narrow(0, offset, length(shape)).view(shape);
    }
}
