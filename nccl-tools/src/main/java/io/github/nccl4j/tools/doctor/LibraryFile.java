package io.github.nccl4j.tools.doctor;

import io.github.nccl4j.library.SystemText;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reads the release of an NCCL library from the constants of its file, without loading the library. */
final class LibraryFile {
    private static final Pattern BANNER = Pattern.compile("(\\d+\\.\\d+\\.\\d+)[^\\s\\x00]*?\\+cuda\\d");
    private static final int CHUNK = 1 << 20;
    /** More than the text has bytes: it may begin in one chunk and end in the next. */
    private static final int OVERLAP = 64;

    private LibraryFile() {}

    /** Returns the release, such as "2.30.7"; empty if the file can't be read or does not contain it. */
    static Optional<String> release(String place) {
        try {
            Path file = SystemText.path(place);
            return Files.isRegularFile(file) ? release(file) : Optional.empty();
        } catch (InvalidPathException | IOException e) {
            return Optional.empty();
        }
    }

    private static Optional<String> release(Path file) throws IOException {
        try (InputStream in = Files.newInputStream(file)) {
            String before = "";
            for (byte[] chunk = in.readNBytes(CHUNK); chunk.length > 0; chunk = in.readNBytes(CHUNK)) {
                String text = before + new String(chunk, StandardCharsets.ISO_8859_1);
                Matcher found = BANNER.matcher(text);
                if (found.find()) {
                    return Optional.of(found.group(1));
                }
                before = text.substring(Math.max(0, text.length() - OVERLAP));
            }
        }
        return Optional.empty();
    }
}
