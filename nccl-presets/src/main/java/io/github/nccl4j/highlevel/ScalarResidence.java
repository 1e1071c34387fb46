package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;

/**
 * Locations of the factor of a custom sum.
 *
 * <p>Constants are immutable and may be used in any thread.
 *
 * @since 0.1
 */
public enum ScalarResidence {
    /** In device memory; read by every reduction. */
    DEVICE(nccl.ncclScalarDevice),

    /** In host memory; read once, when the operator is created. */
    HOST_IMMEDIATE(nccl.ncclScalarHostImmediate);

    private final int code;

    ScalarResidence(int code) {
        this.code = code;
    }

    /**
     * The value in {@code nccl.h}.
     *
     * @return the code
     */
    public int code() {
        return code;
    }
}
