package io.github.nccl4j.tools.perf;

/**
 * The measurement of a size, out of place or in place.
 *
 * @param micros the time of a call in microseconds
 * @param algorithm the algorithm bandwidth in GB/s
 * @param bus the bus bandwidth in GB/s
 * @param wrong the number of wrong elements, or null if they were not checked
 * @param iterations the times of the iterations, or null without -I
 */
record Measurement(double micros, double algorithm, double bus, Long wrong, IterationTimes iterations) {}
