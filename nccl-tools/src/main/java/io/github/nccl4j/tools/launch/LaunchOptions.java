package io.github.nccl4j.tools.launch;

import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.library.SystemText;
import io.github.nccl4j.tools.support.EngineSetting;
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
 * The options common to all commands that run ranks. Depending on them and on the environment, the process launches the ranks or
 * is a rank itself.
 *
 * <p>A picocli mixin: the command declares a field of this type with {@code @Mixin}, and its subcommands inherit the options.
 *
 * <p>Not thread-safe; used by the thread that executes the command.
 */
public abstract class LaunchOptions {

    /** The number of ranks on the host engine: the fewest that communicate. */
    private static final int DEFAULT_RANKS = 2;

    @Option(
            names = "--engine",
            paramLabel = "E",
            scope = ScopeType.INHERIT,
            description =
                    "nccl, rccl, host or auto: NCCL if a library and a GPU for each rank are available, else the host "
                            + "engine. Default: -Dnccl4j.engine, NCCL4J_ENGINE, or auto.")
    private String engine;

    @Option(
            names = "--library",
            paramLabel = "PATH",
            scope = ScopeType.INHERIT,
            description = "The library to load; overrides --engine. Default: -Dnccl4j.library or NCCL4J_LIBRARY.")
    private String library;

    @Option(
            names = "--timeout",
            paramLabel = "SECONDS",
            scope = ScopeType.INHERIT,
            description = "Time limit of the run; then the exit code is 124. Default: no limit.")
    private Integer timeout;

    @Option(
            names = "--init-timeout",
            paramLabel = "SECONDS",
            scope = ScopeType.INHERIT,
            defaultValue = "60",
            description = "Time that the ranks wait for each other at the start. Default: ${DEFAULT-VALUE}.")
    private int initTimeout;

    @Option(
            names = "--oversubscribe",
            scope = ScopeType.INHERIT,
            description = "Start the ranks even if there are more than "
                    + Capacity.RANKS_PER_PROCESSOR
                    + " per processor, or if they need more memory than is available.")
    private boolean oversubscribe;

    @Spec(Spec.Target.MIXEE)
    private CommandSpec spec;

    private EngineSetting decided;

    /** The class whose main method a rank's JVM runs; null for that of this program. */
    private Class<?> rankMain;

    /** The arguments of the ranks; null for those of this command. */
    private List<String> rankArguments;

    /** By the number of ranks. */
    private IntFunction<IntPredicate> expendableRanks = size -> rank -> false;

    private int maxRestarts;
    private int spares;

    /** For subclasses. */
    protected LaunchOptions() {}

    /** The launch options with {@code -n} for the number of ranks and {@code -J} for JVM options. */
    public static final class Usual extends LaunchOptions {

        @Option(
                names = {"-n", "--ranks"},
                paramLabel = "N",
                scope = ScopeType.INHERIT,
                description = "Number of ranks to start. Default: one per GPU, or 2 on the host engine.")
        private Integer ranks;

        @Option(
                names = "-J",
                paramLabel = "OPTION",
                parameterConsumer = JvmOptionConsumer.class,
                scope = ScopeType.INHERIT,
                description = "An option for each rank's JVM, such as -J-Xmx2g. May be repeated.")
        private List<String> jvmOptions = new ArrayList<>();

        /** For picocli. */
        public Usual() {}

        @Override
        protected Integer requestedProcesses() {
            return ranks;
        }

        @Override
        protected String processesOption() {
            return "-n";
        }

        @Override
        public List<String> jvmOptions() {
            return jvmOptions;
        }
    }

    /** {@return the number of processes that the user asked for, or null} */
    protected abstract Integer requestedProcesses();

    /** {@return the name of the option that sets {@link #requestedProcesses}, for messages} */
    protected abstract String processesOption();

    /** {@return additional options of each process's JVM} */
    protected abstract List<String> jvmOptions();

    /** {@return the number of ranks of each process; each needs its own GPU} */
    protected int ranksPerProcess() {
        return 1;
    }

    /** {@return true if the launcher puts the rank before each line of output} */
    protected boolean isPrefixed() {
        return true;
    }

    /** The work of one rank. */
    @FunctionalInterface
    public interface RankBody {

        /**
         * Runs this rank.
         *
         * @param self this rank
         * @param initTimeout the time to wait for the other ranks at the start
         * @return the exit code
         * @throws Exception if the rank fails
         */
        int run(RankInfo self, Duration initTimeout) throws Exception;
    }

    /**
     * Launches the ranks, each as this program with its arguments, or runs a rank if this process is one.
     *
     * @param rank the work of a rank
     * @return the exit code
     * @throws IOException if a rank's process can't be started
     * @throws InterruptedException if the calling thread is interrupted; all ranks are ended
     * @throws Exception if this process is a rank and {@code rank} throws it
     */
    public int run(RankBody rank) throws Exception {
        Optional<RankInfo> self = self();
        return self.isPresent() ? runRank(rank, self.get()) : launch(List.of());
    }

    /**
     * As {@link #run(RankBody)}, with another program for the ranks, and with ranks that may be killed without ending the run.
     *
     * @param main the class whose main method a rank's JVM runs
     * @param arguments its arguments
     * @param rank the work of a rank
     * @param expendableRanks gives for a number of ranks the ranks that may be killed
     * @return the exit code
     * @throws Exception as {@link #run(RankBody)}
     */
    public int run(Class<?> main, List<String> arguments, RankBody rank, IntFunction<IntPredicate> expendableRanks)
            throws Exception {
        rankMain = main;
        rankArguments = arguments;
        this.expendableRanks = expendableRanks;
        return run(rank);
    }

    /**
     * Sets how many processes are started in place of ranks that fail. Default: none.
     *
     * @param restarts as {@link Launcher#maxRestarts}
     */
    public void setMaxRestarts(int restarts) {
        maxRestarts = restarts;
    }

    /**
     * Sets how many processes are started in advance, to take the places of ranks that fail. Default: none.
     *
     * @param count as {@link Launcher#spares}
     */
    public void setSpares(int count) {
        spares = count;
    }

    /**
     * Finds the rank of this process, after checking the options.
     *
     * @return the rank, or empty if this process is to launch the ranks
     */
    public Optional<RankInfo> self() {
        validate();
        return requestedProcesses() == null || LauncherWatch.isRank() ? identity() : Optional.empty();
    }

    /**
     * Runs a rank in this process. If its local rank is unknown, first asks the other ranks through the store.
     *
     * @param rank the work of the rank
     * @param self the rank of this process
     * @return the exit code
     * @throws Exception if {@code rank} throws it
     */
    public int runRank(RankBody rank, RankInfo self) throws Exception {
        Duration timeout = initTimeout();
        RankInfo located =
                self.hasLocalRank() ? self : TcpStore.ofProcess(self, timeout).locate(self, timeout);
        if (!LauncherWatch.isLaunched()) {
            // Our launcher decides for its ranks; under another launcher each rank decides, and all ranks of a machine
            // agree.
            decide(located.localWorldSize(), located.rank() == 0).apply();
        }
        return rank.run(located, timeout);
    }

    /**
     * Launches the ranks, each as this program with its arguments, and waits for them.
     *
     * @param additionalOptions additional options of the ranks' JVMs
     * @return the exit code of {@link Launcher#run}
     * @throws IOException if a rank's process can't be started
     * @throws InterruptedException if the calling thread is interrupted; all ranks are ended
     */
    public int launch(List<String> additionalOptions) throws IOException, InterruptedException {
        return launch(additionalOptions, System.out);
    }

    /**
     * As {@link #launch(List)}, with ranks that may be killed without ending the run.
     *
     * @param additionalOptions additional options of the ranks' JVMs
     * @param expendable true for a rank that may be killed
     * @return the exit code of {@link Launcher#run}
     * @throws IOException if a rank's process can't be started
     * @throws InterruptedException if the calling thread is interrupted; all ranks are ended
     */
    public int launch(List<String> additionalOptions, IntPredicate expendable)
            throws IOException, InterruptedException {
        this.expendableRanks = size -> expendable;
        return launch(additionalOptions);
    }

    /**
     * As {@link #launch(List)}, with the ranks' standard output written to {@code out}.
     *
     * @param additionalOptions additional options of the ranks' JVMs
     * @param out receives the ranks' standard output
     * @return the exit code of {@link Launcher#run}
     * @throws IOException if a rank's process can't be started
     * @throws InterruptedException if the calling thread is interrupted; all ranks are ended
     */
    public int launch(List<String> additionalOptions, PrintStream out) throws IOException, InterruptedException {
        int count = ranks();
        EngineSetting setting = decide(count, true);
        List<String> options = new ArrayList<>(jvmOptions());
        options.addAll(additionalOptions);
        List<String> arguments = rankArguments == null
                ? spec.root().commandLine().getParseResult().originalArgs()
                : rankArguments;
        String main = rankMain == null ? program() : rankMain.getName();
        return launcher(JavaCommand.of(options, main, arguments), count, setting, out)
                .expendable(expendableRanks.apply(count))
                .spares(spares)
                .run();
    }

    /** {@return the class of the program that has this command; it has the main method} */
    public String program() {
        return spec.root().userObject().getClass().getName();
    }

    /**
     * Launches a program as the ranks, and waits for them.
     *
     * @param command the program and its arguments
     * @return the exit code of {@link Launcher#run}
     * @throws IOException if a rank's process can't be started
     * @throws InterruptedException if the calling thread is interrupted; all ranks are ended
     */
    public int launchProgram(List<String> command) throws IOException, InterruptedException {
        int count = ranks();
        return launcher(command, count, decide(count, true), System.out).run();
    }

    private Launcher launcher(List<String> command, int count, EngineSetting setting, PrintStream out) {
        return new Launcher(command, count, setting.environment(), limit(), out, System.err, isPrefixed())
                .maxRestarts(maxRestarts);
    }

    /** Throws if a number is below 1, or if the ranks exceed the capacity of this machine. */
    private void validate() {
        requireAtLeastOne(processesOption(), requestedProcesses());
        requireAtLeastOne("--timeout", timeout);
        requireAtLeastOne("--init-timeout", initTimeout);
        if (!oversubscribe && !LauncherWatch.isRank()) {
            int processes = (requestedProcesses() == null ? 1 : requestedProcesses()) + spares;
            Capacity.ofMachine().shortage(processes, ranksPerProcess()).ifPresent(shortage -> {
                throw new ParameterException(commandLine(), shortage + "; use --oversubscribe to start them anyway");
            });
        }
    }

    /** {@return the number of processes to launch: the requested number, or as many as this machine has GPUs for} */
    public int ranks() {
        validate();
        if (requestedProcesses() != null) {
            return requestedProcesses();
        }
        int gpus = setting().isHost() ? 0 : EngineSetting.gpus();
        int least = ranksPerProcess() > 1 ? 1 : DEFAULT_RANKS;
        return gpus > 0 ? Math.max(1, gpus / ranksPerProcess()) : least;
    }

    /** {@return the time that the ranks wait for each other at the start} */
    public Duration initTimeout() {
        return Duration.ofSeconds(initTimeout);
    }

    /** {@return the time limit of the run, or null for none} */
    public Duration limit() {
        return timeout == null ? null : Duration.ofSeconds(timeout);
    }

    /**
     * Decides which library to use. Later calls return the first decision.
     *
     * @param localProcesses the number of processes on this machine
     * @param warn true to print the warning of the decision, if it has one
     * @return the decision, which is never automatic
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
        } catch (IllegalArgumentException e) {
            throw new ParameterException(commandLine(), e.getMessage(), e);
        }
    }

    private EngineSetting setting() {
        try {
            return EngineSetting.of(engine, library, System.getProperties(), SystemText.environment());
        } catch (IllegalArgumentException e) {
            throw new ParameterException(commandLine(), e.getMessage(), e);
        }
    }

    private CommandLine commandLine() {
        return spec.commandLine();
    }

    private void requireAtLeastOne(String option, Integer value) {
        if (value != null && value < 1) {
            throw new ParameterException(commandLine(), option + " must be at least 1: " + value);
        }
    }
}
