package io.github.nccl4j.presets;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.bytedeco.javacpp.annotation.Platform;
import org.bytedeco.javacpp.annotation.Properties;
import org.bytedeco.javacpp.tools.Info;
import org.bytedeco.javacpp.tools.InfoMap;
import org.bytedeco.javacpp.tools.InfoMapper;

/**
 * JavaCPP preset of {@code nccl.h}. JavaCPP generates the global class {@link io.github.nccl4j.global.nccl} with every
 * function and constant, and a class for each struct in {@code io.github.nccl4j.nccl}.
 *
 * <p>JavaCPP generates one Java overload for each alternative that is listed for a type. An overload uses the
 * alternative with the same index for all parameters of a function. Even indexes have the Pointer form, odd indexes
 * the raw-address form, in which every pointer and handle is a {@code long}. For a type with fewer alternatives the
 * index wraps around.
 *
 * <p>The preset does not inherit JavaCPP's CUDA presets, since the build would then need CUDA's headers. It is not
 * {@code @NoException}, since a missing library or function raises an exception.
 *
 * @since 0.1
 */
@Properties(
        value =
                @Platform(
                        value = {"linux-x86_64", "linux-arm64"},
                        compiler = "cpp17",
                        // Not the default jninccl, which is a library of JavaCPP Presets CUDA: JavaCPP loads only one
                        // library of a name.
                        library = "jninccl4j",
                        include = {"<nccl.h>", "nccl4j_library.h", "nccl4j_dlpack.h", "nccl4j_profiler.h", "alltoallv.h"
                        },
                        // Parsed, but not compiled: C permits only one declaration of ncclAlltoAllv.
                        exclude = "alltoallv.h"),
        target = "io.github.nccl4j.nccl",
        global = "io.github.nccl4j.global.nccl",
        helper = "io.github.nccl4j.library.LibraryBinding")
public class nccl implements InfoMapper {

    /** Creates the preset. Called by JavaCPP's parser. */
    public nccl() {}

    @Override
    public void map(InfoMap map) {
        sources(map);
        handles(map);
        uniqueId(map);
        derived(map);
        pointers(map);
        strings(map);
        constants(map);
    }

    private static void sources(InfoMap map) {
        // Compiled, but not parsed.
        map.put(new Info("nccl4j_library.h", "nccl4j_dlpack.h", "nccl4j_profiler.h").skip());
        // Since 2.30.3 some functions depend on this macro, which only NCCL's own build defines.
        map.put(new Info("NCCL_OS_LINUX").define(true));
        // Attributes and macros of NVIDIA's header that have no meaning in Java.
        map.put(new Info("__attribute__", "deprecated").annotations().skip());
        map.put(new Info("__cplusplus").define(true));
        map.put(new Info("defined(__CUDA_BF16_TYPES_EXIST__)").define(true));
    }

    /** Maps handles to classes and raw addresses. NCCL writes a new handle to a cell that the caller owns. */
    private static void handles(InfoMap map) {
        // The classes of JavaCPP Presets CUDA, so that programs can pass streams and events of those presets.
        map.put(new Info().javaText("import org.bytedeco.cuda.cudart.*;"));
        map.put(new Info("CUstream_st").skip());
        map.put(new Info("cudaStream_t")
                .valueTypes("CUstream_st", "@Cast(\"cudaStream_t\") long")
                .pointerTypes("@Cast(\"cudaStream_t*\") PointerPointer", "@Cast(\"cudaStream_t*\") long"));
        map.put(new Info("CUevent_st").skip());
        map.put(new Info("cudaEvent_t")
                .valueTypes("CUevent_st", "@Cast(\"cudaEvent_t\") long")
                .pointerTypes("@Cast(\"cudaEvent_t*\") PointerPointer", "@Cast(\"cudaEvent_t*\") long"));
    }

    private static void handle(InfoMap map, String type, String javaClass) {
        map.put(new Info(type)
                .valueTypes(javaClass, "@Cast(\"" + type + "\") long")
                // Not @ByPtrPtr: it passes the address of a local variable, and NCCL may write after the call returns.
                .pointerTypes("@Cast(\"" + type + "*\") PointerPointer", "@Cast(\"" + type + "*\") long"));
    }

    private static void uniqueId(InfoMap map) {
        map.put(new Info("ncclUniqueId")
                .valueTypes("@ByVal ncclUniqueId", "@Cast(\"nccl4j::UniqueIdAt\") long")
                .pointerTypes("ncclUniqueId", "@Cast(\"ncclUniqueId*\") long"));
    }

    private static void pointers(InfoMap map) {
        map.put(new Info("void").valueTypes("void").pointerTypes("Pointer", "@Cast(\"void*\") long"));
        map.put(new Info("const void")
                .valueTypes("void")
                .pointerTypes("@Const Pointer", "@Cast(\"const void*\") long"));
        for (String sign : new String[] {"", "u"}) {
            number(map, sign + "int8_t", "byte", "Byte");
            number(map, sign + "int16_t", "short", "Short");
            number(map, sign + "int32_t", "int", "Int");
            number(map, sign + "int64_t", "long", "Long");
        }
        number(map, "int", "int", "Int");
        number(map, "unsigned int", "int", "Int");
        number(map, "float", "float", "Float");
        number(map, "double", "double", "Double");
        // No arrays or buffers: VCCL reads the matrices of ncclAlltoAllv after the call returns.
        map.put(new Info("size_t", "const size_t").cast().valueTypes("long").pointerTypes("SizeTPointer", "long"));
    }

    /** Maps a number that is passed by value, or that the library writes before the call returns. */
    private static void number(InfoMap map, String type, String java, String name) {
        for (String qualified : new String[] {type, "const " + type}) {
            map.put(new Info(qualified)
                    .cast()
                    .valueTypes(java)
                    .pointerTypes(
                            name + "Pointer", "long", name + "Buffer", name + "Buffer", java + "[]", java + "[]"));
        }
    }

    private static void strings(InfoMap map) {
        map.put(new Info("const char")
                .valueTypes("@Cast(\"const char\") byte")
                .pointerTypes("@Cast(\"const char*\") BytePointer", "@Cast(\"const char*\") long", "String", "String"));
    }

    private static void derived(InfoMap map) {
        derived(map, "/nccl_rules.txt");
    }

    /**
     * Maps a header's types, and functions that alternatives can't express, by rules that the build derives from it. For the
     * presets of nccl4j.
     *
     * @param map the map to fill
     * @param resource the file of the rules, on the class path of JavaCPP's parser
     */
    public static void derived(InfoMap map, String resource) {
        Map<String, String> functions = new LinkedHashMap<>();
        for (String rule : rules(resource)) {
            String[] parts = rule.split("\t");
            String name = parts[1];
            switch (parts[0]) {
                case "handle" -> handle(map, name, parts[2]);
                case "opaque" -> map.put(new Info(name).pointerTypes(parts[2], "@Cast(\"" + name + "*\") long"));
                case "class" -> map.put(new Info(name).pointerTypes(parts[2]));
                // With a cast, since the struct's name denotes a type of nccl4j in C++, but pointers in structs do not.
                case "struct" ->
                    map.put(new Info(name)
                            .pointerTypes(
                                    "@Cast(\"" + parts[2] + "*\") " + parts[2], "@Cast(\"" + parts[2] + "*\") long"));
                // C enums are ints: libraries may return codes that no enum contains, and programs create operators.
                case "enum" -> number(map, name, "int", "Int");
                case "number" -> {
                    if (!parts[2].equals("uint32_t")) {
                        throw new IllegalStateException("no rule for a number: " + rule);
                    }
                    number(map, name, "int", "Int");
                }
                case "skip" -> map.put(new Info(name).skip());
                case "function" -> functions.merge(name, parts[2] + "\n", String::concat);
                default -> throw new IllegalStateException("no kind of rule: " + rule);
            }
        }
        functions.forEach((name, text) -> map.put(new Info(name).javaText(text)));
    }

    /** The rules that SymbolList has written, a line each. The file is only on the class path of JavaCPP's parser. */
    private static List<String> rules(String name) {
        try (InputStream rules = nccl.class.getResourceAsStream(name)) {
            return new String(Objects.requireNonNull(rules, name).readAllBytes(), StandardCharsets.UTF_8)
                    .lines()
                    .toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void constants(InfoMap map) {
        map.put(new Info("NCCL_UNDEF_FLOAT").cppTypes("float"));
        map.put(new Info("INT_MAX").javaNames("Integer.MAX_VALUE"));
        map.put(new Info("NCCL_CONFIG_UNDEF_INT")
                .javaText("public static final int NCCL_CONFIG_UNDEF_INT = Integer.MIN_VALUE;\n"));
        map.put(new Info("NCCL_CONFIG_UNDEF_PTR")
                .javaText("public static final Pointer NCCL_CONFIG_UNDEF_PTR = null;\n"));
        map.put(new Info("NCCL_COMM_NULL").javaText("public static final ncclComm NCCL_COMM_NULL = null;\n"));
        map.put(new Info("NCCL_API_MAGIC").javaText("public static final int NCCL_API_MAGIC = 0xcafebeef;\n"));
        map.put(new Info("NCCL_VERSION")
                .javaText("/** The version code of a release, as ncclGetVersion gives it. */\n"
                        + "public static int NCCL_VERSION(int X, int Y, int Z) {\n"
                        + "    return X <= 2 && Y <= 8 ? X * 1000 + Y * 100 + Z : X * 10000 + Y * 100 + Z;\n"
                        + "}\n"));
    }
}
