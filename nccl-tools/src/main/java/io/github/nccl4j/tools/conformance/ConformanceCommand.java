package io.github.nccl4j.tools.conformance;

import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.tools.launch.LaunchOptions;
import io.github.nccl4j.tools.launch.Launcher;
import io.github.nccl4j.tools.support.DaemonThreads;
import io.github.nccl4j.tools.support.RankDevices;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code nccl4j conformance}: the conformance suite on the engine and GPUs of a machine, without a test framework. */
@Command(
        name = "conformance",
        sortOptions = false,
        description = {
            "Compares every operation of nccl4j with an oracle in plain Java, on this machine's GPUs or on the host engine.",
            "",
            "By default, the suite runs in every form: with ranks as processes, as threads and all in one thread, with "
                    + "blocking and non-blocking communicators, with buffers in plain memory and in windows. The exit code is 1 "
                    + "if a check failed. Under another launcher, such as torchrun, this process is one rank.",
            ""
        })
public final class ConformanceCommand implements Callable<Integer> {
    /** The folder of the reports that the ranks of one launch write for the launcher. */
    private static final String REPORTS = "nccl4j.conformance.reports";

    /** Time for other ranks to report that they are stalled too, before the launcher ends them. */
    private static final long OTHERS_SECONDS = 5;

    private static final int STALLED = 3;

    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            description = "Show this help.")
    private boolean help;

    @Mixin
    private LaunchOptions.Usual launch;

    @Option(names = "--processes", description = "Run only with a process for each rank.")
    private boolean processes;

    @Option(names = "--threads", description = "Run only with a thread for each rank, in one process.")
    private boolean threads;

    @Option(names = "--one-thread", description = "Run only with one thread for all ranks.")
    private boolean oneThread;

    @Option(names = "--blocking", description = "Run only with blocking communicators.")
    private boolean blocking;

    @Option(names = "--non-blocking", description = "Run only with non-blocking communicators.")
    private boolean nonBlocking;

    @Option(
            names = "--plain",
            description = "Run only with buffers in plain memory, and the checks that need no windows.")
    private boolean plain;

    @Option(names = "--windows", description = "Run only with buffers in symmetric windows, and one-sided calls.")
    private boolean windows;

    @Option(
            names = "--compare-engines",
            description =
                    "Run the same calls with NCCL and on the host engine, and print where return codes or elements "
                            + "differ. The exit code is 1 if they do.")
    private boolean compareEngines;

    @Option(
            names = "--record",
            paramLabel = "FILE",
            description = "With --compare-engines: write the results of NCCL to a file.")
    private Path record;

    @Option(
            names = "--recorded",
            paramLabel = "FILE",
            description = "With --compare-engines: read the results of NCCL from a file of --record. Needs no GPU.")
    private Path recorded;

    @Option(
            names = "--only",
            paramLabel = "REGEX",
            defaultValue = "",
            description = "Run only the checks whose line matches the expression in part, such as '^ALL_REDUCE.*int8'.")
    private Pattern only;

    @Option(
            names = "--stall-limit",
            paramLabel = "SECONDS",
            defaultValue = "120",
            description =
                    "Time limit of one check; then the command prints all stacks and ends. Default: ${DEFAULT-VALUE}.")
    private int stallLimit;

    @Spec
    private CommandLine.Model.CommandSpec spec;

    private final long start = System.nanoTime();
    private final Report total = new Report();
    private ProgressWatch watch;

    /** For the command line. */
    public ConformanceCommand() {}

    /** One of the ways in which the suite is run. */
    private record Variant(boolean blocking, boolean windows) {
        Ranks ranks(ProgressWatch watch, Predicate<String> wanted) {
            Consumer<Crew> suite = windows ? ConformanceCommand::suiteInWindows : ConformanceCommand::suite;
            return new Ranks(blocking, suite, watch, wanted);
        }

        @Override
        public String toString() {
            return (blocking ? "blocking" : "non-blocking") + (windows ? ", memory in windows" : "");
        }
    }

    /** A way to create ranks and run the suite. */
    @FunctionalInterface
    private interface Way {
        Report run(Variant variant) throws Exception;
    }

    static void suite(Crew crew) {
        new DataSuite(crew, false).run();
        new GroupSuite(crew).run();
        if (!crew.drivesSeveralRanks()) {
            new GraphSuite(crew).run();
            new LifecycleSuite(crew).run();
        }
    }

    static void suiteInWindows(Crew crew) {
        new WindowSuite(crew).run();
    }

    @Override
    public Integer call() throws Exception {
        if (stallLimit < 1) {
            throw new ParameterException(spec.commandLine(), "--stall-limit must be at least 1: " + stallLimit);
        }
        Optional<RankInfo> self = launch.self();
        if (self.isPresent()) {
            return launch.runRank(this::runRank, self.get());
        }
        if (compareEngines) {
            return compareEngines();
        }
        boolean anywhere = !processes && !threads && !oneThread;
        if ((anywhere || processes) && runProcesses() == Launcher.TIMED_OUT) {
            return Launcher.TIMED_OUT;
        }
        if (anywhere || threads || oneThread) {
            runHere(anywhere || threads, anywhere || oneThread, anywhere);
        }
        System.out.println();
        total.print(System.out);
        return result();
    }

    /** The exit code for the outcomes: checks must have run, or a mistake in --only would look like success. */
    private int result() {
        if (total.isEmpty()) {
            throw nothingMatches();
        }
        return total.failed() == 0 ? 0 : 1;
    }

    private ParameterException nothingMatches() {
        return new ParameterException(spec.commandLine(), "no check has a line that matches --only: " + only);
    }

    private List<Variant> variants() {
        List<Variant> variants = new ArrayList<>();
        for (boolean blocks : new boolean[] {true, false}) {
            for (boolean inWindows : new boolean[] {false, true}) {
                boolean wantsBlocking = blocks ? blocking || !nonBlocking : nonBlocking || !blocking;
                boolean wantsMemory = inWindows ? windows || !plain : plain || !windows;
                if (wantsBlocking && wantsMemory) {
                    variants.add(new Variant(blocks, inWindows));
                }
            }
        }
        return variants;
    }

    // --- the ranks in this process
    // -------------------------------------------------------------------------------------

    /** @param optional true to skip them where only processes can share the GPUs */
    private void runHere(boolean inThreads, boolean inOneThread, boolean optional) throws Exception {
        int size = launch.ranks();
        endAtLimit();
        launch.decide(size, true).apply();
        System.out.println(System.lineSeparator() + NcclLibrary.get());
        List<Device> devices;
        try {
            devices = RankDevices.of(0, size);
        } catch (IllegalStateException tooFew) {
            if (!optional || !NcclLibrary.get().sharesGpus()) {
                throw tooFew;
            }
            System.out.println("ranks in threads are skipped: " + tooFew.getMessage());
            return;
        }
        watch = newWatch("this process");
        if (inThreads) {
            runAll(size + " ranks in threads", variant -> variant.ranks(watch, only.asPredicate())
                    .inThreads(devices));
        }
        if (inOneThread) {
            runAll(size + " ranks in one thread", variant -> variant.ranks(watch, only.asPredicate())
                    .inOneThread(devices));
        }
    }

    /** Ends this process at the time limit of the run: its threads may be in calls that never return. */
    private void endAtLimit() {
        Duration limit = launch.limit();
        if (limit == null) {
            return;
        }
        DaemonThreads.start("limit", () -> {
            try {
                TimeUnit.NANOSECONDS.sleep(limit.toNanos() - (System.nanoTime() - start));
            } catch (InterruptedException e) {
                // The process ends nevertheless.
            }
            System.err.println("conformance: timed out after " + limit.toSeconds() + " s");
            System.err.flush();
            Runtime.getRuntime().halt(Launcher.TIMED_OUT);
        });
    }

    private void runAll(String how, Way way) throws Exception {
        for (Variant variant : variants()) {
            System.out.println(System.lineSeparator() + how + ", " + variant + ":");
            long start = System.nanoTime();
            Report report = way.run(variant);
            report.printSum(System.out);
            System.out.printf(Locale.ROOT, "in %.1f s%n", (System.nanoTime() - start) / 1e9);
            total.addAll(report);
        }
    }

    private ProgressWatch newWatch(String who) {
        ProgressWatch made = new ProgressWatch(Duration.ofSeconds(stallLimit), System.err, () -> stalled(who));
        made.start();
        return made;
    }

    private static void stalled(String who) {
        try {
            TimeUnit.SECONDS.sleep(OTHERS_SECONDS);
        } catch (InterruptedException e) {
            // The process ends nevertheless.
        }
        System.err.println("conformance: " + who + " makes no progress, and is ended");
        System.err.flush();
        Runtime.getRuntime().halt(STALLED);
    }

    // --- a process for each rank
    // ---------------------------------------------------------------------------------------

    /** Returns the exit code of the launcher. */
    private int runProcesses() throws IOException, InterruptedException {
        Path folder = Files.createTempDirectory("nccl4j-conformance");
        try {
            int code = launch.launch(List.of("-D" + REPORTS + "=" + folder));
            List<Report> reports = new ArrayList<>();
            for (int rank = 0; rank < launch.ranks(); rank++) {
                Path file = file(folder, rank);
                if (Files.exists(file)) {
                    reports.add(Report.read(file));
                } else {
                    total.add(Outcome.failed("processes", "rank " + rank + " wrote no report"));
                }
            }
            Report merged = Report.ofRanks(reports);
            if (code != 0 && merged.failed() == 0) {
                total.add(Outcome.failed("processes", "the ranks ended with exit code " + code));
            }
            total.addAll(merged);
            return code;
        } finally {
            delete(folder);
        }
    }

    // --- two engines
    // ---------------------------------------------------------------------------------------------------

    private int compareEngines() throws IOException, InterruptedException {
        EngineResults nccl = recorded == null ? results(Engine.NCCL) : EngineResults.read(recorded);
        if (record != null) {
            nccl.write(record);
        }
        EngineResults host = results(Engine.HOST);
        Map<String, String> differences = EngineComparison.differences(nccl, host, launch.ranks());
        EngineComparison.print(nccl, host, differences, System.out);
        if (host.bySubject().isEmpty()) {
            throw nothingMatches();
        }
        return differences.isEmpty() ? 0 : 1;
    }

    /** Runs the ranks on an engine. */
    private EngineResults results(Engine engine) throws IOException, InterruptedException {
        Path folder = Files.createTempDirectory("nccl4j-engines");
        try {
            List<String> options = new ArrayList<>(List.of("-D" + REPORTS + "=" + folder));
            if (engine == Engine.HOST) {
                options.addAll(List.of("-Dnccl4j.engine=host", "-Dnccl4j.library="));
            }
            long unreturned = 0;
            int code;
            while ((code = launch.launch(options)) != 0) {
                // A call that doesn't return is a result; the ranks that start next omit it.
                long more = Files.exists(file(folder, 0))
                        ? EngineResults.read(file(folder, 0)).unreturned()
                        : 0;
                if (more == unreturned) {
                    throw new IOException("the ranks on " + engine + " ended with exit code " + code);
                }
                unreturned = more;
            }
            List<EngineResults> ranks = new ArrayList<>();
            for (int rank = 0; rank < launch.ranks(); rank++) {
                ranks.add(EngineResults.read(file(folder, rank)));
            }
            return EngineResults.ofRanks(ranks);
        } finally {
            delete(folder);
        }
    }

    private static Path file(Path folder, int rank) {
        return folder.resolve("rank" + rank);
    }

    private static void delete(Path folder) throws IOException {
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }

    private int runRank(RankInfo self, Duration patience) throws Exception {
        watch = newWatch("rank " + self.rank());
        if (self.rank() == 0) {
            System.out.println(NcclLibrary.get());
        }
        String reports = System.getProperty(REPORTS);
        if (compareEngines) {
            Path file = file(Path.of(reports), self.rank());
            new EngineComparison(self, patience, watch, only.asPredicate(), file).run(device(self));
            return 0;
        }
        runVariants(self, ids(self, patience));
        if (reports != null) {
            // The launcher counts the failures; if this rank failed, the launcher would end ranks that are still
            // running.
            total.write(file(Path.of(reports), self.rank()));
            return 0;
        }
        if (self.rank() == 0) {
            total.print(System.out);
        }
        return result();
    }

    private void runVariants(RankInfo self, List<UniqueId> ids) throws Exception {
        Device device = device(self);
        for (int i = 0; i < ids.size(); i++) {
            Variant variant = variants().get(i);
            long start = System.nanoTime();
            Report report = variant.ranks(watch, only.asPredicate())
                    .inThisProcess(ids.get(i), self.rank(), self.worldSize(), device);
            String name = self.worldSize() + " ranks in processes, " + variant;
            if (self.rank() == 0 || report.failed() > 0) {
                System.out.println(name + ":");
                report.printSum(System.out);
                System.out.printf(Locale.ROOT, "in %.1f s%n", (System.nanoTime() - start) / 1e9);
            }
            total.addAll(report);
        }
    }

    /** Of a process, which may see its own GPU alone. */
    private static Device device(RankInfo self) {
        return NcclLibrary.get().engine() == Engine.HOST ? Device.host() : Device.cuda(self.device(Device.cudaCount()));
    }

    /** A rendezvous for each variant; all at once, so that the ranks meet once. */
    private List<UniqueId> ids(RankInfo self, Duration patience) {
        int count = variants().size();
        byte[] all = TcpStore.ofProcess(self, patience)
                .broadcast(
                        "ids",
                        0,
                        () -> {
                            ByteBuffer bytes = ByteBuffer.allocate(count * UniqueId.BYTES);
                            for (int i = 0; i < count; i++) {
                                bytes.put(UniqueId.create().toBytes());
                            }
                            return bytes.array();
                        },
                        patience);
        List<UniqueId> ids = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            byte[] id = new byte[UniqueId.BYTES];
            ByteBuffer.wrap(all).get(i * UniqueId.BYTES, id);
            ids.add(UniqueId.of(id));
        }
        return ids;
    }
}
