package io.github.nccl4j.tools.doctor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.RendezvousTimeoutException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** docs/errors.md has a section for each exception and each finding that is no success, and for nothing else. */
class ErrorsPageTest {
    private static final Path PAGE = Path.of("../docs/errors.md");
    private static final Path EXCEPTIONS = Path.of("../nccl-presets/src/main/java");
    private static final Path CHECKS = Path.of("src/main/java/io/github/nccl4j/tools/doctor");

    private static final Path ANALYSIS = Path.of("src/main/java/io/github/nccl4j/tools/analyze");
    private static final Path STATUS = Path.of("src/main/java/io/github/nccl4j/tools/status");
    private static final Pattern ANALYSIS_ID = Pattern.compile("Map\\.entry\\(\"([\\w.-]+)\", \"(NCCL4J-\\d{4})\"\\)");

    private static final Pattern SECTION =
            Pattern.compile("### (NCCL4J-\\d{4})\n\n`([\\w.-]+)`: (?:.*\n)*?.*\\.\n\n1\\. ");
    private static final Pattern EXCEPTION = Pattern.compile("class (\\w+Exception) extends (\\w+)");
    private static final Pattern ID = Pattern.compile("String helpId\\(\\) \\{\\s*return \"(NCCL4J-\\d{4})\";");
    private static final Pattern FINDING = Pattern.compile("Finding\\.(?:problem|warning)\\(\\s*\"([\\w.-]+)\"");

    private static List<String> sources(Path folder) throws IOException {
        try (Stream<Path> files = Files.walk(folder)) {
            List<String> sources = new ArrayList<>();
            for (Path file :
                    files.filter(one -> one.toString().endsWith(".java")).toList()) {
                sources.add(Files.readString(file));
            }
            return sources;
        }
    }

    /** The subjects of the page by their ids; those of findings contain a dot. */
    private static Map<String, String> sections(boolean ofFindings) throws IOException {
        String page = Files.readString(PAGE);
        Map<String, String> sections = new TreeMap<>();
        SECTION.matcher(page).results().forEach(section -> {
            if (section.group(2).contains(".") == ofFindings) {
                sections.put(section.group(1), section.group(2));
            }
        });
        return sections;
    }

    @Test
    void everySectionHasASubjectAndSomethingToTry() throws IOException {
        long headings = Files.readAllLines(PAGE).stream()
                .filter(line -> line.startsWith("### "))
                .count();
        assertEquals(headings, sections(true).size() + sections(false).size());
    }

    @Test
    void exceptionsHaveTheIdsOfThePage() throws IOException {
        Map<String, String> superclasses = new HashMap<>();
        Map<String, String> ids = new HashMap<>();
        for (String source : sources(EXCEPTIONS)) {
            Matcher declared = EXCEPTION.matcher(source);
            if (declared.find()) {
                superclasses.put(declared.group(1), declared.group(2));
                Matcher id = ID.matcher(source);
                ids.put(declared.group(1), id.find() ? id.group(1) : "none");
            }
        }
        Map<String, String> expected = new TreeMap<>();
        for (String name : superclasses.keySet()) {
            String top = name;
            while (superclasses.containsKey(top) && !top.equals("NcclException")) {
                top = superclasses.get(top);
            }
            if (top.equals("NcclException")) {
                expected.put(ids.get(name), name);
            }
        }
        assertTrue(expected.size() > 10, expected::toString);
        assertEquals(expected, sections(false));
    }

    @Test
    void findingsHaveTheIdsOfThePage() throws IOException {
        Map<String, String> expected = new TreeMap<>();
        for (String source : sources(CHECKS)) {
            FINDING.matcher(source)
                    .results()
                    .forEach(finding ->
                            expected.put(HelpIds.BY_FINDING.getOrDefault(finding.group(1), "none"), finding.group(1)));
        }
        assertEquals(HelpIds.BY_FINDING.size(), expected.size(), "ids without a finding");
        expected.putAll(findingsOfAnalyze());
        expected.putAll(findingsOfStatus());
        assertEquals(expected, sections(true));
    }

    private static Map<String, String> findingsOfAnalyze() throws IOException {
        Map<String, String> ids = new TreeMap<>();
        String all = String.join("\n", sources(ANALYSIS));
        ANALYSIS_ID.matcher(all).results().forEach(id -> {
            ids.put(id.group(2), id.group(1));
            // In the table, in the order of weights, and where the finding is made.
            assertTrue(all.split(Pattern.quote("\"" + id.group(1) + "\""), -1).length > 3, id.group(1));
        });
        return ids;
    }

    private static Map<String, String> findingsOfStatus() throws IOException {
        Map<String, String> ids = new TreeMap<>();
        String all = String.join("\n", sources(STATUS));
        io.github.nccl4j.tools.status.HelpIds.BY_FINDING.forEach((finding, id) -> {
            ids.put(id, finding);
            assertTrue(all.split(Pattern.quote("\"" + finding + "\""), -1).length > 2, finding);
        });
        return ids;
    }

    @Test
    void stackTracesShowTheIdInTheirFirstLine() {
        String name = RendezvousTimeoutException.class.getName();
        assertEquals(name + ": late [NCCL4J-0012]", new RendezvousTimeoutException("late", List.of()).toString());
        RendezvousTimeoutException lines = new RendezvousTimeoutException("late\nranks", List.of());
        assertEquals(name + ": late [NCCL4J-0012]\nranks", lines.toString());
        assertEquals("late\nranks", lines.getMessage());
    }
}
