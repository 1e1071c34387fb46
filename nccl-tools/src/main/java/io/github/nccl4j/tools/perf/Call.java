package io.github.nccl4j.tools.perf;

/** A call of a collective on one rank, with all arguments; it can be enqueued repeatedly. */
@FunctionalInterface
interface Call extends AutoCloseable {
    /** Enqueues the operation in the rank's stream. */
    void enqueue();

    /** Releases resources such as a plan. */
    @Override
    default void close() {}
}
