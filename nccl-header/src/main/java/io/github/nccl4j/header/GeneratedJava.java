package io.github.nccl4j.header;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Completes the Java class that JavaCPP generates, in three ways that JavaCPP's settings cannot express.
 *
 * <p>Every NCCL function gets a {@code throws} clause, from which JavaCPP takes the exception that native code throws.
 *
 * <p>A method that takes a {@code Pointer} for {@code void*} becomes a Java method that calls its raw-address form. JavaCPP's
 * native code would add the position of such a pointer in bytes, independent of the element size, and silently use a wrong
 * address. The Java method is also faster: it saves a JNI field access per parameter.
 *
 * <p>The class gets a comment.
 *
 * <p>The tool verifies that each function of the headers has exactly the overloads of {@link JavaForms}, except functions that
 * {@link SymbolList} does not bind.
 *
 * <p>Idempotent.
 */
public final class GeneratedJava {
    /** A native method up to its semicolon; its name is the first word before a parenthesis that is not an annotation. */
    private static final Pattern NATIVE = Pattern.compile("public static native ((?:\"[^\"]*\"|[^\";])*?)"
            + "(?<![@\\w.])(\\w+)\\s*\\(((?:\"[^\"]*\"|[^\";])*)\\)(?: throws [\\w.]+)?;");

    /** A completed method, which calls its raw-address form. */
    private static final Pattern COMPLETED =
            Pattern.compile("public static (?!native)\\w+ (p?nccl\\w+)\\(([^)]*)\\) throws");

    /** The beginning of a class without a comment. */
    private static final Pattern CLASS = Pattern.compile("(?<!\\*/)\n+public class ");

    private static final String NONE = "none";

    private static final Pattern NCCL_NAME = Pattern.compile("p?nccl(?!4j)[A-Z0-9]\\w*");
    private static final Pattern ANNOTATION = Pattern.compile("@\\w+(?:\\([^)]*\\))?\\s*");
    private static final Set<String> PASSED_UNCHANGED =
            Set.of("byte", "short", "int", "long", "ByteBuffer", "ShortBuffer", "IntBuffer", "LongBuffer");

    private GeneratedJava() {}

    /**
     * Completes a file. Usage: {@code --source FILE --exception CLASS --header FILE --includes FILE --overloads FILE --comment
     * TEXT}. The second header has types that the first one uses, the third has additional prototypes; either may be {@code none}. The
     * text is the class comment.
     *
     * @param args the command line
     * @throws IOException if a file can't be read or written
     * @throws IllegalStateException if the file lacks an overload of a function in the headers, or has an additional one
     */
    public static void main(String... args) throws IOException {
        Arguments arguments = new Arguments(
                "GeneratedJava --source FILE.java --exception CLASS --header FILE --includes FILE|none"
                        + " --overloads FILE|none --comment TEXT",
                args);
        Path source = arguments.path("source");
        Header header = Header.parse(arguments.path("header"));
        Header included = Header.parse(text(arguments, "includes"));
        JavaForms forms = new JavaForms(header, header.including(included));
        List<Function> functions = new ArrayList<>(header.functions().values());
        functions.removeIf(function -> forms.unbound().containsKey(function.name()));
        functions.addAll(HeaderParser.prototypes(text(arguments, "overloads")));
        try {
            String completed = complete(Files.readString(source), arguments.text("exception"));
            requireFunctions(completed, forms, functions);
            GeneratedFile.write(source, withComment(completed, arguments.text("comment")));
        } catch (IllegalArgumentException e) {
            throw new IllegalStateException(source + ": " + e.getMessage(), e);
        }
    }

    private static String text(Arguments arguments, String name) throws IOException {
        return arguments.text(name).equals(NONE) ? "" : Files.readString(arguments.path(name));
    }

    /**
     * Completes a generated class.
     *
     * @param source the text of the class
     * @param exception the name of the exception class
     * @return the completed text
     * @throws IllegalArgumentException if the class has no NCCL function
     */
    public static String complete(String source, String exception) {
        Matcher matcher = NATIVE.matcher(source);
        StringBuilder result = new StringBuilder();
        int found = 0;
        while (matcher.find()) {
            String declaration = matcher.group();
            String name = matcher.group(2);
            if (NCCL_NAME.matcher(name).matches()) {
                found++;
                List<Parameter> parameters = parameters(matcher.group(3));
                declaration = parameters.stream().anyMatch(p -> p.type().equals("Pointer"))
                        ? rawFormCaller(plain(matcher.group(1)), name, parameters, exception)
                        : "public static native " + matcher.group(1) + name + "(" + matcher.group(3) + ") throws "
                                + exception + ";";
            }
            matcher.appendReplacement(result, Matcher.quoteReplacement(declaration));
        }
        if (found == 0) {
            throw new IllegalArgumentException("no NCCL function among the native methods");
        }
        return matcher.appendTail(result).toString();
    }

    /**
     * Puts a comment above a class that has none.
     *
     * @param source the text of the class
     * @param comment the text of the comment
     * @return the text with the comment
     */
    static String withComment(String source, String comment) {
        String text = comment.strip().replaceAll("\\s+", " ");
        return CLASS.matcher(source).replaceFirst(Matcher.quoteReplacement("\n\n/** " + text + " */\npublic class "));
    }

    /** Throws an exception that lists missing and surplus overloads of a class, if there are any. */
    static void requireFunctions(String source, JavaForms forms, List<Function> functions) {
        Set<String> expected = new TreeSet<>();
        for (Function function : functions) {
            forms.of(function).forEach(form -> expected.add(function.name() + "(" + String.join(", ", form) + ")"));
        }
        Set<String> found = new TreeSet<>();
        NATIVE.matcher(source)
                .results()
                .filter(method -> !method.group(1).contains("@MemberGetter"))
                .forEach(method -> found.add(signature(method.group(2), method.group(3))));
        COMPLETED.matcher(source).results().forEach(method -> found.add(signature(method.group(1), method.group(2))));
        found.removeIf(signature -> !NCCL_NAME
                .matcher(signature.substring(0, signature.indexOf('(')))
                .matches());
        Set<String> missing = new TreeSet<>(expected);
        missing.removeAll(found);
        Set<String> surplus = new TreeSet<>(found);
        surplus.removeAll(expected);
        if (!missing.isEmpty() || !surplus.isEmpty()) {
            throw new IllegalArgumentException("the class must have exactly the overloads of the header: missing "
                    + missing + ", surplus " + surplus);
        }
    }

    private static String signature(String name, String parameters) {
        return parameters(parameters).stream().map(Parameter::type).collect(Collectors.joining(", ", name + "(", ")"));
    }

    private static List<Parameter> parameters(String list) {
        List<Parameter> parameters = new ArrayList<>();
        for (String parameter : plain(list).split(",")) {
            String text = parameter.strip();
            if (!text.isEmpty()) {
                int space = text.lastIndexOf(' ');
                parameters.add(new Parameter(text.substring(0, space).strip(), text.substring(space + 1)));
            }
        }
        return parameters;
    }

    /** Removes annotations and line breaks from Java source. */
    private static String plain(String java) {
        return ANNOTATION.matcher(java).replaceAll("").replaceAll("\\s+", " ").strip();
    }

    /** The Java method that calls the raw-address form of a function. */
    private static String rawFormCaller(String returnType, String name, List<Parameter> parameters, String exception) {
        List<String> declared = new ArrayList<>();
        List<String> passed = new ArrayList<>();
        StringBuilder fences = new StringBuilder();
        for (Parameter parameter : parameters) {
            declared.add(parameter.type() + " " + parameter.name());
            if (PASSED_UNCHANGED.contains(parameter.type()) || parameter.type().endsWith("[]")) {
                passed.add(parameter.name());
            } else {
                passed.add("addressOf(" + parameter.name() + ")");
                // Without a fence the garbage collector may free the memory during the call.
                fences.append("    java.lang.ref.Reference.reachabilityFence(")
                        .append(parameter.name())
                        .append(");\n");
            }
        }
        return String.format(
                Locale.ROOT,
                """
                public static %s %s(%s) throws %s {
                    %s result = %s(%s);
                %s    return result;
                }""",
                returnType,
                name,
                String.join(", ", declared),
                exception,
                returnType,
                name,
                String.join(", ", passed),
                fences);
    }
}
