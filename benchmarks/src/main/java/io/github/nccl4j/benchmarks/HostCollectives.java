package io.github.nccl4j.benchmarks;

import com.google.gson.stream.JsonWriter;
import io.github.nccl4j.highlevel.ProfiledOperation;
import io.github.nccl4j.library.NativeLibrary;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/**
 * The host engine beside Open MPI and PyTorch's Gloo: collectives of floats between processes on this machine, or between network
 * namespaces of it, one program after the other.
 */
@Command(
        name = "nccl4j benchmark-host",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Times collectives of floats between processes on this machine: with Open MPI, for calls of one thread and of "
                    + "several (MPI_THREAD_MULTIPLE); with the host engine from C, on the default stream and on a created "
                    + "stream; with the host engine through highlevel, on a created stream; and with PyTorch's Gloo. The "
                    + "programs run in turn, several times. Prints the median over the runs of the microseconds of a "
                    + "call on the slowest rank, and in brackets the ratio to Open MPI.",
            "",
            "With --hosts, the ranks are distributed over network namespaces of this machine, which veth connects: the host "
                    + "engine and Open MPI use shared memory within a host and TCP between two, and \"Open MPI, TCP\" uses "
                    + "nothing but TCP. Each host has its share of the processors, which also do the work of the network. "
                    + "Needs root and the program ip.",
            "",
            "A size is that of the larger buffer of a rank, as in nccl-tests. Needs g++. Omits Open MPI or PyTorch if it is not "
                    + "installed. On a machine with other load, only the ratios are meaningful.",
            ""
        })
public final class HostCollectives implements Callable<Integer> {
    private static final List<LoopOperation> OPERATIONS = List.of(
            LoopOperation.ALL_REDUCE,
            LoopOperation.ALL_GATHER,
            LoopOperation.REDUCE_SCATTER,
            LoopOperation.BROADCAST,
            LoopOperation.ALLTOALL,
            LoopOperation.SENDRECV);
    private static final String MPI = "Open MPI";

    /** One column of the table. */
    private interface Program {
        List<String> command(LoopOperation operation);
    }

    @Parameters(
            paramLabel = "OPERATION",
            description = "all_reduce, all_gather, reduce_scatter, broadcast, alltoall or sendrecv. Default: all.")
    private List<LoopOperation> chosen = List.of();

    @Option(
            names = "-n",
            paramLabel = "N",
            defaultValue = "2",
            description = "Number of ranks. Default: ${DEFAULT-VALUE}.")
    private int ranks;

    @Option(
            names = "--hosts",
            paramLabel = "N",
            defaultValue = "1",
            description = "Number of hosts, each with the same number of ranks. Default: ${DEFAULT-VALUE}.")
    private int hosts;

    @Option(
            names = "-b",
            split = ",",
            paramLabel = "BYTES",
            defaultValue = "8,4096,32768,524288,8388608,67108864",
            description = "Sizes in bytes. Default: ${DEFAULT-VALUE}.")
    private List<Integer> sizes;

    @Option(
            names = "-r",
            paramLabel = "N",
            defaultValue = "31",
            description = "The least number of rounds of calls in a run, whose median is the result of the run. "
                    + "Default: ${DEFAULT-VALUE}.")
    private int rounds;

    @Option(
            names = "--runs",
            paramLabel = "N",
            defaultValue = "5",
            description = "Number of times that each program runs. Default: ${DEFAULT-VALUE}.")
    private int runs;

    @Option(
            names = "-J",
            paramLabel = "FOLDER",
            description =
                    "Also writes the results of each operation to FOLDER/OPERATION.json, for nccl4j plot. Makes the "
                            + "folder if there is none.")
    private Path results;

    @Spec
    private CommandSpec spec;

    private final LocalDateTime start = LocalDateTime.now(ZoneId.systemDefault());

    private HostCollectives() {}

    /**
     * Measures.
     *
     * @param args see {@code --help}
     */
    public static void main(String... args) {
        System.setProperty("nccl4j.engine", "host");
        System.exit(Options.execute(new HostCollectives(), args));
    }

    @Override
    public Integer call() throws Exception {
        Options.atLeast(spec, 2, "-n", ranks);
        Options.atLeast(spec, 1, "--hosts", hosts);
        if (ranks % hosts != 0) {
            throw new ParameterException(
                    spec.commandLine(), "-n must be a multiple of --hosts: " + ranks + " is none of " + hosts);
        }
        Options.atLeast(spec, 1, "-r", rounds);
        Options.atLeast(spec, 1, "--runs", runs);
        for (int bytes : sizes) {
            Options.atLeast(spec, Float.BYTES, "-b", bytes);
        }
        for (LoopOperation operation : chosen) {
            if (!OPERATIONS.contains(operation)) {
                throw new ParameterException(
                        spec.commandLine(), "OPERATION must be one of " + OPERATIONS + ": " + operation);
            }
        }
        List<LoopOperation> operations = chosen.isEmpty() ? OPERATIONS : chosen;
        if (results != null) {
            makeFolder(operations);
        }
        if (hosts == 1) {
            run(operations, List.of());
            return 0;
        }
        try (NetworkNamespaces namespaces = NetworkNamespaces.connected(hosts)) {
            run(operations, namespaces.names());
        } catch (NetworkNamespaces.RefusedException refused) {
            System.out.println("skipped: --hosts needs network namespaces: " + refused.getMessage());
        }
        return 0;
    }

    /** `namespaces`: those of the hosts; none if the ranks are on this one. */
    private void run(List<LoopOperation> operations, List<String> namespaces) throws IOException {
        Path folder = Files.createTempDirectory("nccl4j-host");
        try {
            Map<String, String> skipped = new LinkedHashMap<>();
            Map<String, Program> programs = programs(folder, namespaces, skipped);
            System.out.println(Runtime.getRuntime().availableProcessors() + " processors, "
                    + (hosts == 1 ? "" : hosts + " hosts, ") + ranks + " ranks, Java "
                    + Runtime.version() + ", " + runs + " runs of " + rounds + " rounds");
            for (LoopOperation operation : operations) {
                if (sizesOf(operation).isEmpty()) {
                    skipped.put(operation.toString(), "a size must have an element for each rank");
                    continue;
                }
                Map<String, Map<Integer, Double>> times = measure(operation, programs, folder, skipped);
                print(operation, times);
                if (results != null) {
                    write(operation, times);
                }
            }
            skipped.forEach((what, reason) -> System.out.println("skipped: " + what + ": " + reason));
        } finally {
            Main.delete(folder);
        }
    }

    /** Throws if there are results that would be overwritten. */
    private void makeFolder(List<LoopOperation> operations) {
        try {
            Files.createDirectories(results);
        } catch (IOException failure) {
            throw new ParameterException(spec.commandLine(), "-J: can't make the folder: " + failure, failure);
        }
        for (LoopOperation operation : operations) {
            if (Files.exists(resultsOf(operation))) {
                throw new ParameterException(spec.commandLine(), "-J: the file exists: " + resultsOf(operation));
            }
        }
    }

    private Path resultsOf(LoopOperation operation) {
        return results.resolve(operation + ".json");
    }

    /** For each program the medians of its runs, by size. A program that fails too often is skipped. */
    private Map<String, Map<Integer, Double>> measure(
            LoopOperation operation, Map<String, Program> programs, Path folder, Map<String, String> skipped) {
        Map<String, Program> left = new LinkedHashMap<>(programs);
        Map<String, Map<Integer, List<Double>>> times = new LinkedHashMap<>();
        Map<String, Integer> failures = new HashMap<>();
        for (int run = 0; run < runs; run++) {
            for (Map.Entry<String, Program> program : List.copyOf(left.entrySet())) {
                try {
                    Map<Integer, List<Double>> bySize = times.computeIfAbsent(program.getKey(), key -> new TreeMap<>());
                    parse(CommandLine.output(folder, program.getValue().command(operation)))
                            .forEach((bytes, time) -> bySize.computeIfAbsent(bytes, key -> new ArrayList<>())
                                    .add(time));
                } catch (IOException | NumberFormatException failure) {
                    skipped.put(program.getKey() + ", " + operation, firstLine(failure.getMessage()));
                    if (failures.merge(program.getKey(), 1, Integer::sum) > runs / 2) {
                        left.remove(program.getKey());
                        times.remove(program.getKey());
                    }
                }
            }
        }
        Map<String, Map<Integer, Double>> medians = new LinkedHashMap<>();
        times.forEach((program, bySize) -> {
            Map<Integer, Double> ofProgram = new TreeMap<>();
            bySize.forEach((bytes, all) -> ofProgram.put(bytes, median(all)));
            medians.put(program, ofProgram);
        });
        return medians;
    }

    private static double median(List<Double> times) {
        return times.stream().sorted().toList().get(times.size() / 2);
    }

    private Map<String, Program> programs(Path folder, List<String> namespaces, Map<String, String> skipped)
            throws IOException {
        Path ours = StubLibraries.makeCollectives(folder, Path.of(NativeLibrary.path()));
        Map<String, Program> programs = new LinkedHashMap<>();
        try {
            programs.putAll(mpiPrograms(StubLibraries.makeMpiCollectives(folder), folder, namespaces));
        } catch (IOException failure) {
            skipped.put(MPI, firstLine(failure.getMessage()));
        }
        boolean alone = namespaces.isEmpty();
        List<String> engine = alone
                ? List.of(ours.toString())
                : List.of("env", "NCCL_SOCKET_IFNAME=" + NetworkNamespaces.INTERFACE, ours.toString());
        String place = alone ? "processes" : String.join(",", namespaces);
        programs.put("C", operation -> join(engine, arguments(operation), List.of("default", place)));
        programs.put("C, stream", operation -> join(engine, arguments(operation), List.of("stream", place)));
        if (alone) {
            programs.put("C, threads", operation -> join(engine, arguments(operation), List.of("default", "threads")));
        }
        List<String> ofHosts = alone ? List.of() : List.of(place);
        programs.put(
                "highlevel",
                operation -> join(
                        List.of(
                                Path.of(System.getProperty("java.home"), "bin", "java")
                                        .toString(),
                                "-cp",
                                System.getProperty("java.class.path"),
                                HostCollectivesRank.class.getName(),
                                String.valueOf(freePort())),
                        arguments(operation),
                        ofHosts));
        StubLibraries.copyTo(folder, "collectives.py");
        programs.put("Gloo", operation -> join(List.of("python3", "collectives.py"), arguments(operation), ofHosts));
        return programs;
    }

    private Map<String, Program> mpiPrograms(Path program, Path folder, List<String> namespaces) throws IOException {
        // By itself Open MPI yields only if the machine has fewer processors than ranks, whatever the affinity permits.
        boolean yields = ranks > Runtime.getRuntime().availableProcessors();
        List<String> launcher = List.of(
                "env",
                "OMPI_ALLOW_RUN_AS_ROOT=1",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                "mpirun",
                "--oversubscribe",
                "--bind-to",
                "none",
                "--mca",
                "mpi_yield_when_idle",
                yields ? "1" : "0",
                "-np",
                String.valueOf(ranks));
        List<String> command = List.of(program.toString());
        Map<String, Program> programs = new LinkedHashMap<>();
        if (namespaces.isEmpty()) {
            programs.put(MPI, operation -> join(launcher, command, arguments(operation)));
            programs.put(
                    MPI + ", threads", operation -> join(launcher, command, arguments(operation), List.of("multiple")));
            return programs;
        }
        Path agent = NetworkNamespaces.writeAgent(folder, namespaces);
        int ranksOfHost = ranks / hosts;
        List<String> between = join(
                // Connections between Open MPI's ranks sometimes fail, and the ranks then wait for each other.
                List.of("timeout", "120", agent.toString(), namespaces.get(0)),
                launcher,
                List.of(
                        "--mca",
                        "plm_rsh_agent",
                        agent.toString(),
                        "--mca",
                        "pml",
                        "ob1",
                        "--mca",
                        "btl_tcp_if_include",
                        NetworkNamespaces.NETWORK,
                        "--mca",
                        "oob_tcp_if_include",
                        NetworkNamespaces.NETWORK,
                        "--host",
                        namespaces.stream()
                                .map(name -> name + ":" + ranksOfHost)
                                .collect(Collectors.joining(",")),
                        "--mca",
                        "btl"));
        programs.put(MPI, operation -> join(between, List.of("tcp,self,vader"), command, arguments(operation)));
        if (ranksOfHost > 1) {
            programs.put(MPI + ", TCP", operation -> join(between, List.of("tcp,self"), command, arguments(operation)));
        }
        return programs;
    }

    private List<String> arguments(LoopOperation operation) {
        String sizeList = sizesOf(operation).stream().map(String::valueOf).collect(Collectors.joining(","));
        return List.of(String.valueOf(ranks), operation.toString(), sizeList, String.valueOf(rounds));
    }

    @SafeVarargs
    private static List<String> join(List<String>... parts) {
        List<String> all = new ArrayList<>();
        for (List<String> part : parts) {
            all.addAll(part);
        }
        return all;
    }

    private static int freePort() {
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            return free.getLocalPort();
        } catch (IOException failure) {
            throw new IllegalStateException("no free port", failure);
        }
    }

    /** Lines of bytes and microseconds. */
    private static Map<Integer, Double> parse(String output) throws IOException {
        Map<Integer, Double> times = new TreeMap<>();
        for (String line : output.lines().toList()) {
            if (line.startsWith("no ")) {
                throw new IOException(line);
            }
            String[] columns = line.trim().split(" ");
            times.put(Integer.parseInt(columns[0]), Double.parseDouble(columns[1]));
        }
        return times;
    }

    private static String firstLine(String text) {
        return text == null ? "failed" : text.lines().findFirst().orElse("failed");
    }

    private void print(LoopOperation operation, Map<String, Map<Integer, Double>> times) {
        System.out.println();
        System.out.println("| " + operation + ", bytes | " + String.join(" | ", times.keySet()) + " |");
        System.out.println("|---:|" + "---:|".repeat(times.size()));
        for (int bytes : sizesOf(operation)) {
            StringBuilder row = new StringBuilder("| ").append(bytes).append(" |");
            Double base = times.getOrDefault(MPI, Map.of()).get(bytes);
            for (Map<Integer, Double> column : times.values()) {
                Double time = column.get(bytes);
                row.append(' ').append(time == null ? "-" : number(time));
                if (time != null && base != null && column != times.get(MPI)) {
                    row.append(" (").append(number(time / base)).append(')');
                }
                row.append(" |");
            }
            System.out.println(row);
        }
    }

    private void write(LoopOperation operation, Map<String, Map<Integer, Double>> times) throws IOException {
        double busFactor = ProfiledOperation.busFactor(operation.function, ranks);
        try (JsonWriter json = new JsonWriter(Files.newBufferedWriter(
                resultsOf(operation), StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE))) {
            json.setIndent(" ");
            json.beginObject();
            json.name("start_time")
                    .value(start.format(DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss", Locale.ROOT)));
            json.name("collective").value(operation.toString());
            json.name("ranks").value(ranks);
            json.name("hosts").value(hosts);
            json.name("processors").value(Runtime.getRuntime().availableProcessors());
            json.name("java").value(Runtime.version().toString());
            json.name("runs").value(runs);
            json.name("rounds").value(rounds);
            json.name("programs").beginArray();
            for (String program : times.keySet()) {
                json.value(program);
            }
            json.endArray();
            json.name("results").beginArray();
            for (Map.Entry<String, Map<Integer, Double>> program : times.entrySet()) {
                for (Map.Entry<Integer, Double> time : program.getValue().entrySet()) {
                    json.beginObject();
                    json.name("program").value(program.getKey());
                    json.name("size").value(time.getKey());
                    json.name("time").value(time.getValue());
                    json.name("bus_bw").value(time.getKey() / time.getValue() / 1e3 * busFactor);
                    json.endObject();
                }
            }
            json.endArray();
            json.endObject();
        }
    }

    /** The sizes that have an element for each rank. */
    private List<Integer> sizesOf(LoopOperation operation) {
        boolean hasBlocks = operation.sendsBlocks || operation.receivesBlocks;
        int least = Float.BYTES * (hasBlocks ? ranks : 1);
        return sizes.stream().filter(bytes -> bytes >= least).toList();
    }

    private static String number(double value) {
        return String.format(Locale.ROOT, value >= 100 ? "%.0f" : value >= 10 ? "%.1f" : "%.2f", value);
    }
}
