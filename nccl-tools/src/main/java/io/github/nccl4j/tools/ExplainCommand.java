package io.github.nccl4j.tools;

import io.github.nccl4j.tools.support.ErrorsPage;
import io.github.nccl4j.tools.support.ErrorsPage.Section;
import io.github.nccl4j.tools.support.Wrapped;
import java.io.PrintWriter;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code nccl4j explain}: prints what docs/errors.md has about exceptions and findings. */
@Command(
        name = "explain",
        description = {
            "Prints what an exception or a finding means, and what to try.",
            "",
            "The first line of a stack trace ends with this command and the id; doctor, status and analyze print the id after the "
                    + "finding.",
            ""
        })
final class ExplainCommand implements Runnable {
    private static final int WIDTH = 80;

    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            description = "Show this help.")
    private boolean help;

    @Parameters(
            paramLabel = "ID",
            arity = "0..*",
            description = "Ids, such as NCCL4J-0208, 0208 or 208, or names, such as rank.missing. Default: list all.")
    private List<String> ids = List.of();

    @Spec
    private CommandSpec spec;

    @Override
    public void run() {
        PrintWriter out = spec.commandLine().getOut();
        if (ids.isEmpty()) {
            ErrorsPage.sections().forEach(section -> out.println(section.heading()));
        } else {
            List<String> texts =
                    ids.stream().map(this::section).map(ExplainCommand::text).toList();
            out.print(String.join("\n", texts));
        }
        out.flush();
    }

    private Section section(String id) {
        return ErrorsPage.find(id).orElseThrow(() -> {
            List<String> nearest = ErrorsPage.nearest(id);
            return new ParameterException(
                    spec.commandLine(),
                    "no such id: '" + id + "'; "
                            + (nearest.isEmpty() ? "" : "the nearest are " + String.join(", ", nearest) + "; ")
                            + "nccl4j explain lists all");
        });
    }

    private static String text(Section section) {
        StringBuilder text = new StringBuilder(section.heading()).append("\n\n");
        section.text().forEach(paragraph -> {
            Wrapped.append(text, "", "", paragraph, WIDTH);
            text.append('\n');
        });
        List<String> remedies = section.remedies();
        for (int i = 0; i < remedies.size(); i++) {
            Wrapped.append(text, i + 1 + ". ", "   ", remedies.get(i), WIDTH);
        }
        return text.toString();
    }
}
