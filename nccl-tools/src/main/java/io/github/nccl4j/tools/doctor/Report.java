package io.github.nccl4j.tools.doctor;

import io.github.nccl4j.tools.doctor.Finding.Level;
import java.util.List;
import java.util.Locale;

/**
 * The findings of all checks. Immutable.
 *
 * @param title the first line: versions and the machine
 * @param sections the findings of each check, in the order of the report
 */
public record Report(String title, List<Section> sections) {
    private static final int WIDTH = 110;

    /**
     * The findings of one check.
     *
     * @param name the subject of the check
     * @param findings the findings
     */
    public record Section(String name, List<Finding> findings) {}

    /**
     * Counts the findings of a level.
     *
     * @param level the level
     * @return the number of findings
     */
    public long count(Level level) {
        return sections.stream()
                .flatMap(section -> section.findings().stream())
                .filter(finding -> finding.level() == level)
                .count();
    }

    /** {@return the exit code: 1 if there is a problem, else 0, even with warnings} */
    public int exitCode() {
        return count(Level.PROBLEM) == 0 ? 0 : 1;
    }

    /** {@return the report as text} */
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
        String help = finding.helpId().isEmpty() ? "" : " [" + finding.helpId() + "]";
        text.append(String.format(Locale.ROOT, "  %-8s %s%s%n", finding.level(), finding.text(), help));
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

    /** Wraps at spaces only, so that users can copy paths. */
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
        return plural(problems, "problem") + ", " + plural(warnings, "warning")
                + ". docs/errors.md says more about each, under the id in brackets.";
    }

    private static String plural(long count, String noun) {
        return count + " " + noun + (count == 1 ? "" : "s");
    }

    /** {@return the report as a JSON object, in one line} */
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
                        .field("help", finding.helpId())
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
