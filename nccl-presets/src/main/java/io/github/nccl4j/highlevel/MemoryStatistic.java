package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;

/**
 * Statistics of {@code ncclCommMemStats} about a communicator, in bytes.
 *
 * <p>Constants are immutable and may be used in any thread.
 *
 * @since 0.1
 */
public enum MemoryStatistic {
    /** GPU memory that a suspension can release. */
    GPU_MEM_SUSPEND(nccl.ncclStatGpuMemSuspend),

    /** 1 if the communicator is suspended, else 0; not a number of bytes. */
    GPU_MEM_SUSPENDED(nccl.ncclStatGpuMemSuspended),

    /** GPU memory that stays allocated during a suspension. */
    GPU_MEM_PERSIST(nccl.ncclStatGpuMemPersist),

    /** All GPU memory that NCCL tracks. */
    GPU_MEM_TOTAL(nccl.ncclStatGpuMemTotal);

    private final int code;

    MemoryStatistic(int code) {
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
