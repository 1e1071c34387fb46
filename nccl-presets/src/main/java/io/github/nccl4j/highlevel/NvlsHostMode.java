package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;

/**
 * Modes that disable uses of reductions and multicast in the NVLink switch (NVLS) for a communicator. The memory of the
 * switch is limited; memory that a communicator does not use is available to others. Without a mode, NCCL decides.
 *
 * <p>Constants are immutable and may be used in any thread.
 *
 * @see CommunicatorConfig.Builder#nvlsHostMode
 * @since 0.1
 */
public enum NvlsHostMode {
    /** Disables nothing: NVLS is used wherever possible. */
    ENABLE(nccl.ncclNvlsHostModeEnable),

    /** Disables the algorithms NVLS and NVLSTREE, and the registration of buffers for them. */
    DISABLE_TRANSPORT(nccl.ncclNvlsHostModeDisableTransport),

    /** Disables multicast in kernels for symmetric windows and in copies; other kernels and copies are used instead. */
    DISABLE_SYMMETRIC_MULTIMEM(nccl.ncclNvlsHostModeDisableSymmetricMultimem),

    /** Disables all uses, also those of later releases. */
    DISABLE(nccl.ncclNvlsHostModeDisable);

    private final int code;

    NvlsHostMode(int code) {
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
