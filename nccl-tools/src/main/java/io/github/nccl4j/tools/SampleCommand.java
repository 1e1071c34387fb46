package io.github.nccl4j.tools;

import io.github.nccl4j.tools.Samples.Sample;
import io.github.nccl4j.tools.launch.LaunchOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParseResult;

/** {@code nccl4j run SAMPLE}: launches the ranks of a sample, or runs one if this process is a rank. */
final class SampleCommand implements Callable<Integer> {
    private final Sample sample;
    private final LaunchOptions launch;
    private final CommandSpec spec;

    private SampleCommand(Sample sample, LaunchOptions launch) {
        this.sample = sample;
        this.launch = launch;
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
     * @param launch the options of {@code run}, which the command inherits
     * @return a new command line
     */
    static CommandLine of(Sample sample, LaunchOptions launch) {
        return new CommandLine(new SampleCommand(sample, launch).spec);
    }

    @Override
    public Integer call() throws Exception {
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
