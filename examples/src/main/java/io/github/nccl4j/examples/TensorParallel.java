package io.github.nccl4j.examples;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.pytorch.TensorCollectives;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
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
 * <p>A step reads and writes all that changes, also the position, in memory of the device, so that on a GPU it is captured once, with
 * its all-reduces, and launched for each word: a launch costs as little for a thousand kernels as for one.
 *
 * <p>In double: in float the sums of several ranks differ from those of one in the last bits, and where two words have almost the
 * same score, the text would differ from there on.
 */
public final class TensorParallel {
    private static final int HEADS = 8;
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

    private final Device device;
    private final int rank;
    private final int size;
    /** Null for a model that is not divided. */
    private final TensorCollectives collectives;

    private final int width;
    private final int length;
    private final Tensor embedding;
    private final Tensor positions;
    private final Tensor head;
    private final List<Layer> layers = new ArrayList<>();

    /** The text: of [sequence, position]. */
    private final Tensor words;
    /** The scores by which its words were chosen: of [position, sequence, word]. */
    private final Tensor scores;
    /** The position of the last word. */
    private final Tensor last;

    /** Makes all weights, and keeps those of a rank. A real job loads its part from a file. */
    private TensorParallel(Device device, TensorCollectives collectives, Map<String, Integer> options) {
        this.device = device;
        this.collectives = collectives;
        length = PROMPT + options.get("-t");
        width = options.get("-w");
        rank = collectives == null ? 0 : collectives.communicator().rank();
        size = collectives == null ? 1 : collectives.communicator().size();
        torch.manual_seed(1);
        embedding = random(WORDS, width);
        positions = random(length, width);
        for (int i = 0; i < options.get("-l"); i++) {
            Tensor projection = own(width, 3 * width, 1);
            Tensor output = own(width, width, 0);
            Tensor up = own(width, 4 * width, 1);
            Tensor down = own(4 * width, width, 0);
            Tensor cache = zeros(ScalarType.Double, 2, SEQUENCES, HEADS / size, length, width / HEADS);
            layers.add(new Layer(projection, output, up, down, cache));
        }
        head = own(width, WORDS, 1);
        words = zeros(ScalarType.Long, SEQUENCES, length);
        scores = zeros(ScalarType.Double, length, SEQUENCES, WORDS);
        last = zeros(ScalarType.Long, 1);
    }

    public static void main(String[] args) {
        Map<String, Integer> options = Setup.options(args, "-t 64 -w 128 -l 3 -e 0");
        Setup.begin();
        try (Communicator communicator = Communicator.fromEnvironment();
                NoGradGuard noGradients = new NoGradGuard();
                PointerScope scope = new PointerScope()) {
            int rank = communicator.rank();
            int size = communicator.size();
            Device device = communicator.device();
            if (HEADS % size != 0 || options.get("-w") % HEADS != 0) {
                throw new IllegalArgumentException("the number of ranks must divide " + HEADS + " heads, and they -w: "
                        + size + ", " + options.get("-w"));
            }
            TensorParallel model = new TensorParallel(device, TensorCollectives.of(communicator), options);
            Figures figures = new Figures(options.get("-t"));
            Runnable then = () -> figures.step(communicator);
            String text;
            // On the CPU PyTorch has no streams.
            try (TorchGraph graph = device.isHost() || options.get("-e") == 1 ? null : new TorchGraph(device)) {
                model.decode(model::append, then);
                if (graph != null) {
                    graph.capture(model::append);
                    figures.begin(communicator);
                }
                model.decode(graph == null ? model::append : graph::launch, then);
                text = figures.end(communicator, SEQUENCES, "tokens");
            }

            TensorParallel alone = new TensorParallel(device, null, options);
            alone.decode(alone::append, () -> {});
            String checked = Setup.requireClose("scores", model.scores, alone.scores, BOUND);
            if (!model.words.equal(alone.words)) {
                throw new IllegalStateException("the words must be those of one rank");
            }
            System.out.println(
                    "rank " + rank + ": " + HEADS / size + " of " + HEADS + " heads, " + SEQUENCES + " sequences of "
                            + options.get("-t") + " tokens, the same words as by one rank, scores: " + checked);
            if (rank == 0) {
                System.out.println(text);
            }
        }
    }

    private Tensor random(long rows, long columns) {
        Tensor values = Setup.random(device, ScalarType.Double, rows, columns);
        return values.div_(new Scalar(Math.sqrt(width)));
    }

    private Tensor zeros(ScalarType type, long... shape) {
        return Setup.zeros(device, type, shape);
    }

    /** This rank's part of a new matrix: rows for dimension 0, columns for 1. */
    private Tensor own(long rows, long columns, long dimension) {
        return Setup.kept(() -> {
            Tensor matrix = random(rows, columns);
            long part = matrix.size(dimension) / size;
            return matrix.narrow(dimension, rank * part, part).contiguous();
        });
    }

    /**
     * Makes a text. Collective.
     *
     * @param append appends a word to each sequence
     * @param then called after each word
     */
    private void decode(Runnable append, Runnable then) {
        try (PointerScope scope = new PointerScope()) {
            Tensor prompt = torch.arange(new Scalar(SEQUENCES * PROMPT)).view(SEQUENCES, PROMPT);
            words.narrow(1, 0, PROMPT).copy_(prompt);
            last.fill_(new Scalar(PROMPT - 1));
            Tensor at = zeros(ScalarType.Long, PROMPT).copy_(torch.arange(new Scalar(PROMPT)));
            choose(scores(words.narrow(1, 0, PROMPT), at));
        }
        then.run();
        for (int end = PROMPT + 1; end < length; end++) {
            append.run();
            then.run();
        }
    }

    /** Appends the word with the highest score to each sequence. */
    private void append() {
        try (PointerScope scope = new PointerScope()) {
            choose(scores(words.index_select(1, last), last));
        }
    }

    private void choose(Tensor next) {
        last.add_(new Scalar(1));
        scores.index_copy_(0, last, next.unsqueeze(0));
        words.index_copy_(1, last, next.argmax(new LongOptional(1), true));
    }

    /** Returns the scores of all words as the next one, after words at some positions. */
    private Tensor scores(Tensor words, Tensor at) {
        // A word attends to itself and to those before it: of [word, position].
        Tensor known = torch.arange(new Scalar(length), Setup.options(device, ScalarType.Long))
                .le(at.unsqueeze(1));
        Tensor state = torch.embedding(embedding, words).add(positions.index_select(0, at));
        for (Layer layer : layers) {
            state = state.add(sum(attention(layer, normal(state), at, known)));
            state = state.add(sum(torch.gelu(normal(state).matmul(layer.up)).matmul(layer.down)));
        }
        Tensor own = normal(state.narrow(1, words.size(1) - 1, 1)).matmul(head).view(SEQUENCES, WORDS / size);
        if (collectives == null) {
            return own;
        }
        Tensor parts = zeros(ScalarType.Double, size, SEQUENCES, WORDS / size);
        collectives.allGather(own, parts);
        return parts.permute(1, 0, 2).reshape(SEQUENCES, WORDS);
    }

    private Tensor normal(Tensor state) {
        return torch.rms_norm(state, width);
    }

    /** Adds the summands of all ranks. */
    private Tensor sum(Tensor summand) {
        if (collectives != null) {
            collectives.allReduce(summand, ReduceOp.SUM);
        }
        return summand;
    }

    /** This rank's summand of a layer's attention: that of its heads. */
    private Tensor attention(Layer layer, Tensor state, Tensor at, Tensor known) {
        // Of [3, sequence, head, token, width].
        Tensor projected = state.matmul(layer.projection)
                .view(SEQUENCES, at.size(0), HEADS / size, 3, width / HEADS)
                .permute(3, 0, 2, 1, 4);
        layer.cache.index_copy_(3, at, projected.narrow(0, 1, 2));
        Tensor heads = torch.scaled_dot_product_attention(
                projected.get(0),
                layer.cache.get(0),
                layer.cache.get(1),
                new TensorOptional(known),
                0,
                false,
                new DoubleOptional(),
                false);
        return heads.transpose(1, 2)
                .reshape(SEQUENCES, at.size(0), width / size)
                .matmul(layer.output);
    }
}
