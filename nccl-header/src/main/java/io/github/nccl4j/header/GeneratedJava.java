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
 * Finishes the class that JavaCPP generates, in two ways that its settings have no words for.
 *
 * <p>Every NCCL function gets a {@code throws} clause: JavaCPP takes from it the class of the exception that native code
 * throws.
 *
 * <p>A method that takes a {@code Pointer} for {@code void*} becomes a Java method that calls its raw-address form.
 * JavaCPP's native code would add the position of such a pointer as bytes, whatever the size of its elements: a wrong
 * address, and no error. It is faster, too, by a JNI field access for each parameter.
 *
 * <p>Every function of the headers must have its overloads, as {@link JavaForms} tells them, and no others; but for those
 * that {@link SymbolList} has left out.
 *
 * <p>Running it twice changes nothing more.
 */
public final class GeneratedJava {
    /** A native method up to its semicolon; its name is the first word before a parenthesis that is no annotation. */
    private static final Pattern NATIVE = Pattern.compile("public static native ((?:\"[^\"]*\"|[^\";])*?)"
            + "(?<![@\\w.])(\\w+)\\s*\\(((?:\"[^\"]*\"|[^\";])*)\\)(?: throws [\\w.]+)?;");

    /** A method that calls its raw-address form. */
    private static final Pattern FINISHED =
            Pattern.compile("public static (?!native)\\w+ (p?nccl\\w+)\\(([^)]*)\\) throws");

    private static final String NONE = "none";

    private static final Pattern NCCL_NAME = Pattern.compile("p?nccl(?!4j)[A-Z0-9]\\w*");
    private static final Pattern ANNOTATION = Pattern.compile("@\\w+(?:\\([^)]*\\))?\\s*");
    private static final Set<String> PASSED_AS_THEY_ARE =
            Set.of("byte", "short", "int", "long", "ByteBuffer", "ShortBuffer", "IntBuffer", "LongBuffer");

    private GeneratedJava() {}

    /**
     * Runs it: {@code --source FILE --exception CLASS --header FILE --includes FILE --overloads FILE}. The second header
     * has types that the first one names, the third has further prototypes of functions; either may be {@code none}.
     *
     * @param args the command line
     * @throws IOException if the file can't be read or written
     * @throws IllegalStateException if the file lacks a function of the headers, or has another one
     */
    public static void main(String... args) throws IOException {
        Arguments arguments = new Arguments(
                "GeneratedJava --source FILE.java --exception CLASS --header FILE --includes FILE|none"
                        + " --overloads FILE|none",
                args);
        Path source = arguments.path("source");
        Header header = Header.parse(arguments.path("header"));
        Header included = Header.parse(text(arguments, "includes"));
        JavaForms forms = new JavaForms(header, header.including(included));
        List<Function> functions = new ArrayList<>(header.functions().values());
        functions.removeIf(function -> forms.leftOut().containsKey(function.name()));
        functions.addAll(HeaderParser.prototypes(text(arguments, "overloads")));
        try {
            String finished = finish(Files.readString(source), arguments.text("exception"));
            requireFunctions(finished, forms, functions);
            GeneratedFile.write(source, finished);
        } catch (IllegalArgumentException e) {
            throw new IllegalStateException(source + ": " + e.getMessage(), e);
        }
    }

    private static String text(Arguments arguments, String name) throws IOException {
        return arguments.text(name).equals(NONE) ? "" : Files.readString(arguments.path(name));
    }

    /**
     * Finishes a generated class.
     *
     * @param source the text of the class
     * @param exception the name of the exception class
     * @return the finished text
     * @throws IllegalArgumentException if there is no NCCL function in it
     */
    public static String finish(String source, String exception) {
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
                        ? callOfRawForm(plain(matcher.group(1)), name, parameters, exception)
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

    /** Throws an exception that names the overloads that a class lacks, and those that it should not have. */
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
        FINISHED.matcher(source).results().forEach(method -> found.add(signature(method.group(1), method.group(2))));
        found.removeIf(signature -> !NCCL_NAME
                .matcher(signature.substring(0, signature.indexOf('(')))
                .matches());
        Set<String> missing = new TreeSet<>(expected);
        missing.removeAll(found);
        Set<String> surplus = new TreeSet<>(found);
        surplus.removeAll(expected);
        if (!missing.isEmpty() || !surplus.isEmpty()) {
            throw new IllegalArgumentException("the functions of the header have other forms in Java: missing "
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

    /** Java without annotations and line breaks. */
    private static String plain(String java) {
        return ANNOTATION.matcher(java).replaceAll("").replaceAll("\\s+", " ").strip();
    }

    private static String callOfRawForm(String returnType, String name, List<Parameter> parameters, String exception) {
        List<String> declared = new ArrayList<>();
        List<String> passed = new ArrayList<>();
        StringBuilder kept = new StringBuilder();
        for (Parameter parameter : parameters) {
            declared.add(parameter.type() + " " + parameter.name());
            if (PASSED_AS_THEY_ARE.contains(parameter.type())
                    || parameter.type().endsWith("[]")) {
                passed.add(parameter.name());
            } else {
                passed.add("addressOf(" + parameter.name() + ")");
                // The address alone would not keep the collector from freeing the memory during the call.
                kept.append("    java.lang.ref.Reference.reachabilityFence(")
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
                kept);
    }
}
