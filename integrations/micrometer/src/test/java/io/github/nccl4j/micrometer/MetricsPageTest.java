package io.github.nccl4j.micrometer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.Tag;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** docs/metrics.md describes the meters, the tags and the alerts that exist, and no others. */
class MetricsPageTest {
    private static final Path PAGE = Path.of("../../docs/metrics.md");
    private static final Path ALERTS = Path.of("../../docs/prometheus-alerts.yaml");
    private static final Path SOURCES = Path.of("src/main/java");

    private static final Pattern METER = Pattern.compile("\"(nccl\\.[a-z.]+)\"");
    private static final Pattern CODE = Pattern.compile("`([^`]+)`");
    private static final Pattern ALERT = Pattern.compile("- alert: (\\w+)");
    private static final Pattern SNIPPET = Pattern.compile("<!-- micrometer -->\\R```java\\R(.*?)```", Pattern.DOTALL);

    private static final String PROGRAM = """
            import io.github.nccl4j.highlevel.*;
            import io.github.nccl4j.launch.*;
            import io.github.nccl4j.micrometer.*;
            import io.micrometer.core.instrument.MeterRegistry;
            class Snippet {
                void run(MeterRegistry registry) throws Exception {
                    %s
                }
            }
            """;

    /** The cells of each row whose first cell begins with a code. */
    private static final Map<String, String[]> ROWS = new TreeMap<>();

    private static String page;

    @TempDir
    Path folder;

    @BeforeAll
    static void readPage() throws IOException {
        page = Files.readString(PAGE);
        for (String line : page.lines().filter(one -> one.startsWith("| `")).toList()) {
            String[] cells = line.substring(2).split(" \\| | \\|$");
            ROWS.put(cells[0].replace("`", ""), cells);
        }
    }

    private static Set<String> rows(String pattern) {
        return ROWS.keySet().stream()
                .filter(name -> name.matches(pattern))
                .collect(Collectors.toCollection(TreeSet::new));
    }

    private static Set<String> codes(String cell) {
        return CODE.matcher(cell).results().map(code -> code.group(1)).collect(Collectors.toCollection(TreeSet::new));
    }

    @Test
    void tableHasTheMetersOfTheSources() throws IOException {
        Set<String> names = new TreeSet<>();
        try (Stream<Path> files = Files.walk(SOURCES)) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                METER.matcher(Files.readString(file)).results().forEach(name -> names.add(name.group(1)));
            }
        }
        assertEquals(names, rows("nccl\\..*"));
    }

    @Test
    void rowsHaveTypeTagsAndUnitOfTheirMeters() {
        Map<String, String> registered = new TreeMap<>();
        Map<String, String> described = new TreeMap<>();
        Set<String> tags = new TreeSet<>();
        for (Meter meter : RegisteredMeters.in(new SimpleMeterRegistry()).getMeters()) {
            Meter.Id id = meter.getId();
            Set<String> keys = id.getTags().stream().map(Tag::getKey).collect(Collectors.toCollection(TreeSet::new));
            tags.addAll(keys);
            String type = id.getType().name().toLowerCase(Locale.ROOT).replace("distribution_", "");
            registered.put(id.getName(), type + " " + keys + (id.getBaseUnit() == null ? "" : " " + id.getBaseUnit()));
        }
        rows("nccl\\..*").forEach(name -> {
            String[] cells = ROWS.get(name);
            String type = cells[1].replace(", histogram", "");
            described.put(name, type + " " + codes(cells[2]) + (type.equals("timer") ? " " + cells[3] : ""));
        });
        assertEquals(registered, described);
        assertEquals(tags, rows("function|communicator|rank|result|size|job"));
    }

    @Test
    void namesInPrometheusAreThoseOfTheSeries() {
        String text = RegisteredMeters.in(new PrometheusMeterRegistry(PrometheusConfig.DEFAULT))
                .scrape();
        rows("nccl\\..*").forEach(name -> {
            String[] cells = ROWS.get(name);
            String series = cells[4].replace("`", "");
            List<String> suffixes = cells[1].equals("counter")
                    ? List.of("")
                    : cells[1].endsWith("histogram")
                            ? List.of("_count", "_sum", "_max", "_bucket")
                            : List.of("_count", "_sum", "_max");
            suffixes.forEach(suffix -> assertTrue(text.contains("\n" + series + suffix + "{"), series + suffix));
        });
        Matcher value = Pattern.compile("size=\"([^\"]*)\"").matcher(text);
        assertTrue(value.find());
        assertTrue(codes(ROWS.get("size")[1]).contains(value.group(1)), value.group());
    }

    @Test
    void tableHasTheAlertsOfTheRules() throws IOException {
        Set<String> alerts = ALERT.matcher(Files.readString(ALERTS))
                .results()
                .map(alert -> alert.group(1))
                .collect(Collectors.toCollection(TreeSet::new));
        assertEquals(alerts, rows("Nccl\\w+"));
    }

    @Test
    void snippetsCompile() throws IOException {
        List<MatchResult> snippets = SNIPPET.matcher(page).results().toList();
        assertEquals(2, snippets.size());
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        for (MatchResult snippet : snippets) {
            Path file = Files.writeString(
                    folder.resolve("Snippet.java"), String.format(Locale.ROOT, PROGRAM, snippet.group(1)));
            StringWriter messages = new StringWriter();
            List<String> options =
                    List.of("-proc:none", "-d", folder.toString(), "-cp", System.getProperty("java.class.path"));
            compiler.getTask(
                            messages,
                            null,
                            null,
                            options,
                            null,
                            compiler.getStandardFileManager(null, null, null).getJavaFileObjects(file))
                    .call();
            assertEquals("", messages.toString());
        }
    }
}
