package io.github.nccl4j.tools.perf;

import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.tools.support.GpuMemory;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * Report of the GPU memory that the steps of a measurement use (-M): the maximum over the GPUs of all processes. Compares the
 * free memory before and after a step, and therefore includes other programs on the same GPUs. Thread-safe.
 */
final class MemoryReport {
    /** The steps, with the labels of nccl-tests. */
    enum Step {
        COMMUNICATORS("Initialization"),
        BUFFERS("User-Allocated"),
        COLLECTIVES("Collective");

        private final String label;

        Step(String label) {
            this.label = label;
        }
    }

    private final double[] used = new double[Step.values().length];

    MemoryReport() {
        Arrays.fill(used, Double.NEGATIVE_INFINITY);
    }

    /** Measures the memory that each step uses on some GPUs. Used by one thread. */
    final class Meter {
        private final List<Device> devices;
        private long[] free;

        private Meter(List<Device> devices) {
            this.devices = devices;
            free = freeOf(devices);
        }

        /** Ends a step: records the decrease of free memory since the end of the previous step, or since the creation. */
        void done(Step step) {
            long[] now = freeOf(devices);
            for (int i = 0; i < now.length; i++) {
                add(step, free[i] - now[i]);
            }
            free = now;
        }
    }

    /** Starts a meter. Makes the first of the devices the calling thread's current CUDA device. */
    Meter meter(List<Device> devices) {
        return new Meter(devices);
    }

    synchronized void add(Step step, long bytes) {
        used[step.ordinal()] = Math.max(used[step.ordinal()], bytes);
    }

    private static long[] freeOf(List<Device> devices) {
        long[] free = new long[devices.size()];
        for (int i = devices.size() - 1; i >= 0; i--) {
            free[i] = GpuMemory.free(devices.get(i).index());
        }
        return free;
    }

    /** The line of the report. Collective. */
    String line(Processes processes) {
        double[] all = used.clone();
        for (double[] one : processes.gather(used)) {
            Arrays.setAll(all, i -> Math.max(all[i], one[i]));
        }
        StringBuilder line = new StringBuilder(String.format(Locale.ROOT, "# %-20s : ", "GPU memory usage"));
        for (Step step : Step.values()) {
            line.append(step.label)
                    .append(' ')
                    .append(size(all[step.ordinal()]))
                    .append(" | ");
        }
        return line + "Total  " + size(Arrays.stream(all).sum());
    }

    /** Formats a size with three digits, as nccl-tests. */
    static String size(double bytes) {
        String[] units = {"B", "KB", "MB", "GB"};
        int unit = 0;
        double amount = bytes;
        while (Math.abs(amount) >= 1024 && unit < units.length - 1) {
            amount /= 1024;
            unit++;
        }
        int digits = Math.abs(amount) < 10 ? 2 : Math.abs(amount) < 100 ? 1 : 0;
        return String.format(Locale.ROOT, "%." + digits + "f %s", amount, units[unit]);
    }
}
