package io.github.nccl4j.library;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SecretFileTest {
    private static Path file(Path folder, String permissions) throws IOException {
        Path file = Files.writeString(folder.resolve("secret"), "text\n\r\n");
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(permissions));
        return file;
    }

    private static String read(Path file) throws IOException {
        return new String(SecretFile.read(file), StandardCharsets.UTF_8);
    }

    @Test
    void lineEndsAtTheEndDoNotBelongToTheSecret(@TempDir Path folder) throws IOException {
        assertEquals("text", read(file(folder, "rw-------")));
        assertEquals("text", read(Files.createSymbolicLink(folder.resolve("link"), folder.resolve("secret"))));
        assertThrows(NoSuchFileException.class, () -> SecretFile.read(folder.resolve("none")));
    }

    @ParameterizedTest
    @CsvSource({"rw----r--, 604", "rw-----w-, 602", "rw--w----, 620", "r--r--r--, 444"})
    void fileOfOthersIsRefused(String permissions, String mode, @TempDir Path folder) throws IOException {
        Path file = file(folder, permissions);
        String refused =
                assertThrows(IllegalArgumentException.class, () -> read(file)).getMessage();
        assertTrue(refused.startsWith("a file with a secret must have mode 600 or less"), refused);
        assertTrue(refused.endsWith(": " + file + " has mode " + mode), refused);
    }

    /** Kubernetes gives a container without root its secrets in this way. */
    @Test
    void groupMayReadAFileOfRootOnly(@TempDir Path folder) throws IOException {
        Path file = file(folder, "r--r-----");
        if (Files.getAttribute(file, "unix:uid").equals(0)) {
            assertEquals("text", read(file));
        } else {
            assertThrows(IllegalArgumentException.class, () -> read(file));
        }
    }
}
