package io.github.nccl4j.header;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Determines the Java overloads of the functions of a header.
 *
 * <p>JavaCPP generates one overload per alternative of a type, using alternative {@code i} for all parameters in overload {@code
 * i}; a type with fewer alternatives starts over. This class writes the declarations that JavaCPP can't generate that way:
 * functions with parameters of two stars, and functions that return a string.
 */
final class JavaForms {
    private static final String LONG = "long";

    private static final String UNIQUE_ID = "ncclUniqueId";
    private static final String POINTER = "Pointer";
    private static final String POINTER_TO_POINTER = "PointerPointer";

    /** C's number types: the Java type, and the prefix of the names of JavaCPP's pointer and of Java's buffer. */
    private static final Map<String, List<String>> NUMBERS = new HashMap<>();

    static {
        number("byte", "Byte", "int8_t", "uint8_t");
        number("short", "Short", "int16_t", "uint16_t");
        number("int", "Int", "int", "unsigned int", "unsigned", "int32_t", "uint32_t");
        number("long", "Long", "int64_t", "uint64_t");
        number("float", "Float", "float");
        number("double", "Double", "double");
    }

    private static final Map<String, String> CUDA_HANDLES =
            Map.of("cudaStream_t", "CUstream_st", "cudaEvent_t", "CUevent_st");

    /** The header whose functions are bound. */
    private final Header header;

    /** The header with the types of the headers that it includes. */
    private final Header known;

    JavaForms(Header header) {
        this(header, header);
    }

    /**
     * Creates the forms of a header that includes other headers.
     *
     * @param header the header
     * @param known the header with the types of the included headers
     */
    JavaForms(Header header, Header known) {
        this.header = header;
        this.known = known;
    }

    private static void number(String java, String name, String... types) {
        for (String type : types) {
            NUMBERS.put(type, List.of(java, name));
        }
    }

    /** The rules that the preset passes to JavaCPP's parser: one per line, with fields separated by tabs. */
    String rules() {
        List<String> rules = new ArrayList<>();
        header.aliases().values().stream()
                .filter(alias -> !CUDA_HANDLES.containsKey(alias.name()))
                .forEach(alias -> {
                    String java = classOf(alias);
                    if (isHandle(alias)) {
                        rules.add(String.join("\t", "handle", alias.name(), java));
                    } else if (isOpaque(alias)) {
                        rules.add(String.join("\t", "opaque", alias.name(), java));
                    }
                    String tag = tag(alias);
                    if (!tag.isEmpty() && !tag.equals(java)) {
                        rules.add(String.join("\t", "class", tag, java));
                    }
                });
        header.structs().keySet().stream()
                .filter(name -> !name.equals(UNIQUE_ID))
                .forEach(name -> rules.add(String.join("\t", "struct", name, name)));
        header.structs().values().stream()
                .filter(struct -> !struct.tag().isEmpty() && !struct.tag().equals(struct.name()))
                .forEach(struct -> rules.add(String.join("\t", "struct", struct.tag(), struct.name())));
        header.enums().keySet().stream().filter(name -> !name.isEmpty()).forEach(name -> rules.add("enum\t" + name));
        header.aliases().keySet().stream()
                .filter(name -> !numberOf(name).equals(name))
                .forEach(name -> rules.add(String.join("\t", "number", name, numberOf(name))));
        // Constructors, such as new ncclConfig_t(), replace the initializer macros in Java.
        header.initializers().keySet().forEach(name -> rules.add("skip\t" + name));
        unbound().keySet().forEach(name -> rules.add("skip\t" + name));
        bound().filter(this::isWritten).forEach(function -> declarations(function)
                .forEach(declaration -> rules.add(String.join("\t", "function", function.name(), declaration))));
        return rules.stream().map(rule -> rule + "\n").collect(Collectors.joining());
    }

    /** The functions that are not bound, because a type has no known counterpart in Java, with the reasons. */
    Map<String, String> unbound() {
        Map<String, String> reasons = new LinkedHashMap<>();
        header.functions().values().forEach(function -> {
            try {
                of(function);
            } catch (IllegalArgumentException e) {
                reasons.put(function.name(), e.getMessage());
            }
        });
        return reasons;
    }

    private Stream<Function> bound() {
        Set<String> unbound = unbound().keySet();
        return header.functions().values().stream().filter(function -> !unbound.contains(function.name()));
    }

    /** The parameter types of each overload, without annotations. */
    Set<List<String>> of(Function function) {
        List<List<String>> types = function.parameters().stream()
                .map(parameter -> types(function, parameter.type()))
                .toList();
        if (isWritten(function)) {
            return writtenForms(types);
        }
        int forms = types.stream().mapToInt(List::size).max().orElse(1);
        return IntStream.range(0, forms)
                .mapToObj(form -> types.stream()
                        .map(alternatives -> alternatives.get(form % alternatives.size()))
                        .toList())
                .collect(Collectors.toCollection(LinkedHashSet::new));
    }

    /** The Pointer form and the raw-address form; a single form if they are equal. */
    private static Set<List<String>> writtenForms(List<List<String>> types) {
        // Prefer String and arrays. But a method with a Pointer will call its raw-address form, and an array has no
        // address.
        boolean addresses =
                types.stream().anyMatch(alternatives -> alternatives.get(0).equals(POINTER));
        Set<List<String>> forms = new LinkedHashSet<>();
        forms.add(types.stream()
                .map(alternatives -> addresses ? alternatives.get(0) : alternatives.get(alternatives.size() / 3 * 2))
                .toList());
        forms.add(types.stream()
                .map(alternatives -> alternatives.get(alternatives.size() > 1 ? 1 : 0))
                .toList());
        return forms;
    }

    /** True if JavaCPP can't generate the overloads of a function, so that this class writes its declarations. */
    private boolean isWritten(Function function) {
        return isString(function.returnType())
                || isValue(function.returnType())
                || function.parameters().stream()
                        .anyMatch(parameter -> stars(parameter.type()) > 1 || isValue(parameter.type()));
    }

    /** True for a structure that is passed by value, except the unique id, which has its own rules. */
    private boolean isValue(String type) {
        return stars(type) == 0 && !type.equals(UNIQUE_ID) && known.structs().containsKey(base(type));
    }

    private List<String> declarations(Function function) {
        String result = isString(function.returnType())
                ? "String"
                : function.returnType().equals("void")
                        ? "void"
                        : annotated(
                                function.returnType(),
                                types(function, function.returnType()).get(0));
        return of(function).stream()
                .map(form -> IntStream.range(0, form.size())
                        .mapToObj(i -> {
                            Parameter parameter = function.parameters().get(i);
                            String name = parameter.name().isEmpty() ? "arg" + i : parameter.name();
                            return annotated(parameter.type(), form.get(i)) + " " + name;
                        })
                        .collect(Collectors.joining(
                                ", ", "public static native " + result + " " + function.name() + "(", ");")))
                .toList();
    }

    private String annotated(String type, String java) {
        if (type.equals(UNIQUE_ID)) {
            return java.equals(LONG) ? "@Cast(\"nccl4j::UniqueIdAt\") long" : "@ByVal " + java;
        } else if (isValue(type)) {
            return java.equals(LONG) ? "@Cast(\"nccl4j::ValueAt<" + type + ">\") long" : "@ByVal " + java;
        }
        boolean plain = type.equals(java)
                || java.equals(POINTER)
                || java.equals("String")
                || (stars(type) == 0 && aliasOf(base(type)) != null && !java.equals(LONG));
        return plain ? java : "@Cast(\"" + castOf(type) + "\") " + java;
    }

    /** The type with the tag of a structure instead of its name, which denotes a type of nccl4j in the native code. */
    private String castOf(String type) {
        StructType struct = known.structs().get(base(type));
        return stars(type) > 1 && struct != null && !struct.tag().isEmpty()
                ? type.replace(struct.name(), struct.tag())
                : type;
    }

    /** The alternatives of a type: those of the Pointer form at even indices, those of the raw-address form at odd ones. */
    private List<String> types(Function function, String type) {
        String base = numberOf(base(type));
        int stars = stars(type);
        Alias alias = aliasOf(base);
        if (alias != null && isHandle(alias)) {
            return stars == 0 ? List.of(classOf(alias), LONG) : List.of(POINTER_TO_POINTER, LONG);
        } else if (stars > 1 && !type.contains("(")) {
            return List.of(POINTER_TO_POINTER, LONG);
        } else if (alias != null && isOpaque(alias) && stars == 1) {
            return List.of(classOf(alias), LONG);
        } else if (base.equals("void") && stars == 1) {
            return List.of(POINTER, LONG);
        } else if (isString(type)) {
            return List.of("BytePointer", LONG, "String", "String");
        } else if (base.equals("size_t")) {
            return stars == 0 ? List.of(LONG) : List.of("SizeTPointer", LONG);
        } else if (known.enums().containsKey(base) || NUMBERS.containsKey(base)) {
            List<String> number = NUMBERS.get(NUMBERS.containsKey(base) ? base : "int");
            String java = number.get(0);
            String buffer = number.get(1) + "Buffer";
            return stars == 0
                    ? List.of(java)
                    : List.of(number.get(1) + POINTER, LONG, buffer, buffer, java + "[]", java + "[]");
        } else if (known.structs().containsKey(base) && stars <= 1) {
            return List.of(base, LONG);
        }
        throw new IllegalArgumentException(function.name() + ": no Java type is known for " + type);
    }

    private static int stars(String type) {
        return (int) type.chars().filter(c -> c == '*').count();
    }

    private static boolean isString(String type) {
        return type.equals("const char*");
    }

    private static String base(String type) {
        return type.replace("const ", "").replace("*", "").replace(" const", "").strip();
    }

    private Alias aliasOf(String name) {
        return CUDA_HANDLES.containsKey(name)
                ? new Alias(name, "struct*", "")
                : known.aliases().get(name);
    }

    /** The number type that a typedef denotes, or the name itself if it is not such a typedef. */
    private String numberOf(String name) {
        Alias alias = known.aliases().get(name);
        return alias != null && NUMBERS.containsKey(alias.type()) ? alias.type() : name;
    }

    private static boolean isHandle(Alias alias) {
        return alias.type().equals("void*") || (alias.type().startsWith("struct") && stars(alias.type()) == 1);
    }

    private static boolean isOpaque(Alias alias) {
        return alias.type().startsWith("struct ") && stars(alias.type()) == 0;
    }

    private static String tag(Alias alias) {
        return alias.type().startsWith("struct ") ? base(alias.type()).substring("struct ".length()) : "";
    }

    /** The Java class of a handle: its name in C without the suffix {@code _t}. */
    private static String classOf(Alias alias) {
        if (alias.type().equals("void*")) {
            return POINTER;
        }
        String name = alias.name();
        return CUDA_HANDLES.getOrDefault(name, name.endsWith("_t") ? name.substring(0, name.length() - 2) : name);
    }
}
