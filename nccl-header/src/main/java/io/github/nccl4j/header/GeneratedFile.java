package io.github.nccl4j.header;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Files that the build makes. */
final class GeneratedFile {
    private GeneratedFile() {}

    /** Writes the file unless it has that text already, so that builds see it changed only when it did. */
    static void write(Path file, String text) throws IOException {
        if (!Files.exists(file) || !Files.readString(file).equals(text)) {
            Files.writeString(file, text);
        }
    }
}
