package io.github.nccl4j.samples.perf;

import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.samples.support.GpuMemory;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * How much memory of a GPU the steps of a measurement take (-M): the most of all GPUs of all processes. It is what CUDA tells to be
 * free before and after, so that other programs on the same GPUs count. Thread-safe.
 */
final class MemoryReport {
    /** What takes memory, by the names that nccl-tests prints. */
    enum Step {
        COMMUNICATORS("Initialization"),
        BUFFERS("User-Allocated"),
        COLLECTIVES("Collective");

        private final String label;

        Step(String label) {
            this.label = label;
        }
    }

    private final double[] most = new double[Step.values().length];

    MemoryReport() {
        Arrays.fill(most, Double.NEGATIVE_INFINITY);
    }

    /** What is free of some GPUs, from step to step. Used by one thread. */
    final class Meter {
        private final List<Device> devices;
        private long[] free;

        private Meter(List<Device> devices) {
            this.devices = devices;
            free = freeOf(devices);
        }

        /** What was free at the end of the last step, or at the beginning, and is not now, was taken by this step. */
        void done(Step step) {
            long[] now = freeOf(devices);
            for (int i = 0; i < now.length; i++) {
                add(step, free[i] - now[i]);
            }
            free = now;
        }
    }

    /** Begins with what is free now. The calling thread's CUDA device is the first of these afterwards. */
    Meter meter(List<Device> devices) {
        return new Meter(devices);
    }

    synchronized void add(Step step, long bytes) {
        most[step.ordinal()] = Math.max(most[step.ordinal()], bytes);
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
        double[] all = most.clone();
        for (double[] one : processes.gather(most)) {
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

    /** Three digits, as nccl-tests prints it. */
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
