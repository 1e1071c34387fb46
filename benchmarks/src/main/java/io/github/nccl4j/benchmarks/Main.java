package io.github.nccl4j.benchmarks;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.openjdk.jmh.profile.GCProfiler;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.NoBenchmarksException;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.CommandLineOptionException;
import org.openjdk.jmh.runner.options.CommandLineOptions;
import org.openjdk.jmh.runner.options.Options;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.util.ListStatistics;
import org.openjdk.jmh.util.Statistics;

/**
 * Measures every way of {@link AllReduceCall}, the call from C and the call from Python, with one library in one run,
 * and prints one table. Half of the processes of C and Python run before those of Java and half after, so that the
 * range of their numbers shows if the machine changes its speed.
 */
public final class Main {
    private static final String C = "C, through the PLT";
    private static final String PYTHON = "Python, ctypes";

    /** Removes the memory barrier from each return from C; the thread that stops the others then executes one for all threads. */
    private static final String NO_BARRIER = "-XX:+UseSystemMemoryBarrier";

    private static final int NO_BARRIER_SINCE = 21;
    private static final String WITHOUT_BARRIER = ", UseSystemMemoryBarrier";

    private static final String HELP = """
            Usage: ./nccl4j benchmark [--quick] [--library PATH] [--groups] [JMH ARGUMENTS]

            Measures the host cost of one ncclAllReduce call, by each way to make it, with a library that does nothing. Each
            way runs in 2 processes, each with 4 warm-ups and 6 iterations of a second: about 3 minutes. --quick runs one
            process with 2 warm-ups and 3 iterations of 100 ms, to check that everything runs. JAVA_HOME chooses the Java;
            with Java 21 and newer, the main ways are also measured with -XX:+UseSystemMemoryBarrier.

              --library PATH  call this libnccl instead, on the first GPU: one rank, in place, for which NCCL launches nothing
              --groups        measure groups of 1, 16, 256 and 1024 calls; the time is that of one call

            Some of JMH's arguments:

              REGEX           the ways: highlevel, highlevelInPlace, highlevelAddresses, highlevelConfigured, addresses,
                              pointers, plainPointers, pointersAtPosition, presets, foreign
              -e REGEX        the ways to exclude
              -f, -wi, -i N   number of processes, warm-ups, iterations
              -w, -r TIME     duration of a warm-up and of an iteration, such as 500ms
              -jvmArgsAppend  additional options of the JVM
              -prof NAME      a profiler, such as perfasm
            """;

    /** The numbers of calls in a group; 0 is a call without a group. */
    private static final List<Integer> SINGLE = List.of(0);

    private static final List<Integer> GROUPS = List.of(1, 16, 256, 1024);

    private final CommandLineOptions given;
    private final Path library;
    private final Class<?> benchmarks;
    private final List<Integer> groups;
    private final int forks;
    private final int warmups;
    private final int iterations;
    private final TimeValue warmupTime;
    private final TimeValue iterationTime;

    private Main(CommandLineOptions given, boolean quick, Path library, boolean grouped) {
        this.given = given;
        this.library = library;
        benchmarks = grouped ? GroupOfCalls.class : AllReduceCall.class;
        groups = grouped ? GROUPS : SINGLE;
        TimeValue time = quick ? TimeValue.milliseconds(100) : TimeValue.seconds(1);
        forks = given.getForkCount().orElse(quick ? 1 : 2);
        warmups = given.getWarmupIterations().orElse(quick ? 2 : 4);
        iterations = given.getMeasurementIterations().orElse(quick ? 3 : 6);
        warmupTime = given.getWarmupTime().orElse(time);
        iterationTime = given.getMeasurementTime().orElse(time);
    }

    /**
     * Runs it.
     *
     * @param args {@code --quick}, {@code --library PATH}, {@code --groups}, and what JMH takes
     * @throws RunnerException if a way can't be measured
     */
    public static void main(String... args) throws RunnerException {
        List<String> rest = new ArrayList<>(List.of(args));
        boolean quick = rest.removeIf("--quick"::equals);
        boolean grouped = rest.removeIf("--groups"::equals);
        if (rest.contains("-h") || rest.contains("--help")) {
            System.out.print(HELP);
            return;
        }
        try {
            Path library = library(rest);
            new Main(new CommandLineOptions(rest.toArray(String[]::new)), quick, library, grouped).run();
        } catch (CommandLineOptionException e) {
            System.err.println(e.getMessage());
            System.exit(2);
        } catch (IOException e) {
            // The compiler is missing, or a program failed; the message has the reason.
            System.err.println("nccl4j benchmark: " + e.getMessage());
            System.exit(1);
        }
    }

    /** Removes "--library PATH" from the arguments and returns the path; null without the option. */
    private static Path library(List<String> arguments) throws CommandLineOptionException {
        int at = arguments.indexOf("--library");
        if (at < 0) {
            return null;
        }
        if (at + 1 == arguments.size() || !Files.isReadable(Path.of(arguments.get(at + 1)))) {
            throw new CommandLineOptionException("--library must be followed by the path of a readable libnccl");
        }
        arguments.remove(at);
        return Path.of(arguments.remove(at)).toAbsolutePath();
    }

    private void run() throws IOException, RunnerException {
        Path folder = Files.createTempDirectory("nccl4j-benchmark");
        // A shutdown hook, because users interrupt this program.
        Runtime.getRuntime().addShutdownHook(new Thread(() -> delete(folder)));
        if (library == null) {
            StubLibraries.make(folder);
        } else {
            StubLibraries.makeProgram(folder, library);
        }

        Map<Integer, Table> tables = new LinkedHashMap<>();
        groups.forEach(group -> tables.put(group, new Table(C, AllReduceCall.PRESETS)));
        Map<String, Way> ways = new HashMap<>();
        Collection<String> excluded = new ArrayList<>(given.getExcludes());
        Collection<String> excludedWithoutBarrier = new ArrayList<>();
        Optional<String> noOption = whyBarrierStays(folder);
        for (Method method : benchmarks.getMethods()) {
            Way way = method.getAnnotation(Way.class);
            if (way == null) {
                continue;
            }
            String benchmark = benchmarks.getName() + "." + method.getName();
            ways.put(benchmark, way);
            int java = Runtime.version().feature();
            if (java < way.since()) {
                excluded.add(benchmark + "$");
                tables.values()
                        .forEach(table ->
                                table.addMissing(way.value(), "needs Java " + way.since() + ", this is " + java));
            }
            if (!way.alsoWithoutBarrier()) {
                excludedWithoutBarrier.add(benchmark + "$");
            } else {
                noOption.ifPresent(
                        why -> tables.values().forEach(table -> table.addMissing(way.value() + WITHOUT_BARRIER, why)));
            }
        }
        excluded.add((benchmarks == GroupOfCalls.class ? AllReduceCall.class : GroupOfCalls.class).getName() + "\\.");

        excludedWithoutBarrier.addAll(excluded);
        boolean hasPython = hasPython(folder);
        Map<Integer, List<Double>> timesOfC = new HashMap<>();
        Map<Integer, List<Double>> timesOfPython = new HashMap<>();
        double loadBefore = load();
        int processes = Math.max(1, forks);
        for (int i = 0; i < processes; i++) {
            if (i == (processes + 1) / 2) {
                measureJava(folder, excluded, excludedWithoutBarrier, noOption.isEmpty(), ways, tables);
            }
            for (int group : groups) {
                measure(folder, c(folder), group, timesOfC);
                if (hasPython) {
                    measure(folder, python(folder), group, timesOfPython);
                }
            }
        }
        if (processes == 1) {
            measureJava(folder, excluded, excludedWithoutBarrier, noOption.isEmpty(), ways, tables);
        }
        System.out.printf(
                Locale.ROOT,
                "%nOne ncclAllReduce call into %s; medians of %d x %d iterations of %s.%n"
                        + "Java %s, %s, %d CPUs%s, load %.1f before and %.1f after.%n",
                library == null ? "a library that does nothing" : library + ", 1 rank in place",
                processes,
                iterations,
                iterationTime,
                Runtime.version(),
                System.getProperty("os.arch"),
                Runtime.getRuntime().availableProcessors(),
                processor(),
                loadBefore,
                load());
        for (int group : groups) {
            Table table = tables.get(group);
            add(table, C, statistics(timesOfC.get(group)), OptionalDouble.empty());
            if (hasPython) {
                add(table, PYTHON, statistics(timesOfPython.get(group)), OptionalDouble.empty());
            } else {
                table.addMissing(PYTHON, "no python3");
            }
            System.out.printf(
                    Locale.ROOT,
                    "%n%s%s",
                    group == 0 ? "" : String.format(Locale.ROOT, "In groups of %d:%n%n", group),
                    table);
        }
    }

    private static List<String> c(Path folder) {
        return List.of(folder.resolve("call").toString());
    }

    private List<String> python(Path folder) {
        return library == null
                ? List.of(
                        "python3",
                        "call.py",
                        "stub",
                        folder.resolve("libnccl.so.2").toString())
                : List.of("python3", "call.py", "real", library.toString());
    }

    /** The reason why the option can't be measured; empty if it can. */
    private Optional<String> whyBarrierStays(Path folder) {
        int java = Runtime.version().feature();
        if (java < NO_BARRIER_SINCE) {
            return Optional.of("needs Java " + NO_BARRIER_SINCE + ", this is " + java);
        }
        if (forks == 0) {
            return Optional.of("needs a process of its own");
        }
        try {
            CommandLine.output(
                    folder,
                    List.of(
                            Path.of(System.getProperty("java.home"), "bin", "java")
                                    .toString(),
                            NO_BARRIER,
                            "-version"));
            return Optional.empty();
        } catch (IOException e) {
            return Optional.of("the system lacks this barrier");
        }
    }

    private void measureJava(
            Path folder,
            Collection<String> excluded,
            Collection<String> excludedWithoutBarrier,
            boolean alsoWithoutBarrier,
            Map<String, Way> ways,
            Map<Integer, Table> tables)
            throws RunnerException {
        measureJava(folder, excluded, ways, tables, List.of(), "");
        if (alsoWithoutBarrier) {
            try {
                measureJava(folder, excludedWithoutBarrier, ways, tables, List.of(NO_BARRIER), WITHOUT_BARRIER);
            } catch (NoBenchmarksException othersAreMeasured) {
                // The requested ways are not among those with the option.
                return;
            }
        }
    }

    private void measureJava(
            Path folder,
            Collection<String> excluded,
            Map<String, Way> ways,
            Map<Integer, Table> tables,
            List<String> javaOptions,
            String suffix)
            throws RunnerException {
        Path called = library == null ? folder.resolve("libnccl.so.2") : library;
        Map<String, String> properties = Map.of(
                StubLibraries.FOLDER,
                folder.toString(),
                Target.REAL,
                Boolean.toString(library != null),
                "nccl4j.library",
                called.toString());
        // For -f 0, which measures in this process.
        properties.forEach(System::setProperty);
        List<String> arguments = new ArrayList<>(given.getJvmArgsAppend().orElse(List.of()));
        arguments.addAll(javaOptions);
        properties.forEach((name, value) -> arguments.add("-D" + name + "=" + value));
        arguments.add("--enable-native-access=ALL-UNNAMED");
        if (Runtime.version().feature() >= 23) {
            // JMH uses it; without the option, newer JVMs print a warning between the results.
            arguments.add("--sun-misc-unsafe-memory-access=allow");
        }

        OptionsBuilder options = new OptionsBuilder();
        options.parent(given);
        options.forks(forks);
        options.warmupIterations(warmups);
        options.warmupTime(warmupTime);
        options.measurementIterations(iterations);
        options.measurementTime(iterationTime);
        options.jvmArgsAppend(arguments.toArray(String[]::new));
        options.addProfiler(GCProfiler.class);
        options.shouldFailOnError(true);
        excluded.forEach(options::exclude);
        Options all = options.build();
        for (RunResult result : new Runner(all).run()) {
            Way way = ways.get(result.getParams().getBenchmark());
            if (way != null) {
                String calls = result.getParams().getParam("calls");
                int group = calls == null ? 0 : Integer.parseInt(calls);
                int count = Math.max(1, group);
                Statistics times = result.getPrimaryResult().getStatistics();
                OptionalDouble bytes = allocated(result);
                tables.get(group)
                        .add(
                                way.value() + suffix,
                                times.getPercentile(50) / count,
                                times.getMin() / count,
                                times.getMax() / count,
                                bytes.isPresent() ? OptionalDouble.of(bytes.getAsDouble() / count) : bytes);
            }
        }
    }

    /** Runs a process that prints the time of a call for each iteration. */
    private void measure(Path folder, List<String> program, int group, Map<Integer, List<Double>> times)
            throws IOException {
        List<String> command = new ArrayList<>(program);
        command.add(Integer.toString(group));
        command.add(Integer.toString(warmups));
        command.add(seconds(warmupTime));
        command.add(Integer.toString(iterations));
        command.add(seconds(iterationTime));
        CommandLine.output(folder, command)
                .lines()
                // NCCL prints its version to the same output if NCCL_DEBUG asks for it.
                .filter(line -> line.matches("[0-9.eE+-]+"))
                .map(Double::valueOf)
                .forEach(times.computeIfAbsent(group, g -> new ArrayList<>())::add);
    }

    private static OptionalDouble allocated(RunResult result) {
        return result.getSecondaryResults().keySet().stream()
                .filter(name -> name.endsWith("gc.alloc.rate.norm"))
                .mapToDouble(name -> result.getSecondaryResults().get(name).getScore())
                .findFirst();
    }

    private static void add(Table table, String way, Statistics times, OptionalDouble bytes) {
        table.add(way, times.getPercentile(50), times.getMin(), times.getMax(), bytes);
    }

    private static Statistics statistics(List<Double> times) {
        return new ListStatistics(
                times.stream().mapToDouble(Double::doubleValue).toArray());
    }

    private static String seconds(TimeValue time) {
        return Double.toString(time.convertTo(TimeUnit.MICROSECONDS) / 1e6);
    }

    private static double load() {
        return ManagementFactory.getOperatingSystemMXBean().getSystemLoadAverage();
    }

    private static boolean hasPython(Path folder) {
        try {
            CommandLine.output(folder, List.of("python3", "-c", "import ctypes"));
            return true;
        } catch (IOException e) {
            return false;
        }
    }

    /** The name of the processor, where the kernel shows it, with a comma before it. */
    private static String processor() throws IOException {
        try (Stream<String> lines = Files.lines(Path.of("/proc/cpuinfo"))) {
            return lines.filter(line -> line.startsWith("model name"))
                    .findFirst()
                    .map(line -> ", " + line.substring(line.indexOf(':') + 1).strip())
                    .orElse("");
        }
    }

    /** Deletes a folder and its content. */
    static void delete(Path folder) {
        try (Stream<Path> files = Files.walk(folder)) {
            files.sorted(Comparator.reverseOrder())
                    .forEach(file -> file.toFile().delete());
        } catch (IOException | UncheckedIOException e) {
            System.err.println(folder + " could not be deleted: " + e.getMessage());
        }
    }
}
