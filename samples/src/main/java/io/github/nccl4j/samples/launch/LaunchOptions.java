package io.github.nccl4j.samples.launch;

import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.library.SystemText;
import io.github.nccl4j.samples.support.EngineSetting;
import java.io.IOException;
import java.io.PrintStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.IntFunction;
import java.util.function.IntPredicate;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.Spec;

/**
 * The options of every command that runs ranks, and the decision between launching them and being one.
 *
 * <p>A picocli mixin: the command declares a field of this type with {@code @Mixin}; its subcommands take the options too.
 * Called by the command's own thread.
 */
public abstract class LaunchOptions {

    /** Without GPUs there is no natural number of ranks; two are the fewest that talk to each other. */
    private static final int DEFAULT_RANKS = 2;

    @Option(
            names = "--engine",
            paramLabel = "E",
            scope = ScopeType.INHERIT,
            description =
                    "nccl, rccl, host or auto: NCCL where a library and a GPU for each rank are there, else the host "
                            + "engine. Default: -Dnccl4j.engine, NCCL4J_ENGINE, or auto.")
    private String engine;

    @Option(
            names = "--library",
            paramLabel = "PATH",
            scope = ScopeType.INHERIT,
            description = "The library to load, whatever the engine. Default: -Dnccl4j.library or NCCL4J_LIBRARY.")
    private String library;

    @Option(
            names = "--timeout",
            paramLabel = "SECONDS",
            scope = ScopeType.INHERIT,
            description = "End the run after this time, with exit code 124. Default: no limit.")
    private Integer timeout;

    @Option(
            names = "--init-timeout",
            paramLabel = "SECONDS",
            scope = ScopeType.INHERIT,
            defaultValue = "60",
            description = "How long the ranks wait for each other at the start. Default: ${DEFAULT-VALUE}.")
    private int initTimeout;

    @Option(
            names = "--oversubscribe",
            scope = ScopeType.INHERIT,
            description = "Start the ranks even if there are more than "
                    + Capacity.RANKS_PER_PROCESSOR
                    + " for each processor, or if the available memory is less than they need.")
    private boolean oversubscribe;

    @Spec(Spec.Target.MIXEE)
    private CommandSpec spec;

    private EngineSetting decided;
    private IntFunction<IntPredicate> mayBeKilled = size -> rank -> false;

    /** For subclasses. */
    protected LaunchOptions() {}

    /** With the letters that most commands have for the number of ranks and for options of Java. */
    public static final class Usual extends LaunchOptions {

        @Option(
                names = {"-n", "--ranks"},
                paramLabel = "N",
                scope = ScopeType.INHERIT,
                description = "How many ranks to start. Default: one per GPU, or 2 on the host engine.")
        private Integer ranks;

        @Option(
                names = "-J",
                paramLabel = "OPTION",
                scope = ScopeType.INHERIT,
                description = "An option for each rank's JVM, such as -J-Xmx2g. May be repeated.")
        private List<String> jvmOptions = new ArrayList<>();

        /** For picocli. */
        public Usual() {}

        @Override
        protected Integer wanted() {
            return ranks;
        }

        @Override
        protected String letter() {
            return "-n";
        }

        @Override
        protected List<String> jvmOptions() {
            return jvmOptions;
        }
    }

    /** {@return the number of processes that the user wants, or null} */
    protected abstract Integer wanted();

    /** {@return the name of the option that sets {@link #wanted}, for messages} */
    protected abstract String letter();

    /** {@return options for the JVM of each process} */
    protected abstract List<String> jvmOptions();

    /** {@return the number of ranks of each process, each of which needs a GPU} */
    protected int ranksPerProcess() {
        return 1;
    }

    /** {@return whether each line of output begins with the rank that it came from} */
    protected boolean prefixed() {
        return true;
    }

    /** What a process does that is one rank. */
    @FunctionalInterface
    public interface RankBody {

        /**
         * Does this rank's part.
         *
         * @param self this rank
         * @param patience how long to wait for the others at the start
         * @return the exit code
         * @throws Exception if it fails
         */
        int run(RankInfo self, Duration patience) throws Exception;
    }

    /**
     * Launches the ranks, each with this command's own arguments, or is one of them.
     *
     * @param main the class whose main method a rank's JVM runs
     * @param rank what this process does if it is a rank
     * @return the exit code
     * @throws Exception if a rank's process can't be started, this thread is interrupted (all ranks are ended then), or what the rank throws
     */
    public int run(Class<?> main, RankBody rank) throws Exception {
        Optional<RankInfo> self = self();
        return self.isPresent() ? beRank(rank, self.get()) : launch(main, List.of());
    }

    /**
     * As {@link #run(Class, RankBody)}, of ranks some of which may be killed.
     *
     * @param main the class whose main method a rank's JVM runs
     * @param rank what this process does if it is a rank
     * @param mayBeKilled makes of the number of ranks which of them may
     * @return the exit code
     * @throws Exception as {@link #run(Class, RankBody)}
     */
    public int run(Class<?> main, RankBody rank, IntFunction<IntPredicate> mayBeKilled) throws Exception {
        this.mayBeKilled = mayBeKilled;
        return run(main, rank);
    }

    /**
     * Who this process is.
     *
     * @return empty if it is to launch ranks
     */
    public Optional<RankInfo> self() {
        validate();
        return wanted() == null || LauncherWatch.isRank() ? identity() : Optional.empty();
    }

    /**
     * Is one rank, in this process.
     *
     * @param rank what it does, with a known local rank
     * @param self who it is; if it does not know its local rank, it meets the other ranks to find it
     * @return the exit code
     * @throws Exception what it throws
     */
    public int beRank(RankBody rank, RankInfo self) throws Exception {
        Duration patience = Duration.ofSeconds(initTimeout);
        RankInfo located =
                self.hasLocalRank() ? self : TcpStore.ofProcess(self, patience).locate(self, patience);
        if (!LauncherWatch.launched()) {
            // Its launcher would have decided; here each rank does, and comes to the same answer as its neighbours.
            decide(located.localWorldSize(), located.rank() == 0).apply();
        }
        return rank.run(located, patience);
    }

    /**
     * Launches the ranks, each with this command's own arguments, and waits for them.
     *
     * @param main the class whose main method a rank's JVM runs
     * @param further options of the ranks' JVMs
     * @return the exit code, as {@link Launcher#run} gives it
     * @throws IOException if a rank's process can't be started
     * @throws InterruptedException if this thread is interrupted; all ranks are ended
     */
    public int launch(Class<?> main, List<String> further) throws IOException, InterruptedException {
        return launch(main, further, System.out);
    }

    /**
     * As {@link #launch(Class, List)}, of ranks some of which may be killed.
     *
     * @param main the class whose main method a rank's JVM runs
     * @param further options of the ranks' JVMs
     * @param mayBeKilled which of them may
     * @return the exit code
     * @throws IOException if a rank's process can't be started
     * @throws InterruptedException if this thread is interrupted; all ranks are ended
     */
    public int launch(Class<?> main, List<String> further, IntPredicate mayBeKilled)
            throws IOException, InterruptedException {
        this.mayBeKilled = size -> mayBeKilled;
        return launch(main, further);
    }

    /**
     * As {@link #launch(Class, List)}, with their standard output elsewhere.
     *
     * @param main the class whose main method a rank's JVM runs
     * @param further options of the ranks' JVMs
     * @param out where their output goes
     * @return the exit code
     * @throws IOException if a rank's process can't be started
     * @throws InterruptedException if this thread is interrupted; all ranks are ended
     */
    public int launch(Class<?> main, List<String> further, PrintStream out) throws IOException, InterruptedException {
        int count = ranks();
        EngineSetting setting = decide(count, true);
        List<String> options = new ArrayList<>(jvmOptions());
        options.addAll(further);
        List<String> arguments = spec.root().commandLine().getParseResult().originalArgs();
        return new Launcher(
                        JavaCommand.of(options, main.getName(), arguments),
                        count,
                        setting.environment(),
                        limit(),
                        out,
                        System.err,
                        prefixed())
                .mayBeKilled(mayBeKilled.apply(count))
                .run();
    }

    /** Refuses numbers that make no sense, and more ranks than this machine has room for. */
    private void validate() {
        atLeastOne(letter(), wanted());
        atLeastOne("--timeout", timeout);
        atLeastOne("--init-timeout", initTimeout);
        if (!oversubscribe && !LauncherWatch.isRank()) {
            int processes = wanted() == null ? 1 : wanted();
            Capacity.ofMachine().refuse(processes, ranksPerProcess()).ifPresent(reason -> {
                throw new ParameterException(commandLine(), reason + "; --oversubscribe starts them all the same");
            });
        }
    }

    /** {@return the number of processes to launch: what the user said, or what this machine has GPUs for} */
    public int ranks() {
        validate();
        if (wanted() != null) {
            return wanted();
        }
        int gpus = setting().onHost() ? 0 : EngineSetting.gpus();
        int least = ranksPerProcess() > 1 ? 1 : DEFAULT_RANKS;
        return gpus > 0 ? Math.max(1, gpus / ranksPerProcess()) : least;
    }

    /** {@return the time after which the run is ended, or null for none} */
    public Duration limit() {
        return timeout == null ? null : Duration.ofSeconds(timeout);
    }

    /**
     * Chooses the library, once.
     *
     * @param localProcesses the number of processes on this machine
     * @param warn whether to print what the user must know about the choice
     * @return the choice, which is not automatic any more
     */
    public EngineSetting decide(int localProcesses, boolean warn) {
        if (decided == null) {
            EngineSetting.Decision decision = setting().decide(localProcesses * ranksPerProcess());
            if (warn) {
                decision.warning().ifPresent(System.err::println);
            }
            decided = decision.setting();
        }
        return decided;
    }

    private Optional<RankInfo> identity() {
        try {
            RankInfo self = RankInfo.fromEnvironment();
            return self.isSingle() ? Optional.empty() : Optional.of(self);
        } catch (IllegalArgumentException incomplete) {
            throw new ParameterException(commandLine(), incomplete.getMessage(), incomplete);
        }
    }

    private EngineSetting setting() {
        try {
            return EngineSetting.of(engine, library, System.getProperties(), SystemText.environment());
        } catch (IllegalArgumentException unknown) {
            throw new ParameterException(commandLine(), unknown.getMessage(), unknown);
        }
    }

    private CommandLine commandLine() {
        return spec.commandLine();
    }

    private void atLeastOne(String option, Integer value) {
        if (value != null && value < 1) {
            throw new ParameterException(commandLine(), option + " must be at least 1: " + value);
        }
    }
}
