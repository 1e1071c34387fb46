package io.github.nccl4j.tools;

import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Help.Column;
import picocli.CommandLine.Help.TextTable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code nccl4j list}: lists the samples. */
@Command(name = "list", description = "Lists the samples.")
final class ListCommand implements Runnable {

    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            description = "Show this help.")
    private boolean help;

    @Spec
    private CommandSpec spec;

    @Override
    public void run() {
        int nameWidth = 27;
        TextTable table = TextTable.forColumns(
                CommandLine.Help.defaultColorScheme(CommandLine.Help.Ansi.OFF),
                new Column(nameWidth, 0, Column.Overflow.SPAN),
                new Column(spec.usageMessage().width() - nameWidth, 0, Column.Overflow.WRAP));
        for (Samples.Sample sample : Samples.all()) {
            table.addRowValues(sample.name(), sample.summary());
        }
        table.toString().lines().forEach(spec.commandLine().getOut()::println);
    }
}
