package io.github.nccl4j.tools.analyze;

import java.util.Locale;

/**
 * An operation in the file of the profiler.
 *
 * @param function the C function
 * @param bytes the size of its elements
 * @param rank the rank in the communicator
 * @param busBandwidth in 10^9 bytes per second
 * @param tag the profiler tag, or 0
 */
record Kernel(String function, long bytes, int rank, Times times, double busBandwidth, Choice choice, long tag) {
    /**
     * The times.
     *
     * @param launched the time of the launch, in microseconds since 1970
     * @param queued the time from the launch to the start of the kernel, in nanoseconds
     * @param duration the time of the kernel, in nanoseconds
     */
    record Times(long launched, long queued, long duration) {}

    /**
     * The choice of NCCL.
     *
     * @param algorithm the algorithm and the protocol; empty if there is none
     * @param channels the number of channels
     */
    record Choice(String algorithm, int channels) {}

    long duration() {
        return times.duration;
    }

    /** A description such as "kernel 12.3 us, queued 4.0 us, RING SIMPLE, 24 channels, 171.2 GB/s". */
    String describe() {
        return String.format(
                Locale.ROOT,
                "kernel %.1f us, queued %.1f us%s, %d channels, %.1f GB/s%s",
                times.duration / 1000.0,
                times.queued / 1000.0,
                choice.algorithm.isEmpty() ? "" : ", " + choice.algorithm,
                choice.channels,
                busBandwidth,
                tag == 0 ? "" : ", tag " + Long.toUnsignedString(tag));
    }
}
