package io.github.nccl4j.samples.perf;

/** A collective of one rank with all its arguments, ready to be put into the rank's stream again and again. */
@FunctionalInterface
interface Call extends AutoCloseable {
    void enqueue();

    /** When it won't be made again. */
    @Override
    default void close() {}
}
