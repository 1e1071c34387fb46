package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The versions of docs/gpu-setup.md are those of the build. {@code .ci/test-consumers} builds the page's projects. */
class GpuSetupTest {
    private static final Path PAGE = Path.of("../docs/gpu-setup.md");
    private static final String PRESETS = "\\d+\\.\\d+-\\d+\\.\\d+-\\d+\\.\\d+\\.\\d+";

    private static String first(Path file, String pattern) throws IOException {
        Matcher matcher = Pattern.compile(pattern, Pattern.MULTILINE).matcher(Files.readString(file));
        assertTrue(matcher.find(), file + ": " + pattern);
        return matcher.group(1);
    }

    private static Set<String> all(String text, String pattern) {
        return Pattern.compile(pattern)
                .matcher(text)
                .results()
                .map(match -> match.group(match.groupCount()))
                .collect(Collectors.toSet());
    }

    @ParameterizedTest
    @CsvSource({"CUDA 13, ../pom.xml, cuda.version", "CUDA 12.9, pom.xml, cuda12.version"})
    void namesTheVersionsOfTheBuild(String section, Path pom, String property) throws IOException {
        String cuda = first(pom, "<" + property + ">(.*)</");
        String text = first(PAGE, "(?s)\\R## " + Pattern.quote(section) + "\\R(.*?)(?:\\R## |\\z)");
        assertEquals(Set.of(cuda), all(text, PRESETS));
        assertEquals(
                Set.of(first(Path.of("../pom.xml"), "^  <version>(.*)</version>$")),
                all(text, "nccl-platform(?::|</artifactId>\\s*<version>)([^<\"]+)"));
        // The presets of CUDA 13 bring the same JavaCPP; older ones need a line for it.
        Set<String> javacpp = all(text, "<artifactId>javacpp</artifactId>\\s*<version>([^<]+)");
        String own = first(Path.of("../pom.xml"), "<javacpp.version>(.*)</");
        assertEquals(cuda.endsWith("-" + own) ? Set.of() : Set.of(own), javacpp);
        assertTrue(first(PAGE, "^(\\| natives.*)$").contains("`" + cuda + "`"), cuda);
    }
}
