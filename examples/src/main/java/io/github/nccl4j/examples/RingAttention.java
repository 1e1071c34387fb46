package io.github.nccl4j.examples;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaEvent;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.pytorch.TensorBuffer;
import io.github.nccl4j.pytorch.TensorCollectives;
import java.util.Map;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.Dispatcher;
import org.bytedeco.pytorch.DoubleOptional;
import org.bytedeco.pytorch.IValue;
import org.bytedeco.pytorch.IValueVector;
import org.bytedeco.pytorch.NoGradGuard;
import org.bytedeco.pytorch.OperatorHandle;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorOptional;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
import org.bytedeco.pytorch.global.torch.ScalarType;

/**
 * Causal attention over a sequence that is divided among the ranks. Each rank keeps its queries; the blocks of keys and values
 * travel around the ring of ranks, by send and receive, while attention to the previous block is computed.
 *
 * <p>A query attends to no later key, so the ranks with the end of the sequence would do most of the work. Therefore the sequence
 * has two chunks for each rank, and rank r has chunk r from the front and chunk r from the end: all ranks do equal work.
 *
 * <p>Attention to a part of the keys gives an output, and the logarithm of the sum of exponentials by which it was divided. With
 * that the outputs of two parts are merged exactly.
 */
public final class RingAttention {
    private static final long HEADS = 8;
    private static final long WIDTH = 64;
    /** In float. Only the order of sums differs. */
    private static final double BOUND = 1e-5;

    private final Device device;
    private final int rank;
    private final int size;
    private final long chunk;
    private final TensorCollectives collectives;
    private final CudaStream stream;
    private final OperatorHandle attention;

    private RingAttention(Communicator communicator, CudaStream stream, long tokens) {
        device = communicator.device();
        rank = communicator.rank();
        size = communicator.size();
        chunk = tokens / size / 2;
        this.stream = stream;
        collectives = TensorCollectives.of(communicator).in(stream);
        // The presets leave out functions whose names begin with _; PyTorch's dispatcher has them.
        String name = device.isHost() ? "flash_attention_for_cpu" : "efficient_attention";
        attention = Dispatcher.singleton().findSchemaOrThrow("aten::_scaled_dot_product_" + name, "");
    }

    public static void main(String[] args) {
        Map<String, Integer> options = Setup.options(args, "-s 2048 -i 5 -u 1");
        int tokens = options.get("-s");
        Setup.begin();
        try (Communicator communicator = Communicator.fromEnvironment();
                CudaStream stream = CudaStream.nonBlocking(communicator.device());
                NoGradGuard noGradients = new NoGradGuard();
                PointerScope scope = new PointerScope()) {
            if (tokens % (2 * communicator.size()) != 0) {
                throw new IllegalArgumentException(
                        "-s must be a multiple of twice the number of ranks: " + tokens + ", " + communicator.size());
            }
            RingAttention ring = new RingAttention(communicator, stream, tokens);
            // A real job has only its own part; here each rank makes all, to check its result.
            torch.manual_seed(1);
            Tensor all = Setup.random(ring.device, ScalarType.Float, 3, 1, HEADS, tokens, WIDTH);
            Tensor own = ring.own(all, 3);
            Figures figures = new Figures(options.get("-u"));
            for (int i = 0; i < options.get("-u") + options.get("-i"); i++) {
                ring.attend(own).close();
                figures.step(communicator);
            }
            String text = figures.end(communicator, tokens, "tokens");

            Tensor output = ring.attend(own);
            Tensor whole = torch.scaled_dot_product_attention(
                    all.get(0), all.get(1), all.get(2), new TensorOptional(), 0, true, new DoubleOptional(), false);
            String checked = Setup.requireClose("outputs", output, ring.own(whole, 2), BOUND);
            System.out.println("rank " + ring.rank + ": attention of " + tokens / ring.size + " of " + tokens
                    + " tokens to all before them as by one rank: " + checked);
            if (ring.rank == 0) {
                System.out.println(text);
            }
        }
    }

    /** The number of the front or the back chunk of a rank. */
    private int number(int rank, int half) {
        return half == 0 ? rank : 2 * size - 1 - rank;
    }

    /** This rank's two chunks of a tensor with all tokens in a dimension. */
    private Tensor own(Tensor all, long dimension) {
        return torch.cat(
                new TensorVector(
                        all.narrow(dimension, number(rank, 0) * chunk, chunk),
                        all.narrow(dimension, number(rank, 1) * chunk, chunk)),
                dimension);
    }

    private Tensor half(Tensor both, int half) {
        return both.narrow(-2, half * chunk, chunk);
    }

    /** An output, and the logarithm of the sum by which it was divided; null before the first keys. */
    private record Part(Tensor output, Tensor logSum) implements AutoCloseable {
        /** Keeps the tensors beyond the scope in which they were made. */
        Part retain() {
            output.retainReference();
            logSum.retainReference();
            return this;
        }

        @Override
        public void close() {
            output.close();
            logSum.close();
        }
    }

    /**
     * Computes attention of this rank's queries to the keys of all ranks. Collective.
     *
     * @param own queries, keys and values of this rank
     * @return the output for this rank's queries
     */
    private Tensor attend(Tensor own) {
        try (PointerScope scope = new PointerScope()) {
            Tensor queries = own.get(0);
            Tensor block = own.narrow(0, 1, 2).contiguous();
            Tensor next = torch.empty_like(block);
            Part[] parts = new Part[2];
            for (int hop = 0; hop < size; hop++) {
                if (hop + 1 < size) {
                    pass(block, next);
                }
                merge(parts, queries, block, (rank - hop + size) % size);
                if (device.isHost()) {
                    collectives.communicator().work(stream).await();
                } else {
                    order(stream, TensorBuffer.currentStream(device));
                }
                Tensor used = block;
                block = next;
                next = used;
            }
            try (Part first = parts[0];
                    Part second = parts[1]) {
                return torch.cat(new TensorVector(first.output, second.output), 2)
                        .retainReference();
            }
        }
    }

    /** Begins to send a block to the next rank and to receive that of the previous one. */
    private void pass(Tensor block, Tensor next) {
        if (!device.isHost()) {
            // Attention to the last block may still read the memory that receives.
            order(TensorBuffer.currentStream(device), stream);
        }
        Group.run(() -> {
            collectives.send(block, (rank + 1) % size);
            collectives.recv(next, (rank - 1 + size) % size);
        });
    }

    /** Makes a stream of a GPU wait for the present work of another. */
    private void order(CudaStream first, CudaStream then) {
        try (CudaEvent done = CudaEvent.create(device)) {
            done.record(first);
            then.waitFor(done);
        }
    }

    /** Adds attention to the block of a rank. */
    private void merge(Part[] parts, Tensor queries, Tensor block, int owner) {
        for (int queryHalf = 0; queryHalf < 2; queryHalf++) {
            for (int keyHalf = 0; keyHalf < 2; keyHalf++) {
                int query = number(rank, queryHalf);
                int key = number(owner, keyHalf);
                if (key <= query) {
                    add(parts, queryHalf, queries, half(block, keyHalf), key == query);
                }
            }
        }
    }

    /** The memory of what is computed on the way serves the next attention. */
    private void add(Part[] parts, int queryHalf, Tensor queries, Tensor block, boolean causal) {
        try (PointerScope scope = new PointerScope();
                Part before = parts[queryHalf]) {
            Part part = attention(half(queries, queryHalf), block.get(0), block.get(1), causal);
            parts[queryHalf] = (before == null ? part : merge(before, part)).retain();
        }
    }

    private static Part merge(Part first, Part second) {
        Tensor logSum = torch.logaddexp(first.logSum, second.logSum);
        Tensor output = first.output
                .mul(first.logSum.sub(logSum).exp())
                .add(second.output.mul(second.logSum.sub(logSum).exp()));
        return new Part(output, logSum);
    }

    private Part attention(Tensor query, Tensor key, Tensor value, boolean causal) {
        IValue none = new IValue();
        IValueVector stack = new IValueVector(new IValue(query), new IValue(key), new IValue(value));
        IValue noDropout = new IValue(0.0);
        if (device.isHost()) {
            // dropout_p, is_causal, attn_mask, scale
            stack.push_back(noDropout)
                    .push_back(new IValue(causal))
                    .push_back(none)
                    .push_back(none);
        } else {
            // attn_bias, compute_log_sumexp, dropout_p, is_causal, scale
            stack.push_back(none).push_back(new IValue(true)).push_back(noDropout);
            stack.push_back(new IValue(causal)).push_back(none);
        }
        attention.callBoxed(stack);
        // On a GPU it is padded.
        Tensor logSum = stack.get(1).toTensor().narrow(2, 0, query.size(2));
        // Not a reference to the element of the stack.
        return new Part(new Tensor(stack.get(0).toTensor()), logSum.unsqueeze(-1));
    }
}
