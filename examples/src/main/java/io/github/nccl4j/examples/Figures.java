package io.github.nccl4j.examples;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.NcclLibrary;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Locale;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.SizeTPair;
import org.bytedeco.pytorch.cuda.CUDAAllocator;
import org.bytedeco.pytorch.global.torch_cuda;

/**
 * The figures that each example prints: work per second, the time of a step, the time from the start to the end of the first step,
 * and the largest memory. The counterparts in Python print the same ones in the same form. One thread.
 *
 * <p>Also checks that steps leave nothing behind: no pointer of JavaCPP, no thread, no memory of the GPU.
 */
final class Figures {
    private static final double MIB = 1 << 20;

    private final int warmUp;
    private int done;
    private double firstStep;
    /** Null until the warm-up is over. */
    private Footprint before;

    private int timed;
    private long begin;

    /** The resources that steps must not use more of; only resident memory may grow, with the heap. */
    private record Footprint(long pointers, int threads, long gpuBytes, long residentBytes) {
        static Footprint of(Device device) {
            long gpuBytes = 0;
            if (device.isCuda()) {
                try (PointerScope scope = new PointerScope()) {
                    gpuBytes = torch_cuda
                            .getAllocator()
                            .getDeviceStats((byte) device.index())
                            .allocated_bytes()
                            .current();
                }
            }
            return new Footprint(
                    Pointer.totalCount(), Thread.getAllStackTraces().size(), gpuBytes, Pointer.physicalBytes());
        }

        @Override
        public String toString() {
            return pointers + " pointers, " + threads + " threads" + (gpuBytes == 0 ? "" : ", " + gpuBytes + " bytes");
        }
    }

    /**
     * Begins to count steps.
     *
     * @param warmUp the number of steps before those that are timed; 0 to begin by {@link #begin} alone
     */
    Figures(int warmUp) {
        this.warmUp = warmUp;
    }

    /** Counts a step that has just been called. Collective when the warm-up is over. */
    void step(Communicator communicator) {
        done++;
        timed++;
        if (done == 1) {
            Setup.finish(communicator);
            firstStep = System.currentTimeMillis() / 1e3 - start();
        }
        if (done == warmUp) {
            Setup.barrier(communicator);
            before = Footprint.of(communicator.device());
            begin(communicator);
        }
    }

    /** Times the steps from here on. Collective. */
    void begin(Communicator communicator) {
        Setup.barrier(communicator);
        timed = 0;
        begin = System.nanoTime();
    }

    /** When the job was started, in seconds since the epoch: the launcher may say it, or else when this process was. */
    private static double start() {
        String start = System.getenv("EXAMPLE_START");
        return start != null
                ? Double.parseDouble(start)
                : ProcessHandle.current()
                                .info()
                                .startInstant()
                                .map(Instant::toEpochMilli)
                                .orElseThrow()
                        / 1e3;
    }

    /**
     * Ends the time. Collective.
     *
     * @param work the number of units that all ranks process in a step
     * @param unit its unit
     * @return the figures as text
     * @throws IllegalStateException if the steps left something behind
     */
    String end(Communicator communicator, double work, String unit) {
        Setup.barrier(communicator);
        double seconds = (System.nanoTime() - begin) / 1e9;
        String text = String.format(
                Locale.ROOT,
                "%.0f %s/s%n%.3f ms a step of %d, first step %.2f s after the start, peak memory %s%n",
                work * timed / seconds,
                unit,
                seconds * 1e3 / timed,
                timed,
                firstStep,
                peakMemory(communicator.device()));
        if (before != null) {
            Footprint after = Footprint.of(communicator.device());
            if (after.pointers > before.pointers
                    || after.threads > before.threads
                    || after.gpuBytes > before.gpuBytes) {
                throw new IllegalStateException(
                        timed + " steps must leave nothing behind: " + before + " before, " + after + " after them");
            }
            text += String.format(
                    Locale.ROOT,
                    "after %d steps as before them: %s; resident memory %.0f MiB, before %.0f MiB%n",
                    timed,
                    after,
                    after.residentBytes / MIB,
                    before.residentBytes / MIB);
        }
        NcclLibrary library = NcclLibrary.get();
        return text + "with PyTorch " + version() + ", " + library.engine() + " " + library.version() + ", Java "
                + Runtime.version().feature();
    }

    private static String version() {
        try {
            return Loader.getVersion("org.bytedeco", "pytorch");
        } catch (IOException unknown) {
            return "?";
        }
    }

    /** On a GPU that of tensors, and all that is in use, for example by NCCL; else that of the process. */
    private static String peakMemory(Device device) {
        if (device.isHost()) {
            try (var lines = Files.lines(Path.of("/proc/self/status"))) {
                String peak = lines.filter(line -> line.startsWith("VmHWM:"))
                        .findFirst()
                        .orElseThrow();
                return String.format(Locale.ROOT, "%.0f MiB", Long.parseLong(peak.replaceAll("\\D", "")) / 1024.0);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
        try (PointerScope scope = new PointerScope()) {
            CUDAAllocator allocator = torch_cuda.getAllocator();
            byte index = (byte) device.index();
            SizeTPair freeAndTotal = allocator.getMemoryInfo(index);
            return String.format(
                    Locale.ROOT,
                    "%.0f MiB of tensors, %.0f MiB of the GPU",
                    allocator.getDeviceStats(index).allocated_bytes().peak() / MIB,
                    (freeAndTotal.second() - freeAndTotal.first()) / MIB);
        }
    }
}
