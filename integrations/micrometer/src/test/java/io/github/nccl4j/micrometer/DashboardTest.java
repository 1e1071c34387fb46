package io.github.nccl4j.micrometer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The dashboard and the alerts ask for the names and labels that Prometheus gets from the meters of this module. */
class DashboardTest {
    private static final Pattern SERIES = Pattern.compile("\\b(nccl_\\w+)(\\{[^}]*})?");
    private static final Pattern MATCHER = Pattern.compile("(\\w+)\\s*(?:=~|!~|!=|=)\\s*\"");
    private static final Pattern GROUPING = Pattern.compile("\\b(?:by|on) \\(([^)]*)\\)");
    private static final Pattern LEGEND = Pattern.compile("\\{\\{(\\w+)}}");
    private static final Pattern LABEL_VALUES = Pattern.compile("label_values\\((\\w+)(?:\\{[^}]*})?, (\\w+)\\)");
    private static final Pattern RULE = Pattern.compile(
            "- alert: (\\w+)\\s+expr: >-\\s(.*?)\\s+(?:for: \\w+\\s+)?labels:.*?annotations:(.*?)(?=\\n\\n|\\Z)",
            Pattern.DOTALL);
    private static final Pattern NAMED_LABEL = Pattern.compile("\\$labels\\.(\\w+)");

    /** The labels that Prometheus adds to each series that it collects. */
    private static final Set<String> TARGET_LABELS = Set.of("job", "instance");

    private static final Pattern SAMPLE = Pattern.compile("(?m)^(\\w+)\\{([^}]*)}");

    /** The labels of each series. */
    private static final Map<String, Set<String>> SERIES_OF_METRICS = new HashMap<>();

    private static JsonObject dashboard;

    @BeforeAll
    static void readBoth() throws IOException {
        dashboard = JsonParser.parseString(Files.readString(Path.of("../..", "docs", "grafana-dashboard.json")))
                .getAsJsonObject();
        PrometheusMeterRegistry registry = RegisteredMeters.in(new PrometheusMeterRegistry(PrometheusConfig.DEFAULT));
        Matcher sample = SAMPLE.matcher(registry.scrape());
        while (sample.find()) {
            Set<String> labels = SERIES_OF_METRICS.computeIfAbsent(sample.group(1), name -> new HashSet<>());
            Matcher label = MATCHER.matcher(sample.group(2));
            while (label.find()) {
                labels.add(label.group(1));
            }
        }
    }

    private static List<JsonObject> panels() {
        return objects(dashboard, "panels");
    }

    private static List<JsonObject> objects(JsonObject parent, String name) {
        List<JsonObject> objects = new ArrayList<>();
        for (JsonElement element : parent.getAsJsonArray(name)) {
            objects.add(element.getAsJsonObject());
        }
        return objects;
    }

    private static List<JsonObject> targets() {
        return panels().stream()
                .flatMap(panel -> objects(panel, "targets").stream())
                .toList();
    }

    private static void assertHas(String series, String label, String where) {
        Set<String> labels = SERIES_OF_METRICS.get(series);
        assertTrue(labels != null, () -> "no series " + series + " in " + SERIES_OF_METRICS.keySet() + ": " + where);
        assertTrue(
                label == null || labels.contains(label) || TARGET_LABELS.contains(label),
                () -> series + " has no label " + label + ", only " + labels + ": " + where);
    }

    /** Fails if the series of an expression have no such names or labels; returns the labels by which it groups. */
    private static Set<String> checked(String expression) {
        Matcher series = SERIES.matcher(expression);
        Set<String> names = new HashSet<>();
        while (series.find()) {
            names.add(series.group(1));
            assertHas(series.group(1), null, expression);
            Matcher label = MATCHER.matcher(series.group(2) == null ? "" : series.group(2));
            while (label.find()) {
                assertHas(series.group(1), label.group(1), expression);
            }
        }
        assertFalse(names.isEmpty(), expression);
        Set<String> grouped = new TreeSet<>();
        Matcher grouping = GROUPING.matcher(expression);
        while (grouping.find()) {
            grouped.addAll(List.of(grouping.group(1).split(", ")));
        }
        names.forEach(name -> grouped.forEach(label -> assertHas(name, label, expression)));
        return grouped;
    }

    @Test
    void allSeriesAndLabelsExist() {
        for (JsonObject target : targets()) {
            String expression = target.get("expr").getAsString();
            Set<String> grouped = checked(expression);
            Matcher legend = LEGEND.matcher(target.get("legendFormat").getAsString());
            while (legend.find()) {
                assertTrue(
                        grouped.contains(legend.group(1)),
                        () -> "the legend names " + legend.group() + ": " + expression);
            }
        }
    }

    @Test
    void allSeriesAndLabelsOfAlertsExist() throws IOException {
        String rules = Files.readString(Path.of("../..", "docs", "prometheus-alerts.yaml"));
        Matcher rule = RULE.matcher(rules);
        int count = 0;
        while (rule.find()) {
            count++;
            Set<String> grouped = checked(rule.group(2));
            NAMED_LABEL
                    .matcher(rule.group(3))
                    .results()
                    .forEach(label -> assertTrue(
                            grouped.contains(label.group(1)), label.group() + " of " + rule.group(1) + ": " + grouped));
        }
        assertEquals(rules.split("- alert:").length - 1, count);
    }

    /** Two jobs may have communicators of one name. */
    @Test
    void everySeriesIsFilteredByJob() {
        for (JsonObject target : targets()) {
            String expression = target.get("expr").getAsString();
            SERIES.matcher(expression)
                    .results()
                    .forEach(series -> assertTrue(
                            series.group().contains("job=~\"$job\""), () -> series.group() + ": " + expression));
        }
    }

    @Test
    void theVariablesAreLabels() {
        Set<String> variables = new HashSet<>();
        for (JsonObject variable : objects(dashboard.getAsJsonObject("templating"), "list")) {
            variables.add(variable.get("name").getAsString());
            if (variable.get("type").getAsString().equals("query")) {
                Matcher query = LABEL_VALUES.matcher(variable.get("definition").getAsString());
                assertTrue(query.matches(), variable.toString());
                assertHas(query.group(1), query.group(2), variable.toString());
                assertEquals(variable.get("name").getAsString(), query.group(2));
                assertTrue(
                        query.group(2).equals("job") || query.group().contains("job=~\"$job\""), variable.toString());
            }
        }
        Matcher used = Pattern.compile("\\$\\{?([a-z]\\w*)}?").matcher(dashboard.toString());
        while (used.find()) {
            assertTrue(variables.contains(used.group(1)), () -> "no variable " + used.group() + " in " + variables);
        }
    }

    @Test
    void allSeriesAreShown() {
        String expressions = targets().stream()
                .map(target -> target.get("expr").getAsString())
                .collect(Collectors.joining("\n"));
        assertEquals(
                Set.of(),
                SERIES_OF_METRICS.keySet().stream()
                        // A histogram need not be shown by its count, sum and maximum.
                        .filter(name -> !SERIES_OF_METRICS.containsKey(name.replaceFirst("_[a-z]+$", "_bucket"))
                                || name.endsWith("_bucket"))
                        .filter(name -> !expressions.contains(name))
                        .collect(Collectors.toSet()));
    }

    @Test
    void panelsHaveTextsAndPlacesOfTheirOwn() {
        Set<String> places = new HashSet<>();
        for (JsonObject panel : panels()) {
            assertFalse(panel.get("title").getAsString().isBlank());
            assertFalse(panel.get("description").getAsString().isBlank());
            JsonObject grid = panel.getAsJsonObject("gridPos");
            int x = grid.get("x").getAsInt();
            int y = grid.get("y").getAsInt();
            assertTrue(x + grid.get("w").getAsInt() <= 24, panel.toString());
            for (int row = y; row < y + grid.get("h").getAsInt(); row++) {
                for (int column = x; column < x + grid.get("w").getAsInt(); column++) {
                    assertTrue(places.add(row + "," + column), () -> "panels overlap: " + panel.get("title"));
                }
            }
        }
        assertEquals(
                panels().size(),
                panels().stream()
                        .map(panel -> panel.get("id").getAsInt())
                        .distinct()
                        .count());
    }
}
