package io.github.nccl4j.examples;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.pytorch.TensorCollectives;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.DoubleOptional;
import org.bytedeco.pytorch.LongOptional;
import org.bytedeco.pytorch.NoGradGuard;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorOptional;
import org.bytedeco.pytorch.global.torch;
import org.bytedeco.pytorch.global.torch.ScalarType;

/**
 * A decoder-only transformer whose weights are divided among the ranks, and greedy decoding with it.
 *
 * <p>The first matrix of attention and that of the perceptron are divided by columns: a rank has whole heads, with their keys and
 * values. The second matrices are divided by rows: a rank has one summand of the result, and an all-reduce adds the summands, twice
 * for each layer. The last matrix is divided by words, and an all-gather joins the scores.
 *
 * <p>In double: in float the sums of several ranks differ from those of one in the last bits, and where two words have almost the
 * same score, the text would differ from there on.
 */
public final class TensorParallel {
    private static final int LAYERS = 3;
    private static final int HEADS = 8;
    private static final int HEAD_WIDTH = 16;
    private static final int WIDTH = HEADS * HEAD_WIDTH;
    private static final int INNER = 4 * WIDTH;
    private static final int WORDS = 256;
    private static final int SEQUENCES = 4;
    private static final int PROMPT = 8;
    /** In double. Only the order of sums differs. */
    private static final double BOUND = 1e-12;

    /**
     * A rank's part of a layer.
     *
     * @param projection to queries, keys and values, which are together for each head
     * @param output from the heads to the width of the model
     * @param up to the inner width of the perceptron
     * @param down from it
     * @param cache keys and values of the heads: of [2, sequence, head, token, width]
     */
    private record Layer(Tensor projection, Tensor output, Tensor up, Tensor down, Tensor cache) {}

    /** A text, and the scores by which its words were chosen: [token, sequence, word]. */
    private record Text(Tensor words, Tensor scores) {}

    private final Device device;
    private final int rank;
    private final int size;
    /** Null for a model that is not divided. */
    private final TensorCollectives collectives;

    private final int length;
    private final Tensor embedding;
    private final Tensor positions;
    private final Tensor head;
    private final List<Layer> layers = new ArrayList<>();

    /** Makes all weights, and keeps those of a rank. A real job loads its part from a file. */
    private TensorParallel(Device device, TensorCollectives collectives, int length) {
        this.device = device;
        this.collectives = collectives;
        this.length = length;
        rank = collectives == null ? 0 : collectives.communicator().rank();
        size = collectives == null ? 1 : collectives.communicator().size();
        torch.manual_seed(1);
        embedding = random(WORDS, WIDTH);
        positions = random(length, WIDTH);
        for (int i = 0; i < LAYERS; i++) {
            Tensor projection = own(random(WIDTH, 3 * WIDTH), 1);
            Tensor output = own(random(WIDTH, WIDTH), 0);
            Tensor up = own(random(WIDTH, INNER), 1);
            Tensor down = own(random(INNER, WIDTH), 0);
            Tensor cache = zeros(ScalarType.Double, 2, SEQUENCES, HEADS / size, length, HEAD_WIDTH);
            layers.add(new Layer(projection, output, up, down, cache));
        }
        head = own(random(WIDTH, WORDS), 1);
    }

    public static void main(String[] args) {
        int tokens = Setup.option(args, "-t", 64, "-t");
        Setup.begin();
        try (Communicator communicator = Communicator.fromEnvironment();
                NoGradGuard noGradients = new NoGradGuard();
                PointerScope scope = new PointerScope()) {
            int rank = communicator.rank();
            int size = communicator.size();
            Device device = communicator.device();
            if (HEADS % size != 0) {
                throw new IllegalArgumentException("the number of ranks must divide " + HEADS + " heads: " + size);
            }
            TensorParallel model = new TensorParallel(device, TensorCollectives.of(communicator), PROMPT + tokens);
            Tensor prompt = Setup.on(device, torch.arange(new Scalar(SEQUENCES * PROMPT)))
                    .view(SEQUENCES, PROMPT);
            model.decode(prompt);
            Setup.barrier(communicator);
            long start = System.nanoTime();
            Text text = model.decode(prompt);
            Setup.barrier(communicator);
            double seconds = (System.nanoTime() - start) / 1e9;

            Text alone = new TensorParallel(device, null, PROMPT + tokens).decode(prompt);
            String checked = Setup.requireClose("scores", text.scores, alone.scores, BOUND);
            if (!text.words.equal(alone.words)) {
                throw new IllegalStateException("the words must be those of one rank");
            }
            System.out.println("rank " + rank + ": " + HEADS / size + " of " + HEADS + " heads, " + SEQUENCES
                    + " sequences of " + tokens + " tokens, the same words as by one rank, scores: " + checked);
            if (rank == 0) {
                System.out.printf(Locale.ROOT, "%.0f tokens/s%n", SEQUENCES * tokens / seconds);
            }
        }
    }

    private Tensor random(long rows, long columns) {
        Tensor values = torch.randn(rows, columns).to(ScalarType.Double);
        return Setup.on(device, values.div(new Scalar(Math.sqrt(WIDTH))));
    }

    private Tensor zeros(ScalarType type, long... shape) {
        return Setup.on(device, torch.zeros(shape).to(type));
    }

    /** This rank's part of a matrix: rows for dimension 0, columns for 1. */
    private Tensor own(Tensor matrix, long dimension) {
        long part = matrix.size(dimension) / size;
        return matrix.narrow(dimension, rank * part, part).contiguous();
    }

    /** Appends the word with the highest score to each sequence until the text has its length. Collective. */
    private Text decode(Tensor prompt) {
        Text text = new Text(
                zeros(ScalarType.Long, SEQUENCES, length), zeros(ScalarType.Double, length - PROMPT, SEQUENCES, WORDS));
        text.words.narrow(1, 0, PROMPT).copy_(prompt);
        for (int end = PROMPT; end < length; end++) {
            try (PointerScope scope = new PointerScope()) {
                // First the whole prompt, then a word at a time: the cache has the keys and values of those before.
                int from = end == PROMPT ? 0 : end - 1;
                Tensor scores = scores(text.words.narrow(1, from, end - from), from);
                text.scores.get(end - PROMPT).copy_(scores);
                text.words.narrow(1, end, 1).copy_(scores.argmax(new LongOptional(1), true));
            }
        }
        return text;
    }

    /** Returns the scores of all words as the next one, after words that begin at a position. */
    private Tensor scores(Tensor words, long from) {
        long count = words.size(1);
        Tensor state = torch.embedding(embedding, words).add(positions.narrow(0, from, count));
        for (Layer layer : layers) {
            state = state.add(sum(attention(layer, normal(state), from)));
            state = state.add(sum(torch.gelu(normal(state).matmul(layer.up)).matmul(layer.down)));
        }
        Tensor own = normal(state.narrow(1, count - 1, 1)).matmul(head).view(SEQUENCES, WORDS / size);
        if (collectives == null) {
            return own;
        }
        Tensor parts = zeros(ScalarType.Double, size, SEQUENCES, WORDS / size);
        collectives.allGather(own, parts);
        return parts.permute(1, 0, 2).reshape(SEQUENCES, WORDS);
    }

    private static Tensor normal(Tensor state) {
        return torch.rms_norm(state, WIDTH);
    }

    /** Adds the summands of all ranks. */
    private Tensor sum(Tensor summand) {
        if (collectives != null) {
            collectives.allReduce(summand, ReduceOp.SUM);
        }
        return summand;
    }

    /** This rank's summand of a layer's attention: that of its heads. */
    private Tensor attention(Layer layer, Tensor state, long from) {
        long count = state.size(1);
        // Of [3, sequence, head, token, width].
        Tensor projected = state.matmul(layer.projection)
                .view(SEQUENCES, count, HEADS / size, 3, HEAD_WIDTH)
                .permute(3, 0, 2, 1, 4);
        layer.cache.narrow(3, from, count).copy_(projected.narrow(0, 1, 2));
        Tensor known = layer.cache.narrow(3, 0, from + count);
        // A single query may attend to all keys.
        Tensor heads = torch.scaled_dot_product_attention(
                projected.get(0),
                known.get(0),
                known.get(1),
                new TensorOptional(),
                0,
                count > 1,
                new DoubleOptional(),
                false);
        return heads.transpose(1, 2).reshape(SEQUENCES, count, WIDTH / size).matmul(layer.output);
    }
}
