package io.github.nccl4j.tools.perf;

/**
 * The lengths of one run, in elements.
 *
 * @param send the length of a rank's send buffer
 * @param recv the length of its receive buffer
 * @param count the count argument of the NCCL function
 * @param sendInPlace in place, the offset of the send buffer in the receive buffer, divided by the rank
 * @param recvInPlace in place, the offset of the result in the receive buffer, divided by the rank
 */
record Sizes(long send, long recv, long count, long sendInPlace, long recvInPlace) {
    /** The length of the larger buffer. */
    long largest() {
        return Math.max(send, recv);
    }
}
