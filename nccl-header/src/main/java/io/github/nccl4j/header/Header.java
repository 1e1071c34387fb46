package io.github.nccl4j.header;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A parsed {@code nccl.h}: ours, that of NCCL 2.18 or later, or that of VCCL. Contains the declarations for Linux.
 *
 * <pre>{@code
 * Header header = Header.parse(Path.of("/usr/include/nccl.h"));
 * System.out.println(header.functions().get("ncclAllReduce"));
 * }</pre>
 *
 * Immutable.
 *
 * @param functions the prototypes by name, in the order of the header
 * @param macros the macros by name, including function-like macros
 * @param enums the enumerations by typedef name
 * @param structs the structures with fields by typedef name
 * @param aliases the other typedefs by name
 */
public record Header(
        Map<String, Function> functions,
        Map<String, Macro> macros,
        Map<String, EnumType> enums,
        Map<String, StructType> structs,
        Map<String, Alias> aliases) {
    private static final Pattern INITIALIZER = Pattern.compile("\\{\\s*sizeof\\s*\\(\\s*(\\w+)\\s*\\)");

    /**
     * Copies the maps, keeping their order.
     *
     * @param functions the prototypes by name, in the order of the header
     * @param macros the macros by name, including function-like macros
     * @param enums the enumerations by typedef name
     * @param structs the structures with fields by typedef name
     * @param aliases the other typedefs by name
     */
    public Header {
        functions = copy(functions);
        macros = copy(macros);
        enums = copy(enums);
        structs = copy(structs);
        aliases = copy(aliases);
    }

    private static <T> Map<String, T> copy(Map<String, T> map) {
        return Collections.unmodifiableMap(new LinkedHashMap<>(map));
    }

    /**
     * Parses a file.
     *
     * @param file the file
     * @return the parsed header
     * @throws IOException if the file can't be read
     * @throws IllegalArgumentException if the file does not have the form of NCCL's headers; the message names the file
     */
    public static Header parse(Path file) throws IOException {
        try {
            return parse(Files.readString(file));
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException(file + ": " + e.getMessage(), e);
        }
    }

    /**
     * Parses a text.
     *
     * @param text the text of the header
     * @return the parsed header
     * @throws IllegalArgumentException if the text does not have the form of NCCL's headers
     */
    public static Header parse(String text) {
        return HeaderParser.parse(text);
    }

    /**
     * Returns this header with the types of a header that it includes.
     *
     * @param included the included header
     * @return a header with the functions and macros of this header and the types of both
     */
    public Header including(Header included) {
        return new Header(
                functions,
                macros,
                both(included.enums, enums),
                both(included.structs, structs),
                both(included.aliases, aliases));
    }

    private static <T> Map<String, T> both(Map<String, T> first, Map<String, T> second) {
        Map<String, T> all = new LinkedHashMap<>(first);
        all.putAll(second);
        return all;
    }

    /**
     * Returns the release of the header, as given by its macros NCCL_MAJOR, NCCL_MINOR and NCCL_PATCH.
     *
     * @return the release, or empty if the header lacks these macros or they are not numbers
     */
    public Optional<Release> release() {
        return Release.of(text("NCCL_MAJOR") + "." + text("NCCL_MINOR") + "." + text("NCCL_PATCH"));
    }

    private String text(String macro) {
        return macros.containsKey(macro) ? macros.get(macro).text() : "";
    }

    /**
     * Returns the macros that initialize a structure: brace lists that begin with its size.
     *
     * @return the typedef names of the structures by the names of the macros, in the order of the header
     */
    public Map<String, String> initializers() {
        Map<String, String> initializers = new LinkedHashMap<>();
        macros.forEach((name, macro) -> {
            Matcher size = INITIALIZER.matcher(macro.text());
            if (!macro.functionLike() && size.lookingAt() && structs.containsKey(size.group(1))) {
                initializers.put(name, size.group(1));
            }
        });
        return initializers;
    }

    /**
     * Returns the release that added a function, from its doc comment. A {@code pnccl} function without a tag has that of its
     * {@code nccl} counterpart.
     *
     * @param function the name of the function
     * @return the release, such as {@code NCCL 2.3.5} or {@code VCCL a2av_base}, or empty if there is no tag
     */
    public Optional<String> since(String function) {
        Function found = functions.get(function);
        if (found != null && !found.since().isEmpty()) {
            return Optional.of(found.since());
        }
        return function.startsWith("pnccl") ? since(function.substring(1)) : Optional.empty();
    }
}
