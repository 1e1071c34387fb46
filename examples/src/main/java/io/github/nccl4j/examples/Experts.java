package io.github.nccl4j.examples;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.pytorch.TensorBuffer;
import io.github.nccl4j.pytorch.TensorCollectives;
import java.util.Arrays;
import java.util.Map;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.NoGradGuard;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.T_TensorTensor_T;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorOptional;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
import org.bytedeco.pytorch.global.torch.ScalarType;

/**
 * A mixture of experts: each rank has some of the experts and its own tokens. A router chooses two experts for each token, an uneven
 * all-to-all sends the tokens to the ranks of their experts, and a second one brings the results back.
 *
 * <p>The counts are known only when the router has chosen: the ranks exchange them first. No token is dropped.
 */
public final class Experts {
    private static final int EXPERTS = 8;
    private static final int CHOICES = 2;
    /** In float. Only the shapes of products differ, and with them the order of sums. */
    private static final double BOUND = 1e-5;

    private final Communicator communicator;
    private final Device device;
    private final int rank;
    private final int size;
    private final long width;
    /** The number of experts of each rank. */
    private final int own;

    private final Tensor router;
    /** The matrices of all experts; a real job has only its own, here each rank makes all, to check its result. */
    private final Tensor up;

    private final Tensor down;

    private Experts(Communicator communicator, long width) {
        this.communicator = communicator;
        this.width = width;
        device = communicator.device();
        rank = communicator.rank();
        size = communicator.size();
        own = EXPERTS / size;
        torch.manual_seed(1);
        router = random(width, EXPERTS);
        up = random(EXPERTS, width, 4 * width);
        down = random(EXPERTS, 4 * width, width);
    }

    public static void main(String[] args) {
        Map<String, Integer> options = Setup.options(args, "-t 512 -w 64 -i 5 -u 1");
        int tokens = options.get("-t");
        int width = options.get("-w");
        Setup.begin();
        try (Communicator communicator = Communicator.fromEnvironment();
                NoGradGuard noGradients = new NoGradGuard();
                PointerScope scope = new PointerScope()) {
            if (EXPERTS % communicator.size() != 0) {
                throw new IllegalArgumentException(
                        "the number of ranks must divide " + EXPERTS + " experts: " + communicator.size());
            }
            Experts layer = new Experts(communicator, width);
            torch.manual_seed(2 + layer.rank);
            Tensor inputs = Setup.random(layer.device, ScalarType.Float, tokens, width);
            Figures figures = new Figures(options.get("-u"));
            for (int i = 0; i < options.get("-u") + options.get("-i"); i++) {
                layer.forward(inputs).close();
                figures.step(communicator);
            }
            String text = figures.end(communicator, (double) tokens * layer.size, "tokens");

            Tensor outputs = layer.forward(inputs);
            String checked = Setup.requireClose("outputs", outputs, layer.alone(inputs), BOUND);
            System.out.println("rank " + layer.rank + ": " + layer.own + " of " + EXPERTS + " experts, " + tokens
                    + " tokens of " + tokens * layer.size + ", outputs as by one rank: " + checked);
            if (layer.rank == 0) {
                System.out.println(text);
            }
        }
    }

    private Tensor random(long... shape) {
        return Setup.random(device, ScalarType.Float, shape).div_(new Scalar(Math.sqrt(width)));
    }

    /** Returns the weights of the chosen experts, and the experts: both [token, choice]. */
    private T_TensorTensor_T choose(Tensor inputs) {
        return torch.topk(torch.softmax(inputs.matmul(router), -1), CHOICES);
    }

    private Tensor expert(int expert, Tensor inputs) {
        Tensor hidden = inputs.matmul(up.get(expert));
        return torch.gelu_(hidden).matmul(down.get(expert));
    }

    /** Computes the layer's output for this rank's tokens. Collective. */
    private Tensor forward(Tensor inputs) {
        try (PointerScope scope = new PointerScope()) {
            T_TensorTensor_T choice = choose(inputs);
            Tensor chosen = choice.get1().flatten();
            // The choices in the order of their experts, and therefore of the ranks that have them.
            Tensor order = torch.argsort(chosen, true, 0, false);
            Tensor counts = torch.bincount(chosen, new TensorOptional(), EXPERTS);
            Tensor countsFromRanks = torch.empty_like(counts);
            TensorCollectives.of(communicator).allToAll(counts, countsFromRanks);
            // For each rank and expert there, and for each rank and expert here.
            long[] send = numbers(counts);
            long[] recv = numbers(countsFromRanks);

            Tensor rows = inputs.index_select(0, order.floor_divide(new Scalar(CHOICES)));
            Tensor received = exchange(rows, send, recv);
            Tensor computed = exchange(compute(received, recv), recv, send);

            Tensor results = torch.empty_like(computed).index_copy_(0, order, computed);
            return results.view(inputs.size(0), CHOICES, width)
                    .mul(choice.get0().unsqueeze(-1))
                    .sum(1)
                    .retainReference();
        }
    }

    private static long[] numbers(Tensor tensor) {
        Tensor host = tensor.cpu();
        long[] numbers = new long[(int) host.numel()];
        host.data_ptr_long().get(numbers);
        return numbers;
    }

    /**
     * Sends rows to the ranks, and receives theirs.
     *
     * @param rows in the order of the ranks
     * @param send the number of rows for each rank and expert
     * @param recv the number of rows from each rank and for each expert
     */
    private Tensor exchange(Tensor rows, long[] send, long[] recv) {
        Tensor received = rows.new_empty(Arrays.stream(recv).sum(), width);
        long[] sendCounts = elements(send);
        long[] recvCounts = elements(recv);
        try (TensorBuffer<Float32> from = TensorBuffer.of(rows, ElementType.FLOAT32);
                TensorBuffer<Float32> to = TensorBuffer.of(received, ElementType.FLOAT32)) {
            // The ranks have exchanged the counts. allToAllv would compare them, and wait for all work before.
            communicator.allToAllvUnchecked(
                    from.buffer(),
                    sendCounts,
                    offsets(sendCounts),
                    to.buffer(),
                    recvCounts,
                    offsets(recvCounts),
                    TensorBuffer.currentStream(device));
        }
        return received;
    }

    /** The number of elements for each rank. */
    private long[] elements(long[] rows) {
        long[] elements = new long[size];
        for (int i = 0; i < rows.length; i++) {
            elements[i / own] += rows[i] * width;
        }
        return elements;
    }

    private static long[] offsets(long[] counts) {
        long[] offsets = new long[counts.length];
        for (int i = 1; i < counts.length; i++) {
            offsets[i] = offsets[i - 1] + counts[i - 1];
        }
        return offsets;
    }

    /**
     * Applies this rank's experts.
     *
     * @param received in the order of the ranks, and for each rank in that of the experts
     * @param counts the number of rows from each rank for each expert
     */
    private Tensor compute(Tensor received, long[] counts) {
        long[] offsets = offsets(counts);
        Tensor outputs = torch.empty_like(received);
        for (int expert = 0; expert < own; expert++) {
            // The memory of one expert's tensors serves the next one.
            try (PointerScope scope = new PointerScope()) {
                TensorVector inputs = new TensorVector();
                for (int from = 0; from < size; from++) {
                    int block = from * own + expert;
                    inputs.push_back(received.narrow(0, offsets[block], counts[block]));
                }
                Tensor results = expert(rank * own + expert, torch.cat(inputs));
                long done = 0;
                for (int from = 0; from < size; from++) {
                    int block = from * own + expert;
                    outputs.narrow(0, offsets[block], counts[block]).copy_(results.narrow(0, done, counts[block]));
                    done += counts[block];
                }
            }
        }
        return outputs;
    }

    /** The same by one rank: all experts for all tokens, those that are not chosen with weight 0. */
    private Tensor alone(Tensor inputs) {
        T_TensorTensor_T choice = choose(inputs);
        Tensor weights = Setup.zeros(device, ScalarType.Float, inputs.size(0), EXPERTS);
        weights.scatter_(1, choice.get1(), choice.get0());
        Tensor outputs = torch.zeros_like(inputs);
        for (int expert = 0; expert < EXPERTS; expert++) {
            outputs.add_(expert(expert, inputs).mul(weights.narrow(1, expert, 1)));
        }
        return outputs;
    }
}
