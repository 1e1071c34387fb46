package io.github.nccl4j.tools.doctor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.NcclException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.tools.launch.CommandErrors;
import io.github.nccl4j.tools.support.ErrorsPage;
import io.github.nccl4j.tools.support.HelpIds;
import java.io.IOException;
import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Modifier;
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
import java.util.regex.MatchResult;
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

    /** The id is that of the page, for each exception that the page names. */
    @Test
    void errorLinesOfCommandsEndWithTheCommandThatExplainsThem() throws Exception {
        Map<String, Class<?>> types = new HashMap<>();
        try (Stream<Path> files = Files.walk(EXCEPTIONS)) {
            for (Path file : files.filter(one -> one.toString().endsWith("Exception.java"))
                    .toList()) {
                String name = EXCEPTIONS.relativize(file).toString().replace('/', '.');
                Class<?> type = Class.forName(name.substring(0, name.length() - ".java".length()));
                types.put(type.getSimpleName(), type);
            }
        }
        for (Map.Entry<String, String> section : sections(false).entrySet()) {
            Class<?> type = types.get(section.getValue());
            String expected = " (nccl4j explain " + section.getKey() + ")";
            NcclException failure = instance(type);
            String message = String.valueOf(failure.getMessage());
            int end = message.contains("\n") ? message.indexOf('\n') : message.length();
            assertEquals(
                    message.substring(0, end) + expected + message.substring(end),
                    CommandErrors.reason(failure),
                    type.getName());
        }
    }

    /** An exception with any arguments; NcclException itself, which is abstract, has a subclass of the test. */
    private static NcclException instance(Class<?> type) throws ReflectiveOperationException {
        if (type == NcclException.class) {
            return new NcclException("message") {
                private static final long serialVersionUID = 1;
            };
        }
        try {
            return (NcclException) made(type, List.of());
        } catch (InvocationTargetException needsElements) {
            return (NcclException) made(type, List.of("message"));
        }
    }

    private static Object made(Class<?> type, List<String> list) throws ReflectiveOperationException {
        Constructor<?> constructor = type.getDeclaredConstructors()[0];
        constructor.setAccessible(true);
        List<Object> arguments = new ArrayList<>();
        for (Class<?> parameter : constructor.getParameterTypes()) {
            arguments.add(argument(parameter, list));
        }
        return constructor.newInstance(arguments.toArray());
    }

    private static Object argument(Class<?> type, List<String> list) throws ReflectiveOperationException {
        if (type == String.class) {
            return "message\nmore";
        } else if (type == List.class) {
            return list;
        } else if (type.isPrimitive()) {
            return Array.get(Array.newInstance(type, 1), 0);
        } else if (type.isRecord()) {
            return made(type, list);
        }
        // A constant of the class, if it has one.
        for (Field field : type.getFields()) {
            if (field.getType() == type && Modifier.isStatic(field.getModifiers())) {
                return field.get(null);
            }
        }
        return null;
    }

    /** A message alone lacks the command that explains it. The probe's is a detail of a finding with an id of its own. */
    @Test
    void commandsPrintNoMessageOfAnExceptionAlone() throws IOException {
        Set<String> names = new HashSet<>(sections(false).values());
        Pattern caught = Pattern.compile("catch \\(([\\w |]+) (\\w+)\\) \\{\n(.*?)\n {8}(?: {4})*\\}", Pattern.DOTALL);
        int found = 0;
        for (String source : sources(COMMANDS)) {
            for (MatchResult handler : caught.matcher(source).results().toList()) {
                if (Stream.of(handler.group(1).split(" \\| ")).anyMatch(names::contains)) {
                    found++;
                    assertTrue(
                            source.contains("final class Probe ")
                                    || !handler.group(3).contains(handler.group(2) + ".getMessage()"),
                            handler.group());
                }
            }
        }
        assertTrue(found > 5, found + " handlers");
    }

    @Test
    void reportsMarkEachFindingAndNameTheCommand() throws IOException {
        List<Finding> findings = HelpIds.BY_FINDING.keySet().stream()
                .sorted()
                .map(id -> Finding.warning(id, "text of " + id, "", ""))
                .toList();
        String text = new Report("title", List.of(new Report.Section("all", findings))).text();
        HelpIds.BY_FINDING.forEach(
                (finding, id) -> assertTrue(text.contains("text of " + finding + " [" + id + "]\n"), text));
        String numbers = HelpIds.BY_FINDING.values().stream()
                .map(id -> id.substring("NCCL4J-".length()))
                .sorted()
                .collect(Collectors.joining(" "));
        assertTrue(text.endsWith("warnings. nccl4j explain " + numbers + " says more.\n"), text);
        // The other reports use the same two methods.
        for (String source : sources(COMMANDS)) {
            boolean isReport = source.contains("ErrorsPage.marked(");
            assertEquals(isReport, source.contains("ErrorsPage.command("), source);
            assertFalse(source.contains(".helpId() + \"]"), source);
        }
    }

    /** Warnings in the log name sections of the page, and one class makes their text. */
    @Test
    void warningsNameSectionsOfThePage() throws IOException {
        Set<String> ids = new HashSet<>();
        for (String source : sources(EXCEPTIONS)) {
            Pattern.compile("HelpText\\.of\\(\"([^\"]*)\"\\)")
                    .matcher(source)
                    .results()
                    .forEach(id -> ids.add(id.group(1)));
            assertEquals(source.contains("final class HelpText "), source.contains("\" (nccl4j explain "), source);
        }
        assertTrue(ids.size() > 2, ids::toString);
        ids.removeAll(sections(true).keySet());
        ids.removeAll(sections(false).keySet());
        assertEquals(Set.of(), ids);
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
