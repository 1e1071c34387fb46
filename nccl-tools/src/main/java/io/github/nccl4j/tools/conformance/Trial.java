package io.github.nccl4j.tools.conformance;

/** One case on one rank: created before the call, checked when its stream is done. */
interface Trial extends AutoCloseable {
    /** The preparation of all ranks before the call. */
    void prepare();

    /** Puts the operation into the stream. */
    void call();

    /** Throws an AssertionError unless all results are right. */
    void verify();

    @Override
    void close();
}
