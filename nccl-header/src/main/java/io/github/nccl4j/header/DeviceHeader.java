package io.github.nccl4j.header;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Reads the host part of an installation's {@code nccl_device.h}, which is C++ with templates and device code in many files.
 *
 * <p>A compiler preprocesses the files. This class extracts the declarations of host functions and of the types in our header,
 * rewrites them as C, and parses them like {@code nccl.h}.
 */
final class DeviceHeader {
    /** The files that declare host functions and their types: the first since 2.28.3, the second since 2.31.2. */
    static final String INCLUDES = """
            #include <stddef.h>
            #include <stdint.h>
            #define __host__
            #define __device__
            #define __forceinline__ inline
            #include "nccl_device/impl/comm__types.h"
            #if __has_include("nccl_device/host.h")
            #include "nccl_device/host.h"
            #endif
            """;

    private static final Pattern LINE_MARKER = Pattern.compile("# \\d+ \"([^\"]*)\".*");
    private static final Pattern DEFINE = Pattern.compile("#define (\\w+)\\b.*");
    private static final Pattern CONST_BEHIND = Pattern.compile("^(\\w+) const\\*");
    private static final String FOLDER = "nccl_device";

    private final Header ours;
    private final List<List<Token>> declarations = new ArrayList<>();
    private final StringBuilder macros = new StringBuilder();

    /** The last word of the type that a typedef denotes, by the name of the typedef. */
    private final Map<String, String> typedefs = new HashMap<>();

    private DeviceHeader(Header ours) {
        this.ours = ours;
    }

    /**
     * Parses the output of a preprocessor.
     *
     * @param text the preprocessed text, with line markers and definitions
     * @param folder the folder of the installation's headers
     * @param ours our header, which determines the types and macros to read
     * @return the host functions, and these types and macros
     */
    static Header parse(String text, Path folder, Header ours) {
        DeviceHeader header = new DeviceHeader(ours);
        header.split(header.ownText(text, folder.toAbsolutePath().normalize().resolve(FOLDER)));
        header.readTypedefs();
        return plain(Header.parse(header.macros + header.cText()), ours);
    }

    /** The text of the files in a folder, without directives; collects definitions of macros in our header. */
    private String ownText(String text, Path folder) {
        StringBuilder own = new StringBuilder();
        boolean reading = false;
        for (String line : text.split("\n")) {
            Matcher marker = LINE_MARKER.matcher(line);
            Matcher define = DEFINE.matcher(line);
            if (marker.matches()) {
                reading = Path.of(marker.group(1)).toAbsolutePath().normalize().startsWith(folder);
            } else if (define.matches()) {
                if (reading && ours.macros().containsKey(define.group(1))) {
                    macros.append(line).append('\n');
                }
            } else if (reading && !line.startsWith("#")) {
                own.append(line).append('\n');
            }
        }
        return own.toString();
    }

    /** Splits C++ into declarations: each ends with its semicolon or with the body of a function. */
    private void split(String text) {
        List<Token> code = new ArrayList<>();
        int depth = 0;
        for (Token token : Lexer.tokens(text)) {
            if (token.kind() == Token.Kind.COMMENT || token.kind() == Token.Kind.NEWLINE) {
                continue;
            }
            code.add(token);
            depth += token.is("{") || token.is("(") ? 1 : token.is("}") || token.is(")") ? -1 : 0;
            boolean type = isType(code);
            if (depth == 0 && (token.is(";") || (token.is("}") && !type))) {
                declarations.add(List.copyOf(code));
                code.clear();
            }
        }
    }

    /** True for a declaration that continues after its closing brace. */
    private static boolean isType(List<Token> code) {
        return List.of("struct", "typedef", "enum", "union")
                .contains(code.get(0).text());
    }

    private void readTypedefs() {
        for (List<Token> code : declarations) {
            if (code.get(0).is("typedef") && code.stream().noneMatch(token -> token.is("{") || token.is("*"))) {
                typedefs.put(
                        code.get(code.size() - 2).text(),
                        code.get(code.size() - 3).text());
            }
        }
    }

    /** The declarations as C, with the type names of our header. */
    private String cText() {
        StringBuilder text = new StringBuilder();
        for (String name : ours.aliases().keySet()) {
            if (typedefs.containsKey(name)) {
                text.append("typedef ")
                        .append(resolved(name))
                        .append(' ')
                        .append(name)
                        .append(";\n");
            }
        }
        for (List<Token> code : declarations) {
            text.append(declaration(code));
        }
        return text.toString();
    }

    private String resolved(String name) {
        String type = typedefs.get(name);
        return typedefs.containsKey(type) ? resolved(type) : type;
    }

    private String declaration(List<Token> code) {
        int brace = indexOf(code, "{");
        if (code.get(0).is("extern")
                && brace < 0
                && code.stream().noneMatch(token -> token.is("inline") || token.is("&"))) {
            return joined(withoutDefaults(code.subList(2, code.size())));
        } else if (code.get(0).is("struct") && brace == 2) {
            String tag = code.get(1).text();
            return nameOf(tag)
                    .map(name -> "typedef struct " + tag + joined(code.subList(brace, code.size() - 1)) + name + ";\n")
                    .orElse("");
        } else if (code.get(0).is("typedef") && brace > 0) {
            String name = code.get(code.size() - 2).text();
            boolean known = ours.enums().containsKey(name) || ours.structs().containsKey(name);
            // Omit the underlying type of an enumeration, which C lacks.
            int colon = indexOf(code.subList(0, brace), ":");
            int end = colon < 0 ? brace : colon;
            List<Token> head = code.subList(0, end);
            return known
                    ? head.stream().map(Token::text).collect(Collectors.joining(" "))
                            + joined(code.subList(brace, code.size()))
                    : "";
        }
        return "";
    }

    private static List<Token> withoutDefaults(List<Token> code) {
        List<Token> rest = new ArrayList<>();
        boolean isDefault = false;
        for (Token token : code) {
            isDefault = token.is("=") || (isDefault && !token.is(",") && !token.is(")"));
            if (!isDefault) {
                rest.add(token);
            }
        }
        return rest;
    }

    private static int indexOf(List<Token> code, String mark) {
        for (int i = 0; i < code.size(); i++) {
            if (code.get(i).is(mark)) {
                return i;
            }
        }
        return -1;
    }

    /** The typedef name of a structure in our header. */
    private Optional<String> nameOf(String tag) {
        return ours.structs().values().stream()
                .filter(struct -> struct.tag().equals(tag))
                .map(StructType::name)
                .findFirst();
    }

    /** Joins tokens, with the type names of our header. */
    private String joined(List<Token> code) {
        Map<String, String> names = new HashMap<>();
        typedefs.forEach((name, type) -> {
            if (ours.structs().containsKey(name) || ours.aliases().containsKey(name)) {
                names.put(type.startsWith("nccl") ? type : name, name);
            }
        });
        return code.stream()
                .map(token -> names.getOrDefault(token.text(), token.text()))
                .collect(Collectors.joining(" ", "", "\n"));
    }

    /**
     * Normalizes the spelling of types: without {@code struct} if there is a typedef, and with {@code const} in front.
     */
    static Header plain(Header header, Header ours) {
        Map<String, String> names = ours.structs().values().stream()
                .filter(struct -> !struct.tag().isEmpty())
                .collect(Collectors.toMap(StructType::tag, StructType::name));
        UnaryOperator<String> spelling = type -> {
            String one = CONST_BEHIND.matcher(type).replaceAll("const $1*");
            for (Map.Entry<String, String> name : names.entrySet()) {
                one = one.replaceAll("(struct )?\\b" + name.getKey() + "\\b", name.getValue());
            }
            return one.replace("struct ", "");
        };
        Map<String, Function> functions = new LinkedHashMap<>();
        header.functions().values().forEach(function -> {
            List<Parameter> parameters = function.parameters().stream()
                    .map(parameter -> new Parameter(spelling.apply(parameter.type()), parameter.name()))
                    .toList();
            functions.put(
                    function.name(),
                    new Function(spelling.apply(function.returnType()), function.name(), parameters, function.since()));
        });
        Map<String, StructType> structs = new LinkedHashMap<>();
        header.structs().values().forEach(struct -> {
            List<Field> fields = struct.fields().stream()
                    .map(field -> new Field(spelling.apply(field.type()), field.name(), field.array(), field.since()))
                    .toList();
            structs.put(struct.name(), new StructType(struct.tag(), struct.name(), fields, struct.since()));
        });
        return new Header(functions, header.macros(), header.enums(), structs, header.aliases());
    }

    /** Removes functions and structures from a header. */
    static Header without(Header header, Collection<String> names) {
        Map<String, Function> functions = new LinkedHashMap<>(header.functions());
        functions.keySet().removeAll(names);
        Map<String, StructType> structs = new LinkedHashMap<>(header.structs());
        structs.keySet().removeAll(names);
        return new Header(functions, header.macros(), header.enums(), structs, header.aliases());
    }
}
