package io.github.nccl4j.tests.endurance;

import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.ElementType;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.SizeTPointer;

/** How much memory of GPUs is free, whoever uses the rest. */
final class GpuMemory {
    private GpuMemory() {}

    /** Bytes, by device; this process then holds a context on each of them. */
    static List<Long> free(int devices) {
        List<Long> free = new ArrayList<>();
        for (int i = 0; i < devices; i++) {
            // Loads CUDA, too.
            Device.cuda(i).allocate(ElementType.INT8, 1).close();
            free.add(freeOf(i));
        }
        return free;
    }

    private static long freeOf(int device) {
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

    /** MiB for each device that less of is free than before; "the same" if there is none. */
    static String difference(List<Long> before, List<Long> after) {
        List<String> lost = new ArrayList<>();
        for (int i = 0; i < before.size(); i++) {
            long bytes = before.get(i) - after.get(i);
            if (bytes != 0) {
                lost.add("GPU " + i + ": " + String.format(Locale.ROOT, "%+.1f", bytes / (double) (1 << 20)) + " MiB");
            }
        }
        return lost.isEmpty() ? "the same" : String.join(", ", lost);
    }

    /** The most that a device has less of than before. */
    static long lost(List<Long> before, List<Long> after) {
        long most = 0;
        for (int i = 0; i < before.size(); i++) {
            most = Math.max(most, before.get(i) - after.get(i));
        }
        return most;
    }
}
