package io.github.nccl4j.samples.perf;

/**
 * The lengths of one run, in elements.
 *
 * @param send what a rank's send buffer holds
 * @param recv what its receive buffer holds
 * @param count the count that the function is called with
 * @param sendInPlace where the send buffer begins within the receive buffer in place, times the rank
 * @param recvInPlace where the receive buffer begins within itself in place, times the rank
 */
record Sizes(long send, long recv, long count, long sendInPlace, long recvInPlace) {
    /** The larger of the two buffers. */
    long largest() {
        return Math.max(send, recv);
    }
}
