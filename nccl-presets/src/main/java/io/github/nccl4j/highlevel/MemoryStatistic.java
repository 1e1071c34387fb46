package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;

/**
 * What {@code ncclCommMemStats} tells of a communicator, in bytes.
 *
 * <p>Constants are immutable and may be used in any thread.
 */
public enum MemoryStatistic {
    /** Memory of the GPU that a suspension can give back. */
    GPU_MEM_SUSPEND(nccl.ncclStatGpuMemSuspend),

    /** Returns true if the communicator is suspended: 1, else 0. No number of bytes. */
    GPU_MEM_SUSPENDED(nccl.ncclStatGpuMemSuspended),

    /** Memory of the GPU that stays during a suspension. */
    GPU_MEM_PERSIST(nccl.ncclStatGpuMemPersist),

    /** All memory of the GPU that is followed. */
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
