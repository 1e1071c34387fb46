package io.github.nccl4j.highlevel;

/**
 * The number of signals of one rank to wait for; see {@link Communicator#waitSignal(CudaStream, SignalWait...)}.
 *
 * <p>Instances are immutable.
 *
 * @param peer the rank that sends the signals
 * @param count the number of signals, at least 1
 * @param index the index of the signal; NCCL supports only 0 so far
 * @param context the context; NCCL supports only 0 so far
 * @since 0.1
 */
public record SignalWait(int peer, int count, int index, int context) {
    /**
     * Creates a wait. Checks only what is independent of a communicator.
     *
     * @param peer the rank that sends the signals
     * @param count the number of signals, at least 1
     * @param index the index of the signal
     * @param context the context
     * @throws IllegalArgumentException if the count is not positive, or another number is negative
     */
    public SignalWait {
        if (peer < 0) {
            throw new IllegalArgumentException("peer must be >= 0: " + peer);
        }
        if (count < 1) {
            throw new IllegalArgumentException("count must be >= 1: " + count);
        }
        if (index < 0) {
            throw new IllegalArgumentException("index must be >= 0: " + index);
        }
        if (context < 0) {
            throw new IllegalArgumentException("context must be >= 0: " + context);
        }
    }

    /**
     * Returns a wait with index and context 0.
     *
     * @param peer the rank that sends the signals
     * @param count the number of signals, at least 1
     * @return the wait
     * @throws IllegalArgumentException if the count is not positive, or the rank is negative
     */
    public static SignalWait of(int peer, int count) {
        return new SignalWait(peer, count, 0, 0);
    }
}
