package io.github.nccl4j.extensions;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element;
import io.github.nccl4j.highlevel.Element.Int64;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import java.util.Arrays;
import java.util.Objects;
import java.util.Optional;

/**
 * A mixture of experts over the ranks of a communicator: sends each token to the ranks of its experts, and brings back the
 * weighted sum of their results. The ranks share the experts evenly, in order: with 8 experts and 4 ranks, rank 1 has the experts
 * 2 and 3.
 *
 * <pre>{@code
 * ExpertParallel<Float32> experts = ExpertParallel.create(communicator, ElementType.FLOAT32, 8, 1024);
 * int[][] chosen = {{0, 5}, {3, 4}}; // the experts of this rank's two tokens
 * float[][] weights = {{0.75f, 0.25f}, {0.5f, 0.5f}};
 * try (ExpertParallel.Dispatch<Float32> dispatch = experts.dispatch(send, chosen, weights, stream)) {
 *     dispatch.tokens().ifPresent(tokens -> tokens.fill(1)); // runs the experts of this rank in place
 *     dispatch.combine(recv, stream);
 * }
 * }</pre>
 *
 * <p>It runs with any NCCL and on the host engine. The routing tables are in Java's memory, and the sum is made there, in the
 * order of a token's experts: for tests, for machines without NCCL EP, and as a reference of NCCL EP, which sums on GPUs.
 *
 * <p><b>Threads.</b> As the communicator: one at a time.
 *
 * @param <T> the type of the elements of tokens, a float type of at most 32 bits
 * @since 0.1
 */
public final class ExpertParallel<T extends Element> {
    private final Communicator communicator;
    private final ElementType<T> type;
    private final int experts;
    private final int hidden;
    private final long capacity;
    private final Overflow overflow;

    /**
     * The reaction to an expert that gets more tokens than its capacity.
     *
     * @since 0.1
     */
    public enum Overflow {
        /** The dispatch throws {@link IllegalStateException} on all ranks. */
        FAIL,
        /** The expert does not get the tokens of the last ranks, and adds nothing to their sums. */
        DROP
    }

    private ExpertParallel(
            Communicator communicator, ElementType<T> type, int experts, int hidden, long capacity, Overflow overflow) {
        if (experts < 1 || experts % communicator.size() != 0) {
            throw new IllegalArgumentException("experts must be a multiple of the number of ranks: " + experts + ", "
                    + communicator.size() + " ranks");
        }
        if (hidden < 1) {
            throw new IllegalArgumentException("hidden must be at least 1: " + hidden);
        }
        if (capacity < 0) {
            throw new IllegalArgumentException("capacity must be at least 0: " + capacity);
        }
        if (!type.isFloat() || type.sizeInBytes() > Float.BYTES) {
            throw new IllegalArgumentException("type must be a float type of at most 32 bits: " + type);
        }
        this.communicator = communicator;
        this.type = type;
        this.experts = experts;
        this.hidden = hidden;
        this.capacity = capacity;
        this.overflow = Objects.requireNonNull(overflow, "overflow");
    }

    /**
     * Describes experts without a limit of tokens. Not collective; all ranks must give the same numbers.
     *
     * @param <T> the type of the elements
     * @param communicator the communicator
     * @param type the type of the elements
     * @param experts the number of experts, a multiple of the number of ranks
     * @param hidden the number of elements of a token
     * @return the description
     * @throws IllegalArgumentException if a number or the type is not possible
     */
    public static <T extends Element> ExpertParallel<T> create(
            Communicator communicator, ElementType<T> type, int experts, int hidden) {
        return new ExpertParallel<>(communicator, type, experts, hidden, Long.MAX_VALUE, Overflow.FAIL);
    }

    /**
     * Returns these experts with a limit of tokens.
     *
     * @param tokens the most tokens that an expert gets in a dispatch, from all ranks together
     * @param reaction the reaction to more tokens
     * @return the description with the limit
     * @throws IllegalArgumentException if the number is negative
     */
    public ExpertParallel<T> withCapacity(long tokens, Overflow reaction) {
        return new ExpertParallel<>(communicator, type, experts, hidden, tokens, reaction);
    }

    /** {@return the number of experts of each rank} */
    public int localExperts() {
        return experts / communicator.size();
    }

    /**
     * Sends tokens to their experts. Collective; waits for the other ranks, and for the tokens.
     *
     * <p>C functions: {@code ncclAllGather} of the numbers of tokens, and a group of {@code ncclSend} and {@code ncclRecv}.
     *
     * @param tokens the tokens of this rank, one after the other
     * @param chosen the experts of each token, possibly none; their number may differ
     * @param weights the weight of each of these experts
     * @param stream the stream
     * @return the received tokens, to be closed by the caller
     * @throws IllegalArgumentException if the tables and the tokens have different lengths
     * @throws IndexOutOfBoundsException if there is no such expert
     * @throws IllegalStateException if a group is open in this thread, or on all ranks if an expert gets too many tokens and
     *     the reaction is {@link Overflow#FAIL}
     */
    public Dispatch<T> dispatch(DeviceBuffer<T> tokens, int[][] chosen, float[][] weights, CudaStream stream) {
        if (Group.isOpenInThisThread()) {
            throw new IllegalStateException("a dispatch must not run in a group: it waits for the numbers of tokens");
        }
        long[] wanted = count(tokens.length(), chosen, weights);
        long[] accepted = accept(gather(wanted, stream));
        return new Dispatch<>(this, tokens, chosen, weights, accepted, stream);
    }

    /** The number of tokens of this rank for each expert. */
    private long[] count(long elements, int[][] chosen, float[][] weights) {
        if ((long) chosen.length * hidden != elements || weights.length != chosen.length) {
            throw new IllegalArgumentException("tokens, chosen and weights must have one length: " + elements
                    + " elements, " + chosen.length + " x " + hidden + " and " + weights.length);
        }
        long[] wanted = new long[experts];
        for (int token = 0; token < chosen.length; token++) {
            if (chosen[token].length != weights[token].length) {
                throw new IllegalArgumentException("a token must have a weight per expert: token " + token + " has "
                        + chosen[token].length + " experts and " + weights[token].length + " weights");
            }
            for (int expert : chosen[token]) {
                wanted[Objects.checkIndex(expert, experts)]++;
            }
        }
        return wanted;
    }

    /** The numbers of all ranks, by rank and expert. */
    private long[] gather(long[] wanted, CudaStream stream) {
        long[] all = new long[experts * communicator.size()];
        try (DeviceBuffer<Int64> own = communicator.device().allocate(ElementType.INT64, wanted.length);
                DeviceBuffer<Int64> gathered = communicator.device().allocate(ElementType.INT64, all.length)) {
            own.copyFrom(wanted);
            communicator.allGather(own, gathered, stream);
            stream.synchronize(communicator.deadline());
            gathered.copyTo(all);
        }
        return all;
    }

    /** The numbers that fit the capacity: the first ranks come first. */
    private long[] accept(long[] wanted) {
        long[] accepted = new long[wanted.length];
        for (int expert = 0; expert < experts; expert++) {
            long left = capacity;
            long total = 0;
            for (int rank = 0; rank < communicator.size(); rank++) {
                int at = rank * experts + expert;
                accepted[at] = Math.min(wanted[at], left);
                left -= accepted[at];
                total += wanted[at];
            }
            if (total > capacity && overflow == Overflow.FAIL) {
                throw new IllegalStateException("an expert must not get more tokens than its capacity: expert " + expert
                        + " got " + total + ", its capacity is " + capacity);
            }
        }
        return accepted;
    }

    /**
     * The tokens that this rank's experts have received. The tokens of an expert follow each other: those of the first rank
     * first, each rank's in their order.
     *
     * <p><b>Ownership.</b> The creator closes it after {@link #combine}, when the work of the stream is complete.
     *
     * <p><b>Threads.</b> As the communicator: one at a time.
     *
     * @param <T> the type of the elements
     * @since 0.1
     */
    public static final class Dispatch<T extends Element> implements AutoCloseable {
        private final ExpertParallel<T> parent;
        private final int[][] chosen;
        private final float[][] weights;
        private final long[] accepted;
        private final int[] counts;
        /** The place of each token's row for each of its experts among the rows that this rank sends; -1 if it was dropped. */
        private final long[][] rows;

        private final Optional<DeviceBuffer<T>> sent;
        private final Optional<DeviceBuffer<T>> received;
        private long dropped;

        private Dispatch(
                ExpertParallel<T> parent,
                DeviceBuffer<T> tokens,
                int[][] chosen,
                float[][] weights,
                long[] accepted,
                CudaStream stream) {
            this.parent = parent;
            this.chosen = copyOf(chosen);
            this.weights = Arrays.stream(weights).map(float[]::clone).toArray(float[][]::new);
            this.accepted = accepted;
            int rank = parent.communicator.rank();
            int local = parent.localExperts();
            this.counts = new int[local];
            long incoming = 0;
            for (int expert = 0; expert < local; expert++) {
                long count = 0;
                for (int source = 0; source < parent.communicator.size(); source++) {
                    count += acceptedOf(source, rank * local + expert);
                }
                counts[expert] = Math.toIntExact(count);
                incoming += count;
            }
            long outgoing = 0;
            long[] next = new long[parent.experts];
            for (int expert = 0; expert < parent.experts; expert++) {
                next[expert] = outgoing;
                outgoing += acceptedOf(rank, expert);
            }
            this.rows = rows(next);
            this.sent = allocate(outgoing);
            this.received = allocate(incoming);
            for (int token = 0; token < rows.length; token++) {
                for (long row : rows[token]) {
                    if (row >= 0) {
                        row(sent.orElseThrow(), row, 1).copyFromAsync(row(tokens, token, 1), stream);
                    }
                }
            }
            exchange(sent, received, true, stream);
            stream.synchronize(parent.communicator.deadline());
        }

        private static int[][] copyOf(int[][] table) {
            return Arrays.stream(table).map(int[]::clone).toArray(int[][]::new);
        }

        private long acceptedOf(int rank, int expert) {
            return accepted[rank * parent.experts + expert];
        }

        private Optional<DeviceBuffer<T>> allocate(long count) {
            return count == 0
                    ? Optional.empty()
                    : Optional.of(parent.communicator.device().allocate(parent.type, count * parent.hidden));
        }

        private DeviceBuffer<T> row(DeviceBuffer<T> rows, long first, long count) {
            return rows.slice(first * parent.hidden, count * parent.hidden);
        }

        /** Gives each token and expert its row, as far as the accepted rows go. */
        private long[][] rows(long[] first) {
            long[] used = new long[parent.experts];
            long[][] places = new long[chosen.length][];
            for (int token = 0; token < chosen.length; token++) {
                places[token] = new long[chosen[token].length];
                for (int i = 0; i < chosen[token].length; i++) {
                    int expert = chosen[token][i];
                    boolean fits = used[expert] < acceptedOf(parent.communicator.rank(), expert);
                    places[token][i] = fits ? first[expert] + used[expert]++ : -1;
                    dropped += fits ? 0 : 1;
                }
            }
            return places;
        }

        /** Moves rows between the order of the sender and that of the experts, in either direction. */
        private void exchange(
                Optional<DeviceBuffer<T>> bySender,
                Optional<DeviceBuffer<T>> byExpert,
                boolean forward,
                CudaStream stream) {
            if (bySender.isEmpty() && byExpert.isEmpty()) {
                return;
            }
            Communicator communicator = parent.communicator;
            int rank = communicator.rank();
            int local = parent.localExperts();
            Group.run(() -> {
                long row = 0;
                for (int expert = 0; expert < parent.experts; expert++) {
                    long count = acceptedOf(rank, expert);
                    if (count > 0) {
                        transfer(row(bySender.orElseThrow(), row, count), expert / local, forward, stream);
                        row += count;
                    }
                }
                row = 0;
                for (int expert = rank * local; expert < (rank + 1) * local; expert++) {
                    for (int source = 0; source < communicator.size(); source++) {
                        long count = acceptedOf(source, expert);
                        if (count > 0) {
                            transfer(row(byExpert.orElseThrow(), row, count), source, !forward, stream);
                            row += count;
                        }
                    }
                }
            });
        }

        private void transfer(DeviceBuffer<T> block, int peer, boolean sends, CudaStream stream) {
            if (sends) {
                parent.communicator.send(block, peer, stream);
            } else {
                parent.communicator.recv(block, peer, stream);
            }
        }

        /** {@return the received tokens in the order of the experts; empty if there is none} */
        public Optional<DeviceBuffer<T>> tokens() {
            return received;
        }

        /** {@return the number of tokens of each expert of this rank} */
        public int[] counts() {
            return counts.clone();
        }

        /** {@return the number of times that an expert did not get a token of this rank} */
        public long dropped() {
            return dropped;
        }

        /**
         * Brings the results of the experts, which have replaced the elements of {@link #tokens}, back to the ranks of the tokens,
         * and sums them with their weights. Collective; waits for the other ranks.
         *
         * <p>C functions: a group of {@code ncclSend} and {@code ncclRecv}.
         *
         * @param combined the destination: an element for each element of the tokens of this rank
         * @param stream the stream
         * @throws IllegalArgumentException if the destination has another length
         * @throws IllegalStateException if a group is open in this thread, or if this object is closed
         */
        public void combine(DeviceBuffer<T> combined, CudaStream stream) {
            if (Group.isOpenInThisThread()) {
                throw new IllegalStateException("a combination must not run in a group: it waits for the results");
            }
            int hidden = parent.hidden;
            if (combined.length() != (long) rows.length * hidden) {
                throw new IllegalArgumentException("combined must have the length of the tokens: " + combined.length()
                        + ", not " + rows.length + " x " + hidden);
            }
            exchange(sent, received, false, stream);
            stream.synchronize(parent.communicator.deadline());
            float[] sum = new float[hidden];
            float[] result = new float[hidden];
            for (int token = 0; token < rows.length; token++) {
                Arrays.fill(sum, 0);
                for (int i = 0; i < rows[token].length; i++) {
                    if (rows[token][i] >= 0) {
                        row(sent.orElseThrow(), rows[token][i], 1).copyTo(result);
                        for (int element = 0; element < hidden; element++) {
                            sum[element] += weights[token][i] * result[element];
                        }
                    }
                }
                row(combined, token, 1).copyFrom(sum);
            }
        }

        /** Frees the received tokens. */
        @Override
        public void close() {
            sent.ifPresent(DeviceBuffer::close);
            received.ifPresent(DeviceBuffer::close);
        }
    }
}
