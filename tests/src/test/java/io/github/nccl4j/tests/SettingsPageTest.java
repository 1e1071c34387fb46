package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The table of docs/settings.md has each setting that the code reads, with its default and its reader, and no other. */
class SettingsPageTest {
    private static final Path ROOT = Path.of("..");
    private static final Path PAGE = ROOT.resolve("docs/settings.md");

    private static final String NAME = "nccl4j\\.[a-z][A-Za-z0-9.]*|NCCL4J_[A-Z0-9_]*[A-Z0-9]|NCCL_[A-Z0-9_]*[A-Z0-9]";
    private static final Pattern LITERAL = Pattern.compile("\"(" + NAME + ")\"");
    private static final Pattern CELL = Pattern.compile("`(" + NAME + ")`");
    private static final Pattern SHELL = Pattern.compile("\\$\\{?(NCCL4J_[A-Z0-9_]+)");

    /** Code that computes the name of the variable from that of the property. */
    private static final String COMPUTED = ".toUpperCase(Locale.ROOT).replace('.', '_')";

    /** Defaults in the code, as name and value. */
    private static final List<Pattern> DEFAULTS = List.of(
            Pattern.compile("\\{\"(NCCL4J_HOST_\\w+)\", (\\d+), Setting::Unit::"),
            Pattern.compile("number\\(\"(NCCL_TESTS_\\w+)\", (\\d+)\\)"),
            Pattern.compile("requireNonNullElse\\(System\\.getenv\\(\"(NCCL4J_\\w+)\"\\), \"([^\"]+)\"\\)"),
            Pattern.compile("getProperty\\(\"(nccl4j\\.\\w+)\", \"([^\"]+)\"\\)"));

    private static final Pattern SWITCH = Pattern.compile("Boolean\\.getBoolean\\(\"(" + NAME + ")\"\\)");

    private record Row(String value, String readers) {}

    private static final Map<String, Row> ROWS = new TreeMap<>();

    /** The files in which each name is a literal. */
    private static final Map<String, Set<String>> READERS = new TreeMap<>();

    private static final Map<Path, String> SOURCES = new TreeMap<>();

    @BeforeAll
    static void readPageAndSources() throws IOException {
        for (String line : Files.readAllLines(PAGE)) {
            String[] cells = line.replaceFirst("^\\| ", "").split(" ?\\| ?", -1);
            if (line.startsWith("| ") && cells.length == 7) {
                Matcher name = CELL.matcher(cells[0] + " " + cells[1]);
                while (name.find()) {
                    assertEquals(null, ROWS.put(name.group(1), new Row(cells[3], cells[5])), name.group());
                }
            }
        }
        for (Path module : Modules.all()) {
            Path sources = module.resolve("src/main");
            try (Stream<Path> files = Files.isDirectory(sources) ? Files.walk(sources) : Stream.empty()) {
                for (Path file : files.filter(one -> one.toString().matches(".*\\.(java|scala|cpp|h)"))
                        .toList()) {
                    SOURCES.put(file, Files.readString(file));
                }
            }
        }
        SOURCES.forEach((file, text) -> {
            for (MatchResult name : LITERAL.matcher(text).results().toList()) {
                if (!(name.group(1).startsWith("NCCL_") && namesMacros(file))) {
                    add(name.group(1), file);
                }
                if (name.group(1).startsWith("nccl4j.") && text.contains(COMPUTED)) {
                    add(name.group(1).toUpperCase(Locale.ROOT).replace('.', '_'), file);
                }
            }
        });
        Path script = ROOT.resolve("nccl4j");
        SHELL.matcher(Files.readString(script)).results().forEach(name -> add(name.group(1), script));
    }

    private static void add(String name, Path file) {
        READERS.computeIfAbsent(name, key -> new TreeSet<>()).add(file.toString());
    }

    /** True for the parser of headers and the presets, whose literals are macros of nccl.h. */
    private static boolean namesMacros(Path file) {
        return file.startsWith(ROOT.resolve("nccl-header"))
                || file.getParent().endsWith("presets")
                || file.toString().contains("/native/include/");
    }

    @Test
    void tableHasTheSettingsThatTheCodeReads() {
        Set<String> missing = new TreeSet<>(READERS.keySet());
        missing.removeAll(ROWS.keySet());
        Set<String> unread = new TreeSet<>(ROWS.keySet());
        unread.removeAll(READERS.keySet());
        assertEquals(
                Set.of(),
                missing,
                () -> "read, but not in the table of " + PAGE + "; read by "
                        + missing.stream().map(READERS::get).toList());
        assertEquals(Set.of(), unread, "in the table of " + PAGE + ", but read by no code");
    }

    @Test
    void defaultsAreThoseOfTheCode() {
        Map<String, String> defaults = new TreeMap<>();
        SOURCES.forEach((file, text) -> {
            SWITCH.matcher(text).results().forEach(found -> defaults.put(found.group(1), "false"));
            DEFAULTS.forEach(form ->
                    form.matcher(text).results().forEach(found -> defaults.put(found.group(1), found.group(2))));
        });
        defaults.put("NCCL4J_STORE_HEARTBEAT", constant("Heartbeat", "INTERVAL, \"(\\d+)\""));
        defaults.put("NCCL4J_STORE_PATIENCE", constant("Heartbeat", "PATIENCE, \"(\\d+)\""));
        defaults.put("NCCL4J_STORE_PORT", constant("RankValues", "DEFAULT_PORT = (\\d+)"));
        defaults.put("NCCL_RAS_ADDR", "localhost:" + constant("RasClient", "DEFAULT_PORT = (\\d+)"));
        defaults.put(
                "NCCL4J_ZOOKEEPER_SESSION_TIMEOUT",
                constant("ZooKeeperStore", "DEFAULT_SESSION_TIMEOUT = Duration\\.ofSeconds\\((\\d+)\\)"));
        List<String> wrong = new ArrayList<>();
        defaults.forEach((name, value) -> {
            Row row = ROWS.get(name);
            if (row != null && !row.value().contains("`" + value + "`")) {
                wrong.add(name + ": the code has " + value + ", the table " + row.value());
            }
        });
        assertEquals(List.of(), wrong);
        assertTrue(defaults.size() >= 16, defaults.toString());
    }

    private static String constant(String type, String form) {
        String text = SOURCES.entrySet().stream()
                .filter(source -> source.getKey().endsWith(type + ".java"))
                .map(Map.Entry::getValue)
                .findFirst()
                .orElseThrow();
        Matcher found = Pattern.compile(form).matcher(text);
        assertTrue(found.find(), type + " has no " + form);
        return found.group(1);
    }

    @Test
    void readersAreNamed() {
        Map<String, String> words = Map.of("library", "nccl-presets", "host engine", "nccl-host");
        List<String> wrong = new ArrayList<>();
        ROWS.forEach((name, row) -> words.forEach((word, module) -> {
            Set<String> files = READERS.getOrDefault(name, Set.of());
            boolean reads = files.stream().anyMatch(file -> file.contains("/" + module + "/"));
            if (reads != List.of(row.readers().split(", ")).contains(word)) {
                wrong.add(name + ": '" + row.readers() + "', but read by " + files);
            }
        }));
        assertEquals(List.of(), wrong);
    }
}
