package io.github.nccl4j.internal.cuda;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.internal.failure.Status;
import io.github.nccl4j.internal.memory.NativeMemory;

/** Checked calls for memory that NCCL allocates. */
public final class NcclMemory {
    private NcclMemory() {}

    /** {@code ncclMemAlloc}, on the current device. */
    public static long allocate(long bytes) {
        try (NativeMemory cell = new NativeMemory(Long.BYTES)) {
            Status.check(nccl.ncclMemAlloc(cell.address(), bytes), "ncclMemAlloc(" + bytes + ")");
            return cell.buffer().getLong(0);
        }
    }

    /** {@code ncclMemFree}. */
    public static void free(long address) {
        Status.check(nccl.ncclMemFree(address), "ncclMemFree");
    }
}
