package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The README's programs run, and print what they say; its versions are those of the build. */
class ReadmeTest {
    private static final Pattern PROGRAM =
            Pattern.compile("```java\n((?:(?!```).)*public class (\\w+).*?)```", Pattern.DOTALL);

    @TempDir
    Path folder;

    private static String readme() throws IOException {
        return Files.readString(Path.of("../README.md"));
    }

    @ParameterizedTest
    @CsvSource({"Sum, 3.0 20.0", "Hello, 3.0 3.0"})
    void programsRun(String name, String output) throws IOException {
        Matcher programs = PROGRAM.matcher(readme());
        String text = programs.results()
                .filter(program -> program.group(2).equals(name))
                .map(program -> program.group(1))
                .findFirst()
                .orElseThrow();
        Path source = Files.writeString(folder.resolve(name + ".java"), text);
        ChildJvm.Outcome outcome = new ChildJvm()
                .property("nccl4j.engine", "host")
                .start(source.toString())
                .await();
        assertEquals(output + "\n", outcome.output());
    }

    @Test
    void namesTheVersionOfTheCudaPresets() throws IOException {
        Matcher version =
                Pattern.compile("<cuda.version>(.*)</cuda.version>").matcher(Files.readString(Path.of("../pom.xml")));
        assertTrue(version.find());
        assertTrue(readme().contains("<version>" + version.group(1) + "</version>"), version.group(1));
    }
}
