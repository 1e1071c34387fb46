package io.github.nccl4j.tools.support;

/** Computes the bandwidths that nccl-tests prints, in GB/s (1e9 bytes per second). Stateless. */
public final class Bandwidth {

    private Bandwidth() {}

    /**
     * Computes the algorithm bandwidth: the size divided by the time.
     *
     * @param bytes the size of the operation
     * @param micros its duration in microseconds
     * @return the bandwidth in GB/s
     */
    public static double algorithm(long bytes, double micros) {
        return bytes / (micros * 1e3);
    }

    /**
     * Computes the bus bandwidth of an all-reduce: every rank sends and receives 2(n-1)/n times the data.
     *
     * @param bytes the size of the operation
     * @param micros its duration in microseconds
     * @param ranks the number of ranks
     * @return the bandwidth in GB/s
     */
    public static double allReduceBus(long bytes, double micros, int ranks) {
        return algorithm(bytes, micros) * 2 * (ranks - 1) / ranks;
    }
}
