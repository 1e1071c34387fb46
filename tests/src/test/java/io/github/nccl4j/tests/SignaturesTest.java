package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.source.tree.ClassTree;
import com.sun.source.tree.CompilationUnitTree;
import com.sun.source.tree.MethodTree;
import com.sun.source.tree.Tree;
import com.sun.source.tree.VariableTree;
import com.sun.source.util.JavacTask;
import com.sun.source.util.TreePathScanner;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.lang.model.element.Modifier;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;

/** The sizes of what is written by hand: parameters of a signature, components of a record, lines of a class. */
class SignaturesTest {
    private static final int MOST_PARAMETERS = 7;
    private static final int MOST_LINES = 600;

    /** The lines of the class with all operations. Lower it; never raise it. */
    private static final int MOST_LINES_OF_THE_FACADE = 1500;

    /** The plain path of an operation, which passes numbers: an object would have to be allocated, or removed by C2. */
    private static final Set<String> FAST_PATH = Set.of(
            "GroupedCalls.sendAndReceive",
            "OperationChecks.addresses",
            "OperationKind.call",
            "OperationKind.callConfigured",
            "OperationKind.callOther",
            "OperationLog.record",
            "OperationSubmitter.configured",
            "OperationSubmitter.now",
            "OperationSubmitter.pinned",
            "OperationSubmitter.submit");

    /** Records of exported packages, whose components are what programs read. */
    private static final Set<String> READ_BY_PROGRAMS =
            Set.of("FlightRecorder.Operation", "ProfiledOperation", "RankInfo");

    /** A function's name and the beginning of its parameters. */
    private static final Pattern FUNCTION = Pattern.compile("\\b(\\w+)\\s*\\(");

    private static final Pattern NO_CODE = Pattern.compile(
            "\"(?:\\\\.|[^\"\\\\\\n])*\"|'(?:\\\\.|[^'\\\\\\n])'|/\\*.*?\\*/|//[^\\n]*", Pattern.DOTALL);

    private static List<Path> sources(String folder, String ending) throws IOException {
        List<Path> files = new ArrayList<>();
        for (Path module : Modules.all()) {
            Path sources = module.resolve(folder);
            if (Files.isDirectory(sources)) {
                try (Stream<Path> all = Files.walk(sources)) {
                    all.filter(file -> file.toString().endsWith(ending)).forEach(files::add);
                }
            }
        }
        return files;
    }

    @Test
    void signaturesOfJavaAreShort() throws IOException {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        List<Path> files = sources("src/main/java", ".java");
        Set<String> used = new TreeSet<>();
        List<String> longOnes = new ArrayList<>();
        try (StandardJavaFileManager manager = compiler.getStandardFileManager(null, null, null)) {
            JavacTask task = (JavacTask)
                    compiler.getTask(null, manager, null, null, null, manager.getJavaFileObjectsFromPaths(files));
            for (CompilationUnitTree unit : task.parse()) {
                new Signatures(used, longOnes).scan(unit, null);
            }
        }
        assertTrue(files.size() > 500, files.size() + " files");
        assertEquals(List.of(), longOnes, "signatures with more than " + MOST_PARAMETERS + " parameters");
        Set<String> exceptions = new TreeSet<>(FAST_PATH);
        exceptions.addAll(READ_BY_PROGRAMS);
        assertEquals(exceptions, used, "exceptions that are needed");
    }

    private static final class Signatures extends TreePathScanner<Void, Void> {
        private final Set<String> used;
        private final List<String> longOnes;

        Signatures(Set<String> used, List<String> longOnes) {
            this.used = used;
            this.longOnes = longOnes;
        }

        private String enclosing() {
            String name = "";
            for (Tree tree : getCurrentPath()) {
                if (tree instanceof ClassTree type) {
                    name = type.getSimpleName() + (name.isEmpty() ? "" : "." + name);
                }
            }
            return name;
        }

        private void count(Set<String> exceptions, String name, long parameters) {
            if (parameters <= MOST_PARAMETERS) {
                return;
            }
            if (exceptions.contains(name)) {
                used.add(name);
            } else {
                longOnes.add(name + ": " + parameters);
            }
        }

        @Override
        public Void visitMethod(MethodTree method, Void unused) {
            // A constructor of a record may repeat its components.
            boolean ofRecord = getCurrentPath().getParentPath().getLeaf().getKind() == Tree.Kind.RECORD;
            if (!ofRecord || !method.getName().contentEquals("<init>")) {
                count(
                        FAST_PATH,
                        enclosing() + "." + method.getName(),
                        method.getParameters().size());
            }
            return super.visitMethod(method, unused);
        }

        @Override
        public Void visitClass(ClassTree type, Void unused) {
            if (type.getKind() == Tree.Kind.RECORD) {
                long components = type.getMembers().stream()
                        .filter(member -> member instanceof VariableTree field
                                && !field.getModifiers().getFlags().contains(Modifier.STATIC))
                        .count();
                count(READ_BY_PROGRAMS, enclosing(), components);
            }
            return super.visitClass(type, unused);
        }
    }

    /** Definitions of functions. Those of C linkage have the parameters of NCCL. */
    @Test
    void signaturesOfTheHostEngineAreShort() throws IOException {
        List<Path> files = new ArrayList<>(sources("src/main/cpp", ".cpp"));
        files.addAll(sources("src/main/cpp", ".h"));
        List<String> longOnes = new ArrayList<>();
        int found = 0;
        for (Path file : files) {
            String text = NO_CODE.matcher(Files.readString(file)).replaceAll("\"\"");
            Matcher function = FUNCTION.matcher(text);
            while (function.find()) {
                int end = closing(text, function.end());
                if (isDefinition(text, end)
                        && !text.substring(before(text, function.start()), function.start())
                                .contains("extern \"\"")) {
                    found++;
                    int parameters = parameters(text.substring(function.end(), end));
                    if (parameters > MOST_PARAMETERS) {
                        longOnes.add(file.getFileName() + ": " + function.group(1) + ": " + parameters);
                    }
                }
            }
        }
        assertTrue(found > 500, found + " functions");
        assertEquals(List.of(), longOnes, "signatures with more than " + MOST_PARAMETERS + " parameters");
    }

    /** The index of the parenthesis that ends what begins behind another one. */
    private static int closing(String text, int from) {
        int depth = 1;
        int at = from;
        for (; at < text.length(); at++) {
            depth += text.charAt(at) == '(' ? 1 : text.charAt(at) == ')' ? -1 : 0;
            if (depth == 0) {
                break;
            }
        }
        return at;
    }

    private static boolean isDefinition(String text, int end) {
        return Pattern.compile("\\)\\s*(const\\s*)?(noexcept\\s*)?(override\\s*)?(\\{|:[^:])")
                .matcher(text)
                .region(end, text.length())
                .lookingAt();
    }

    /** The beginning of a declaration. */
    private static int before(String text, int at) {
        return 1 + Math.max(text.lastIndexOf(';', at), Math.max(text.lastIndexOf('}', at), text.lastIndexOf('{', at)));
    }

    private static int parameters(String list) {
        int depth = 0;
        int parameters = list.isBlank() ? 0 : 1;
        for (char c : list.toCharArray()) {
            depth += "<([{".indexOf(c) >= 0 ? 1 : ">)]}".indexOf(c) >= 0 ? -1 : 0;
            if (c == ',' && depth == 0) {
                parameters++;
            }
        }
        return parameters;
    }

    @Test
    void classesAreSmall() throws IOException {
        List<String> large = new ArrayList<>();
        for (Path file : sources("src/main/java", ".java")) {
            long lines = Files.readString(file).lines().count();
            boolean facade = file.endsWith("highlevel/Communicator.java");
            if (lines > (facade ? MOST_LINES_OF_THE_FACADE : MOST_LINES)) {
                large.add(file + ": " + lines);
            }
        }
        assertEquals(List.of(), large);
    }
}
