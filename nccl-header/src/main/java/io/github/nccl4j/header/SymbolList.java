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
import java.util.stream.Stream;

/**
 * Writes the files that the native code and the presets need about the headers of the build.
 *
 * <ul>
 *   <li>{@code nccl_functions.inc}: a line {@code NCCL4J_FUNCTION(name, "release")} per function.
 *   <li>{@code nccl_structs.inc}: a line {@code NCCL4J_STRUCT(type, initializer)} per structure.
 *   <li>{@code nccl_redirect.inc}: macros that redirect each function to its slot in the symbol table, and each structure to a
 *       type whose constructor initializes it.
 *   <li>{@code nccl_rules.txt} and {@code nccl_device_rules.txt}: the rules of {@link JavaForms} for the presets.
 *   <li>{@code nccl_headers.inc}: includes the headers.
 * </ul>
 *
 * <p>Functions with types that have no counterpart in Java, as newer releases may add, are not bound; the program prints them.
 */
public final class SymbolList {
    /** Functions with two signatures under one name; the native code redirects them itself. */
    private static final List<String> OVERLOADED = List.of("ncclAlltoAllv", "pncclAlltoAllv");

    private static final String UNKNOWN = "an unknown release";

    /** The value of {@code --device} for a build without the device API. */
    private static final String NO_DEVICE = "none";

    private final Header header;
    private final Header reference;
    private final Header device;

    /** The functions that the native code redirects itself. */
    private final List<String> overloaded;

    /**
     * Creates a list.
     *
     * @param header the header of the build
     * @param reference our header, whose comments name the release that added each function
     */
    public SymbolList(Header header, Header reference) {
        this(header, reference, Header.parse(""));
    }

    /**
     * Creates a list.
     *
     * @param header the header of the build
     * @param reference our header, whose comments name the release that added each function
     * @param device our header of the device API's host functions, or an empty header
     */
    public SymbolList(Header header, Header reference, Header device) {
        this(header, reference, device, OVERLOADED);
    }

    private SymbolList(Header header, Header reference, Header device, List<String> overloaded) {
        this.header = header;
        this.reference = reference;
        this.device = device;
        this.overloaded = overloaded;
    }

    /**
     * Creates the list of a library beside libnccl.
     *
     * @param header the header of the library
     * @return the list
     */
    static SymbolList ofExtension(Header header) {
        return new SymbolList(header, header, Header.parse(""), List.of());
    }

    /**
     * Writes the files. Usage: {@code --header FILE --reference FILE --device FILE --output DIR}; the header of the device API may
     * be {@code none}.
     *
     * @param args the command line
     * @throws IOException if a file can't be read or written
     */
    public static void main(String... args) throws IOException {
        Arguments arguments =
                new Arguments("SymbolList --header FILE --reference FILE --device FILE|none --output DIR", args);
        Path output = arguments.path("output");
        Header header = Header.parse(arguments.path("header"));
        boolean hasDevice = !arguments.text("device").equals(NO_DEVICE);
        Header device = hasDevice ? Header.parse(arguments.path("device")) : Header.parse("");
        SymbolList list = new SymbolList(header, Header.parse(arguments.path("reference")), device);
        Files.createDirectories(output);
        GeneratedFile.write(output.resolve("nccl_headers.inc"), headers(hasDevice));
        GeneratedFile.write(output.resolve("nccl_functions.inc"), list.functions());
        GeneratedFile.write(output.resolve("nccl_structs.inc"), list.structs());
        GeneratedFile.write(output.resolve("nccl_redirect.inc"), list.redirections());
        JavaForms forms = new JavaForms(header);
        GeneratedFile.write(output.resolve("nccl_rules.txt"), forms.rules());
        JavaForms deviceForms = new JavaForms(device, device.including(header));
        GeneratedFile.write(output.resolve("nccl_device_rules.txt"), deviceForms.rules());
        for (JavaForms some : List.of(forms, deviceForms)) {
            some.unbound().values().forEach(reason -> System.out.println("not bound: " + reason));
        }
    }

    private static String headers(boolean hasDevice) {
        return "#include <nccl.h>\n" + (hasDevice ? "#include <nccl_device.h>\n" : "");
    }

    /**
     * Returns the names of all functions of the headers, and of the all-to-all-v even if the headers lack it.
     *
     * @return the names, in the order of the header
     */
    public Set<String> names() {
        Set<String> names = new LinkedHashSet<>(header.functions().keySet());
        names.addAll(overloaded);
        names.addAll(device.functions().keySet());
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
            String since = reference.since(name).or(() -> device.since(name)).orElse(UNKNOWN);
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
        for (Header each : List.of(header, device)) {
            each.initializers().forEach((initializer, type) -> initializers.put(type, initializer));
        }
        StringBuilder text = new StringBuilder();
        initializers.forEach((type, initializer) ->
                text.append(String.format(Locale.ROOT, "NCCL4J_STRUCT(%s, %s)%n", type, initializer)));
        return text.toString();
    }

    /** All structures except ncclUniqueId, whose bytes only the library defines. */
    private List<String> structNames() {
        return Stream.of(header, device)
                .flatMap(each -> each.structs().keySet().stream())
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
            if (!overloaded.contains(name)) {
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
