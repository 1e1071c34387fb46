package io.github.nccl4j.header;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * Writes the files that the native code and the preset need about the header of the build.
 *
 * <ul>
 *   <li>{@code nccl_functions.inc}: a line {@code NCCL4J_FUNCTION(name, "release")} per function.
 *   <li>{@code nccl_structs.inc}: a line {@code NCCL4J_STRUCT(type, initializer)} per structure.
 *   <li>{@code nccl_redirect.inc}: macros that redirect each function to its slot in the symbol table, and each structure to a
 *       type whose constructor initializes it.
 *   <li>{@code nccl_rules.txt}: the rules of {@link JavaForms} for the preset.
 * </ul>
 *
 * <p>Functions with types that have no counterpart in Java, as newer releases may add, are not bound; the program prints them.
 */
public final class SymbolList {
    /** Functions with two signatures under one name; the native code redirects them itself. */
    private static final List<String> OVERLOADED = List.of("ncclAlltoAllv", "pncclAlltoAllv");

    private static final String UNKNOWN = "an unknown release";

    private final Header header;
    private final Header reference;

    /**
     * Creates a list.
     *
     * @param header the header of the build
     * @param reference our header, whose comments name the release that added each function
     */
    public SymbolList(Header header, Header reference) {
        this.header = header;
        this.reference = reference;
    }

    /**
     * Writes the files. Usage: {@code --header FILE --reference FILE --output DIR}.
     *
     * @param args the command line
     * @throws IOException if a file can't be read or written
     */
    public static void main(String... args) throws IOException {
        Arguments arguments = new Arguments("SymbolList --header FILE --reference FILE --output DIR", args);
        Path output = arguments.path("output");
        Header header = Header.parse(arguments.path("header"));
        SymbolList list = new SymbolList(header, Header.parse(arguments.path("reference")));
        Files.createDirectories(output);
        GeneratedFile.write(output.resolve("nccl_functions.inc"), list.functions());
        GeneratedFile.write(output.resolve("nccl_structs.inc"), list.structs());
        GeneratedFile.write(output.resolve("nccl_redirect.inc"), list.redirections());
        JavaForms forms = new JavaForms(header);
        GeneratedFile.write(output.resolve("nccl_rules.txt"), forms.rules());
        forms.unbound().values().forEach(reason -> System.out.println("not bound: " + reason));
    }

    /**
     * Returns the names of all functions of the header, and of the all-to-all-v even if the header lacks it.
     *
     * @return the names, in the order of the header
     */
    public Set<String> names() {
        Set<String> names = new LinkedHashSet<>(header.functions().keySet());
        names.addAll(OVERLOADED);
        return names;
    }

    /**
     * Returns the text of {@code nccl_functions.inc}.
     *
     * @return one line per function
     */
    public String functions() {
        StringBuilder text = new StringBuilder();
        for (String name : names()) {
            String since = reference.since(name).orElse(UNKNOWN);
            text.append(String.format(Locale.ROOT, "NCCL4J_FUNCTION(%s, \"%s\")%n", name, since));
        }
        return text.toString();
    }

    /**
     * Returns the text of {@code nccl_structs.inc}. Structures without an initializer in the header are set to zero, so that
     * their pointers are defined.
     *
     * @return one line per structure
     */
    public String structs() {
        Map<String, String> initializers = new LinkedHashMap<>();
        structNames().forEach(type -> initializers.put(type, "{}"));
        header.initializers().forEach((initializer, type) -> initializers.put(type, initializer));
        StringBuilder text = new StringBuilder();
        initializers.forEach((type, initializer) ->
                text.append(String.format(Locale.ROOT, "NCCL4J_STRUCT(%s, %s)%n", type, initializer)));
        return text.toString();
    }

    /** All structures except ncclUniqueId, which is passed by value. */
    private List<String> structNames() {
        return header.structs().keySet().stream()
                .filter(name -> !name.equals("ncclUniqueId"))
                .toList();
    }

    /**
     * Returns the text of {@code nccl_redirect.inc}. Undefines each name first: some headers define empty macros.
     *
     * @return two lines per function, and one per structure
     */
    public String redirections() {
        StringBuilder text = new StringBuilder();
        for (String name : names()) {
            if (!OVERLOADED.contains(name)) {
                text.append(
                        String.format(Locale.ROOT, "#undef %s%n#define %s (NCCL4J_SYMBOL(%s))%n", name, name, name));
            }
        }
        for (String type : structNames()) {
            text.append(String.format(Locale.ROOT, "#define %s nccl4j::Initialized_%s%n", type, type));
        }
        return text.toString();
    }
}
