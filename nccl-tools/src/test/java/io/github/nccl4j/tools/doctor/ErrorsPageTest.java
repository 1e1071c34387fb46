package io.github.nccl4j.tools.doctor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.tools.support.ErrorsPage;
import io.github.nccl4j.tools.support.HelpIds;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** docs/errors.md has a section for each exception and each finding that is no success, and for nothing else. */
class ErrorsPageTest {
    private static final Path PAGE = Path.of("../docs/errors.md");
    private static final Path EXCEPTIONS = Path.of("../nccl-presets/src/main/java");
    private static final Path COMMANDS = Path.of("src/main/java/io/github/nccl4j/tools");

    private static final Pattern SECTION =
            Pattern.compile("### (NCCL4J-\\d{4}): `([\\w.-]+)`\n\n(?:.*\n)*?.*\\.\n\n1\\. ");
    private static final Pattern EXCEPTION = Pattern.compile("class (\\w+Exception) extends (\\w+)");
    private static final Pattern ID = Pattern.compile("String helpId\\(\\) \\{\\s*return \"(NCCL4J-\\d{4})\";");
    private static final Pattern DOCTOR_FINDING = Pattern.compile("Finding\\.(?:problem|warning)\\(\\s*\"([\\w.-]+)\"");
    private static final Pattern QUOTED = Pattern.compile("\"([\\w.-]+)\"");

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
        Map<String, String> subjects = new TreeMap<>();
        HelpIds.BY_FINDING.forEach((finding, id) -> subjects.put(id, finding));
        assertEquals(HelpIds.BY_FINDING.size(), subjects.size(), "findings with the same id");
        assertEquals(sections(true), subjects);
    }

    @Test
    void commandsMakeEveryFindingThatHasAnId() throws IOException {
        Set<String> quoted = new HashSet<>();
        for (String source : sources(COMMANDS)) {
            if (!source.contains("class HelpIds")) {
                QUOTED.matcher(source).results().forEach(text -> quoted.add(text.group(1)));
            }
            DOCTOR_FINDING
                    .matcher(source)
                    .results()
                    .forEach(finding -> assertTrue(HelpIds.BY_FINDING.containsKey(finding.group(1)), finding.group()));
        }
        assertEquals(
                Set.of(),
                HelpIds.BY_FINDING.keySet().stream()
                        .filter(finding -> !quoted.contains(finding))
                        .collect(Collectors.toSet()));
    }

    @Test
    void stackTracesShowTheIdInTheirFirstLine() {
        String name = RendezvousTimeoutException.class.getName();
        assertEquals(
                name + ": late (nccl4j explain NCCL4J-0012)",
                new RendezvousTimeoutException("late", List.of()).toString());
        RendezvousTimeoutException lines = new RendezvousTimeoutException("late\nranks", List.of());
        assertEquals(name + ": late (nccl4j explain NCCL4J-0012)\nranks", lines.toString());
        assertEquals("late\nranks", lines.getMessage());
    }

    @Test
    void aSectionHasAnAddressIfTheProjectHasAHome() {
        ErrorsPage.Section section = new ErrorsPage.Section("NCCL4J-0208", "rank.missing", List.of(), List.of());
        assertEquals(
                Optional.of("https://example.org/nccl4j/blob/main/docs/errors.md#nccl4j-0208-rankmissing"),
                section.url("https://example.org/nccl4j"));
        assertEquals(Optional.empty(), section.url("${project.url}"));
    }
}
