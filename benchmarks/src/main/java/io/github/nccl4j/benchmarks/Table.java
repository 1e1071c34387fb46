package io.github.nccl4j.benchmarks;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.OptionalDouble;

/** The result: a row for each way, the fastest first, then those that could not be measured. */
final class Table {
    private record Row(String way, double median, double min, double max, OptionalDouble bytes) {}

    private record Missing(String way, String reason) {}

    private final String firstBase;
    private final String secondBase;
    private final List<Row> rows = new ArrayList<>();
    private final List<Missing> missing = new ArrayList<>();

    /** Creates a table with ratios to two of its ways. */
    Table(String firstBase, String secondBase) {
        this.firstBase = firstBase;
        this.secondBase = secondBase;
    }

    void add(String way, double median, double min, double max, OptionalDouble bytes) {
        rows.add(new Row(way, median, min, max, bytes));
    }

    void addMissing(String way, String reason) {
        missing.add(new Missing(way, reason));
    }

    /** The table as Markdown. */
    @Override
    public String toString() {
        List<String[]> lines = new ArrayList<>();
        lines.add(new String[] {
            "way", "ns/call", "min..max", "B/call", "x " + shortName(firstBase), "x " + shortName(secondBase)
        });
        rows.stream()
                .sorted(Comparator.comparingDouble(Row::median))
                .forEach(row -> lines.add(new String[] {
                    row.way,
                    number(row.median),
                    number(row.min) + ".." + number(row.max),
                    row.bytes.isPresent() ? number(row.bytes.getAsDouble()) : "",
                    ratio(row, firstBase),
                    ratio(row, secondBase)
                }));
        for (Missing row : missing) {
            lines.add(new String[] {row.way, "-", row.reason, "", "", ""});
        }
        int[] widths = new int[lines.get(0).length];
        for (String[] line : lines) {
            for (int i = 0; i < widths.length; i++) {
                widths[i] = Math.max(widths[i], line[i].length());
            }
        }
        StringBuilder text = new StringBuilder();
        for (int n = 0; n < lines.size(); n++) {
            for (int i = 0; i < widths.length; i++) {
                String cell = lines.get(n)[i];
                String space = " ".repeat(widths[i] - cell.length());
                // Names are left-aligned, numbers right-aligned.
                text.append("| ").append(i == 0 ? cell + space : space + cell).append(' ');
            }
            text.append("|\n");
            if (n == 0) {
                for (int i = 0; i < widths.length; i++) {
                    text.append('|').append("-".repeat(widths[i] + 1)).append(i == 0 ? "-" : ":");
                }
                text.append("|\n");
            }
        }
        return text.toString();
    }

    private String ratio(Row row, String base) {
        return rows.stream()
                .filter(r -> r.way.equals(base))
                .findFirst()
                .map(r -> number(row.median / r.median))
                .orElse("");
    }

    private static String shortName(String way) {
        int comma = way.indexOf(',');
        return comma < 0 ? way : way.substring(0, comma);
    }

    private static String number(double value) {
        return String.format(Locale.ROOT, value >= 100 ? "%.0f" : "%.2f", value);
    }
}
