package io.github.nccl4j.header;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Writes files that the build generates. */
final class GeneratedFile {
    private GeneratedFile() {}

    /** Writes a file, unless it already has this text, so that its modification time changes only with its content. */
    static void write(Path file, String text) throws IOException {
        if (!Files.exists(file) || !Files.readString(file).equals(text)) {
            Files.writeString(file, text);
        }
    }
}
