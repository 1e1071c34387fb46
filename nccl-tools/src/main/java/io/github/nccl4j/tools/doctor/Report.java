package io.github.nccl4j.tools.doctor;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import io.github.nccl4j.tools.doctor.Finding.Level;
import io.github.nccl4j.tools.support.ErrorsPage;
import io.github.nccl4j.tools.support.Wrapped;
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
        String heading = ErrorsPage.marked(finding.text(), finding.helpId());
        text.append(String.format(Locale.ROOT, "  %-8s %s%n", finding.level(), heading));
        String indent = " ".repeat(11);
        finding.details()
                .forEach(line -> text.append(indent).append("  ").append(line).append('\n'));
        if (!finding.meaning().isEmpty()) {
            Wrapped.append(text, indent, indent, finding.meaning(), WIDTH);
        }
        if (!finding.advice().isEmpty()) {
            Wrapped.append(text, indent, indent, "-> " + finding.advice(), WIDTH);
        }
    }

    private String summary() {
        long problems = count(Level.PROBLEM);
        long warnings = count(Level.WARNING);
        if (problems == 0 && warnings == 0) {
            return "No problem was found.";
        }
        String more = ErrorsPage.command(sections.stream()
                .flatMap(section -> section.findings().stream())
                .map(Finding::helpId));
        return (plural(problems, "problem") + ", " + plural(warnings, "warning") + ". " + more).strip();
    }

    private static String plural(long count, String noun) {
        return count + " " + noun + (count == 1 ? "" : "s");
    }

    /** {@return the report as a JSON object, in one line} */
    public String json() {
        JsonObject json = new JsonObject();
        json.addProperty("title", title);
        json.addProperty("status", exitCode() == 0 ? "ok" : "problem");
        JsonArray findings = new JsonArray();
        for (Section section : sections) {
            section.findings().forEach(finding -> findings.add(json(section.name(), finding)));
        }
        json.add("findings", findings);
        return json.toString();
    }

    private static JsonObject json(String section, Finding finding) {
        JsonObject json = new JsonObject();
        json.addProperty("section", section);
        json.addProperty("id", finding.id());
        json.addProperty("help", finding.helpId());
        json.addProperty("level", finding.level().toString());
        json.addProperty("text", finding.text());
        json.addProperty("meaning", finding.meaning());
        json.addProperty("advice", finding.advice());
        JsonArray details = new JsonArray();
        finding.details().forEach(details::add);
        json.add("details", details);
        return json;
    }
}
