package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;

/**
 * Resources that {@code ncclCommSuspend} releases.
 *
 * <p>Constants are immutable and may be used in any thread.
 *
 * @since 0.1
 */
public enum SuspendFlag {
    /** GPU memory that can be allocated again on resume. */
    MEM(nccl.NCCL_SUSPEND_MEM);

    private final int code;

    SuspendFlag(int code) {
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
