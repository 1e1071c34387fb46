package io.github.nccl4j.samples.perf;

/**
 * What was measured of one size.
 *
 * @param micros microseconds per call
 * @param algorithm algorithm bandwidth in GB/s
 * @param bus bus bandwidth in GB/s
 * @param wrong how many elements were wrong, or null if nobody looked
 * @param iterations the times of the iterations, or null without -I
 */
record Measurement(double micros, double algorithm, double bus, Long wrong, IterationTimes iterations) {}
