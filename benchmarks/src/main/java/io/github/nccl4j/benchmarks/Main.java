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
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.openjdk.jmh.profile.GCProfiler;
import org.openjdk.jmh.results.RunResult;
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
 * and prints one table. Half of the processes of C and Python run before those of Java and half after, so that a machine
 * that changes its pace shows in the range of their numbers.
 */
public final class Main {
    private static final String C = "C, through the PLT";
    private static final String PYTHON = "Python, ctypes";

    private static final String HELP = """
            Usage: ./nccl4j benchmark [--quick] [JMH ARGUMENTS]

            The host cost of one ncclAllReduce call, by every way, into a library that does nothing. By default 2 processes
            for each way, each with 4 warm-ups and 6 iterations of a second: about 3 minutes. --quick is one process with
            2 and 3 of 100 ms; it shows that everything runs. JAVA_HOME chooses the Java. Of JMH's arguments:

              REGEX           the ways: highlevel, highlevelInPlace, highlevelAddresses, addresses, pointers, plainPointers,
                              pointersAtPosition, presets, foreign
              -e REGEX        not these
              -f, -wi, -i N   processes, warm-ups, iterations
              -w, -r TIME     how long a warm-up and an iteration take: 500ms
              -jvmArgsAppend  more options of Java
              -prof NAME      a profiler, such as perfasm
            """;

    private final CommandLineOptions given;
    private final int forks;
    private final int warmups;
    private final int iterations;
    private final TimeValue warmupTime;
    private final TimeValue iterationTime;

    private Main(CommandLineOptions given, boolean quick) {
        this.given = given;
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
     * @param args {@code --quick}, and what JMH takes
     * @throws IOException if the libraries can't be made
     * @throws RunnerException if a way can't be measured
     */
    public static void main(String... args) throws IOException, RunnerException {
        List<String> rest = new ArrayList<>(List.of(args));
        boolean quick = rest.removeIf("--quick"::equals);
        if (rest.contains("-h") || rest.contains("--help")) {
            System.out.print(HELP);
            return;
        }
        try {
            new Main(new CommandLineOptions(rest.toArray(String[]::new)), quick).run();
        } catch (CommandLineOptionException e) {
            System.err.println(e.getMessage());
            System.exit(2);
        }
    }

    private void run() throws IOException, RunnerException {
        Path folder = Files.createTempDirectory("nccl4j-benchmark");
        // A hook, since this program is interrupted now and then.
        Runtime.getRuntime().addShutdownHook(new Thread(() -> delete(folder)));
        StubLibraries.make(folder);

        Table table = new Table(C, AllReduceCall.PRESETS);
        Map<String, Way> ways = new HashMap<>();
        Collection<String> excluded = new ArrayList<>(given.getExcludes());
        for (Method method : AllReduceCall.class.getMethods()) {
            Way way = method.getAnnotation(Way.class);
            if (way == null) {
                continue;
            }
            String benchmark = AllReduceCall.class.getName() + "." + method.getName();
            ways.put(benchmark, way);
            int java = Runtime.version().feature();
            if (java < way.since()) {
                excluded.add(benchmark + "$");
                table.addMissing(way.value(), "needs Java " + way.since() + ", this is " + java);
            }
        }

        List<String> c = List.of(folder.resolve("call").toString());
        List<String> python =
                List.of("python3", "call.py", folder.resolve("libnccl.so.2").toString());
        boolean hasPython = hasPython(folder);
        List<Double> timesOfC = new ArrayList<>();
        List<Double> timesOfPython = new ArrayList<>();
        double loadBefore = load();
        int processes = Math.max(1, forks);
        for (int i = 0; i < processes; i++) {
            if (i == (processes + 1) / 2) {
                measureJava(folder, excluded, ways, table);
            }
            measure(folder, c, timesOfC);
            if (hasPython) {
                measure(folder, python, timesOfPython);
            }
        }
        if (processes == 1) {
            measureJava(folder, excluded, ways, table);
        }
        add(table, C, statistics(timesOfC), OptionalDouble.empty());
        if (hasPython) {
            add(table, PYTHON, statistics(timesOfPython), OptionalDouble.empty());
        } else {
            table.addMissing(PYTHON, "no python3");
        }

        System.out.printf(
                Locale.ROOT,
                "%nOne ncclAllReduce call into a library that does nothing; medians of %d x %d iterations of %s.%n"
                        + "Java %s, %s, %d CPUs%s, load %.1f before and %.1f after.%n%n%s",
                processes,
                iterations,
                iterationTime,
                Runtime.version(),
                System.getProperty("os.arch"),
                Runtime.getRuntime().availableProcessors(),
                processor(),
                loadBefore,
                load(),
                table);
    }

    private void measureJava(Path folder, Collection<String> excluded, Map<String, Way> ways, Table table)
            throws RunnerException {
        Map<String, String> properties = Map.of(
                StubLibraries.FOLDER,
                folder.toString(),
                "nccl4j.library",
                folder.resolve("libnccl.so.2").toString());
        // For -f 0, which measures in this process.
        properties.forEach(System::setProperty);
        List<String> arguments = new ArrayList<>(given.getJvmArgsAppend().orElse(List.of()));
        properties.forEach((name, value) -> arguments.add("-D" + name + "=" + value));
        arguments.add("--enable-native-access=ALL-UNNAMED");
        if (Runtime.version().feature() >= 23) {
            // JMH's own use of it; else newer JVMs warn in the midst of the results.
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
                add(table, way.value(), result.getPrimaryResult().getStatistics(), allocated(result));
            }
        }
    }

    /** Runs a process that prints the time of a call for each iteration. */
    private void measure(Path folder, List<String> program, List<Double> times) throws IOException {
        List<String> command = new ArrayList<>(program);
        command.add(Integer.toString(warmups));
        command.add(seconds(warmupTime));
        command.add(Integer.toString(iterations));
        command.add(seconds(iterationTime));
        CommandLine.output(folder, command).lines().map(Double::valueOf).forEach(times::add);
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

    /** The name of the processor, where the kernel tells it, with a comma before it. */
    private static String processor() throws IOException {
        try (Stream<String> lines = Files.lines(Path.of("/proc/cpuinfo"))) {
            return lines.filter(line -> line.startsWith("model name"))
                    .findFirst()
                    .map(line -> ", " + line.substring(line.indexOf(':') + 1).strip())
                    .orElse("");
        }
    }

    private static void delete(Path folder) {
        try (Stream<Path> files = Files.walk(folder)) {
            files.sorted(Comparator.reverseOrder())
                    .forEach(file -> file.toFile().delete());
        } catch (IOException | UncheckedIOException e) {
            System.err.println(folder + " could not be deleted: " + e.getMessage());
        }
    }
}
