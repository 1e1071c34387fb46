package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;
import org.bytedeco.javacpp.LongPointer;

/** Memory that NCCL allocates, checked. */
final class NcclMemory {
    private NcclMemory() {}

    /** {@code ncclMemAlloc}, on the current device. */
    static long allocate(long bytes) {
        try (LongPointer cell = new LongPointer(1)) {
            cell.put(0);
            Status.check(nccl.ncclMemAlloc(cell.address(), bytes), "ncclMemAlloc(" + bytes + ")");
            return cell.get();
        }
    }

    /** {@code ncclMemFree}. */
    static void free(long address) {
        Status.check(nccl.ncclMemFree(address), "ncclMemFree");
    }
}
