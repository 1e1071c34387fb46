package io.github.nccl4j.tools.support;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.SizeTPointer;

/** Queries the free memory of a GPU. Thread-safe. */
public final class GpuMemory {
    private GpuMemory() {}

    /**
     * Returns the free memory of a GPU, taking all processes into account. Makes the GPU the calling thread's current device.
     *
     * @param device the index of the CUDA device
     * @return the free memory in bytes
     * @throws IllegalStateException if CUDA fails
     */
    public static long free(int device) {
        check(cudart.cudaSetDevice(device), "cudaSetDevice");
        // Not allocated by JavaCPP, which throws if the process uses more memory than a multiple of the Java heap.
        ByteBuffer free = ByteBuffer.allocateDirect(Long.BYTES).order(ByteOrder.nativeOrder());
        ByteBuffer total = ByteBuffer.allocateDirect(Long.BYTES);
        check(
                cudart.cudaMemGetInfo(
                        new SizeTPointer(new BytePointer(free)), new SizeTPointer(new BytePointer(total))),
                "cudaMemGetInfo");
        return free.getLong(0);
    }

    private static void check(int result, String call) {
        if (result != 0) {
            throw new IllegalStateException(
                    call + ": " + cudart.cudaGetErrorString(result).getString());
        }
    }
}
