package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;

/**
 * Modes in which {@code ncclCommRevoke} stops a communicator.
 *
 * <p>Constants are immutable and may be used in any thread.
 *
 * @since 0.1
 */
public enum RevokeFlag {
    /** The only mode so far. */
    DEFAULT(nccl.NCCL_REVOKE_DEFAULT);

    private final int code;

    RevokeFlag(int code) {
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
