package io.github.nccl4j.tools.survival;

import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.tools.Main;
import io.github.nccl4j.tools.launch.ChildProcesses;
import io.github.nccl4j.tools.launch.LaunchOptions;
import io.github.nccl4j.tools.support.FreeGpuMemory;
import io.github.nccl4j.tools.support.Leftovers;
import io.github.nccl4j.tools.support.RankDevices;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code nccl4j survival}: kills a rank in a loop of operations, repeatedly, and checks that the others continue. */
@Command(
        name = "survival",
        sortOptions = false,
        description = {
            "Kills one rank during a loop of all-reduces or exchanges; each round chooses a rank and a moment.",
            "",
            "The other ranks must get an exception, create a communicator without the killed rank, and complete an all-reduce with "
                    + "the right result. Afterwards, no process, file, socket or GPU memory may be left. The exit code is 1 if a "
                    + "round failed.",
            ""
        })
public final class SurvivalCommand implements Callable<Integer> {
    /** Ways in which the victim fails. */
    enum Death {
        KILL,
        STOP
    }

    /** The launcher keeps the store, which reports a killed rank at once. */
    private static final long KILLED_MILLIS = 1000;

    private static final long SLACK_MILLIS = 2000;
    private static final long LOST_GPU_BYTES = 8 << 20;
    private static final long SETTLE_NANOS = 10_000_000_000L;

    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            description = "Show this help.")
    private boolean help;

    @Mixin
    private LaunchOptions.Usual launch;

    @Option(
            names = {"-r", "--rounds"},
            paramLabel = "N",
            defaultValue = "20",
            description = "Number of rounds. Default: ${DEFAULT-VALUE}.")
    private int rounds;

    @Option(
            names = {"-d", "--deadline"},
            paramLabel = "SECONDS",
            defaultValue = "10",
            description =
                    "The communicators' deadline: if the rank is stopped, exceptions come at most 2 s after it; if it is "
                            + "killed, 1 s after its death. Default: ${DEFAULT-VALUE}.")
    private int deadline;

    @Option(
            names = {"-c", "--count"},
            paramLabel = "N",
            defaultValue = "1000000",
            description = "Elements (int64) of an operation. Default: ${DEFAULT-VALUE}.")
    private int count;

    @Option(
            names = "--exchange",
            description = "The loop sends and receives in groups, around a ring of the ranks, instead of all-reduces.")
    private boolean exchange;

    @Option(names = "--stop", description = "Stop the rank (SIGSTOP) instead of killing it (SIGKILL).")
    private boolean stop;

    @Option(
            names = "--return",
            description =
                    "The killed rank is started again and must come back: all ranks grow together, get the state of a "
                            + "survivor, and complete an all-reduce.")
    private boolean returns;

    @Option(
            names = "--seed",
            paramLabel = "N",
            description = "Seed of the random ranks and moments. Default: the time.")
    private Long seed;

    @Spec
    private CommandLine.Model.CommandSpec spec;

    /** For the command line. */
    public SurvivalCommand() {}

    @Override
    public Integer call() throws Exception {
        if (rounds < 1 || deadline < 1 || count < 1) {
            throw new ParameterException(
                    spec.commandLine(), "-r, -d and -c must be at least 1: " + rounds + ", " + deadline + ", " + count);
        }
        if (returns && stop) {
            throw new ParameterException(
                    spec.commandLine(), "--return cannot be combined with --stop: a stopped rank is not started again");
        }
        Optional<RankInfo> self = launch.self();
        if (self.isPresent()) {
            Survivor.Task task = Survivor.Task.ofProcess()
                    .orElseThrow(() -> new ParameterException(
                            spec.commandLine(), "survival launches its ranks itself: run it without another launcher"));
            return launch.runRank((rank, patience) -> new Survivor(task, rank, patience).run(), self.get());
        }
        int size = launch.ranks();
        if (size < 2) {
            throw new ParameterException(spec.commandLine(), "-n must be at least 2, since one is killed: " + size);
        }
        launch.decide(size, true).apply();
        return runRounds(size) ? 0 : 1;
    }

    private boolean runRounds(int size) throws IOException, InterruptedException {
        NcclLibrary library = NcclLibrary.get();
        int gpus = RankDevices.countOfProcesses(size);
        long start = seed == null ? System.nanoTime() : seed;
        System.out.println(library + System.lineSeparator() + size + " ranks, " + rounds + " rounds, deadline "
                + deadline + " s, seed " + start);
        Random random = new Random(start);
        Death death = stop ? Death.STOP : Death.KILL;
        long limit = stop ? deadline * 1000L + SLACK_MILLIS : KILLED_MILLIS;
        List<Long> freeBefore = FreeGpuMemory.free(gpus);
        Set<String> filesBefore = Leftovers.now();
        int failed = 0;
        long slowest = 0;
        long slowestReturn = 0;
        for (int round = 1; round <= rounds; round++) {
            int victim = random.nextInt(size);
            int moment = random.nextInt(500);
            long began = System.nanoTime();
            Path folder = Files.createTempDirectory("survival");
            Set<String> wrong = new TreeSet<>();
            try {
                Survivor.Task task = new Survivor.Task(
                        victim, death, moment, Duration.ofSeconds(deadline), count, exchange, returns, folder);
                launch.setMaxRestarts(returns ? 1 : 0);
                int code = launch.launch(Main.class, task.options(), rank -> rank == victim);
                System.out.printf(
                        Locale.ROOT,
                        "round %d: rank %d %s %d ms into the loop%n",
                        round,
                        victim,
                        stop ? "stopped" : "killed",
                        moment);
                for (int rank = 0; rank < size; rank++) {
                    if (rank == victim && !returns) {
                        continue;
                    }
                    Survivor.Report report = Survivor.Report.read(folder, rank);
                    System.out.println("  rank " + rank + ": " + report);
                    if (rank == victim) {
                        if (!report.right()) {
                            wrong.add("rank " + rank + " did not come back");
                        }
                        slowestReturn = Math.max(slowestReturn, report.millis());
                        continue;
                    }
                    if (!report.right()) {
                        wrong.add("rank " + rank + " did not recover");
                    } else if (report.millis() > limit) {
                        wrong.add("rank " + rank + " got its exception after " + report.millis()
                                + " ms, expected at most " + limit);
                    }
                    if (report.right() && !report.names(victim)) {
                        wrong.add("the exception of rank " + rank + " does not name rank " + victim);
                    }
                    slowest = Math.max(slowest, report.millis());
                }
                if (code != 0) {
                    wrong.add("exit code " + code);
                }
            } finally {
                delete(folder);
            }
            long processes = ChildProcesses.descendants().count();
            if (processes > 0) {
                wrong.add(processes + " processes are left");
            }
            Set<String> files = Leftovers.since(filesBefore);
            if (!files.isEmpty()) {
                wrong.add("left: " + files);
            }
            List<Long> free = settled(gpus, freeBefore);
            if (FreeGpuMemory.lost(freeBefore, free) > LOST_GPU_BYTES) {
                wrong.add("GPU memory is lost");
            }
            System.out.printf(
                    Locale.ROOT,
                    "  in %.1f s%s; %s%n",
                    (System.nanoTime() - began) / 1e9,
                    gpus == 0 ? "" : "; GPU memory in use " + FreeGpuMemory.difference(freeBefore, free),
                    wrong.isEmpty() ? "right" : "WRONG: " + String.join("; ", wrong));
            if (!wrong.isEmpty()) {
                failed++;
            }
        }
        System.out.println(rounds + " rounds, " + failed + " failed, slowest exception after " + slowest + " ms"
                + (returns ? ", slowest return after " + slowestReturn + " ms" : "") + ", seed " + start);
        return failed == 0;
    }

    /** The driver may need a moment to free the memory of a killed process. */
    private static List<Long> settled(int gpus, List<Long> before) throws InterruptedException {
        long start = System.nanoTime();
        List<Long> free = FreeGpuMemory.free(gpus);
        while (FreeGpuMemory.lost(before, free) > LOST_GPU_BYTES && System.nanoTime() - start < SETTLE_NANOS) {
            Thread.sleep(100);
            free = FreeGpuMemory.free(gpus);
        }
        return free;
    }

    private static void delete(Path folder) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            for (Path file : files.toList()) {
                Files.delete(file);
            }
        }
        Files.delete(folder);
    }
}
