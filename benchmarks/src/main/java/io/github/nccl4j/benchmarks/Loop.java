package io.github.nccl4j.benchmarks;

/**
 * Some calls of an operation. Each has a loop of its own: in one that they shared, each call would go through an interface,
 * which it does not in C.
 */
@FunctionalInterface
interface Loop extends AutoCloseable {
    /** Makes the calls; returns the results, or'ed. */
    int run(int calls);

    @Override
    default void close() {}
}
