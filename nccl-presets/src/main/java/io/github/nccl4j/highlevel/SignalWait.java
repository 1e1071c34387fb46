package io.github.nccl4j.highlevel;

/**
 * How many signals of one rank to wait for; see {@link Communicator#waitSignal(CudaStream, SignalWait...)}.
 *
 * <p>Instances are immutable.
 *
 * @param peer the rank that sends the signals
 * @param count how many, at least 1
 * @param index which of the signals that a rank has; only 0 exists in NCCL so far
 * @param context in which context; only 0 is allowed by NCCL so far
 */
public record SignalWait(int peer, int count, int index, int context) {
    /**
     * Checks what does not depend on a communicator.
     *
     * @param peer the rank that sends the signals
     * @param count how many
     * @param index which of the signals
     * @param context in which context
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
     * Some signals of a rank, with index and context 0.
     *
     * @param peer the rank that sends them
     * @param count how many
     * @return the wait
     * @throws IllegalArgumentException if the count is not positive, or the rank is negative
     */
    public static SignalWait of(int peer, int count) {
        return new SignalWait(peer, count, 0, 0);
    }
}
