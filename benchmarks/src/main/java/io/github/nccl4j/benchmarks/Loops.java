package io.github.nccl4j.benchmarks;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.Element.Float64;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.library.NativeLibrary;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.function.IntToDoubleFunction;
import java.util.stream.IntStream;
import org.openjdk.jmh.util.ListStatistics;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/**
 * The time of an operation from C, by the bindings' addresses, by highlevel and by JavaCPP Presets CUDA: a loop of each
 * alternately, in the same process, on the same communicator, a millisecond apart. A disturbance of the machine that lasts
 * for seconds affects all of them.
 */
@Command(
        name = "nccl4j loops",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Runs loops of small operations from C and from Java alternately in one process. Prints the nanoseconds of a call until "
                    + "the stream is done, on the slowest rank, and the ratio to C: medians of all rounds, and the quartiles of "
                    + "the ratios.",
            "",
            "The command is a rank of any launcher, as in mpirun -np 2 nccl4j loops. As a single rank, it reduces in place, for "
                    + "which NCCL launches nothing, and so measures the cost of the call alone. Needs g++.",
            "",
            "A single rank also prints separately the rounds in which another thread of the host used the same processor core, "
                    + "which then did fewer additions. If all rounds have half the additions of other runs, that thread used "
                    + "the core all the time.",
            ""
        })
public final class Loops implements Callable<Integer> {
    private static final String PRESETS = "JavaCPP Presets CUDA";

    @Parameters(paramLabel = "OPERATION", description = "One of ${COMPLETION-CANDIDATES}. Default: all.")
    private List<LoopOperation> chosen = List.of();

    @Option(
            names = "-b",
            split = ",",
            paramLabel = "BYTES",
            defaultValue = "8,4096,65536",
            description = "Sizes in bytes, from which the counts of the calls follow. Default: ${DEFAULT-VALUE}.")
    private List<Integer> sizes;

    @Option(
            names = "--groups",
            split = ",",
            paramLabel = "N",
            description =
                    "Measure all-reduces in groups of N calls, such as 1,16,256,1024, and print the time of one call.")
    private List<Integer> groups = List.of();

    @Option(names = "-n", paramLabel = "N", description = "Calls of a loop. Default: 200, or 1000 for a single rank.")
    private Integer calls;

    @Option(
            names = "-w",
            paramLabel = "N",
            defaultValue = "60000",
            description =
                    "Calls of each loop before the measurement, until Java has compiled the loop. Default: ${DEFAULT-VALUE}.")
    private int warmUp;

    @Option(
            names = "-r",
            paramLabel = "N",
            defaultValue = "200",
            description = "Number of rounds. Default: ${DEFAULT-VALUE}.")
    private int rounds;

    @Spec
    private CommandLine.Model.CommandSpec spec;

    private Communicator communicator;
    private CudaStream stream;
    /** The buffer of an all-reduce after which all ranks begin together. */
    private DeviceBuffer<Float32> together;

    /** The columns of the table. */
    private List<String> head = List.of();

    private Loops() {}

    private static native int callFromC(
            int operation, int calls, long send, long recv, long count, long communicator, long stream);

    private static native int callConfiguredFromC(
            int calls, long send, long recv, long count, long communicator, long stream);

    private static native int callGroupsFromC(
            int groupSize, int calls, long send, long recv, long count, long communicator, long stream);

    /**
     * Runs it.
     *
     * @param args the options
     */
    public static void main(String... args) {
        System.exit(Options.execute(new Loops(), args));
    }

    @Override
    public Integer call() throws Exception {
        for (int bytes : sizes) {
            Options.atLeast(spec, Float.BYTES, "-b", bytes);
        }
        for (int group : groups) {
            Options.atLeast(spec, 1, "--groups", group);
        }
        if (!groups.isEmpty() && chosen.stream().anyMatch(operation -> operation != LoopOperation.ALL_REDUCE)) {
            throw new ParameterException(
                    spec.commandLine(), "--groups measures only " + LoopOperation.ALL_REDUCE + ": " + chosen);
        }
        if (calls != null) {
            Options.atLeast(spec, 1, "-n", calls);
        }
        Options.atLeast(spec, 0, "-w", warmUp);
        Options.atLeast(spec, 1, "-r", rounds);
        try (Communicator made = Communicator.fromEnvironment()) {
            communicator = made;
            boolean alone = made.size() == 1;
            if (calls == null) {
                calls = alone ? 1000 : 200;
            }
            loadC();
            stream = CudaStream.nonBlocking(made.device());
            together = made.device().allocate(ElementType.FLOAT32, 1);
            together.fill(0.0);
            print(
                    "%d %s, %s, Java %s; %d rounds of loops of %d calls; ns per call, and ratio to C (quartiles)%n%n",
                    made.size(),
                    alone ? "rank" : "ranks",
                    NcclLibrary.get().version(),
                    Runtime.version(),
                    rounds,
                    calls);
            for (LoopOperation operation : operations(alone)) {
                measure(operation);
            }
            together.close();
            stream.close();
        }
        return 0;
    }

    private void print(String format, Object... arguments) {
        if (communicator.rank() == 0) {
            System.out.printf(Locale.ROOT, format, arguments);
        }
    }

    /** Builds the loops in C against the library that Java calls. */
    private static void loadC() throws Exception {
        Path library = Path.of(NativeLibrary.path());
        Path folder = Files.createTempDirectory("nccl4j-loops");
        try {
            Path made = StubLibraries.makeLoops(folder, library);
            System.load(made.toString());
        } finally {
            Main.delete(folder);
        }
    }

    private List<LoopOperation> operations(boolean alone) {
        if (alone && chosen.stream().anyMatch(operation -> operation != LoopOperation.ALL_REDUCE)) {
            throw new IllegalStateException("a single rank measures only " + LoopOperation.ALL_REDUCE + ": " + chosen);
        }
        if (chosen.isEmpty()) {
            return alone || !groups.isEmpty() ? List.of(LoopOperation.ALL_REDUCE) : List.of(LoopOperation.values());
        }
        return chosen;
    }

    private void measure(LoopOperation operation) {
        int size = communicator.size();
        if (!NcclLibrary.get().provides(operation.function)) {
            print("%s is omitted: the library lacks %s%n", operation, operation.function);
            return;
        }
        if (operation == LoopOperation.HYPERCUBE && Integer.bitCount(size) > 1) {
            print("%s is omitted: the number of ranks must be a power of two: %d%n", operation, size);
            return;
        }
        Device device = communicator.device();
        if (size == 1) {
            int bytes = sizes.get(0);
            try (DeviceBuffer<Float32> buffer = device.allocate(ElementType.FLOAT32, bytes / Float.BYTES)) {
                buffer.fill(0.0);
                LoopArguments inPlace = new LoopArguments(communicator, stream, buffer, buffer, buffer.length());
                measure(operation, bytes, inPlace);
            }
            return;
        }
        long most = sizes.stream().mapToInt(bytes -> bytes / Float.BYTES).max().orElseThrow();
        try (DeviceBuffer<Float32> send = device.allocate(ElementType.FLOAT32, most * size);
                DeviceBuffer<Float32> recv = device.allocate(ElementType.FLOAT32, most * size)) {
            send.fill(0.0);
            recv.fill(0.0);
            for (int bytes : sizes) {
                long count = bytes / Float.BYTES;
                LoopArguments arguments = new LoopArguments(
                        communicator,
                        stream,
                        send.slice(0, operation.sendsBlocks ? count * size : count),
                        recv.slice(0, operation.receivesBlocks ? count * size : count),
                        count);
                measure(operation, bytes, arguments);
            }
        }
    }

    private void measure(LoopOperation operation, int bytes, LoopArguments arguments) {
        if (groups.isEmpty()) {
            Map<String, Loop> ways = communicator.size() == 1 ? waysInPlace(arguments) : ways(operation, arguments);
            // The loop is the same for other sizes.
            int warmUps = bytes == sizes.get(0) ? warmUp : 0;
            measure(operation.toString(), bytes, calls, warmUps, ways);
            return;
        }
        for (int group : groups) {
            int whole = Math.max(1, calls / group) * group;
            measure(operation + ", groups of " + group, bytes, whole, warmUp, waysInGroups(arguments, group));
        }
    }

    /** The ways by name, C first. */
    private static Map<String, Loop> ways(LoopOperation operation, LoopArguments arguments) {
        Map<String, Loop> ways = new LinkedHashMap<>();
        ways.put("C", fromC(operation, arguments));
        ways.put("addresses", AddressLoops.of(operation, arguments));
        ways.put("highlevel", HighlevelLoops.of(operation, arguments));
        if (operation.configFunction() != null && NcclLibrary.get().provides(operation.configFunction())) {
            if (operation == LoopOperation.ALL_REDUCE) {
                ways.put(
                        "C, as configured",
                        calls -> callConfiguredFromC(
                                calls,
                                arguments.send().address(),
                                arguments.recv().address(),
                                arguments.count(),
                                arguments.communicator().nativeHandle(),
                                arguments.stream().nativeHandle()));
            }
            ways.put("highlevel, as configured", HighlevelLoops.asConfigured(operation, arguments));
        }
        return ways;
    }

    /** All ways to make one all-reduce. */
    private static Map<String, Loop> waysInPlace(LoopArguments arguments) {
        // A field would be read again after each call.
        Communicator on = arguments.communicator();
        CudaStream in = arguments.stream();
        DeviceBuffer<Float32> buffer = arguments.recv();
        long address = buffer.address();
        long count = arguments.count();
        Map<String, Loop> ways = ways(LoopOperation.ALL_REDUCE, arguments);
        ways.put("highlevel, in place", some -> {
            for (int i = 0; i < some; i++) {
                on.allReduce(buffer, ReduceOp.SUM, in);
            }
            return 0;
        });
        ways.put("highlevel, addresses", some -> {
            for (int i = 0; i < some; i++) {
                on.onAddresses().allReduce(address, address, count, DataType.FLOAT32, ReduceOp.SUM, in);
            }
            return 0;
        });
        if (NcclLibrary.get().engine() != Engine.HOST) {
            ways.put(PRESETS, new PresetsLoops(arguments).single());
        }
        return ways;
    }

    private static Map<String, Loop> waysInGroups(LoopArguments arguments, int size) {
        Map<String, Loop> ways = new LinkedHashMap<>();
        ways.put(
                "C",
                calls -> callGroupsFromC(
                        size,
                        calls,
                        arguments.send().address(),
                        arguments.recv().address(),
                        arguments.count(),
                        arguments.communicator().nativeHandle(),
                        arguments.stream().nativeHandle()));
        ways.put("addresses", AddressLoops.inGroups(arguments, size));
        ways.put("highlevel", HighlevelLoops.inGroups(arguments, size));
        if (NcclLibrary.get().engine() != Engine.HOST) {
            ways.put(PRESETS, new PresetsLoops(arguments).inGroups(size));
        }
        return ways;
    }

    private void measure(String what, int bytes, int calls, int warmUp, Map<String, Loop> byName) {
        List<Loop> ways = List.copyOf(byName.values());
        boolean alone = communicator.size() == 1;
        List<String> names = List.copyOf(byName.keySet());
        if (alone || !head.equals(names)) {
            if (!alone && !head.isEmpty()) {
                print("%n");
            }
            head = names;
            print("| operation | bytes | %s, ns |", names.get(0));
            names.stream().skip(1).forEach(name -> print(" %s, ns | x C |", name));
            print("%n|---|---:|---:|%s%n", "---:|---|".repeat(names.size() - 1));
        }
        for (int called = 0; called < warmUp; called += calls) {
            ways.forEach(way -> time(way, calls));
        }
        double[] times = new double[ways.size() * rounds];
        CoreShare core = new CoreShare(rounds);
        for (int round = 0; round < rounds; round++) {
            core.look(round);
            for (int i = 0; i < ways.size(); i++) {
                int way = (round + i) % ways.size();
                times[way * rounds + round] = time(ways.get(way), calls);
                core.look(round);
            }
        }
        atTheSlowestRank(times);
        double[] c = of(0, times);
        print("| %s | %d | %.0f |", what, bytes, percentile(c, 50));
        for (int way = 1; way < ways.size(); way++) {
            double[] java = of(way, times);
            double[] ratios =
                    IntStream.range(0, rounds).mapToDouble(i -> java[i] / c[i]).toArray();
            print(
                    " %.0f | %.3f (%.3f..%.3f) |",
                    percentile(java, 50), percentile(ratios, 50), percentile(ratios, 25), percentile(ratios, 75));
        }
        print("%n");
        if (alone) {
            printDifferences(names, times, core);
            print("%n");
        }
        ways.forEach(Loop::close);
    }

    /** The differences between the times of the ways and that of the plainest way from Java, round by round. */
    private void printDifferences(List<String> names, double[] times, CoreShare core) {
        printDifferences("", core.largest(), names, times, core);
        printDifferences(", beside another thread", core.smaller(), names, times, core);
    }

    private void printDifferences(String why, int[] chosen, List<String> names, double[] times, CoreShare core) {
        if (chosen.length == 0) {
            return;
        }
        print(
                "%n%d of %d rounds, in which the core did %.1f additions in the time of a multiplication%s:%n%n",
                chosen.length, rounds, median(chosen, core::additions), why);
        print("| way | ns | more than %s, median | quartiles |%n|---|---:|---:|---|%n", names.get(1));
        double[] plain = of(1, times);
        for (int way = 0; way < names.size(); way++) {
            double[] its = of(way, times);
            print("| %s | %.0f |", names.get(way), median(chosen, round -> its[round]));
            if (way == 1) {
                print(" | |%n");
                continue;
            }
            double[] more = Arrays.stream(chosen)
                    .mapToDouble(round -> its[round] - plain[round])
                    .toArray();
            print(" %.1f | %.1f..%.1f |%n", percentile(more, 50), percentile(more, 25), percentile(more, 75));
        }
    }

    private static double median(int[] rounds, IntToDoubleFunction ofRound) {
        return percentile(Arrays.stream(rounds).mapToDouble(ofRound).toArray(), 50);
    }

    /** The times of one way, by round. */
    private double[] of(int way, double[] times) {
        return Arrays.copyOfRange(times, way * rounds, (way + 1) * rounds);
    }

    private static double percentile(double[] values, int percent) {
        return new ListStatistics(values).getPercentile(percent);
    }

    /** Nanoseconds of a call, until the stream is done. */
    private double time(Loop loop, int calls) {
        communicator.allReduce(together, ReduceOp.SUM, stream);
        stream.synchronize();
        long start = System.nanoTime();
        int results = loop.run(calls);
        while (!stream.isDone()) {
            // Spin, as nccl-tests does.
        }
        double time = (System.nanoTime() - start) / (double) calls;
        if (results != 0) {
            throw new IllegalStateException("a call failed: the bitwise OR of all results is " + results);
        }
        return time;
    }

    private void atTheSlowestRank(double[] times) {
        try (DeviceBuffer<Float64> all = communicator.device().allocate(ElementType.FLOAT64, times.length)) {
            all.copyFrom(times);
            communicator.allReduce(all, ReduceOp.MAX, stream);
            stream.synchronize();
            all.copyTo(times);
        }
    }

    private static Loop fromC(LoopOperation operation, LoopArguments arguments) {
        return calls -> callFromC(
                operation.ordinal(),
                calls,
                arguments.send().address(),
                arguments.recv().address(),
                arguments.count(),
                arguments.communicator().nativeHandle(),
                arguments.stream().nativeHandle());
    }
}
