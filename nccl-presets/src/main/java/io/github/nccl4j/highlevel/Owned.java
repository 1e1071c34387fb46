package io.github.nccl4j.highlevel;

/** Something that a communicator closes with itself. */
interface Owned extends AutoCloseable {
    /** The native communicator is gone, and this with it: nothing may be called for it any more. */
    void abandon();

    @Override
    void close();
}
