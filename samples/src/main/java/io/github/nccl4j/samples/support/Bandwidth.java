package io.github.nccl4j.samples.support;

/** The two bandwidths that nccl-tests prints, in GB/s (1e9 bytes a second). */
public final class Bandwidth {

    private Bandwidth() {}

    /**
     * Bytes per time.
     *
     * @param bytes the size of the operation
     * @param micros its duration in microseconds
     * @return GB/s
     */
    public static double algorithm(long bytes, double micros) {
        return bytes / (micros * 1e3);
    }

    /**
     * What an all-reduce moves over each link: every rank sends and receives 2(n-1)/n times the data.
     *
     * @param bytes the size of the operation
     * @param micros its duration in microseconds
     * @param ranks the number of ranks
     * @return GB/s
     */
    public static double allReduceBus(long bytes, double micros, int ranks) {
        return algorithm(bytes, micros) * 2 * (ranks - 1) / ranks;
    }
}
