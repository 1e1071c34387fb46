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
 * An {@code nccl.h}, parsed: ours, or that of any NCCL from 2.18 on and of VCCL. It holds what a program for Linux sees.
 *
 * <pre>{@code
 * Header header = Header.parse(Path.of("/usr/include/nccl.h"));
 * System.out.println(header.functions().get("ncclAllReduce"));
 * }</pre>
 *
 * Immutable.
 *
 * @param functions the prototypes by name, in the order of the header
 * @param macros the macros by name, function-like ones too
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
     * @param macros the macros by name, function-like ones too
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
     * Parses a header.
     *
     * @param file the file
     * @return what it declares
     * @throws IOException if it can't be read
     * @throws IllegalArgumentException if it isn't a C header as NCCL writes them; the message names the file
     */
    public static Header parse(Path file) throws IOException {
        try {
            return parse(Files.readString(file));
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException(file + ": " + e.getMessage(), e);
        }
    }

    /**
     * Parses a header.
     *
     * @param text the text of the header
     * @return what it declares
     * @throws IllegalArgumentException if it isn't a C header as NCCL writes them
     */
    public static Header parse(String text) {
        return HeaderParser.parse(text);
    }

    /**
     * This header with the types of another one, which it includes.
     *
     * @param included the other one
     * @return the functions and macros of this, and the types of both
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
     * The release that the header says it is of.
     *
     * @return the release; empty if the macros NCCL_MAJOR, NCCL_MINOR and NCCL_PATCH don't tell it
     */
    public Optional<Release> release() {
        return Release.of(text("NCCL_MAJOR") + "." + text("NCCL_MINOR") + "." + text("NCCL_PATCH"));
    }

    private String text(String macro) {
        return macros.containsKey(macro) ? macros.get(macro).text() : "";
    }

    /**
     * The macros that initialise a structure: brace lists that begin with its size.
     *
     * @return the typedef name of the structure by the name of the macro, in the order of the header
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
     * Since when a function exists, as its doc comment says. A {@code pnccl} twin shares the tag of its function.
     *
     * @param function the name
     * @return for example {@code NCCL 2.3.5} or {@code VCCL a2av_base}; empty if this header doesn't say
     */
    public Optional<String> since(String function) {
        Function found = functions.get(function);
        if (found != null && !found.since().isEmpty()) {
            return Optional.of(found.since());
        }
        return function.startsWith("pnccl") ? since(function.substring(1)) : Optional.empty();
    }
}
