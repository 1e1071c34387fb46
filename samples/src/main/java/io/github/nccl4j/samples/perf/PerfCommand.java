package io.github.nccl4j.samples.perf;

import io.github.nccl4j.samples.Main;
import io.github.nccl4j.samples.support.RankInfo;
import java.time.Duration;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
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
            "-np processes are started, each with -t threads, each of which drives -g GPUs. Without -np and with the variables "
                    + "of an outer launcher in the environment, this is one of its processes.",
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

    @Spec
    private CommandSpec spec;

    /** For the command line. */
    public PerfCommand() {}

    /** The names of the collectives, as nccl-tests' programs have them: with or without "_perf". */
    static final class Names implements ITypeConverter<Collective>, Iterable<String> {
        @Override
        public Collective convert(String text) {
            for (Collective collective : Collective.values()) {
                if (text.equals(collective.label()) || text.equals(collective.label() + "_perf")) {
                    return collective;
                }
            }
            throw new TypeConversionException("there is no '" + text + "'; there are " + String.join(", ", this));
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
        } catch (IllegalArgumentException e) {
            throw new ParameterException(spec.commandLine(), e.getMessage(), e);
        }
        launch.setRanksPerProcess(settings.threads * settings.gpus);
        Optional<RankInfo> self = launch.self();
        return self.isPresent() ? launch.beRank(this::runProcess, self.get()) : launch.launch(Main.class, List.of());
    }

    private int runProcess(RankInfo self, Duration patience) throws Exception {
        CommandLine root = spec.root().commandLine();
        return new Perf(collective, settings, root.getParseResult().originalArgs(), self, patience).run();
    }
}
