package io.github.nccl4j.tests;

import java.net.URI;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticCollector;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;

/** Pieces of Java from documentation, compiled against the packaged jars. */
final class Snippets {
    /** What stands before a piece that uses the highlevel package. */
    static final String HIGHLEVEL = """
            import io.github.nccl4j.highlevel.*;
            import io.github.nccl4j.highlevel.Element.*;
            import io.github.nccl4j.launch.*;
            import io.github.nccl4j.library.*;
            import java.nio.file.Path;
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
                abstract boolean hasMoreSteps();
                abstract void step(Communicator communicator);
                abstract void restoreAgreedStep(Communicator communicator);
                void snippet() throws Exception {
            """;

    private static final String END = "}}";

    private final List<Snippet> snippets = new ArrayList<>();

    /** A piece as a source file. */
    private static final class Snippet extends SimpleJavaFileObject {
        private final Path file;
        private final int line;
        private final String text;

        Snippet(String name, Path file, int line, String text) {
            super(URI.create("string:///" + name + ".java"), Kind.SOURCE);
            this.file = file;
            this.line = line;
            this.text = text;
        }

        @Override
        public CharSequence getCharContent(boolean ignoreEncodingErrors) {
            return text;
        }

        String place(long lineInText) {
            return file.getFileName() + ":" + (line + lineInText);
        }
    }

    boolean isEmpty() {
        return snippets.isEmpty();
    }

    /** Adds the body of a method: behind a prelude, which has a place for the name of its class, and from a line of a file. */
    void addBody(String prelude, Path file, int line, String body) {
        String name = "Snippet" + snippets.size();
        String head = String.format(Locale.ROOT, prelude, name);
        snippets.add(new Snippet(name, file, line - (int) head.lines().count(), head + body + END));
    }

    /** Adds a whole public class. */
    void addClass(String name, Path file, int line, String text) {
        snippets.add(new Snippet(name, file, line, text));
    }

    /** Compiles all, and returns what is wrong with them, a line each. */
    String errors(Path classes) {
        DiagnosticCollector<JavaFileObject> diagnostics = new DiagnosticCollector<>();
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        List<String> options =
                List.of("-proc:none", "-d", classes.toString(), "-cp", System.getProperty("java.class.path"));
        compiler.getTask(null, null, diagnostics, options, null, snippets).call();
        return diagnostics.getDiagnostics().stream()
                .filter(found -> found.getKind() == Diagnostic.Kind.ERROR)
                .map(Snippets::describe)
                .collect(Collectors.joining("\n"));
    }

    private static String describe(Diagnostic<? extends JavaFileObject> error) {
        String message = error.getMessage(null);
        return error.getSource() instanceof Snippet snippet
                ? snippet.place(error.getLineNumber() - 1) + ": " + message
                : message;
    }
}
