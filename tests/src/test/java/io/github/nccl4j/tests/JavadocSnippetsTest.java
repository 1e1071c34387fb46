package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticCollector;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The snippets in the Javadoc compile against the packaged jars, as the bodies of methods. Lines of three dots stand for what
 * the reader fills in, and are left out. What a snippet uses without declaring it is a field here.
 */
class JavadocSnippetsTest {
    private static final Path SOURCES = Path.of("../nccl-presets/src/main/java/io/github/nccl4j");
    private static final Pattern BLOCK = Pattern.compile("<pre>\\{@code\\R(.*?)\\R[ *]*}</pre>", Pattern.DOTALL);

    private static final String HIGHLEVEL = """
            import io.github.nccl4j.highlevel.*;
            import io.github.nccl4j.highlevel.Element.*;
            import io.github.nccl4j.library.*;
            import java.time.Duration;
            import java.util.*;
            abstract class %s {
                int rank, size, localRank, next, previous;
                UniqueId id;
                Device device;
                Communicator communicator;
                CudaStream stream, producer;
                CudaEvent start, end;
                DeviceBuffer<Float32> buffer, staging, gradients, outgoing, incoming, send, recv;
                long[] sendCounts, sendDisplacements, recvCounts, recvDisplacements;
                float[] numbers;
                abstract <T> T receiveFromRank0();
                void snippet() throws Exception {
            """;

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
            import java.nio.charset.StandardCharsets;
            import java.time.Duration;
            import java.util.*;
            abstract class %s {
                Rendezvous rendezvous;
                String host;
                void snippet() throws Exception {
            """;

    private static final String END = "}}";

    @TempDir
    Path classes;

    /** A snippet as a class. */
    private static final class Snippet extends SimpleJavaFileObject {
        private final Path file;
        private final int line;
        private final String text;

        Snippet(String name, String prelude, Path file, int line, String body) {
            super(URI.create("string:///" + name + ".java"), Kind.SOURCE);
            this.file = file;
            String head = prelude.formatted(name);
            this.line = line - (int) head.lines().count();
            text = head + body + END;
        }

        @Override
        public CharSequence getCharContent(boolean ignoreEncodingErrors) {
            return text;
        }

        String place(long lineInText) {
            return file.getFileName() + ":" + (line + lineInText);
        }
    }

    @Test
    void ofHighlevelCompile() throws IOException {
        assertEquals("", errors("highlevel", HIGHLEVEL));
    }

    @Test
    void ofLibraryCompile() throws IOException {
        assertEquals("", errors("library", LIBRARY));
    }

    @Test
    void ofLaunchCompile() throws IOException {
        assertEquals("", errors("launch", LAUNCH));
    }

    private String errors(String folder, String prelude) throws IOException {
        List<Snippet> snippets = new ArrayList<>();
        try (Stream<Path> files = Files.list(SOURCES.resolve(folder))) {
            files.sorted().forEach(file -> addSnippets(snippets, prelude, file));
        }
        assertFalse(snippets.isEmpty(), folder);
        DiagnosticCollector<JavaFileObject> diagnostics = new DiagnosticCollector<>();
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        List<String> options =
                List.of("-proc:none", "-d", classes.toString(), "-cp", System.getProperty("java.class.path"));
        compiler.getTask(null, null, diagnostics, options, null, snippets).call();
        return diagnostics.getDiagnostics().stream()
                .filter(found -> found.getKind() == Diagnostic.Kind.ERROR)
                .map(JavadocSnippetsTest::describe)
                .collect(Collectors.joining("\n"));
    }

    private static void addSnippets(List<Snippet> snippets, String prelude, Path file) {
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
                snippets.add(new Snippet("Snippet" + snippets.size(), prelude, file, line, body));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static String describe(Diagnostic<? extends JavaFileObject> error) {
        String message = error.getMessage(null);
        return error.getSource() instanceof Snippet snippet
                ? snippet.place(error.getLineNumber() - 1) + ": " + message
                : message;
    }
}
