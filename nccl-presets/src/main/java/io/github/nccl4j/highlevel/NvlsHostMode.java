package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;

/**
 * What a communicator does without reductions and multicast in the NVLink switch (NVLS), whose memory is limited: what it
 * leaves is there for other communicators. Without a mode NCCL decides.
 *
 * <p>Constants are immutable and may be used in any thread.
 *
 * @see CommunicatorConfig.Builder#nvlsHostMode
 */
public enum NvlsHostMode {
    /** Nothing: NVLS is used wherever NCCL can. */
    ENABLE(nccl.ncclNvlsHostModeEnable),

    /** The algorithms NVLS and NVLSTREE, and the registration of buffers for them. */
    DISABLE_TRANSPORT(nccl.ncclNvlsHostModeDisableTransport),

    /** Kernels for symmetric windows and copies that would use multicast; others take their place. */
    DISABLE_SYMMETRIC_MULTIMEM(nccl.ncclNvlsHostModeDisableSymmetricMultimem),

    /** Everything, also what later releases will use it for. */
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
