package io.github.nccl4j.benchmarks;

/**
 * A loop of calls of one operation. Each operation has its own loop: in a shared loop, each call would be a call of an interface
 * method, which C does not have.
 */
@FunctionalInterface
interface Loop extends AutoCloseable {
    /** Makes the calls; returns the bitwise OR of their results. */
    int run(int calls);

    @Override
    default void close() {}
}
