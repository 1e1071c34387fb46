package io.github.nccl4j.samples;

import io.github.nccl4j.samples.launch.JavaCommand;
import io.github.nccl4j.samples.launch.Launcher;
import io.github.nccl4j.samples.launch.LauncherWatch;
import io.github.nccl4j.samples.support.EngineSetting;
import io.github.nccl4j.samples.support.RankInfo;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.Spec;

/**
 * {@code nccl4j run}: its options, which may stand before or behind the sample's name, and the decision between launching ranks and
 * being one.
 */
@Command(
        name = "run",
        synopsisSubcommandLabel = "SAMPLE",
        commandListHeading = "%nSamples:%n",
        description = {
            "Runs a sample, one JVM per rank on this machine.",
            "",
            "Each line of output begins with the rank it came from. When one rank fails, all are ended, and the exit code is "
                    + "that of the first rank that failed. Without -n and with RANK and WORLD_SIZE in the environment, as under "
                    + "torchrun, this process is one rank.",
            ""
        })
final class RunCommand implements Callable<Integer> {

    /** Without GPUs there is no natural number of ranks; two are the fewest that talk to each other. */
    private static final int DEFAULT_RANKS = 2;

    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            scope = ScopeType.INHERIT,
            description = "Show this help.")
    private boolean help;

    @Option(
            names = {"-n", "--ranks"},
            paramLabel = "N",
            scope = ScopeType.INHERIT,
            description = "How many ranks to start. Default: one per GPU, or 2 on the host engine.")
    private Integer ranks;

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
            names = "-J",
            paramLabel = "OPTION",
            scope = ScopeType.INHERIT,
            description = "An option for each rank's JVM, such as -J-Xmx2g. May be repeated.")
    private List<String> jvmOptions = new ArrayList<>();

    @Spec
    private CommandSpec spec;

    /** Without a sample. */
    @Override
    public Integer call() {
        throw new ParameterException(spec.commandLine(), "which sample? There are " + Main.names());
    }

    /** Launches the ranks of a sample, or is one of them. */
    int run(Sample sample) throws IOException, InterruptedException {
        atLeastOne("-n", ranks);
        atLeastOne("--timeout", timeout);
        atLeastOne("--init-timeout", initTimeout);
        Optional<RankInfo> self = ranks == null || LauncherWatch.launched() ? identity() : Optional.empty();
        return self.isPresent() ? beRank(sample, self.get()) : launch();
    }

    private int beRank(Sample sample, RankInfo self) {
        if (!LauncherWatch.launched()) {
            // Its launcher would have decided; here each rank does, and comes to the same answer as its neighbours.
            EngineSetting.Decision decision = setting().decide(self.localWorldSize());
            if (self.rank() == 0) {
                decision.warning().ifPresent(System.err::println);
            }
            decision.setting().apply();
        }
        return sample.runAs(self, Duration.ofSeconds(initTimeout));
    }

    private int launch() throws IOException, InterruptedException {
        EngineSetting setting = setting();
        int count = ranks == null ? defaultRanks(setting) : ranks;
        EngineSetting.Decision decision = setting.decide(count);
        decision.warning().ifPresent(System.err::println);
        List<String> arguments = spec.root().commandLine().getParseResult().originalArgs();
        return new Launcher(
                        JavaCommand.of(jvmOptions, Main.class.getName(), arguments),
                        count,
                        decision.setting().environment(),
                        timeout == null ? null : Duration.ofSeconds(timeout),
                        System.out,
                        System.err)
                .run();
    }

    private Optional<RankInfo> identity() {
        try {
            return RankInfo.from(System.getenv());
        } catch (IllegalArgumentException incomplete) {
            throw new ParameterException(spec.commandLine(), incomplete.getMessage(), incomplete);
        }
    }

    private EngineSetting setting() {
        try {
            return EngineSetting.of(engine, library, System.getProperties(), System.getenv());
        } catch (IllegalArgumentException unknown) {
            throw new ParameterException(spec.commandLine(), unknown.getMessage(), unknown);
        }
    }

    private static int defaultRanks(EngineSetting setting) {
        int gpus = setting.onHost() ? 0 : EngineSetting.gpus();
        return gpus > 0 ? gpus : DEFAULT_RANKS;
    }

    private void atLeastOne(String option, Integer value) {
        if (value != null && value < 1) {
            throw new ParameterException(spec.commandLine(), option + " must be at least 1: " + value);
        }
    }
}
