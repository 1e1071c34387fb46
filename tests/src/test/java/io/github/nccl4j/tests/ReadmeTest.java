package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** The README fits a visitor's patience, and its versions are those of the build. {@code DocsTest} runs its program. */
class ReadmeTest {
    private static final Path README = Path.of("../README.md");
    private static final int MOST_LINES = 150;

    private static String readme() throws IOException {
        return Files.readString(README);
    }

    @Test
    void isShort() throws IOException {
        List<String> lines = Files.readAllLines(README);
        assertTrue(lines.size() <= MOST_LINES, lines.size() + " lines");
    }

    /** A reader must not find out at the end that nobody may use it yet. */
    @Test
    void saysFirstThatThereIsNoLicence() throws IOException {
        String top = String.join("\n", Files.readAllLines(README).subList(0, 10));
        assertEquals(property("nccl4j.license").equals("UNDECIDED"), top.contains("without a licence"), top);
    }

    @Test
    void namesTheVersionOfTheCudaPresets() throws IOException {
        String version = property("cuda.version");
        assertTrue(readme().contains("<version>" + version + "</version>"), version);
    }

    @Test
    void namesTheVersionOfSpark() throws IOException {
        Matcher version = Pattern.compile("<spark.version>(.*)</spark.version>")
                .matcher(Files.readString(Path.of("../integrations/spark/pom.xml")));
        assertTrue(version.find());
        assertTrue(readme().contains("| " + version.group(1) + " in the gate"), version.group(1));
    }

    /** Maven, Gradle and the build name one version of nccl4j. */
    @Test
    void namesTheVersionOfTheBuild() throws IOException {
        Matcher version =
                Pattern.compile("(?m)^  <version>(.*)</version>$").matcher(Files.readString(Path.of("../pom.xml")));
        assertTrue(version.find());
        List<String> named = Pattern.compile("nccl-platform(?::|</artifactId>\\s*<version>)([^<\"]+)")
                .matcher(readme())
                .results()
                .map((MatchResult match) -> match.group(1))
                .toList();
        assertEquals(List.of(version.group(1), version.group(1)), named);
    }

    private static String property(String name) throws IOException {
        Matcher value =
                Pattern.compile("<" + name + ">(.*)</" + name + ">").matcher(Files.readString(Path.of("../pom.xml")));
        assertTrue(value.find(), name);
        return value.group(1);
    }
}
