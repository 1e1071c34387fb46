package io.github.nccl4j.tests.host;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.testing.Waiting;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NativeTestProgramTest {
    @Test
    void theTestThatHangsOrEndsTheProcessIsNamed(@TempDir Path folder) throws IOException {
        Path script = folder.resolve("tests");
        String failure = failureOf(script, "kill -ABRT $$", Waiting.LONG);
        assertTrue(failure.startsWith("A.b did not end: "), failure);
        assertTrue(failure.contains(" exited with 134: last words"), failure);
        // Until it has printed the lines, which takes long on a machine that does much else.
        Duration limit = Duration.ofSeconds(1);
        while (!(failure = failureOf(script, "sleep 1000", limit)).contains("last words")) {
            limit = limit.multipliedBy(2);
            assertTrue(limit.compareTo(Waiting.LONG) < 0, failure);
        }
        assertTrue(failure.startsWith("A.b did not end: "), failure);
        assertTrue(failure.contains(" has not ended within " + limit + ": last words"), failure);
    }

    /** That of a program whose second test ends so. */
    private static String failureOf(Path script, String end, Duration limit) throws IOException {
        Files.writeString(script, """
                echo '[ RUN      ] A.a
                [       OK ] A.a (0 ms)
                last words
                [ RUN      ] A.c
                [  FAILED  ] A.c (0 ms)
                [ RUN      ] A.b'
                """ + end);
        return assertThrows(
                        AssertionError.class,
                        () -> NativeTestProgram.output(List.of("/bin/sh", script.toString()), limit))
                .getMessage();
    }
}
