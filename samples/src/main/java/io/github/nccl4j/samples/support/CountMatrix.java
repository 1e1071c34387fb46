package io.github.nccl4j.samples.support;

import java.util.function.IntToLongFunction;
import java.util.stream.IntStream;
import org.bytedeco.javacpp.SizeTPointer;

/**
 * The four matrices of {@code ncclAlltoAllv}: who sends how much to whom, and where it lies.
 *
 * <p>Each is n×n, by rows, in native memory, and the same on every rank. Row i of the send matrices says what rank i sends, row i of the
 * receive matrices what it receives. NCCL reads them until the call, or the group around it, returns: close only after that.
 * Blocks lie one behind the other, those to be received in the opposite order of ranks.
 */
public final class CountMatrix implements AutoCloseable {

    private final int ranks;
    private final SizeTPointer sendCounts;
    private final SizeTPointer sendDisplacements;
    private final SizeTPointer receiveCounts;
    private final SizeTPointer receiveDisplacements;

    /** How many elements one rank sends to another. */
    @FunctionalInterface
    public interface Counts {

        /**
         * Gives one entry.
         *
         * @param from the sending rank
         * @param to the receiving rank
         * @return the number of elements, at least 0
         */
        long count(int from, int to);
    }

    /**
     * Makes the matrices.
     *
     * @param ranks how many ranks there are
     * @param counts how much each sends to each
     */
    public CountMatrix(int ranks, Counts counts) {
        this.ranks = ranks;
        long size = (long) ranks * ranks;
        sendCounts = new SizeTPointer(size);
        sendDisplacements = new SizeTPointer(size);
        receiveCounts = new SizeTPointer(size);
        receiveDisplacements = new SizeTPointer(size);
        for (int i = 0; i < ranks; i++) {
            long sent = 0;
            long received = 0;
            for (int j = 0; j < ranks; j++) {
                int last = ranks - 1 - j;
                sendCounts.put(index(i, j), counts.count(i, j));
                sendDisplacements.put(index(i, j), sent);
                receiveCounts.put(index(i, last), counts.count(last, i));
                receiveDisplacements.put(index(i, last), received);
                sent += counts.count(i, j);
                received += counts.count(last, i);
            }
        }
    }

    private long index(int row, int column) {
        return (long) row * ranks + column;
    }

    /** {@return the number of ranks} */
    public int ranks() {
        return ranks;
    }

    /**
     * How much is sent.
     *
     * @param from the sending rank
     * @param to the receiving rank
     * @return the number of elements
     */
    public long sent(int from, int to) {
        return sendCounts.get(index(from, to));
    }

    /**
     * Where a block lies in the sender's buffer.
     *
     * @param rank the sender
     * @param to the receiver
     * @return its first element's index
     */
    public long sendDisplacement(int rank, int to) {
        return sendDisplacements.get(index(rank, to));
    }

    /**
     * Where a block lands in the receiver's buffer.
     *
     * @param rank the receiver
     * @param from the sender
     * @return its first element's index
     */
    public long receiveDisplacement(int rank, int from) {
        return receiveDisplacements.get(index(rank, from));
    }

    /** {@return the number of elements of the largest buffer that any rank needs} */
    public long largestBuffer() {
        return IntStream.range(0, ranks)
                .mapToLong(rank -> Math.max(sum(peer -> sent(rank, peer)), sum(peer -> sent(peer, rank))))
                .max()
                .orElse(0);
    }

    private long sum(IntToLongFunction of) {
        return IntStream.range(0, ranks).mapToLong(of).sum();
    }

    /** {@return the address of the matrix of send counts} */
    public long sendCounts() {
        return sendCounts.address();
    }

    /** {@return the address of the matrix of displacements in send buffers} */
    public long sendDisplacements() {
        return sendDisplacements.address();
    }

    /** {@return the address of the matrix of receive counts} */
    public long receiveCounts() {
        return receiveCounts.address();
    }

    /** {@return the address of the matrix of displacements in receive buffers} */
    public long receiveDisplacements() {
        return receiveDisplacements.address();
    }

    @Override
    public void close() {
        sendCounts.close();
        sendDisplacements.close();
        receiveCounts.close();
        receiveDisplacements.close();
    }
}
