package io.github.nccl4j.micrometer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.UniqueId;
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

/** The dashboard asks for the names and labels that Prometheus gets from {@link NcclMetrics}. */
class DashboardTest {
    private static final Pattern SERIES = Pattern.compile("\\b(nccl_\\w+)(\\{[^}]*})?");
    private static final Pattern MATCHER = Pattern.compile("(\\w+)\\s*(?:=~|!~|!=|=)\\s*\"");
    private static final Pattern GROUPING = Pattern.compile("\\b(?:by|on) \\(([^)]*)\\)");
    private static final Pattern LEGEND = Pattern.compile("\\{\\{(\\w+)}}");
    private static final Pattern LABEL_VALUES = Pattern.compile("label_values\\((\\w+), (\\w+)\\)");
    private static final Pattern SAMPLE = Pattern.compile("(?m)^(\\w+)\\{([^}]*)}");

    /** The labels of each series. */
    private static final Map<String, Set<String>> SERIES_OF_METRICS = new HashMap<>();

    private static JsonObject dashboard;

    @BeforeAll
    static void readBoth() throws IOException {
        dashboard = JsonParser.parseString(Files.readString(Path.of("..", "docs", "grafana-dashboard.json")))
                .getAsJsonObject();
        PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
        try (NcclMetrics metrics = new NcclMetrics();
                Communicator communicator = Communicator.builder().create(UniqueId.create(), 0, 1);
                DeviceBuffer<Float32> buffer = Device.host().allocate(ElementType.FLOAT32, 10)) {
            metrics.bindTo(registry);
            communicator.allReduce(buffer, ReduceOp.SUM, CudaStream.defaultOf(communicator.device()));
        }
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
                label == null || labels.contains(label),
                () -> series + " has no label " + label + ", only " + labels + ": " + where);
    }

    @Test
    void allSeriesAndLabelsExist() {
        for (JsonObject target : targets()) {
            String expression = target.get("expr").getAsString();
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
            Matcher legend = LEGEND.matcher(target.get("legendFormat").getAsString());
            while (legend.find()) {
                assertTrue(
                        grouped.contains(legend.group(1)),
                        () -> "the legend names " + legend.group() + ": " + expression);
            }
            names.forEach(name -> grouped.forEach(label -> assertHas(name, label, expression)));
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
