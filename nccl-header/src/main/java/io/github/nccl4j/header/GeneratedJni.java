package io.github.nccl4j.header;

import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.UnaryOperator;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Sorts the C++ that JavaCPP generates, so that the same sources give the same library.
 *
 * <p>JavaCPP processes the methods of a class in the order in which the JVM returns them, which varies between runs. This order
 * determines the order of functions, of members in tables, and of the class table, whose indices stand for classes in the code.
 *
 * <p>Only the order changes. The tool verifies that the result has the same lines, and the same class for each index.
 *
 * <p>JavaCPP omits methods that it can't generate, and prints a warning. The tool verifies that the source contains every native
 * method of the compiled classes.
 *
 * <p>Idempotent.
 */
public final class GeneratedJni {
    /** The table of classes; the code refers to classes by their indices in it. */
    private static final Pattern CLASSES = Pattern.compile(
            "(static const char\\* JavaCPP_classNames\\[\\d+\\] = \\{\n)(.*?)( \\};\n)", Pattern.DOTALL);

    /** A call whose second argument is a number, possibly a class index. */
    private static final Pattern CLASS_INDEX = Pattern.compile("(JavaCPP_\\w+)(\\(env, )(\\d+)\\b");

    /** The functions whose second argument is a class index. */
    private static final Set<String> CLASS_FUNCTIONS = Set.of(
            "JavaCPP_createPointer",
            "JavaCPP_getClass",
            "JavaCPP_getFieldID",
            "JavaCPP_getMethodID",
            "JavaCPP_getStaticMethodID",
            "JavaCPP_handleException");

    private static final Pattern OTHER_CLASS_INDEX =
            Pattern.compile("(?<!static const char\\* |static jclass )JavaCPP_class(?:Names|es)\\[\\d+\\]");

    /** The tables of members and of their offsets: one row per class, whose first element is the size of the class. */
    private static final Pattern MEMBERS = Pattern.compile(
            "(static (?:const char\\*|int) JavaCPP_(?:members|offsets)\\[\\d+\\]\\[\\d+\\] = \\{\n)(.*?)( \\};\n)",
            Pattern.DOTALL);

    private static final Pattern MEMBER_ROW = Pattern.compile("(\\s*\\{ )(.*)( \\})");
    /** The number of members of each class. */
    private static final Pattern MEMBER_COUNTS =
            Pattern.compile("(static int JavaCPP_memberOffsetSizes\\[\\d+\\] = \\{ )(.*?)( \\};\n)");

    /** The file of JavaCPP's own classes. */
    private static final String JAVACPP_FILE = "jnijavacpp.cpp";

    /** The name of a JNI function, without the signature that follows the name of an overloaded method. */
    private static final Pattern FUNCTION_NAME =
            Pattern.compile("^JNIEXPORT \\w+ JNICALL (Java_\\w+?)(?:__\\w*)?\\(", Pattern.MULTILINE);

    private static final Pattern FUNCTION =
            Pattern.compile("^JNIEXPORT \\w+ JNICALL Java_.*?^}\n", Pattern.DOTALL | Pattern.MULTILINE);

    /** Kinds of declarations, of each of which some follow each other: of callbacks, and what frees objects. */
    private static final List<String> DECLARATIONS = List.of(
            "^struct JavaCPP_hidden \\w+ \\{\n.*?^};\n^jmethodID \\w+::mid = NULL;\n",
            "^static \\w+ \\w+_instances\\[\\d+];\n",
            "^static void \\w+_deallocate\\(.*?}\n(?=\n|static|\\z)",
            "^static void \\w+_deallocateArray\\(.*?}\n(?=\n|static|\\z)",
            "(?:^JNIEXPORT [^\n(]* JavaCPP_\\w+_callback\\d*\\(.*?^}\n)+^static [^\n]*_callbacks\\[.*?};\n"
                    + "^[^\n]*::operator\\(\\)\\(.*?^end:\n.*?^}\n");

    private GeneratedJni() {}

    /**
     * Sorts a file. Usage: {@code --source FILE --classes DIR --package NAME}. The file must contain the native methods of all
     * classes below the package, unless it is the file of JavaCPP's own classes.
     *
     * @param args the command line
     * @throws IOException if a file can't be read or written
     * @throws ClassNotFoundException if a class, or one to which it refers, is not on the class path
     * @throws IllegalStateException if the file does not have the form that JavaCPP generates, or lacks a native method
     */
    public static void main(String... args) throws IOException, ClassNotFoundException {
        Arguments arguments = new Arguments("GeneratedJni --source FILE.cpp --classes DIR --package NAME", args);
        Path file = arguments.path("source");
        try {
            String source = Files.readString(file);
            if (!file.getFileName().toString().equals(JAVACPP_FILE)) {
                requireNatives(source, countNatives(arguments.path("classes"), arguments.text("package")));
            }
            GeneratedFile.write(file, sort(source));
        } catch (IllegalArgumentException e) {
            throw new IllegalStateException(file + ": " + e.getMessage(), e);
        }
    }

    /** The number of native methods below a package, by C name; overloads share a name. */
    private static Map<String, Long> countNatives(Path classes, String name)
            throws IOException, ClassNotFoundException {
        Map<String, Long> natives = new TreeMap<>();
        for (String type : NativeImageConfig.names(classes, name.replace('.', '/') + "/")) {
            for (Method method : NativeImageConfig.load(type).getDeclaredMethods()) {
                if (Modifier.isNative(method.getModifiers())) {
                    natives.merge(cName(type, method.getName()), 1L, Long::sum);
                }
            }
        }
        return natives;
    }

    /** The name of the JNI function of a native method, without a signature. */
    static String cName(String type, String method) {
        return "Java_"
                + (type + "." + method)
                        .replace("_", "_1")
                        .replace("$", "_00024")
                        .replace('.', '_');
    }

    /** Throws an exception that lists the native methods that a source lacks. */
    static void requireNatives(String source, Map<String, Long> natives) {
        Map<String, Long> found = FUNCTION_NAME
                .matcher(source)
                .results()
                .collect(Collectors.groupingBy(function -> function.group(1), Collectors.counting()));
        List<String> missing = natives.entrySet().stream()
                .filter(method -> found.getOrDefault(method.getKey(), 0L) < method.getValue())
                .map(method -> method.getKey() + " (" + found.getOrDefault(method.getKey(), 0L) + " of "
                        + method.getValue() + ")")
                .toList();
        if (natives.isEmpty() || !missing.isEmpty()) {
            throw new IllegalArgumentException("JavaCPP omitted native methods, see its warnings: " + missing);
        }
    }

    /**
     * Sorts a source.
     *
     * @param source C++ that JavaCPP has generated
     * @return the source with sorted classes, members and functions
     * @throws IllegalArgumentException if the source has no table of classes, no JNI function, or an unknown use of a class index
     */
    public static String sort(String source) {
        Matcher classes = CLASSES.matcher(source);
        if (!classes.find()) {
            throw new IllegalArgumentException("no table like static const char* JavaCPP_classNames[...] = {");
        }
        List<String> names = elements(classes.group(2), ",\n");
        int[] order = IntStream.range(0, names.size())
                .boxed()
                .sorted(Comparator.comparing(names::get))
                .mapToInt(Integer::intValue)
                .toArray();
        String text = table(CLASSES, source, rows -> ordered(rows, ",\n", order));
        text = table(MEMBERS, text, rows -> ordered(rows, ",\n", order)
                .lines()
                .map(GeneratedJni::sortedMembers)
                .collect(Collectors.joining("\n")));
        text = table(MEMBER_COUNTS, text, counts -> ordered(counts, ", ", order));
        requireKnownIndices(source);
        text = CLASS_INDEX
                .matcher(text)
                .replaceAll(call -> call.group(1) + call.group(2) + newIndex(call.group(3), order));
        text = moveFunctionsToEnd(text);
        for (String declaration : DECLARATIONS) {
            text = sortedRuns(declaration, text);
        }
        requireSame(source, text);
        return text;
    }

    /** Throws if the source contains a number of which this tool does not know if it is a class index. */
    private static void requireKnownIndices(String source) {
        Stream.concat(
                        CLASS_INDEX
                                .matcher(source)
                                .results()
                                .filter(call -> !CLASS_FUNCTIONS.contains(call.group(1)))
                                .map(MatchResult::group),
                        OTHER_CLASS_INDEX.matcher(source).results().map(MatchResult::group))
                .findFirst()
                .ifPresent(use -> {
                    throw new IllegalArgumentException("unknown use of a class index: " + use);
                });
    }

    /** Throws if two sources differ in more than the order of classes, members and functions. */
    static void requireSame(String source, String sorted) {
        List<String> before = withoutOrder(source);
        List<String> after = withoutOrder(sorted);
        if (!before.equals(after)) {
            List<String> lost = new ArrayList<>(before);
            after.forEach(lost::remove);
            List<String> added = new ArrayList<>(after);
            before.forEach(added::remove);
            throw new IllegalArgumentException("sorting changed " + lost + " to " + added);
        }
    }

    /** The sorted lines, with class names in place of class indices and added to the rows of tables. */
    private static List<String> withoutOrder(String source) {
        Matcher classes = CLASSES.matcher(source);
        if (!classes.find()) {
            throw new IllegalArgumentException("no table like static const char* JavaCPP_classNames[...] = {");
        }
        List<String> names =
                elements(classes.group(2), ",\n").stream().map(String::strip).toList();
        UnaryOperator<String> tableOfMembers = rows -> named(
                names,
                elements(rows, ",\n").stream()
                        .map(row -> Stream.of(row.split("(, (?=\"|offsetof))|[{}]"))
                                .map(String::strip)
                                .sorted()
                                .toList()
                                .toString())
                        .toList());
        String text = table(CLASSES, source, rows -> String.join("\n", names) + "\n");
        text = table(MEMBERS, text, tableOfMembers);
        text = table(MEMBER_COUNTS, text, counts -> named(names, elements(counts, ", ")));
        text = CLASS_INDEX
                .matcher(text)
                .replaceAll(call -> call.group(1)
                        + call.group(2)
                        + Matcher.quoteReplacement(names.get(Integer.parseInt(call.group(3)))));
        return text.lines().filter(line -> !line.isBlank()).sorted().toList();
    }

    private static String named(List<String> names, List<String> elements) {
        return IntStream.range(0, elements.size())
                .mapToObj(i -> names.get(i) + " " + elements.get(i))
                .collect(Collectors.joining("\n", "\n", "\n"));
    }

    private static String table(Pattern pattern, String source, UnaryOperator<String> change) {
        return pattern.matcher(source)
                .replaceAll(table ->
                        Matcher.quoteReplacement(table.group(1) + change.apply(table.group(2)) + table.group(3)));
    }

    private static List<String> elements(String list, String separator) {
        return Arrays.asList(list.split(Pattern.quote(separator)));
    }

    private static String ordered(String list, String separator, int... order) {
        List<String> elements = elements(list, separator);
        if (elements.size() != order.length) {
            throw new IllegalArgumentException(
                    "a table must have one element per class: " + elements.size() + ", " + order.length);
        }
        return Arrays.stream(order).mapToObj(elements::get).collect(Collectors.joining(separator));
    }

    private static String sortedMembers(String line) {
        Matcher row = MEMBER_ROW.matcher(line);
        if (!row.lookingAt()) {
            throw new IllegalArgumentException("not a row of a table of members: " + line);
        }
        // Do not split at the comma inside offsetof(type, member).
        List<String> members = new ArrayList<>(Arrays.asList(row.group(2).split(", (?=\"|offsetof)")));
        members.subList(1, members.size()).sort(null);
        return row.group(1) + String.join(", ", members) + line.substring(row.end(2));
    }

    private static int newIndex(String index, int... order) {
        int old = Integer.parseInt(index);
        return IntStream.range(0, order.length)
                .filter(i -> order[i] == old)
                .findFirst()
                .orElseThrow(
                        () -> new IllegalArgumentException("class index " + old + " must be below " + order.length));
    }

    /** Sorts the declarations of a kind where they follow each other. */
    private static String sortedRuns(String declaration, String text) {
        int flags = Pattern.DOTALL | Pattern.MULTILINE;
        Pattern one = Pattern.compile(declaration, flags);
        return Pattern.compile("(?:" + declaration + ")+", flags)
                .matcher(text)
                .replaceAll(run -> Matcher.quoteReplacement(one.matcher(run.group())
                        .results()
                        .map(MatchResult::group)
                        .sorted()
                        .collect(Collectors.joining())));
    }

    /** Moves the sorted functions after all other declarations; the last brace closes {@code extern "C"}. */
    private static String moveFunctionsToEnd(String text) {
        String functions = FUNCTION.matcher(text)
                .results()
                .map(MatchResult::group)
                .sorted()
                .collect(Collectors.joining());
        if (functions.isEmpty()) {
            throw new IllegalArgumentException("no JNI function");
        }
        String rest = FUNCTION.matcher(text).replaceAll("");
        int end = rest.lastIndexOf("\n}\n") + 1;
        return rest.substring(0, end) + functions + rest.substring(end);
    }
}
