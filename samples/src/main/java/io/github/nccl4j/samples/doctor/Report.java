package io.github.nccl4j.samples.doctor;

import io.github.nccl4j.samples.doctor.Finding.Level;
import java.util.List;
import java.util.Locale;

/**
 * Everything that was found, in the order in which it is read.
 *
 * @param title the first line: versions and the machine
 * @param sections the findings by subject
 */
public record Report(String title, List<Section> sections) {
    private static final int WIDTH = 110;

    /**
     * The findings of one check.
     *
     * @param name the subject
     * @param findings what was found
     */
    public record Section(String name, List<Finding> findings) {}

    /**
     * Counts findings.
     *
     * @param level of which
     * @return how many have it
     */
    public long count(Level level) {
        return sections.stream()
                .flatMap(section -> section.findings().stream())
                .filter(finding -> finding.level() == level)
                .count();
    }

    /** {@return the exit code: 0 without problems, else 1; warnings are none} */
    public int exitCode() {
        return count(Level.PROBLEM) == 0 ? 0 : 1;
    }

    /** {@return the report for people} */
    public String text() {
        StringBuilder text = new StringBuilder(title).append('\n');
        for (Section section : sections) {
            text.append('\n').append(section.name()).append('\n');
            for (Finding finding : section.findings()) {
                append(text, finding);
            }
        }
        return text.append('\n').append(summary()).append('\n').toString();
    }

    private static void append(StringBuilder text, Finding finding) {
        text.append(String.format(Locale.ROOT, "  %-8s %s%n", finding.level(), finding.text()));
        String indent = " ".repeat(11);
        finding.details()
                .forEach(line -> text.append(indent).append("  ").append(line).append('\n'));
        if (!finding.meaning().isEmpty()) {
            wrap(text, indent, finding.meaning());
        }
        if (!finding.advice().isEmpty()) {
            wrap(text, indent, "-> " + finding.advice());
        }
    }

    /** Words are not broken, so that paths can be copied. */
    private static void wrap(StringBuilder text, String indent, String words) {
        int column = 0;
        for (String word : words.split(" ")) {
            if (column > 0 && column + 1 + word.length() > WIDTH) {
                text.append('\n');
                column = 0;
            }
            text.append(column == 0 ? indent : " ").append(word);
            column += (column == 0 ? indent.length() : 1) + word.length();
        }
        text.append('\n');
    }

    private String summary() {
        long problems = count(Level.PROBLEM);
        long warnings = count(Level.WARNING);
        if (problems == 0 && warnings == 0) {
            return "No problem was found.";
        }
        return number(problems, "problem") + ", " + number(warnings, "warning") + ".";
    }

    private static String number(long count, String what) {
        return count + " " + what + (count == 1 ? "" : "s");
    }

    /** {@return the report for programs, a JSON object} */
    public String json() {
        Json json = new Json();
        json.open('{').field("title", title);
        json.field("status", exitCode() == 0 ? "ok" : "problem")
                .name("findings")
                .open('[');
        for (Section section : sections) {
            for (Finding finding : section.findings()) {
                json.open('{')
                        .field("section", section.name())
                        .field("id", finding.id())
                        .field("level", finding.level().toString())
                        .field("text", finding.text())
                        .field("meaning", finding.meaning())
                        .field("advice", finding.advice())
                        .name("details")
                        .open('[');
                finding.details().forEach(json::value);
                json.close(']').close('}');
            }
        }
        return json.close(']').close('}').toString();
    }
}
