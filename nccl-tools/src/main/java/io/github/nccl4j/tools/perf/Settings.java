package io.github.nccl4j.tools.perf;

import io.github.nccl4j.highlevel.CollectiveConfig;
import io.github.nccl4j.library.SystemText;
import io.github.nccl4j.tools.SizeConverter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Option;

/** The options of nccl-tests' programs, under the same letters and names and with the same defaults. */
final class Settings {
    /** With this limit, sizes that are multiplied by the number of ranks fit into a long. */
    private static final long MOST_BYTES = 1L << 50;

    private static final int MOST_RANKS = 1 << 12;
    /** With -I, which has an event for each. */
    private static final int MOST_ITERATIONS = 100_000;

    private static final int MOST_CTAS = 128;

    @Option(
            names = {"-t", "--nthreads"},
            paramLabel = "N",
            defaultValue = "1",
            description = "Threads per process. Default: ${DEFAULT-VALUE}.")
    int threads;

    @Option(
            names = {"-g", "--ngpus"},
            paramLabel = "N",
            defaultValue = "1",
            description = "GPUs per thread. Default: ${DEFAULT-VALUE}.")
    int gpus;

    @Option(
            names = {"-b", "--minbytes"},
            paramLabel = "SIZE",
            defaultValue = "32M",
            converter = SizeConverter.class,
            description = "Smallest size, with K, M or G. Default: ${DEFAULT-VALUE}.")
    long minBytes;

    @Option(
            names = {"-e", "--maxbytes"},
            paramLabel = "SIZE",
            defaultValue = "32M",
            converter = SizeConverter.class,
            description = "Largest size. Default: ${DEFAULT-VALUE}.")
    long maxBytes;

    @Option(
            names = {"-i", "--stepbytes"},
            paramLabel = "SIZE",
            defaultValue = "1M",
            converter = SizeConverter.class,
            description = "Bytes from one size to the next, unless -f is given. Default: ${DEFAULT-VALUE}.")
    long stepBytes;

    @Option(
            names = {"-f", "--stepfactor"},
            paramLabel = "F",
            defaultValue = "1",
            description = "Factor from one size to the next.")
    int stepFactor;

    @Option(
            names = {"-n", "--iters"},
            paramLabel = "N",
            defaultValue = "20",
            description = "Number of timed iterations. Default: ${DEFAULT-VALUE}.")
    int iterations;

    @Option(
            names = {"-m", "--agg_iters"},
            paramLabel = "N",
            defaultValue = "1",
            description = "Calls in one group, in each iteration. Default: ${DEFAULT-VALUE}.")
    int aggregated;

    @Option(
            names = {"-w", "--warmup_iters"},
            paramLabel = "N",
            defaultValue = "1",
            description = "Number of iterations of each size before the timed ones. Default: ${DEFAULT-VALUE}.")
    int warmup;

    @Option(
            names = {"-N", "--run_cycles"},
            paramLabel = "N",
            defaultValue = "1",
            description = "Number of runs over all sizes; 0: until it is stopped. Default: ${DEFAULT-VALUE}.")
    long cycles;

    @Option(
            names = {"-p", "--parallel_init"},
            paramLabel = "0|1",
            defaultValue = "0",
            description = "1: each thread creates its own communicators and buffers, all at the same time.")
    int parallelInit;

    @Option(
            names = {"-c", "--check"},
            paramLabel = "N",
            defaultValue = "1",
            description = "Number of calls of each size whose results are checked. Default: ${DEFAULT-VALUE}.")
    int checks;

    @Option(
            names = {"-o", "--op"},
            paramLabel = "OP",
            defaultValue = "sum",
            description = "sum, prod, min, max, avg, mulsum or all. Default: ${DEFAULT-VALUE}.")
    String operator;

    @Option(
            names = {"-d", "--datatype"},
            paramLabel = "TYPE",
            defaultValue = "float",
            description = "int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16, f8e4m3, f8e5m2 or "
                    + "all. Default: ${DEFAULT-VALUE}.")
    String type;

    @Option(
            names = {"-r", "--root"},
            paramLabel = "RANK",
            defaultValue = "0",
            description = "Root of a collective that has one; -1: each rank in turn. Default: ${DEFAULT-VALUE}.")
    int root;

    @Option(
            names = {"-z", "--blocking"},
            paramLabel = "0..3",
            defaultValue = "0",
            description =
                    "Wait for each call: 1 with a barrier, 2 without; 3: for each iteration, with a barrier that is not "
                            + "timed. Default: ${DEFAULT-VALUE}.")
    int blocking;

    @Option(
            names = {"-y", "--stream_null"},
            paramLabel = "0|1",
            defaultValue = "0",
            description = "1: use the default stream.")
    int defaultStream;

    @Option(
            names = "-T",
            paramLabel = "SECONDS",
            defaultValue = "0",
            description = "Time limit of a test; 0: none. Default: ${DEFAULT-VALUE}.")
    int timeout;

    @Option(
            names = {"-G", "--cudagraph"},
            paramLabel = "N",
            defaultValue = "0",
            description = "Capture the iterations in a CUDA graph, and launch it N times. Default: 0, no graph.")
    int graphLaunches;

    @Option(
            names = {"-C", "--report_cputime"},
            paramLabel = "0|1",
            defaultValue = "0",
            description = "1: report the CPU time of the calls instead of the time of the work.")
    int cpuTime;

    @Option(
            names = {"-I", "--per_iter_timing"},
            paramLabel = "0|1",
            defaultValue = "0",
            description =
                    "1: also time each iteration, by events in its stream. The table gets columns with statistics, the file "
                            + "of -J all times. With fewer than 100 iterations, i_p99 is i_max.")
    int perIteration;

    @Option(
            names = {"-K", "--per_iter_skip"},
            paramLabel = "N",
            defaultValue = "0",
            description = "-I: omit the first N iterations from the statistics. Default: ${DEFAULT-VALUE}.")
    int skipped;

    @Option(
            names = {"-a", "--average"},
            paramLabel = "0..3",
            defaultValue = "1",
            description = "Report the time of rank 0 (0), the average (1), the least (2) or the largest (3). Default: "
                    + "${DEFAULT-VALUE}.")
    int average;

    @Option(
            names = {"-R", "--local_register"},
            paramLabel = "0..2",
            defaultValue = "0",
            description =
                    "Register the buffers (1), or put them into symmetric windows (2). Default: ${DEFAULT-VALUE}.")
    int register;

    @Option(
            names = {"-x", "--cta_policy"},
            paramLabel = "0..2",
            description = "The CTA policy: default, efficiency or zero. Default: none is set.")
    Integer ctaPolicy;

    @Option(
            names = {"-D", "--device_implementation"},
            paramLabel = "0",
            defaultValue = "0",
            description = "0: NCCL's own implementation. nccl4j lacks the others, which are kernels in CUDA C++.")
    int deviceImplementation;

    @Option(
            names = {"-V", "--device_cta_count"},
            paramLabel = "N",
            description = "Number of CTAs of the implementations that nccl4j lacks; refused.")
    Integer deviceCtas;

    @Option(
            names = {"-M", "--memory"},
            paramLabel = "0|1",
            defaultValue = "0",
            description = "1: report the GPU memory that each step takes.")
    int memory;

    @Option(
            names = {"-u", "--unalign"},
            paramLabel = "N",
            defaultValue = "0",
            description = "Begin at element N of the buffers. Default: ${DEFAULT-VALUE}.")
    int unalign;

    @Option(
            names = {"-S", "--report_timestamps"},
            paramLabel = "0|1",
            defaultValue = "0",
            description = "1: print the time of day on each line.")
    int timestamps;

    @Option(
            names = {"-J", "--output_file"},
            paramLabel = "FILE",
            description = "Write the results as JSON, with the fields of nccl-tests.")
    Path json;

    @Option(
            names = "--api",
            paramLabel = "raw|highlevel",
            defaultValue = "highlevel",
            description = "Package of nccl4j that makes the calls. Default: ${DEFAULT-VALUE}.")
    String api;

    @Option(
            names = "--algo",
            paramLabel = "SELECTION",
            description =
                    "Force algorithms by the configuration of each call: prefixes of their names, such as ring, tree or "
                            + "ring_ll,tree. Needs NCCL 2.31.2, and a collective that has algorithms. Default: NCCL "
                            + "chooses.")
    String algorithm;

    @Option(
            names = "--jit-warmup",
            paramLabel = "N",
            description =
                    "Number of calls before the measurement, of the smallest and the largest size (at most 64K), until Java has "
                            + "compiled their code; except with 0, a measurement of the smallest size that does not count "
                            + "follows. Default: 50000, or 100 on the host engine and where NCCL shares GPUs: their "
                            + "calls take longer.")
    Integer jitWarmup;

    @Option(
            names = "--spread",
            paramLabel = "0..1",
            description =
                    "alltoallv: 0 sends equal amounts to all ranks; 1 sends more to farther ranks and nothing to itself. Default: "
                            + "NCCL_TESTS_ALLTOALLV_SPREAD, or 1.")
    Double spread;

    @Option(
            names = "--matrix",
            paramLabel = "FILE",
            description = "alltoallv: bytes from each rank (row) to each (column). Default: "
                    + "NCCL_TESTS_ALLTOALLV_MATRIX_FILE.")
    Path matrix;

    private CollectiveConfig config;

    /** Throws if a setting is wrong. */
    void validate(Collective collective) {
        require(threads >= 1, "-t must be at least 1: " + threads);
        require(gpus >= 1, "-g must be at least 1: " + gpus);
        require(
                (long) threads * gpus <= MOST_RANKS,
                "-t times -g must be at most " + MOST_RANKS + ": " + threads + ", " + gpus);
        require(minBytes >= 0 && maxBytes >= minBytes, "-e must not be less than -b: " + maxBytes + " < " + minBytes);
        require(maxBytes <= MOST_BYTES, "-e must be at most " + (MOST_BYTES >> 30) + "G: " + maxBytes);
        require(stepFactor >= 1, "-f must be at least 1: " + stepFactor);
        require(stepFactor == 1 || minBytes > 0, "with -f, -b must be at least 1: " + minBytes);
        require(stepFactor > 1 || stepBytes > 0, "-i must be at least 1: " + stepBytes);
        require(iterations >= 1 && aggregated >= 1, "-n and -m must be at least 1: " + iterations + ", " + aggregated);
        require(
                warmup >= 0 && cycles >= 0 && checks >= 0,
                "-w, -N and -c must not be negative: " + warmup + ", " + cycles + ", " + checks);
        require(blocking >= 0 && blocking <= 3, "-z must be from 0 to 3: " + blocking);
        require(average >= 0 && average <= 3, "-a must be from 0 to 3: " + average);
        require(register >= 0 && register <= 2, "-R must be from 0 to 2: " + register);
        require(ctaPolicy == null || (ctaPolicy >= 0 && ctaPolicy <= 2), "-x must be from 0 to 2: " + ctaPolicy);
        requireFlag("-y", defaultStream);
        requireFlag("-C", cpuTime);
        requireFlag("-S", timestamps);
        requireFlag("-p", parallelInit);
        requireFlag("-M", memory);
        requireIterations();
        requireOwnImplementation();
        require(
                timeout >= 0 && graphLaunches >= 0 && unalign >= 0,
                "-T, -G and -u must not be negative: " + timeout + ", " + graphLaunches + ", " + unalign);
        require(root >= -1, "-r must be a rank or -1: " + root);
        require(api.equals("raw") || api.equals("highlevel"), "--api must be raw or highlevel: " + api);
        require(jitWarmup == null || jitWarmup >= 0, "--jit-warmup must not be negative: " + jitWarmup);
        require(
                blocking == 0 || graphLaunches == 0,
                "-z must be 0 with -G, which can't wait for each call: " + blocking);
        require(
                collective != Collective.HYPERCUBE || gpus == 1,
                "hypercube needs a thread for each GPU, -t instead of -g: its steps wait for each other: -g " + gpus);
        if (algorithm != null) {
            require(
                    collective.hasAlgorithms(),
                    "--algo selects among the algorithms of a collective, and " + collective.label() + " has none: "
                            + algorithm);
            config();
        }
        traffic();
        if (matrix() != null) {
            require(
                    minBytes == maxBytes,
                    "with a matrix, which contains the sizes, -b and -e must be equal: " + minBytes + ", " + maxBytes);
        }
    }

    private void requireIterations() {
        requireFlag("-I", perIteration);
        require(
                perIteration == 0 || graphLaunches == 0,
                "-I cannot be combined with -G, which launches all iterations together: -I " + perIteration + ", -G "
                        + graphLaunches);
        require(
                perIteration == 0 || iterations <= MOST_ITERATIONS,
                "with -I 1, -n must be at most " + MOST_ITERATIONS + ": " + iterations);
        require(
                skipped >= 0 && skipped < iterations,
                "-K must be at least 0 and less than -n: " + skipped + ", -n " + iterations);
        require(skipped == 0 || perIteration == 1, "-K needs -I 1: -K " + skipped + ", -I " + perIteration);
    }

    private void requireOwnImplementation() {
        require(
                deviceImplementation == 0,
                "-D must be 0, NCCL's own implementation: " + deviceImplementation
                        + " is a kernel in CUDA C++ that calls NCCL's device API, which nccl4j lacks");
        require(
                deviceCtas == null || (deviceCtas >= 1 && deviceCtas <= MOST_CTAS),
                "-V must be from 1 to " + MOST_CTAS + ": " + deviceCtas);
        require(
                deviceCtas == null,
                "-V must not be set: nccl4j lacks the implementations that have it: -V " + deviceCtas + ", -D "
                        + deviceImplementation);
    }

    private static void require(boolean fine, String message) {
        if (!fine) {
            throw new IllegalArgumentException(message);
        }
    }

    private static void requireFlag(String option, int value) {
        require(value == 0 || value == 1, option + " must be 0 or 1: " + value);
    }

    /** Throws if there is no folder into which the file of an option could be written. */
    static void requireFolder(String option, Path file) {
        Path folder = file.toAbsolutePath().getParent();
        require(folder != null && Files.isDirectory(folder), option + ": no such folder: " + folder);
        require(Files.isWritable(folder), option + ": the folder is not writable: " + folder);
    }

    boolean raw() {
        return api.equals("raw");
    }

    /** The configuration of each call, the same object at each time; null for calls without one. */
    CollectiveConfig config() {
        if (config == null && algorithm != null) {
            try {
                config = CollectiveConfig.algorithm(algorithm);
            } catch (IllegalArgumentException e) {
                throw new IllegalArgumentException("--algo: " + e.getMessage(), e);
            }
        }
        return config;
    }

    /** The options as nccl-tests' programs take them; those that it has by default are omitted, for older ones. */
    List<String> forNcclTests() {
        List<String> options = new ArrayList<>(List.of("-t", "" + threads, "-g", "" + gpus));
        options.addAll(List.of("-b", "" + minBytes, "-e", "" + maxBytes));
        options.addAll(stepFactor > 1 ? List.of("-f", "" + stepFactor) : List.of("-i", "" + stepBytes));
        options.addAll(List.of("-n", "" + iterations, "-w", "" + warmup, "-c", "" + checks, "-a", "" + average));
        options.addAll(List.of("-o", operator, "-d", type, "-r", "" + root));
        add(options, "-m", aggregated, 1);
        add(options, "-N", cycles, 1);
        add(options, "-z", blocking, 0);
        add(options, "-y", defaultStream, 0);
        add(options, "-G", graphLaunches, 0);
        add(options, "-C", cpuTime, 0);
        add(options, "-R", register, 0);
        add(options, "-u", unalign, 0);
        add(options, "-p", parallelInit, 0);
        add(options, "-I", perIteration, 0);
        add(options, "-K", skipped, 0);
        if (ctaPolicy != null) {
            add(options, "-x", ctaPolicy, -1);
        }
        return options;
    }

    private static void add(List<String> options, String letter, long value, long usual) {
        if (value != usual) {
            options.addAll(List.of(letter, "" + value));
        }
    }

    /** The size after this one. */
    long next(long bytes) {
        return stepFactor > 1 ? bytes * stepFactor : bytes + stepBytes;
    }

    private Path matrix() {
        String file = SystemText.environment().get("NCCL_TESTS_ALLTOALLV_MATRIX_FILE");
        return matrix != null ? matrix : file == null ? null : SystemText.path(file);
    }

    /** The counts of alltoallv, by pairs of ranks. */
    Traffic traffic() {
        if (matrix() != null) {
            return Traffic.file(matrix(), number("NCCL_TESTS_ALLTOALLV_MATRIX_SCALE", 1));
        }
        return Traffic.spread(spread != null ? spread : number("NCCL_TESTS_ALLTOALLV_SPREAD", 1));
    }

    private static double number(String variable, double otherwise) {
        String text = System.getenv(variable);
        try {
            return text == null ? otherwise : Double.parseDouble(text);
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException(variable + " must be a number: " + text, e);
        }
    }

    /** The line that names the settings of the run. */
    String summary() {
        return "# nThread " + threads + " nGpus " + gpus + " minBytes " + minBytes + " maxBytes " + maxBytes + " step: "
                + (stepFactor > 1 ? stepFactor + "(factor)" : stepBytes + "(bytes)") + " warmup iters: " + warmup
                + " iters: " + iterations + " agg iters: " + aggregated + " validation: " + checks + " graph: "
                + graphLaunches + " unalign: " + unalign
                + (algorithm == null ? "" : " algorithm: " + config().values().get("algSelection"));
    }
}
