package io.github.nccl4j.tools.perf;

import com.google.gson.stream.JsonWriter;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.tools.SizeConverter;
import io.github.nccl4j.tools.launch.LauncherWatch;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code nccl4j gradients}: averages the gradients of a model one by one, in groups and in buckets. */
@Command(
        name = "gradients",
        sortOptions = false,
        description = {
            "Averages 160 gradients, sized as in a model of 32 layers, over the ranks: one by one, in one group, and in buckets of "
                    + "several sizes. Checks every element, and prints the time of an exchange.",
            "",
            "\"alone\" is the time of an exchange whose gradients are all there. \"behind\" is the time from the end of a "
                    + "backward pass to the end of the exchange; the pass yields the gradients one after the other at a steady "
                    + "rate. A bucket is filled by copies, or the gradients are views of it, or its gradients are "
                    + "all-reduced in one group. Each time is the median of the iterations on the slowest rank.",
            ""
        })
public final class GradientsCommand implements Callable<Integer> {
    /** The exchange of a bucket size is as good as the best one within this factor. */
    private static final double NEAR = 1.05;

    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            description = "Show this help.")
    private boolean help;

    @Mixin
    private PerfLaunch launch;

    @Option(
            names = {"-w", "--width"},
            paramLabel = "N",
            defaultValue = "512",
            description =
                    "Width of the model. 4096 gives 6.5 billion elements (float32); half of it, a quarter of them. Default: "
                            + "${DEFAULT-VALUE}.")
    private int width;

    @Option(
            names = {"-b", "--buckets"},
            paramLabel = "SIZE",
            split = ",",
            defaultValue = "1M,2M,4M,8M,16M,25M,32M,64M,128M",
            converter = SizeConverter.class,
            description = "Sizes that a bucket does not exceed. Default: ${DEFAULT-VALUE}.")
    private List<Long> sizes;

    @Option(
            names = {"-n", "--iters"},
            paramLabel = "N",
            defaultValue = "20",
            description = "Timed exchanges of each kind. Default: ${DEFAULT-VALUE}.")
    private int iterations;

    @Option(
            names = "--backward",
            paramLabel = "FACTOR",
            defaultValue = "2",
            description = "Time of the backward pass, in times of an exchange in one group. Default: ${DEFAULT-VALUE}.")
    private double backward;

    @Option(
            names = {"-J", "--json"},
            paramLabel = "FILE",
            description = "Write the results; nccl4j plot draws them.")
    private Path json;

    @Spec
    private CommandSpec spec;

    /** For picocli. */
    public GradientsCommand() {}

    @Override
    public Integer call() throws Exception {
        try {
            validate();
        } catch (IllegalArgumentException e) {
            throw new ParameterException(spec.commandLine(), e.getMessage(), e);
        }
        return launch.run((self, patience) -> measure(patience));
    }

    private void validate() {
        if (width < 1 || width > GradientLayout.FULL_WIDTH) {
            throw new IllegalArgumentException("-w must be from 1 to " + GradientLayout.FULL_WIDTH + ": " + width);
        }
        for (long size : sizes) {
            if (size < Float.BYTES) {
                throw new IllegalArgumentException("-b must be at least " + Float.BYTES + ": " + size);
            }
        }
        if (iterations < 1) {
            throw new IllegalArgumentException("-n must be at least 1: " + iterations);
        }
        if (!(backward > 0 && backward <= 1000)) {
            throw new IllegalArgumentException("--backward must be above 0, and at most 1000: " + backward);
        }
        if (json != null && !LauncherWatch.isRank()) {
            Settings.requireFolder("-J", json);
        }
    }

    private int measure(Duration patience) throws IOException {
        GradientLayout layout = GradientLayout.ofWidth(width);
        List<Gradients.Result> results = new ArrayList<>();
        PrintWriter out = spec.root().commandLine().getOut();
        try (Communicator communicator =
                        Communicator.builder().deadline(patience).fromEnvironment();
                Gradients gradients = new Gradients(communicator, layout, iterations)) {
            boolean main = communicator.rank() == 0;
            int ranks = communicator.size();
            String device = RankDevice.name(communicator.device());
            double pass = backward
                    * gradients.measure(GradientExchange.Way.ONE_GROUP, 0, 0).aloneMillis();
            if (main) {
                head(out, layout, ranks, device, pass);
            }
            for (Measured next : ways()) {
                Gradients.Result result = gradients.measure(next.way, next.bucketBytes, pass);
                results.add(result);
                if (main) {
                    row(out, result, bus(layout, ranks, result));
                }
            }
            if (main) {
                foot(out, results);
            }
            if (main && json != null) {
                write(layout, ranks, device, pass, results);
            }
        }
        return results.stream().allMatch(result -> result.wrong() == 0) ? 0 : 1;
    }

    private record Measured(GradientExchange.Way way, long bucketBytes) {}

    private List<Measured> ways() {
        List<Measured> ways = new ArrayList<>();
        ways.add(new Measured(GradientExchange.Way.ONE_BY_ONE, 0));
        ways.add(new Measured(GradientExchange.Way.ONE_GROUP, 0));
        for (long size : sizes) {
            ways.add(new Measured(GradientExchange.Way.COPIED, size));
            ways.add(new Measured(GradientExchange.Way.VIEWS, size));
            ways.add(new Measured(GradientExchange.Way.GROUPS, size));
        }
        return ways;
    }

    /** GB/s, as nccl-tests defines it for an all-reduce. */
    private static double bus(GradientLayout layout, int ranks, Gradients.Result result) {
        return layout.total() * Float.BYTES / (result.aloneMillis() * 1e6) * Collective.ALL_REDUCE.busFactor(ranks);
    }

    private static String mebibytes(long bytes) {
        double size = bytes / (double) (1 << 20);
        return String.format(Locale.ROOT, size == Math.rint(size) ? "%.0f MiB" : "%.3f MiB", size);
    }

    private void head(PrintWriter out, GradientLayout layout, int ranks, String device, double pass) {
        NcclLibrary library = NcclLibrary.get();
        out.println("# nccl4j gradients, engine " + library.engine() + ", NCCL " + library.version() + ", library "
                + library.path());
        out.printf(
                Locale.ROOT,
                "# %d gradients, float32, %.1f MiB, the longest %.1f MiB; %d ranks, %s; backward pass of %.3f ms; medians of"
                        + " %d%n",
                layout.count(),
                layout.total() * Float.BYTES / (double) (1 << 20),
                layout.longest() * Float.BYTES / (double) (1 << 20),
                ranks,
                device,
                pass,
                iterations);
        out.printf(
                Locale.ROOT,
                "# %-14s %10s %10s %10s %14s %11s %6s%n",
                "way",
                "bucket",
                "operations",
                "alone (ms)",
                "busbw (GB/s)",
                "behind (ms)",
                "wrong");
        out.flush();
    }

    private static void row(PrintWriter out, Gradients.Result result, double bus) {
        out.printf(
                Locale.ROOT,
                "  %-14s %10s %10d %10.3f %14.2f %11.3f %6d%n",
                result.way().label,
                result.bucketBytes() == 0 ? "-" : mebibytes(result.bucketBytes()),
                result.operations(),
                result.aloneMillis(),
                bus,
                result.behindMillis(),
                result.wrong());
        out.flush();
    }

    private static void foot(PrintWriter out, List<Gradients.Result> results) {
        List<Gradients.Result> copied = results.stream()
                .filter(result -> result.way() == GradientExchange.Way.COPIED)
                .toList();
        double best = copied.stream()
                .mapToDouble(Gradients.Result::behindMillis)
                .min()
                .orElseThrow();
        List<String> near = copied.stream()
                .filter(result -> result.behindMillis() <= NEAR * best)
                .map(result -> mebibytes(result.bucketBytes()))
                .toList();
        out.printf(
                Locale.ROOT,
                "# copied buckets, least time behind the pass: %.3f ms; at most 5 %% more: %s%n",
                best,
                String.join(", ", near));
        long wrong = results.stream().mapToLong(Gradients.Result::wrong).sum();
        out.println("# Out of bounds values : " + wrong + (wrong == 0 ? " OK" : " FAILED"));
        out.flush();
    }

    private void write(GradientLayout layout, int ranks, String device, double pass, List<Gradients.Result> results)
            throws IOException {
        try (JsonWriter writer = new JsonWriter(Files.newBufferedWriter(json, StandardCharsets.UTF_8))) {
            writer.setIndent(" ");
            writer.beginObject();
            writer.name("start_time")
                    .value(LocalDateTime.now(ZoneId.systemDefault()).format(JsonFile.TIME));
            writer.name("gradients").value(layout.count());
            writer.name("bytes").value(layout.total() * Float.BYTES);
            writer.name("ranks").value(ranks);
            writer.name("device").value(device);
            writer.name("nccl_version").value(NativeLibrary.versionCode());
            writer.name("backward_us").value(pass * 1e3);
            writer.name("results").beginArray();
            for (Gradients.Result result : results) {
                writer.beginObject();
                writer.name("way").value(result.way().label);
                writer.name("size").value(result.bucketBytes());
                writer.name("operations").value(result.operations());
                writer.name("time").value(result.aloneMillis() * 1e3);
                writer.name("bus_bw").value(bus(layout, ranks, result));
                writer.name("behind_us").value(result.behindMillis() * 1e3);
                writer.name("nwrong").value(result.wrong());
                writer.endObject();
            }
            writer.endArray();
            writer.endObject();
        }
    }
}
