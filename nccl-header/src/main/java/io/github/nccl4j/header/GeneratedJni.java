package io.github.nccl4j.header;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Puts the C++ that JavaCPP generates in order, so that the same sources give the same library.
 *
 * <p>JavaCPP goes through the methods of a class in the order in which the JVM lists them, which is another one in some
 * runs. It is the order of the functions and of the members in tables, and where a method is the first one that names a
 * class, of the numbers that stand for classes.
 *
 * <p>Running it twice changes nothing more.
 */
public final class GeneratedJni {
    /** The table of the classes that code names by their number in it. */
    private static final Pattern CLASSES = Pattern.compile(
            "(static const char\\* JavaCPP_classNames\\[\\d+\\] = \\{\n)(.*?)( \\};\n)", Pattern.DOTALL);

    private static final Pattern NUMBER_OF_CLASS = Pattern.compile("(JavaCPP_\\w+\\(env, )(\\d+)\\b");
    /** Members and their offsets: a line for each class, whose first element is its size. */
    private static final Pattern MEMBERS = Pattern.compile(
            "(static (?:const char\\*|int) JavaCPP_(?:members|offsets)\\[\\d+\\]\\[\\d+\\] = \\{\n)(.*?)( \\};\n)",
            Pattern.DOTALL);

    private static final Pattern LINE_OF_MEMBERS = Pattern.compile("(\\s*\\{ )(.*)( \\})");
    private static final Pattern NUMBERS_OF_MEMBERS =
            Pattern.compile("(static int JavaCPP_memberOffsetSizes\\[\\d+\\] = \\{ )(.*?)( \\};\n)");
    private static final Pattern FUNCTION =
            Pattern.compile("^JNIEXPORT \\w+ JNICALL Java_.*?^}\n", Pattern.DOTALL | Pattern.MULTILINE);

    private GeneratedJni() {}

    /**
     * Puts files in order.
     *
     * @param files generated C++
     * @throws IOException if a file can't be read or written
     * @throws IllegalStateException if a file is not what JavaCPP generates
     */
    public static void main(String... files) throws IOException {
        for (String name : files) {
            Path file = Path.of(name);
            try {
                GeneratedFile.write(file, sort(Files.readString(file)));
            } catch (IllegalArgumentException e) {
                throw new IllegalStateException(file + ": " + e.getMessage(), e);
            }
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
        text = NUMBER_OF_CLASS.matcher(text).replaceAll(call -> call.group(1) + newNumber(call.group(2), order));
        return functionsAtTheEnd(text);
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
