package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The snippets in the Javadoc compile against the packaged jars, as the bodies of methods. Lines of three dots stand for what
 * the reader fills in, and are left out. What a snippet uses without declaring it is a field here.
 */
class JavadocSnippetsTest {
    private static final Path SOURCES = Path.of("../nccl-presets/src/main/java/io/github/nccl4j");
    private static final Path OF_EXTENSIONS = Path.of("../nccl-extensions/src/main/java/io/github/nccl4j/extensions");
    private static final Pattern BLOCK = Pattern.compile("<pre>\\{@code\\R(.*?)\\R[ *]*}</pre>", Pattern.DOTALL);

    private static final String LIBRARY = """
            import io.github.nccl4j.global.nccl;
            import io.github.nccl4j.library.*;
            abstract class %s {
                long send, recv, count, comm, stream;
                void snippet() throws Exception {
            """;

    private static final String LAUNCH = """
            import io.github.nccl4j.highlevel.*;
            import io.github.nccl4j.launch.*;
            import java.net.InetAddress;
            import java.nio.charset.StandardCharsets;
            import java.time.Duration;
            import java.util.*;
            abstract class %s {
                Rendezvous rendezvous;
                String host;
                void snippet() throws Exception {
            """;

    private static final String EXTENSIONS = """
            import io.github.nccl4j.extensions.*;
            import io.github.nccl4j.extensions.library.*;
            """ + Snippets.HIGHLEVEL;

    @TempDir
    Path classes;

    @Test
    void ofHighlevelCompile() throws IOException {
        assertEquals("", errors(SOURCES.resolve("highlevel"), Snippets.HIGHLEVEL));
    }

    @Test
    void ofLibraryCompile() throws IOException {
        assertEquals("", errors(SOURCES.resolve("library"), LIBRARY));
    }

    @Test
    void ofLaunchCompile() throws IOException {
        assertEquals("", errors(SOURCES.resolve("launch"), LAUNCH));
    }

    @Test
    void ofExtensionsCompile() throws IOException {
        assertEquals("", errors(OF_EXTENSIONS, EXTENSIONS));
        assertEquals("", errors(OF_EXTENSIONS.resolve("library"), EXTENSIONS));
    }

    private String errors(Path folder, String prelude) throws IOException {
        Snippets snippets = new Snippets();
        try (Stream<Path> files = Files.list(folder)) {
            files.filter(Files::isRegularFile).sorted().forEach(file -> addSnippets(snippets, prelude, file));
        }
        assertFalse(snippets.isEmpty(), folder.toString());
        return snippets.errors(classes);
    }

    private static void addSnippets(Snippets snippets, String prelude, Path file) {
        try {
            String source = Files.readString(file);
            Matcher blocks = BLOCK.matcher(source);
            while (blocks.find()) {
                // A line stays a line, so that errors name the right one.
                String body = blocks.group(1)
                        .lines()
                        .map(line -> line.replaceFirst("^\\s*\\* ?", ""))
                        .map(line -> line.strip().equals("...") ? "" : line)
                        .collect(Collectors.joining("\n", "", "\n"));
                int line =
                        1 + (int) source.substring(0, blocks.start(1)).lines().count();
                snippets.addBody(prelude, file, line, body);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
