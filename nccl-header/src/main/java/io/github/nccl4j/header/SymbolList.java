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
 * Writes the list of functions that the native code needs, from the headers that it is built against:
 * {@code nccl_functions.inc}, one line {@code NCCL4J_FUNCTION(name, "release")} per function, and
 * {@code nccl_redirect.inc}, which sends every call of a function to its slot of the table, and every structure to a type
 * whose constructor initializes it; {@code nccl_structs.inc} lists these, {@code NCCL4J_STRUCT(type, initializer)}. Beside
 * them {@code nccl_rules.txt} and {@code nccl_device_rules.txt}, what the presets must know of the headers, and
 * {@code nccl_headers.inc}, which includes these. A function with a type that has no counterpart in
 * Java is not bound, which the program prints: a release to come may have such.
 */
public final class SymbolList {
    /** The functions that have two forms under one name, and so their own redirection. */
    private static final List<String> OVERLOADED = List.of("ncclAlltoAllv", "pncclAlltoAllv");

    private static final String UNKNOWN = "an unknown release";

    /** In place of the header of the device API, where a build goes without. */
    private static final String NO_DEVICE = "none";

    private final Header header;
    private final Header reference;
    private final Header device;

    /**
     * A list.
     *
     * @param header the header that the build compiles against
     * @param reference our header, whose comments say which release added a function
     */
    public SymbolList(Header header, Header reference) {
        this(header, reference, Header.parse(""));
    }

    /**
     * A list.
     *
     * @param header the header that the build compiles against
     * @param reference our header, whose comments say which release added a function
     * @param device our header of the device API's host functions, or an empty one
     */
    public SymbolList(Header header, Header reference, Header device) {
        this.header = header;
        this.reference = reference;
        this.device = device;
    }

    /**
     * Runs it: {@code --header FILE --reference FILE --device FILE --output DIR}. Without a header of the device API, that
     * is {@code none}.
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
            some.leftOut().values().forEach(reason -> System.out.println("not bound: " + reason));
        }
    }

    private static String headers(boolean hasDevice) {
        return "#include <nccl.h>\n" + (hasDevice ? "#include <nccl_device.h>\n" : "");
    }

    /**
     * The names: all functions of the headers, and the all-to-all-v whether or not they have it.
     *
     * @return the names, in the order of the header
     */
    public Set<String> names() {
        Set<String> names = new LinkedHashSet<>(header.functions().keySet());
        names.addAll(OVERLOADED);
        names.addAll(device.functions().keySet());
        return names;
    }

    /**
     * The text of {@code nccl_functions.inc}.
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
     * The text of {@code nccl_structs.inc}. A structure for which the header has no initializer gets zeros: pointers in it
     * must not be what the memory held before.
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

    /** All structures but the unique id, whose bytes are the library's. */
    private List<String> structNames() {
        return Stream.of(header, device)
                .flatMap(each -> each.structs().keySet().stream())
                .filter(name -> !name.equals("ncclUniqueId"))
                .toList();
    }

    /**
     * The text of {@code nccl_redirect.inc}. A name may be a macro already: some headers have empty ones.
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
