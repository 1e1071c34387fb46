package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The README's program is one that runs, and prints what it says. */
class ReadmeTest {
    @TempDir
    Path folder;

    @Test
    void theExampleRuns() throws IOException {
        String readme = Files.readString(Path.of("../README.md"));
        int start = readme.indexOf("```java\n") + "```java\n".length();
        String example = readme.substring(start, readme.indexOf("```", start));
        Path source = Files.writeString(folder.resolve("Hello.java"), example);
        ChildJvm.Outcome outcome = new ChildJvm()
                .property("nccl4j.engine", "host")
                .start(source.toString())
                .await();
        assertEquals("3.0 3.0\n", outcome.output());
    }
}
