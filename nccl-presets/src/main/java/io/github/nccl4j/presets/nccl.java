package io.github.nccl4j.presets;

import org.bytedeco.javacpp.annotation.Platform;
import org.bytedeco.javacpp.annotation.Properties;
import org.bytedeco.javacpp.tools.Info;
import org.bytedeco.javacpp.tools.InfoMap;
import org.bytedeco.javacpp.tools.InfoMapper;

/**
 * How JavaCPP turns {@code nccl.h} into Java: the global class {@link io.github.nccl4j.global.nccl} with every function
 * and constant, and a class for each struct in {@code io.github.nccl4j.nccl}.
 *
 * <p>JavaCPP makes one Java overload for each alternative that is listed for a type, and takes the same alternative, by
 * its place in the list, for all parameters of a function. Even places hold the Pointer form, odd places the raw-address
 * form, in which every pointer and handle is a {@code long}. A type with fewer alternatives starts over.
 *
 * <p>Not inherited from JavaCPP's CUDA presets, whose headers would then be needed to build; not {@code @NoException},
 * because a missing library or function arrives as an exception.
 */
@Properties(
        value =
                @Platform(
                        value = {"linux-x86_64", "linux-arm64"},
                        compiler = "cpp17",
                        // The default, jninccl, is in the jar of JavaCPP Presets CUDA, and only one of a name is
                        // loaded.
                        library = "jninccl4j",
                        include = {"<nccl.h>", "nccl4j_library.h", "nccl4j_dlpack.h", "vccl.h"},
                        // Parsed, but not compiled: C knows one ncclAlltoAllv only.
                        exclude = "vccl.h"),
        target = "io.github.nccl4j.nccl",
        global = "io.github.nccl4j.global.nccl",
        helper = "io.github.nccl4j.library.LibraryBinding")
public class nccl implements InfoMapper {

    /** Creates the preset; JavaCPP's parser does. */
    public nccl() {}

    @Override
    public void map(InfoMap map) {
        sources(map);
        handles(map);
        structs(map);
        enums(map);
        pointers(map);
        strings(map);
        addressesOfAddresses(map);
        parameters(map);
        constants(map);
    }

    private static void sources(InfoMap map) {
        // Compiled, but not parsed.
        map.put(new Info("nccl4j_library.h", "nccl4j_dlpack.h").skip());
        // Since 2.30.3 some functions hide behind this macro, which only NCCL's own build defines.
        map.put(new Info("NCCL_OS_LINUX").define(true));
        // Stock headers: attributes and include guards that say nothing to Java.
        map.put(new Info("__attribute__", "deprecated").annotations().skip());
        map.put(new Info("__cplusplus").define(true));
        map.put(new Info("defined(__CUDA_BF16_TYPES_EXIST__)").define(true));
    }

    /** Handles are classes of their own, or raw addresses. Handles that NCCL writes are cells that the caller owns. */
    private static void handles(InfoMap map) {
        // The class is that of JavaCPP Presets CUDA, so that streams made with it can be passed.
        map.put(new Info().javaText("import org.bytedeco.cuda.cudart.CUstream_st;"));
        map.put(new Info("CUstream_st").skip());
        map.put(new Info("cudaStream_t")
                .valueTypes("CUstream_st", "@Cast(\"cudaStream_t\") long")
                .pointerTypes("@Cast(\"cudaStream_t*\") PointerPointer", "@Cast(\"cudaStream_t*\") long"));
        handle(map, "ncclComm_t", "ncclComm");
        handle(map, "ncclWindow_t", "ncclWindow");
        // 2.30.4 gave the name to the struct, later releases to the pointer: ncclParam... are written out below.
        map.put(new Info("ncclParamHandle", "ncclParamHandle_t")
                .valueTypes("ncclParamHandle")
                .pointerTypes("ncclParamHandle"));
        // The tag of the window's struct changed in 2.28.
        map.put(new Info("ncclWindow_vidmem").pointerTypes("ncclWindow"));
    }

    private static void handle(InfoMap map, String type, String javaClass) {
        map.put(new Info(type)
                .valueTypes(javaClass, "@Cast(\"" + type + "\") long")
                // No @ByPtrPtr: it would pass the address of a stack local, and NCCL may write long after the call.
                .pointerTypes("@Cast(\"" + type + "*\") PointerPointer", "@Cast(\"" + type + "*\") long"));
    }

    private static void structs(InfoMap map) {
        map.put(new Info("ncclUniqueId")
                .valueTypes("@ByVal ncclUniqueId", "@Cast(\"nccl4j::UniqueIdAt\") long")
                .pointerTypes("ncclUniqueId", "@Cast(\"ncclUniqueId*\") long"));
        for (String struct : new String[] {"ncclConfig_t", "ncclSimInfo_t", "ncclWaitSignalDesc_t"}) {
            map.put(new Info(struct).pointerTypes(struct, "@Cast(\"" + struct + "*\") long"));
        }
    }

    /** C enums are ints: libraries may return codes that no enum lists, and programs create operators. */
    private static void enums(InfoMap map) {
        String[] enums = {
            "ncclResult_t",
            "ncclRedOp_t",
            "ncclDataType_t",
            "ncclScalarResidence_t",
            "ncclCommMemStat_t",
            "ncclRedOp_dummy_t"
        };
        for (String type : enums) {
            number(map, type, "int", "Int");
        }
    }

    private static void pointers(InfoMap map) {
        map.put(new Info("void").valueTypes("void").pointerTypes("Pointer", "@Cast(\"void*\") long"));
        map.put(new Info("const void")
                .valueTypes("void")
                .pointerTypes("@Const Pointer", "@Cast(\"const void*\") long"));
        number(map, "int", "int", "Int");
        number(map, "uint64_t", "long", "Long");
        // No arrays or buffers: VCCL reads the matrices of ncclAlltoAllv after the call has returned.
        map.put(new Info("const size_t").cast().valueTypes("long").pointerTypes("SizeTPointer", "long"));
    }

    /** A number that is passed by value, or written by the library before the call returns. */
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
        // Texts that the library owns and may overwrite: copied into a String at once, in both forms.
        for (String p : new String[] {"", "p"}) {
            map.put(new Info(p + "ncclGetErrorString")
                    .javaText("public static native String " + p
                            + "ncclGetErrorString(@Cast(\"ncclResult_t\") int result);\n"));
            map.put(new Info(p + "ncclGetLastError")
                    .javaText("public static native String " + p + "ncclGetLastError(ncclComm comm);\n"
                            + "public static native String " + p
                            + "ncclGetLastError(@Cast(\"ncclComm_t\") long comm);\n"));
        }
    }

    /** Parameters with two or three stars: a cell that the caller owns, or its raw address. */
    private static void addressesOfAddresses(InfoMap map) {
        for (String p : new String[] {"", "p"}) {
            both(
                    map,
                    p + "ncclMemAlloc",
                    "@Cast(\"void**\") PointerPointer ptr, @Cast(\"size_t\") long size",
                    "@Cast(\"void**\") long ptr, @Cast(\"size_t\") long size");
            both(
                    map,
                    p + "ncclCommRegister",
                    "ncclComm comm, Pointer buff, @Cast(\"size_t\") long size, @Cast(\"void**\") PointerPointer handle",
                    "@Cast(\"ncclComm_t\") long comm, @Cast(\"void*\") long buff, @Cast(\"size_t\") long size,"
                            + " @Cast(\"void**\") long handle");
            both(
                    map,
                    p + "ncclWinGetUserPtr",
                    "ncclComm comm, ncclWindow win, @Cast(\"void**\") PointerPointer outUserPtr",
                    "@Cast(\"ncclComm_t\") long comm, @Cast(\"ncclWindow_t\") long win,"
                            + " @Cast(\"void**\") long outUserPtr");
            both(
                    map,
                    p + "ncclParamGetParameter",
                    "String key, @Cast(\"const char**\") PointerPointer value, int[] valueLen",
                    "@Cast(\"const char*\") long key, @Cast(\"const char**\") long value,"
                            + " @Cast(\"int*\") long valueLen");
            both(
                    map,
                    p + "ncclParamGetAllParameterKeys",
                    "@Cast(\"const char***\") PointerPointer table, int[] tableLen",
                    "@Cast(\"const char***\") long table, @Cast(\"int*\") long tableLen");
        }
    }

    /** The functions that take a parameter's handle. */
    private static void parameters(InfoMap map) {
        String handle = "@Cast(\"ncclParamHandle*\") long h, ";
        for (String p : new String[] {"", "p"}) {
            both(
                    map,
                    p + "ncclParamBind",
                    "@Cast(\"ncclParamHandle**\") PointerPointer out, String key",
                    "@Cast(\"ncclParamHandle**\") long out, @Cast(\"const char*\") long key");
            for (String sign : new String[] {"I", "U"}) {
                parameter(map, p + "ncclParamGet" + sign + 8, sign, 8, "byte");
                parameter(map, p + "ncclParamGet" + sign + 16, sign, 16, "short");
                parameter(map, p + "ncclParamGet" + sign + 32, sign, 32, "int");
                parameter(map, p + "ncclParamGet" + sign + 64, sign, 64, "long");
            }
            both(
                    map,
                    p + "ncclParamGetStr",
                    "ncclParamHandle h, @Cast(\"const char**\") PointerPointer out",
                    handle + "@Cast(\"const char**\") long out");
            both(
                    map,
                    p + "ncclParamGet",
                    "ncclParamHandle h, Pointer out, int maxLen, @Cast(\"int*\") IntPointer len",
                    handle + "@Cast(\"void*\") long out, int maxLen, @Cast(\"int*\") long len");
        }
    }

    private static void parameter(InfoMap map, String function, String sign, int bits, String java) {
        String cast = "@Cast(\"" + (sign.equals("U") ? "u" : "") + "int" + bits + "_t*\") ";
        both(
                map,
                function,
                "ncclParamHandle h, " + cast + java + "[] out",
                "@Cast(\"ncclParamHandle*\") long h, " + cast + "long out");
    }

    private static void both(InfoMap map, String function, String pointerForm, String rawForm) {
        String start = "public static native @Cast(\"ncclResult_t\") int " + function + "(";
        map.put(new Info(function).javaText(start + pointerForm + ");\n" + start + rawForm + ");\n"));
    }

    private static void constants(InfoMap map) {
        map.put(new Info("NCCL_UNDEF_FLOAT").cppTypes("float"));
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
        // Brace lists: what they give is what `new ncclConfig_t()` and `new ncclSimInfo_t()` give.
        map.put(new Info("NCCL_CONFIG_INITIALIZER", "NCCL_SIM_INFO_INITIALIZER").skip());
    }
}
