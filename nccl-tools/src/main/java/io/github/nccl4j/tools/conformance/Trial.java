package io.github.nccl4j.tools.conformance;

/** One case at one rank: made before it is called, looked at when its stream is done. */
interface Trial extends AutoCloseable {
    /** What all ranks do before the call. */
    void prepare();

    /** Puts the operation into the stream. */
    void call();

    /** Throws an AssertionError unless all is as it must be. */
    void verify();

    @Override
    void close();
}
