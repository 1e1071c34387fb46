package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;

/**
 * Where the factor of a custom sum lies.
 *
 * <p>Constants are immutable and may be used in any thread.
 */
public enum ScalarResidence {
    /** In memory of the device, read at every reduction. */
    DEVICE(nccl.ncclScalarDevice),

    /** In memory of the host, read once, when the operator is made. */
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
