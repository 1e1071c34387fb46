package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.library.NativeLibrary;
import org.bytedeco.javacpp.LongPointer;

/** What devices and buffers need of NCCL's library. */
final class LoadedLibrary {
    private LoadedLibrary() {}

    /** Whether the library is the host engine. Loads it. */
    static boolean isHostEngine() {
        return NativeLibrary.provides("nccl4jHostEngineVersion");
    }

    /** The library's path, for messages. Loads it. */
    static String path() {
        return NativeLibrary.path();
    }

    /** How many CUDA devices the driver shows, 0 without a driver. Loads no library but the driver's. */
    static int gpuCount() {
        return NativeLibrary.gpuCount();
    }

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
