package io.github.nccl4j.tools.perf;

import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.tools.launch.JavaCommand;
import io.github.nccl4j.tools.launch.LauncherWatch;
import io.github.nccl4j.tools.support.EngineSetting;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.function.BiFunction;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;
import picocli.CommandLine.TypeConversionException;

/** {@code nccl4j perf}: measures one collective over sizes. */
@Command(
        name = "perf",
        sortOptions = false,
        description = {
            "Measures a collective as nccl-tests does: the same options, the same table, the same fields of JSON files.",
            "",
            "The command starts -np processes, each with -t threads; each thread drives -g GPUs. Without -np, and with the variables "
                    + "of a launcher in the environment, this process is one of that launcher's.",
            "",
            "Every element of a checked call is compared on the host, bit for bit; averages of floats may be off by as many "
                    + "units in the last place as there are ranks.",
            ""
        })
public final class PerfCommand implements Callable<Integer> {
    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            description = "Show this help.")
    private boolean help;

    @Parameters(
            paramLabel = "COLLECTIVE",
            converter = Names.class,
            completionCandidates = Names.class,
            description = "One of ${COMPLETION-CANDIDATES}.")
    private Collective collective;

    @Mixin
    private Settings settings;

    @Mixin
    private PerfLaunch launch;

    @Option(
            names = "--against",
            paramLabel = "PROGRAM",
            description =
                    "Run this program of nccl-tests, such as all_reduce_perf, and this command in turn with the same "
                            + "options and library, and compare their times. -J writes all times.")
    private Path against;

    @Option(
            names = "--plot",
            paramLabel = "PICTURE",
            description = "Draw the results of -J. nccl4j plot draws several files in one picture.")
    private Path plot;

    @Option(
            names = "--rounds",
            paramLabel = "N",
            defaultValue = "5",
            description = "--against: number of runs of each program. Default: ${DEFAULT-VALUE}.")
    private int rounds;

    @Option(
            names = "--mpirun",
            paramLabel = "COMMAND",
            defaultValue = "mpirun --allow-run-as-root --bind-to none",
            description =
                    "--against, with -np above 1: the command that starts the processes of both programs, with its options for "
                            + "binding to CPUs; \"-np N\" is added. The program of nccl-tests must be built with MPI. "
                            + "Default: ${DEFAULT-VALUE}.")
    private String mpirun;

    @Spec
    private CommandSpec spec;

    /** Opens the store of the job. */
    private final BiFunction<RankInfo, Duration, TcpStore> stores;

    /** For the command line. */
    public PerfCommand() {
        this(TcpStore::ofProcess);
    }

    PerfCommand(BiFunction<RankInfo, Duration, TcpStore> stores) {
        this.stores = stores;
    }

    /** The names of the collectives, as nccl-tests' programs have them: with or without "_perf". */
    static final class Names implements ITypeConverter<Collective>, Iterable<String> {
        @Override
        public Collective convert(String text) {
            for (Collective collective : Collective.values()) {
                if (text.equals(collective.label()) || text.equals(collective.label() + "_perf")) {
                    return collective;
                }
            }
            throw new TypeConversionException(
                    "no such collective: '" + text + "'; there are " + String.join(", ", this));
        }

        @Override
        public Iterator<String> iterator() {
            return Arrays.stream(Collective.values()).map(Collective::label).iterator();
        }
    }

    @Override
    public Integer call() throws Exception {
        try {
            settings.validate(collective);
            if (collective.reduces) {
                Operator.named(settings.operator);
            }
            Types.requireKnown(settings.type);
            if (plot != null && (settings.json == null || against != null)) {
                throw new IllegalArgumentException("--plot needs -J, and cannot be combined with --against");
            }
            if (rounds < 1) {
                throw new IllegalArgumentException("--rounds must be at least 1: " + rounds);
            }
            if (!LauncherWatch.isRank()) {
                requireFolders();
            }
            if (plot != null && !LauncherWatch.isLaunched() && Files.exists(settings.json)) {
                throw new IllegalArgumentException("--plot needs a new file for -J: " + settings.json);
            }
        } catch (IllegalArgumentException e) {
            throw new ParameterException(spec.commandLine(), e.getMessage(), e);
        }
        launch.setRanksPerProcess(settings.threads * settings.gpus);
        if (against != null && !LauncherWatch.isRank()) {
            return compare();
        }
        Optional<RankInfo> self = launch.self();
        int code = self.isPresent() ? launch.runRank(this::runProcess, self.get()) : launch.launch(List.of());
        boolean last = self.isPresent() ? self.get().rank() == 0 && !LauncherWatch.isLaunched() : true;
        if (plot != null && last && Files.exists(settings.json)) {
            List<Path> files = List.of(settings.json);
            PlotCommand.draw(PlotCommand.title(files), files, false, plot);
        }
        return code;
    }

    private void requireFolders() {
        if (settings.json != null) {
            Settings.requireFolder("-J", settings.json);
        }
        if (plot != null) {
            PlotCommand.requirePicture("--plot", plot);
        }
    }

    private int compare() throws Exception {
        if (!Files.isExecutable(against)) {
            throw new ParameterException(spec.commandLine(), "--against is not a program: " + against);
        }
        if (settings.cycles < 1 || settings.timestamps != 0) {
            throw new ParameterException(
                    spec.commandLine(),
                    "--against needs -N of at least 1, and no -S: -N " + settings.cycles + ", -S "
                            + settings.timestamps);
        }
        if (settings.algorithm != null) {
            throw new ParameterException(
                    spec.commandLine(),
                    "--against cannot be combined with --algo, which nccl-tests lacks: " + settings.algorithm);
        }
        if (settings.memory != 0) {
            throw new ParameterException(
                    spec.commandLine(), "--against compares times, and cannot be combined with -M: " + settings.memory);
        }
        // The same library is found here and passed to the other program.
        EngineSetting setting = launch.decide(launch.ranks(), true);
        setting.apply();
        List<String> arguments = spec.root().commandLine().getParseResult().originalArgs();
        List<String> theirs = new ArrayList<>(starter());
        theirs.add(against.toAbsolutePath().toString());
        theirs.addAll(settings.forNcclTests());
        List<String> ours = new ArrayList<>(starter());
        ours.addAll(JavaCommand.ofOuterLauncher(launch.jvmOptions(), launch.program(), arguments));
        SideBySide sideBySide = new SideBySide(
                collective,
                against,
                rounds,
                settings.perIteration == 0 ? SideBySide.COLUMNS : SideBySide.COLUMNS_WITH_ITERATIONS);
        int code = sideBySide.run(
                new SideBySide.Program(theirs, Map.of("LD_PRELOAD", preloaded())),
                new SideBySide.Program(ours, setting.environment()));
        if (settings.json != null) {
            sideBySide.write(
                    settings.json,
                    launch.ranks() * settings.threads * settings.gpus,
                    NativeLibrary.path(),
                    theirs,
                    arguments);
        }
        return code;
    }

    /** LD_PRELOAD of the other program, so that it uses the library that this command found. */
    private static String preloaded() {
        String others = System.getenv("LD_PRELOAD");
        return others == null ? NativeLibrary.path() : NativeLibrary.path() + ":" + others;
    }

    /** The beginning of both commands. */
    private List<String> starter() {
        List<String> words = new ArrayList<>();
        if (launch.ranks() > 1) {
            words.addAll(List.of(mpirun.strip().split("\\s+")));
            words.addAll(List.of("-np", "" + launch.ranks()));
        }
        return words;
    }

    private int runProcess(RankInfo self, Duration patience) throws Exception {
        if (against != null) {
            // The file is for the comparison.
            settings.json = null;
        }
        CommandLine root = spec.root().commandLine();
        List<String> arguments = root.getParseResult().originalArgs();
        Perf.Job job = new Perf.Job(self, stores.apply(self, patience), patience);
        return new Perf(collective, settings, arguments, job, root.getOut()).run();
    }
}
