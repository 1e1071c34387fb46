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
 * Puts the C++ that JavaCPP generates in order, so that the same sources give the same library.
 *
 * <p>JavaCPP goes through the methods of a class in the order in which the JVM lists them, which is another one in some
 * runs. It is the order of the functions and of the members in tables, and where a method is the first one that names a
 * class, of the numbers that stand for classes.
 *
 * <p>Nothing else changes: the result must have the same lines, with the same classes where they name one by its number.
 *
 * <p>JavaCPP leaves out what it can't generate, with a warning: every native method of the compiled classes must be there.
 *
 * <p>Running it twice changes nothing more.
 */
public final class GeneratedJni {
    /** The table of the classes that code names by their number in it. */
    private static final Pattern CLASSES = Pattern.compile(
            "(static const char\\* JavaCPP_classNames\\[\\d+\\] = \\{\n)(.*?)( \\};\n)", Pattern.DOTALL);

    private static final Pattern NUMBER_OF_CLASS = Pattern.compile("(JavaCPP_\\w+)(\\(env, )(\\d+)\\b");
    /** The functions whose second argument is such a number. */
    private static final Set<String> TAKE_A_CLASS = Set.of(
            "JavaCPP_createPointer",
            "JavaCPP_getClass",
            "JavaCPP_getFieldID",
            "JavaCPP_getMethodID",
            "JavaCPP_getStaticMethodID",
            "JavaCPP_handleException");

    private static final Pattern OTHER_USE_OF_NUMBER =
            Pattern.compile("(?<!static const char\\* |static jclass )JavaCPP_class(?:Names|es)\\[\\d+\\]");
    /** Members and their offsets: a line for each class, whose first element is its size. */
    private static final Pattern MEMBERS = Pattern.compile(
            "(static (?:const char\\*|int) JavaCPP_(?:members|offsets)\\[\\d+\\]\\[\\d+\\] = \\{\n)(.*?)( \\};\n)",
            Pattern.DOTALL);

    private static final Pattern LINE_OF_MEMBERS = Pattern.compile("(\\s*\\{ )(.*)( \\})");
    private static final Pattern NUMBERS_OF_MEMBERS =
            Pattern.compile("(static int JavaCPP_memberOffsetSizes\\[\\d+\\] = \\{ )(.*?)( \\};\n)");
    private static final String OF_JAVACPP = "jnijavacpp.cpp";
    /** A function of Java; the signature that follows the name of an overloaded one is not part of the group. */
    private static final Pattern NAME_OF_FUNCTION =
            Pattern.compile("^JNIEXPORT \\w+ JNICALL (Java_\\w+?)(?:__\\w*)?\\(", Pattern.MULTILINE);

    private static final Pattern FUNCTION =
            Pattern.compile("^JNIEXPORT \\w+ JNICALL Java_.*?^}\n", Pattern.DOTALL | Pattern.MULTILINE);

    private GeneratedJni() {}

    /**
     * Puts a file in order: {@code --source FILE --classes DIR --package NAME}. The classes of the package are those whose
     * native methods the file must have, unless it is the file of JavaCPP's own classes.
     *
     * @param args the command line
     * @throws IOException if a file can't be read or written
     * @throws ClassNotFoundException if a class that these refer to is not on the class path
     * @throws IllegalStateException if the file is not what JavaCPP generates, or lacks a native method
     */
    public static void main(String... args) throws IOException, ClassNotFoundException {
        Arguments arguments = new Arguments("GeneratedJni --source FILE.cpp --classes DIR --package NAME", args);
        Path file = arguments.path("source");
        try {
            String source = Files.readString(file);
            if (!file.getFileName().toString().equals(OF_JAVACPP)) {
                requireNatives(source, natives(arguments.path("classes"), arguments.text("package")));
            }
            GeneratedFile.write(file, sort(source));
        } catch (IllegalArgumentException e) {
            throw new IllegalStateException(file + ": " + e.getMessage(), e);
        }
    }

    /** The native methods below a package, by the name that C has for those of one name; with their number. */
    private static Map<String, Long> natives(Path classes, String name) throws IOException, ClassNotFoundException {
        Map<String, Long> natives = new TreeMap<>();
        for (String type : NativeImageConfig.names(classes, name.replace('.', '/') + "/")) {
            for (Method method : NativeImageConfig.load(type).getDeclaredMethods()) {
                if (Modifier.isNative(method.getModifiers())) {
                    natives.merge(nameInC(type, method.getName()), 1L, Long::sum);
                }
            }
        }
        return natives;
    }

    static String nameInC(String type, String method) {
        return "Java_"
                + (type + "." + method)
                        .replace("_", "_1")
                        .replace("$", "_00024")
                        .replace('.', '_');
    }

    /** Throws an exception that names the methods of which a source has too few. */
    static void requireNatives(String source, Map<String, Long> natives) {
        Map<String, Long> found = NAME_OF_FUNCTION
                .matcher(source)
                .results()
                .collect(Collectors.groupingBy(function -> function.group(1), Collectors.counting()));
        List<String> missing = natives.entrySet().stream()
                .filter(method -> found.getOrDefault(method.getKey(), 0L) < method.getValue())
                .map(method -> method.getKey() + " (" + found.getOrDefault(method.getKey(), 0L) + " of "
                        + method.getValue() + ")")
                .toList();
        if (natives.isEmpty() || !missing.isEmpty()) {
            throw new IllegalArgumentException("JavaCPP left out native methods, its warnings say why: " + missing);
        }
    }

    /**
     * Puts a source in order.
     *
     * @param source C++ that JavaCPP has generated
     * @return the same with classes, members and functions sorted
     * @throws IllegalArgumentException if there is no table of classes or no function in it
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
        text = table(NUMBERS_OF_MEMBERS, text, numbers -> ordered(numbers, ", ", order));
        requireKnownNumbers(source);
        text = NUMBER_OF_CLASS
                .matcher(text)
                .replaceAll(call -> call.group(1) + call.group(2) + newNumber(call.group(3), order));
        text = functionsAtTheEnd(text);
        requireSame(source, text);
        return text;
    }

    /** Throws an exception if a source has a number that may or may not be that of a class. */
    private static void requireKnownNumbers(String source) {
        Stream.concat(
                        NUMBER_OF_CLASS
                                .matcher(source)
                                .results()
                                .filter(call -> !TAKE_A_CLASS.contains(call.group(1)))
                                .map(MatchResult::group),
                        OTHER_USE_OF_NUMBER.matcher(source).results().map(MatchResult::group))
                .findFirst()
                .ifPresent(use -> {
                    throw new IllegalArgumentException("is not known to have the number of a class: " + use);
                });
    }

    /** Throws an exception if two sources differ in more than the order of classes, members and functions. */
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

    /** The lines, sorted, with the names of classes for their numbers and places. */
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
        text = table(NUMBERS_OF_MEMBERS, text, numbers -> named(names, elements(numbers, ", ")));
        text = NUMBER_OF_CLASS
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
                    "a table has " + elements.size() + " elements, that of classes " + order.length);
        }
        return Arrays.stream(order).mapToObj(elements::get).collect(Collectors.joining(separator));
    }

    private static String sortedMembers(String line) {
        Matcher row = LINE_OF_MEMBERS.matcher(line);
        if (!row.lookingAt()) {
            throw new IllegalArgumentException("no line of a table of members: " + line);
        }
        // An offset has a comma, too.
        List<String> members = new ArrayList<>(Arrays.asList(row.group(2).split(", (?=\"|offsetof)")));
        members.subList(1, members.size()).sort(null);
        return row.group(1) + String.join(", ", members) + line.substring(row.end(2));
    }

    private static int newNumber(String number, int... order) {
        int old = Integer.parseInt(number);
        return IntStream.range(0, order.length)
                .filter(i -> order[i] == old)
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException("class " + old + " of " + order.length));
    }

    /** Behind everything that JavaCPP declares between them; the last brace is that of {@code extern "C"}. */
    private static String functionsAtTheEnd(String text) {
        String functions = FUNCTION.matcher(text)
                .results()
                .map(MatchResult::group)
                .sorted()
                .collect(Collectors.joining());
        if (functions.isEmpty()) {
            throw new IllegalArgumentException("no function that Java calls");
        }
        String rest = FUNCTION.matcher(text).replaceAll("");
        int end = rest.lastIndexOf("\n}\n") + 1;
        return rest.substring(0, end) + functions + rest.substring(end);
    }
}
