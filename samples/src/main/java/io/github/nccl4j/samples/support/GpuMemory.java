package io.github.nccl4j.samples.support;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.SizeTPointer;

/** How much memory of a GPU is free. */
public final class GpuMemory {
    private GpuMemory() {}

    /**
     * The free memory of a GPU, whoever uses the rest.
     *
     * @param device the CUDA device, which is the calling thread's afterwards
     * @return bytes
     * @throws IllegalStateException if CUDA fails
     */
    public static long free(int device) {
        check(cudart.cudaSetDevice(device), "cudaSetDevice");
        // Not allocated by JavaCPP, which refuses to in a process that has more memory than some multiple of Java's
        // heap.
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
