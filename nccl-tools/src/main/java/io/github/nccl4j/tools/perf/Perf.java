package io.github.nccl4j.tools.perf;

import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.CtaPolicy;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.NcclLibraryException;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.tools.launch.CommandErrors;
import io.github.nccl4j.tools.support.PerformanceTable;
import io.github.nccl4j.tools.support.RankDevices;
import java.io.PrintWriter;
import java.time.Duration;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;

/** One process of a measurement: creates its communicators, buffers and threads, and prints the results if it has rank 0. */
final class Perf {
    private static final String PROGRAM = "nccl4j perf ";
    private static final String LEAST_BANDWIDTH = "NCCL_TESTS_MIN_BW";

    private final Collective collective;
    private final Settings settings;
    private final List<String> arguments;
    private final Job job;
    private final RankInfo self;
    private final PrintWriter out;
    private final PerformanceTable table;
    /** Null without -M. */
    private final MemoryReport memory;

    private final int perProcess;
    private final int ranks;

    /**
     * The place of this process in its job.
     *
     * @param store the store of the processes
     * @param patience the time for which the processes wait for each other
     */
    record Job(RankInfo self, TcpStore store, Duration patience) {}

    Perf(Collective collective, Settings settings, List<String> arguments, Job job, PrintWriter out) {
        this.collective = collective;
        this.settings = settings;
        this.arguments = arguments;
        this.job = job;
        self = job.self;
        this.out = out;
        table = new PerformanceTable(settings.cpuTime != 0, settings.perIteration != 0);
        memory = settings.memory == 0 ? null : new MemoryReport();
        perProcess = settings.threads * settings.gpus;
        ranks = self.worldSize() * perProcess;
    }

    private boolean isMain() {
        return self.rank() == 0;
    }

    private void print(String line) {
        if (isMain()) {
            out.println(line);
        }
    }

    /** Runs the measurement; returns exit code 0 if every element was right and the bandwidth was sufficient. */
    int run() throws Exception {
        settings.traffic().requireRanks(ranks);
        if (settings.root >= ranks && collective.rooted) {
            throw new PerfException("-r must be less than the number of ranks: " + settings.root + " >= " + ranks);
        }
        if (collective == Collective.HYPERCUBE && Integer.bitCount(ranks) != 1) {
            throw new PerfException("hypercube needs 2, 4, 8 ... ranks, and there are " + ranks);
        }
        if (memory != null && NcclLibrary.get().engine() == Engine.HOST) {
            throw new PerfException("-M reports memory of GPUs, and the host engine uses none: -M " + settings.memory
                    + ", engine " + Engine.HOST);
        }
        if (settings.config() != null) {
            requireAlgorithms();
        }
        List<Device> devices = devices();
        UniqueId id =
                UniqueId.of(job.store.broadcast("id", 0, () -> UniqueId.create().toBytes(), job.patience));
        try (Members members = new Members(settings, memory)) {
            try {
                members.create(new Members.World(id, ranks, config(), job.patience), self.rank() * perProcess, devices);
                return measure(members.all(), new Processes(job.store, job.patience));
            } catch (Exception | Error e) {
                // Lets other processes fail at once instead of waiting for this one.
                members.abort();
                throw e;
            }
        }
    }

    /** Before a communicator is made, so that all ranks end at once. */
    private void requireAlgorithms() {
        try {
            NcclLibrary.get().require(collective.configFunction());
        } catch (NcclLibraryException e) {
            throw new PerfException("--algo: " + CommandErrors.reason(e));
        }
    }

    private List<Device> devices() {
        try {
            return RankDevices.of(self.localRank() * perProcess, perProcess);
        } catch (IllegalStateException e) {
            throw new PerfException(e.getMessage() + "; -np, -t and -g are the numbers of processes, threads and GPUs");
        }
    }

    /** The configuration of nccl-tests, without the fields that the library does not support. */
    private CommunicatorConfig config() {
        CommunicatorConfig.Builder config =
                CommunicatorConfig.builder().ignoreUnsupported().nvlinkCentricSched(true);
        if (collective == Collective.SENDRECV) {
            config.maxP2pPeers(2);
        }
        if (settings.ctaPolicy != null) {
            config.ctaPolicy(CtaPolicy.values()[settings.ctaPolicy]);
        }
        return config.build();
    }

    private int measure(List<Member> members, Processes processes) throws Exception {
        List<RankDevice> devices = RankDevice.ofAll(members, processes);
        head(devices);
        if (settings.json == null || !isMain()) {
            boolean right = runThreads(members, processes, this::row);
            foot(right, processes);
            return code(right);
        }
        try (JsonFile json = new JsonFile(settings.json, settings)) {
            print("# Writing JSON output to " + json.path());
            json.begin(arguments, NativeLibrary.versionCode(), devices);
            boolean right = runThreads(members, processes, row -> {
                row(row);
                json.add(row);
            });
            foot(right, processes);
            json.end(table.wrongResults(), table.averageBus(), leastBandwidth() > 0, fastEnough());
            return code(right);
        }
    }

    private boolean runThreads(List<Member> members, Processes processes, Results results) throws Exception {
        print(table.header());
        SharedBarrier shared = self.worldSize() == 1
                ? SharedBarrier.ofThreads(settings.threads)
                : SharedBarrier.of(job.store, settings.threads, job.patience);
        Exchange exchange = new Exchange(self.rank(), settings.threads, shared, processes);
        List<Callable<Boolean>> benches = new ArrayList<>();
        for (int t = 0; t < settings.threads; t++) {
            List<Member> own = members.subList(t * settings.gpus, (t + 1) * settings.gpus);
            boolean first = isMain() && t == 0;
            Bench bench = new Bench(settings, collective, own, t, exchange, first ? results : null);
            benches.add(bench::run);
        }
        MemoryReport.Meter meter = memory == null
                ? null
                : memory.meter(members.stream()
                        .map(member -> member.communicator.device())
                        .toList());
        List<Boolean> right = Threads.run(benches, () -> {
            exchange.abort();
            members.forEach(member -> member.communicator.abort());
        });
        if (meter != null) {
            meter.done(MemoryReport.Step.COLLECTIVES);
        }
        return !right.contains(false);
    }

    private void head(List<RankDevice> devices) {
        NcclLibrary library = NcclLibrary.get();
        print("# " + PROGRAM + collective.label() + ", engine " + library.engine() + ", NCCL " + library.version()
                + ", library " + library.path() + ", calls by " + settings.api);
        print(settings.summary());
        if (settings.blocking > 0) {
            print("# Blocking Enabled: -z " + settings.blocking);
        }
        if (settings.perIteration != 0) {
            print(
                    "# Per-Iteration Report: by events in the streams, of the slowest rank; without the first iterations: "
                            + settings.skipped);
        }
        if (settings.parallelInit != 0) {
            print("# Parallel Init Enabled: each thread makes its own communicators and buffers");
        }
        print("#");
        print("# Using devices");
        devices.forEach(device -> print(device.line()));
    }

    private void row(Row row) {
        print(PerformanceTable.columns(row.bytes(), row.count(), row.type(), row.operator(), row.root())
                + cells(row.outOfPlace())
                + cells(row.inPlace())
                + (settings.timestamps != 0
                        ? "  " + LocalDateTime.now(ZoneId.systemDefault()).format(JsonFile.TIME)
                        : ""));
    }

    private String cells(Measurement measured) {
        String cell = table.cell(measured.micros(), measured.algorithm(), measured.bus(), measured.wrong());
        if (measured.iterations() == null) {
            return cell;
        }
        IterationTimes.Summary summary = measured.iterations().summary();
        return cell
                + PerformanceTable.iterations(
                        summary.min(), summary.max(), summary.percentiles().p99(), summary.cv());
    }

    private void foot(boolean right, Processes processes) {
        print(table.footer() + (leastBandwidth() <= 0 ? "" : fastEnough() ? "OK" : "FAILED"));
        print("#");
        print("# Collective test concluded: " + PROGRAM + collective.label());
        if (memory != null) {
            print(memory.line(processes));
        }
        if (isMain() && !right) {
            System.err.println("nccl4j perf: elements were wrong");
        }
    }

    private static double leastBandwidth() {
        String least = System.getenv(LEAST_BANDWIDTH);
        try {
            return least == null ? -1 : Double.parseDouble(least);
        } catch (NumberFormatException e) {
            throw new PerfException(LEAST_BANDWIDTH + " must be a number of GB/s: " + least);
        }
    }

    /** True if the average bandwidth is at least 90 % of the required one, as in nccl-tests. */
    private boolean fastEnough() {
        return !isMain() || table.averageBus() >= leastBandwidth() * 0.9;
    }

    private int code(boolean right) {
        return right && fastEnough() ? 0 : 1;
    }
}
