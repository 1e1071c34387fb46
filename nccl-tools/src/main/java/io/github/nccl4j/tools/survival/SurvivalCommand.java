package io.github.nccl4j.tools.survival;

import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.tools.launch.ChildProcesses;
import io.github.nccl4j.tools.launch.LaunchOptions;
import io.github.nccl4j.tools.launch.Signals;
import io.github.nccl4j.tools.support.DaemonThreads;
import io.github.nccl4j.tools.support.FreeGpuMemory;
import io.github.nccl4j.tools.support.Leftovers;
import io.github.nccl4j.tools.support.RankDevices;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.stream.IntStream;
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
            "Kills one rank during a loop of all-reduces or exchanges; each round chooses a rank and a moment. With --pause, the "
                    + "rank only pauses.",
            "",
            "The other ranks must get an exception, create a communicator without the killed rank, and complete an all-reduce with "
                    + "the right result. After a pause, all ranks must continue without an exception. Afterwards, no process, file, "
                    + "socket or GPU memory may be left. The exit code is 1 if a round failed.",
            ""
        })
public final class SurvivalCommand implements Callable<Integer> {
    /** The fault of the victim: a death or a pause. */
    enum Incident {
        KILL,
        STOP,
        /** SIGSTOP and, after {@link #PAUSE}, SIGCONT. */
        PAUSE,
        /** Pauses of the garbage collector, of {@link #PAUSE} in all. */
        COLLECT,
        /** For {@link #PAUSE}, threads of the launcher take all processors. */
        BUSY;

        boolean isPause() {
            return this == PAUSE || this == COLLECT || this == BUSY;
        }
    }

    static final Duration PAUSE = Duration.ofSeconds(2);

    private static final Map<String, Incident> PAUSES =
            Map.of("stop", Incident.PAUSE, "gc", Incident.COLLECT, "busy", Incident.BUSY);
    private static final int BUSY_THREADS_PER_PROCESSOR = 8;

    private static final String RANDOM = "random";
    private static final String IN_TURN = "in-turn";

    /** The launcher keeps the store, which reports a killed rank at once. */
    private static final long KILLED_MILLIS = 1000;

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
                    "The communicators' deadline: if the rank is stopped, exceptions come at most --slack after it; if it is "
                            + "killed, 1 s after its death. Default: ${DEFAULT-VALUE}.")
    private int deadline;

    @Option(
            names = "--slack",
            paramLabel = "SECONDS",
            defaultValue = "2",
            description = "How long after the deadline an exception may come; more on a busy machine. Default: "
                    + "${DEFAULT-VALUE}.")
    private int slack;

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
            names = "--spare",
            description =
                    "With --return: a process that waits takes the place of the killed rank, instead of a new one.")
    private boolean spare;

    @Option(
            names = "--pause",
            paramLabel = "HOW",
            description =
                    "The rank is not lost, but pauses: 'stop' stops it for 2 s (SIGSTOP, SIGCONT), 'gc' makes its garbage "
                            + "collector pause for 2 s in all, and 'busy' takes all processors for 2 s, with 8 threads on each.")
    private String pause;

    @Option(
            names = "--victim",
            paramLabel = "V",
            defaultValue = RANDOM,
            description = "The rank of each round: 'random' or 'in-turn'. Default: ${DEFAULT-VALUE}.")
    private String victims;

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
        refuse(slack < 0, "--slack must be at least 0: " + slack);
        refuse(returns && stop, "--return cannot be combined with --stop: a stopped rank is not started again");
        refuse(spare && !returns, "--spare needs --return");
        refuse(
                pause != null && (returns || stop || exchange),
                "--pause cannot be combined with --return, --stop or --exchange");
        refuse(pause != null && !PAUSES.containsKey(pause), "--pause must be stop, gc or busy: " + pause);
        refuse(!List.of(RANDOM, IN_TURN).contains(victims), "--victim must be random or in-turn: " + victims);
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

    private void refuse(boolean wrong, String message) {
        if (wrong) {
            throw new ParameterException(spec.commandLine(), message);
        }
    }

    private boolean runRounds(int size) throws IOException, InterruptedException {
        NcclLibrary library = NcclLibrary.get();
        int gpus = RankDevices.countOfProcesses(size);
        long start = seed == null ? System.nanoTime() : seed;
        System.out.println(library + System.lineSeparator() + size + " ranks, " + rounds + " rounds, deadline "
                + deadline + " s, seed " + start);
        Random random = new Random(start);
        List<Long> freeBefore = FreeGpuMemory.free(gpus);
        Set<String> filesBefore = Leftovers.now();
        int failed = 0;
        Slowest slowest = new Slowest();
        for (int round = 1; round <= rounds; round++) {
            int chosen = random.nextInt(size);
            int victim = victims.equals(IN_TURN) ? (round - 1) % size : chosen;
            int moment = random.nextInt(500);
            long began = System.nanoTime();
            Set<String> wrong = runRound(round, size, victim, moment, slowest);
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
        String times = pause == null
                ? "slowest exception after " + slowest.exception + " ms"
                        + (returns ? ", slowest return after " + slowest.comeBack + " ms" : "")
                : "longest call " + slowest.call + " ms";
        System.out.println(rounds + " rounds, " + failed + " failed, " + times + ", seed " + start);
        return failed == 0;
    }

    /** The slowest times of all rounds, in milliseconds. */
    static final class Slowest {
        long exception;
        long comeBack;
        long call;
    }

    private Incident incident() {
        if (pause != null) {
            return PAUSES.get(pause);
        }
        return stop ? Incident.STOP : Incident.KILL;
    }

    /** Runs a round; returns the faults. */
    private Set<String> runRound(int round, int size, int victim, int moment, Slowest slowest)
            throws IOException, InterruptedException {
        Incident incident = incident();
        Path folder = Files.createTempDirectory("survival");
        Set<String> wrong = new TreeSet<>();
        try {
            Survivor.Task.Loss loss = new Survivor.Task.Loss(victim, incident, moment);
            Survivor.Task task =
                    new Survivor.Task(loss, Duration.ofSeconds(deadline), count, exchange, returns, folder);
            launch.setMaxRestarts(returns && !spare ? 1 : 0);
            launch.setSpares(spare ? 1 : 0);
            Thread pauses = DaemonThreads.start("pause", () -> pause(incident, folder));
            int code = launch.launch(task.options(), rank -> rank == victim);
            pauses.interrupt();
            pauses.join();
            System.out.printf(
                    Locale.ROOT,
                    "round %d: rank %d %s %d ms into the loop%n",
                    round,
                    victim,
                    switch (incident) {
                        case KILL -> "killed";
                        case STOP -> "stopped";
                        case PAUSE -> "stopped for " + PAUSE.toSeconds() + " s";
                        case COLLECT -> "paused by its garbage collector";
                        case BUSY -> "and the others without processors";
                    },
                    moment);
            wrong.addAll(readReports(folder, size, victim, slowest));
            if (code != 0) {
                wrong.add("exit code " + code);
            }
        } finally {
            delete(folder);
        }
        return wrong;
    }

    /** Prints the reports of the ranks; returns the faults. */
    Set<String> readReports(Path folder, int size, int victim, Slowest slowest) throws IOException {
        Incident incident = incident();
        boolean isGone = incident == Incident.STOP || incident == Incident.KILL && !returns;
        Set<String> wrong = new TreeSet<>();
        long longest = 0;
        for (int rank = 0; rank < size; rank++) {
            if (rank == victim && isGone) {
                continue;
            }
            Survivor.Report report = Survivor.Report.read(folder, rank);
            System.out.println("  rank " + rank + ": " + report);
            if (incident.isPause()) {
                if (!report.right()) {
                    wrong.add("rank " + rank + " did not continue");
                }
                longest = Math.max(longest, report.millis());
            } else if (rank == victim) {
                if (!report.right()) {
                    wrong.add("rank " + rank + " did not come back");
                }
                slowest.comeBack = Math.max(slowest.comeBack, report.millis());
            } else {
                wrong.addAll(faults(rank, report, victim));
                slowest.exception = Math.max(slowest.exception, report.millis());
            }
        }
        slowest.call = Math.max(slowest.call, longest);
        if (incident == Incident.PAUSE && longest < PAUSE.toMillis() / 2) {
            wrong.add("no rank noticed the pause: the longest call took " + longest + " ms");
        }
        return wrong;
    }

    /** The faults of a rank that has lost the victim. */
    private Set<String> faults(int rank, Survivor.Report report, int victim) {
        Set<String> wrong = new TreeSet<>();
        long limit = stop ? (deadline + slack) * 1000L : KILLED_MILLIS;
        if (!report.right()) {
            wrong.add("rank " + rank + " did not recover");
        } else if (report.millis() > limit) {
            wrong.add(
                    "rank " + rank + " got its exception after " + report.millis() + " ms, expected at most " + limit);
        }
        if (report.right() && !report.names(victim)) {
            wrong.add("the exception of rank " + rank + " does not name rank " + victim);
        }
        return wrong;
    }

    /** Waits for the moment that the victim has chosen; then continues it after the pause, or takes all processors. */
    private static void pause(Incident incident, Path folder) {
        if (!Set.of(Incident.PAUSE, Incident.BUSY).contains(incident)) {
            return;
        }
        try {
            Path pid = folder.resolve(Survivor.PID);
            while (!Files.exists(pid)) {
                Thread.sleep(1);
            }
            if (incident == Incident.PAUSE) {
                Thread.sleep(PAUSE.toMillis());
                Signals.send("CONT", Long.parseLong(Files.readString(pid)));
                return;
            }
            long end = System.nanoTime() + PAUSE.toNanos();
            int threads = Runtime.getRuntime().availableProcessors() * BUSY_THREADS_PER_PROCESSOR;
            List<Thread> busy = IntStream.range(0, threads)
                    .mapToObj(thread -> DaemonThreads.start("busy-" + thread, () -> {
                        while (System.nanoTime() < end) {
                            Thread.onSpinWait();
                        }
                    }))
                    .toList();
            for (Thread thread : busy) {
                thread.join();
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            // The ranks have ended.
            Thread.currentThread().interrupt();
        }
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
