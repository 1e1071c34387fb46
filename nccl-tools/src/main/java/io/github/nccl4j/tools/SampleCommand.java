package io.github.nccl4j.tools;

import io.github.nccl4j.tools.Samples.Sample;
import io.github.nccl4j.tools.launch.LaunchOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ParseResult;

/** {@code nccl4j run SAMPLE}: launches the ranks of a sample, or runs one if this process is a rank. */
final class SampleCommand implements Callable<Integer> {
    private final Sample sample;
    private final RunCommand run;
    private final LaunchOptions launch;
    private final CommandSpec spec;

    private SampleCommand(Sample sample, RunCommand run) {
        this.sample = sample;
        this.run = run;
        launch = run.launch();
        spec = CommandSpec.wrapWithoutInspection(this).name(sample.name()).aliases(sample.aliases());
        spec.usageMessage().description(sample.summary(), "").sortOptions(false);
        for (Samples.Option option : sample.options()) {
            OptionSpec.Builder builder = OptionSpec.builder(option.name()).description(option.description());
            spec.addOption(
                    option.value() == null
                            ? builder.type(boolean.class).build()
                            : builder.type(String.class)
                                    .paramLabel(option.value())
                                    .build());
        }
    }

    /**
     * Creates the command.
     *
     * @param sample the sample
     * @param run the command {@code run}, whose options the command inherits
     * @return a new command line
     */
    static CommandLine of(Sample sample, RunCommand run) {
        return new CommandLine(new SampleCommand(sample, run).spec);
    }

    @Override
    public Integer call() throws Exception {
        launch.setSpares(spares());
        launch.setMaxRestarts(maxRestarts());
        List<String> own = ownArguments();
        List<String> ofRank = new ArrayList<>(List.of("" + launch.initTimeout().toSeconds()));
        ofRank.addAll(List.of(sample.name(), sample.className()));
        ofRank.addAll(own);
        return launch.run(
                SampleRank.class,
                ofRank,
                (self, initTimeout) -> SampleRank.run(self, initTimeout, sample.name(), sample.className(), own),
                size -> rank -> sample.mayLoseLastRank() && rank == size - 1 && size > 1);
    }

    private int spares() {
        int chosen = run.spares();
        if (chosen < 0) {
            throw new ParameterException(spec.commandLine(), "--spares must be at least 0: " + chosen);
        }
        if (chosen > 0 && !sample.takesRanksBack()) {
            throw new ParameterException(
                    spec.commandLine(),
                    "--spares must be 0, because " + sample.name() + " does not take ranks back: " + chosen);
        }
        if (chosen > 0 && launch.self().isPresent()) {
            throw new ParameterException(
                    spec.commandLine(),
                    "--spares must be 0 under another launcher, which has started this rank: " + chosen);
        }
        return chosen;
    }

    /** By default, each rank may fail once if the sample takes it back. */
    private int maxRestarts() {
        Integer chosen = run.maxRestarts();
        boolean isRank = launch.self().isPresent();
        if (chosen == null) {
            return sample.takesRanksBack() && !isRank ? launch.ranks() : 0;
        }
        if (chosen > 0 && !sample.takesRanksBack()) {
            throw new ParameterException(
                    spec.commandLine(),
                    "--max-restarts must be 0, because " + sample.name() + " does not take ranks back: " + chosen);
        }
        if (chosen > 0 && isRank) {
            throw new ParameterException(
                    spec.commandLine(),
                    "--max-restarts must be 0 under another launcher, which has started this rank: " + chosen);
        }
        return chosen;
    }

    /** The arguments that are the sample's own. */
    private List<String> ownArguments() {
        ParseResult parsed = spec.commandLine().getParseResult();
        List<String> arguments = new ArrayList<>();
        for (Samples.Option option : sample.options()) {
            OptionSpec matched = parsed.matchedOption(option.name());
            if (matched != null) {
                arguments.add(option.name());
                if (option.value() != null) {
                    arguments.add(matched.originalStringValues().get(0));
                }
            }
        }
        return arguments;
    }
}
