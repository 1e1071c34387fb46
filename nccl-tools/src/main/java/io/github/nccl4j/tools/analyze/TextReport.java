package io.github.nccl4j.tools.analyze;

import io.github.nccl4j.tools.support.ErrorsPage;
import io.github.nccl4j.tools.support.Printable;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/** The analysis as text: a line, a reason and the next step for each finding, then the statistics. */
final class TextReport {
    private static final int MAX_LISTED = 10;

    private final Analysis analysis;
    private final StringBuilder text = new StringBuilder();

    /** The steps that are in the report already. */
    private final Set<String> told = new HashSet<>();

    private TextReport(Analysis analysis) {
        this.analysis = analysis;
    }

    static String of(Analysis analysis) {
        return new TextReport(analysis).write();
    }

    private String write() {
        List<Finding> findings = analysis.findings();
        if (findings.isEmpty()) {
            line("Nothing was found: " + subject() + " agree.");
        }
        for (Finding finding : findings.subList(0, Math.min(findings.size(), MAX_LISTED))) {
            line(ErrorsPage.marked(finding.text(), finding.helpId()));
            line("  " + finding.reason() + ".");
            NextStep step = NextStep.of(finding, analysis.job());
            // Many findings may have the same ranks and the same remedy.
            String words = (told.add(step.where()) ? step.where() : "") + (told.add(step.text()) ? step.next() : "");
            if (!words.isEmpty()) {
                line("  " + words.strip());
            }
        }
        if (findings.size() > MAX_LISTED) {
            line(findings.size() - MAX_LISTED + " more findings: --json lists them.");
        }
        line("");
        if (!findings.isEmpty()) {
            line("Read: " + subject() + ".");
        }
        if (analysis.consequences() > 0) {
            line(analysis.consequences() + " other operations wait because of these.");
        }
        if (analysis.job().olderRecords() > 0) {
            line("Omitted: " + analysis.job().olderRecords() + " records of earlier jobs in the folder.");
        }
        analysis.omitted().stream().limit(MAX_LISTED).forEach(reason -> line("Omitted: " + reason + "."));
        if (analysis.omitted().size() > MAX_LISTED) {
            line("Omitted: " + (analysis.omitted().size() - MAX_LISTED) + " more files, which --json lists.");
        }
        clocks();
        stragglers();
        communicators();
        kernels();
        if (!findings.isEmpty()) {
            line("");
            line(ErrorsPage.command(findings.stream().map(Finding::helpId)));
        }
        return text.toString();
    }

    private void line(String words) {
        text.append(Printable.line(words)).append('\n');
    }

    private String subject() {
        Job job = analysis.job();
        return String.format(
                Locale.ROOT,
                "%s of %s in %s",
                plural(job.operations(), "operation"),
                plural(job.members(), "rank"),
                plural(job.communicators().size(), "communicator"));
    }

    private static String plural(long count, String noun) {
        return count + " " + noun + (count == 1 ? "" : "s");
    }

    private void clocks() {
        List<String> hosts = analysis.job().hosts();
        if (hosts.size() < 2) {
            return;
        }
        StringBuilder offsets = new StringBuilder();
        analysis.clocks().forEach((host, offset) -> offsets.append("; that of ")
                .append(host)
                .append(
                        offset > 0
                                ? " is " + Times.seconds(offset) + " ahead"
                                : " is " + Times.seconds(-offset) + " behind"));
        line("Times: the clocks of " + hosts.size() + " hosts may differ"
                + (offsets.isEmpty()
                        ? "; delays include the difference."
                        : offsets + ", estimated from the ends of common operations; delays are corrected."));
    }

    private void stragglers() {
        if (analysis.stragglers().isEmpty()) {
            return;
        }
        line("");
        line("Came last     collectives     median    longest      total");
        for (Lateness.Straggler one : analysis.stragglers()
                .subList(0, Math.min(MAX_LISTED, analysis.stragglers().size()))) {
            line(String.format(
                    Locale.ROOT,
                    "  rank %-6d %5d of %-5d %10s %10s %10s",
                    one.rank(),
                    one.late(),
                    one.measured(),
                    Times.seconds(one.median()),
                    Times.seconds(one.longest()),
                    Times.seconds(one.total())));
        }
    }

    private void kernels() {
        List<Profile.Summary> all = analysis.profile().summaries();
        if (all.isEmpty()) {
            return;
        }
        line("");
        line("Kernels                         bytes    count  median us  longest us  bus GB/s");
        for (Profile.Summary one : all.subList(0, Math.min(MAX_LISTED, all.size()))) {
            line(String.format(
                    Locale.ROOT,
                    "  %-20s %14d %8d %10.1f %11.1f %9.2f",
                    one.function(),
                    one.bytes(),
                    one.count(),
                    one.median() / 1000.0,
                    one.longest() / 1000.0,
                    one.busBandwidth()));
        }
        if (all.size() > MAX_LISTED) {
            line("  and " + (all.size() - MAX_LISTED) + " more");
        }
    }

    private void communicators() {
        line("");
        line("Communicator               ranks  records  collectives");
        List<CommunicatorRecords> all = analysis.job().communicators();
        for (CommunicatorRecords one : all.subList(0, Math.min(MAX_LISTED, all.size()))) {
            long least = Long.MAX_VALUE;
            long most = 0;
            for (RankRecord record : one.records()) {
                least = Math.min(least, record.lastNumber());
                most = Math.max(most, record.lastNumber());
            }
            line(String.format(
                    Locale.ROOT,
                    "  %-24s %5d %8d  %s",
                    one.label(),
                    one.size(),
                    one.records().size(),
                    least == most ? "" + most : least + " to " + most));
        }
        if (all.size() > MAX_LISTED) {
            line("  and " + (all.size() - MAX_LISTED) + " more");
        }
    }
}
