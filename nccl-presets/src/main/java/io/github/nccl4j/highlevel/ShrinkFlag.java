package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;

/**
 * Modes in which {@code ncclCommShrink} treats outstanding work.
 *
 * <p>Constants are immutable and may be used in any thread.
 *
 * @since 0.1
 */
public enum ShrinkFlag {
    /** The communicator is healthy and its work has finished. */
    DEFAULT(nccl.NCCL_SHRINK_DEFAULT),

    /**
     * A rank is lost: outstanding work is aborted first. All ranks then end the communicator with {@link Communicator#abort}:
     * since NCCL 2.31.2, {@link Communicator#close} of a survivor waits for the excluded ranks of its host, until the deadline.
     */
    ABORT(nccl.NCCL_SHRINK_ABORT);

    private final int code;

    ShrinkFlag(int code) {
        this.code = code;
    }

    /**
     * The value in {@code nccl.h}.
     *
     * @return the bits
     */
    public int code() {
        return code;
    }
}
