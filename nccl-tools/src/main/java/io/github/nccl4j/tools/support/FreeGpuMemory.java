package io.github.nccl4j.tools.support;

import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.ElementType;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** The free memory of GPUs, across all processes. */
public final class FreeGpuMemory {
    private FreeGpuMemory() {}

    /** Bytes, by device; this process then holds a context on each of them. */
    public static List<Long> free(int devices) {
        List<Long> free = new ArrayList<>();
        for (int i = 0; i < devices; i++) {
            // Loads CUDA, too.
            Device.cuda(i).allocate(ElementType.INT8, 1).close();
            free.add(GpuMemory.free(i));
        }
        return free;
    }

    /** The decrease of free memory of each device in MiB; "the same" if there is none. */
    public static String difference(List<Long> before, List<Long> after) {
        List<String> lost = new ArrayList<>();
        for (int i = 0; i < before.size(); i++) {
            long bytes = before.get(i) - after.get(i);
            if (bytes != 0) {
                lost.add("GPU " + i + ": " + String.format(Locale.ROOT, "%+.1f", bytes / (double) (1 << 20)) + " MiB");
            }
        }
        return lost.isEmpty() ? "the same" : String.join(", ", lost);
    }

    /** The largest decrease of free memory of a device. */
    public static long lost(List<Long> before, List<Long> after) {
        long most = 0;
        for (int i = 0; i < before.size(); i++) {
            most = Math.max(most, before.get(i) - after.get(i));
        }
        return most;
    }
}
