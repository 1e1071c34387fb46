package io.github.nccl4j.tools.status;

import io.github.nccl4j.launch.RankStatus.State;
import io.github.nccl4j.tools.support.ErrorsPage;
import io.github.nccl4j.tools.support.Printable;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;

/** The report as text: the findings, then a line for each communicator of each rank, those that are behind first. */
final class TextReport {
    private static final int MAX_FINDINGS = 10;

    private TextReport() {}

    /** Writes the report. The limit is the number of ranks that are listed. */
    static String of(JobView view, int limit) {
        StringBuilder text = new StringBuilder();
        List<JobView.Finding> findings = view.findings();
        for (JobView.Finding finding : findings.subList(0, Math.min(findings.size(), MAX_FINDINGS))) {
            line(text, ErrorsPage.marked(finding.text(), finding.helpId()));
        }
        if (findings.size() > MAX_FINDINGS) {
            line(text, findings.size() - MAX_FINDINGS + " more findings: --json lists them.");
        }
        String name = view.job().job().isEmpty() ? "" : " of job '" + view.job().job() + "'";
        String attempt =
                view.job().restart() == 0 ? "" : ", attempt " + view.job().restart();
        line(text, view.answered() + " of " + view.rows().size() + " ranks" + name + attempt + " answered.");
        line(text, "");
        List<String[]> cells = new ArrayList<>();
        cells.add(new String[] {"rank", "host", "process", "device", "communicator", "behind", "last done", "at"});
        List<JobView.Row> rows = new ArrayList<>(view.rows());
        rows.sort(Comparator.comparing((JobView.Row row) -> row.status().state() == State.ANSWERED)
                .thenComparing(row -> -view.behind(row))
                .thenComparing(JobView.Row::rank));
        for (JobView.Row row : rows.subList(0, Math.min(rows.size(), limit))) {
            addRank(cells, view, row);
        }
        addTable(text, cells);
        if (rows.size() > limit) {
            line(text, rows.size() - limit + " more ranks: --all lists them.");
        }
        if (!findings.isEmpty()) {
            line(text, "");
            line(text, ErrorsPage.command(findings.stream().map(JobView.Finding::helpId)));
        }
        return text.toString();
    }

    private static void addRank(List<String[]> cells, JobView view, JobView.Row row) {
        String rank = Integer.toString(row.rank());
        if (row.communicators().isEmpty()) {
            String process = row.status().process();
            int comma = process.indexOf(", process ");
            cells.add(new String[] {
                rank,
                comma < 0 ? process : process.substring(0, comma),
                comma < 0 ? "" : process.substring(comma + ", process ".length()),
                "",
                "",
                "",
                "",
                describe(row.status().state())
            });
        }
        for (CommunicatorView one : row.communicators()) {
            Long behind = view.behind(one);
            cells.add(new String[] {
                rank,
                one.host == null ? "" : one.host,
                Long.toString(one.process),
                one.device == null ? "" : one.device,
                one.name == null || one.name.isEmpty() ? one.id : one.name,
                behind == null ? "?" : behind.toString(),
                one.lastDone(),
                one.position()
            });
        }
        row.texts()
                .forEach((topic, text) -> cells.add(new String[] {rank, "", "", "", "", "", "", topic + ": " + text}));
        if (row.status().omitted() > 0) {
            cells.add(new String[] {
                rank, "", "", "", "", "", "", "left out: " + row.status().omitted() + " more communicators or texts"
            });
        }
    }

    private static String describe(State state) {
        return switch (state) {
            case ANSWERED -> "no communicator of this store";
            case SILENT -> "silent";
            case NO_ANSWER -> "no answer";
            case LOST -> "lost";
            case LEFT -> "has closed its store";
            case MISSING -> "has not joined";
        };
    }

    /** Adds the cells, in columns. */
    private static void addTable(StringBuilder text, List<String[]> cells) {
        int columns = cells.get(0).length;
        int[] widths = new int[columns];
        for (String[] row : cells) {
            for (int i = 0; i < columns; i++) {
                row[i] = Printable.line(row[i]);
                widths[i] = Math.max(widths[i], row[i].length());
            }
        }
        for (String[] row : cells) {
            StringBuilder one = new StringBuilder();
            for (int i = 0; i < columns; i++) {
                boolean number = i == 0 || i == 2 || i == 5;
                one.append(
                        String.format(Locale.ROOT, "%" + (number ? "" : "-") + Math.max(1, widths[i]) + "s  ", row[i]));
            }
            line(text, one.toString().stripTrailing());
        }
    }

    private static void line(StringBuilder text, String words) {
        text.append(Printable.line(words)).append('\n');
    }
}
