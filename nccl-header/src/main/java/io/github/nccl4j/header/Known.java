package io.github.nccl4j.header;

import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;

/** Known differences between releases that do not matter, and other facts about {@code nccl.h} for the check. */
final class Known {
    /** Macros that contain the release, and therefore differ, and include guards. */
    static final Set<String> VERSION_MACROS = Set.of(
            "NCCL_MAJOR",
            "NCCL_MINOR",
            "NCCL_PATCH",
            "NCCL_SUFFIX",
            "NCCL_VERSION_CODE",
            "NCCL_H_",
            "NCCL_DEVICE_H_",
            "NCCL_M2N_MAJOR",
            "NCCL_M2N_MINOR",
            "NCCL_M2N_PATCH",
            "NCCL_M2N_VERSION_CODE",
            "NCCL_M2N_H_",
            "NCCL_EP_MAJOR",
            "NCCL_EP_MINOR",
            "NCCL_EP_PATCH",
            "NCCL_EP_VERSION_CODE",
            "NCCL_EP_H_");

    /** Macros of the extensions' headers that are written in terms of the other declarations, and that ours lack. */
    private static final Pattern HELPERS = Pattern.compile("NCCL_M2N_API|NCCL_EP_(STRUCT_INIT|FIELD_END|HAS_FIELD"
            + "|STATIC_ASSERT\\w*|\\w+_INIT_INLINE|\\w+_V\\d+_SIZE|\\w+_LAST_FIELD|\\w+_CURRENT_VERSION)");

    /** Typedefs that only our header has, in place of CUDA's header. */
    static final Set<String> OWN_ALIASES = Set.of("cudaStream_t", "cudaEvent_t");

    /** Enumerators that are one greater than the largest value before them, and grow with the enumeration. */
    static final Set<String> COUNTS = Set.of("ncclNumResults", "ncclNumOps", "ncclNumTypes");

    /** Enumerators that are upper bounds of values, and do not affect counts. */
    static final Set<String> BOUNDS = Set.of("ncclMaxRedOp");

    /** Fields whose initial value contains the size or the release. */
    static final Set<String> RELEASE_FIELDS = Set.of("size", "version");

    /** Other types of opaque handles and functions with the same ABI, by name of the typedef. */
    private static final Map<String, String> HANDLES = Map.of(
            // 2.27.3 to 2.27.7
            "ncclWindow_t", "struct ncclWindow*",
            // 2.30.4, where functions take a pointer to it
            "ncclParamHandle_t", "struct ncclParamHandle",
            // The type of a result is the size of an int, too.
            "ncclEpAllocFn_t", "cudaError_t (*)(void**, size_t, void*)",
            "ncclEpFreeFn_t", "cudaError_t (*)(void*, void*)");

    /** The signatures of an earlier VCCL and of RCCL, which nccl4j binds, too. */
    private static final String ALLTOALLV = "ncclResult_t (const void*, const size_t*, const size_t*, void*, "
            + "const size_t*, const size_t*, %sncclDataType_t, ncclComm_t, cudaStream_t)";

    private static final List<String> ALLTOALLV_RELAYS = List.of("void*, ", "const void*, ", "");

    /** Functions that the libraries for Linux export, but that headers declare only for Windows. */
    static final Set<String> DECLARED_FOR_WINDOWS = Set.of(
            "ncclGinInboxA2ACreateRequirement",
            "ncclGinOutboxCreateRequirement",
            "ncclGinInboxA2AHandle_t",
            "ncclGinOutboxHandle_t");

    /** Functions that headers declare, but that no library exports. */
    static final Set<String> NOT_EXPORTED = Set.of("ncclCftBarrierCreateRequirement");

    /** Structures that only kernels read and whose fields change; only their sizes are compared. */
    static final Set<String> OPAQUE = Set.of("ncclDevComm_t", "ncclGinBarrierHandle_t");

    /** A structure that {@link #NEW_BEGINNING} changed incompatibly. */
    static final String BEGUN_ANEW = "ncclDevCommRequirements_t";

    static final Release NEW_BEGINNING = new Release(2, 29, 2);

    /** Since this release the enumeration is as large as an int; before, it had one byte. */
    static final Release WIDE_TYPE = new Release(2, 29, 7);

    /** Values of the layout that depend on the one-byte enumeration, by name. */
    static final Map<String, String> SMALL_TYPE = Map.of(
            "sizeof ncclGinType_t", "1",
            "offset ncclCommProperties_t.ginType", "34",
            "size ncclCommProperties_t.ginType", "1");

    private Known() {}

    /** True for a macro of an extension's header that our header need not have. */
    static boolean isHelper(Macro macro) {
        return HELPERS.matcher(macro.name()).matches() || macro.text().contains("sizeof(");
    }

    /** True if {@code theirs} is an accepted other type of a handle. */
    static boolean isSameHandle(String name, String theirs) {
        return theirs.equals(HANDLES.get(name));
    }

    /** True if the types of {@code theirs} are accepted instead of those of our function. */
    static boolean isSameFunction(Function ours, Function theirs, Header theirHeader) {
        String signature = theirs.signature();
        if (ours.name().endsWith("ncclAlltoAllv")) {
            return ALLTOALLV_RELAYS.stream()
                    .map(relay -> String.format(Locale.ROOT, ALLTOALLV, relay))
                    .anyMatch(signature::equals);
        }
        Alias handle = theirHeader.aliases().get("ncclParamHandle_t");
        if (handle == null || !isSameHandle("ncclParamHandle_t", handle.type())) {
            return false;
        }
        return signature.equals(ours.signature().replaceAll("ncclParamHandle_t(?!\\*)", "ncclParamHandle_t*"))
                || signature.equals(ours.signature().replace("ncclParamHandle_t*", "ncclParamHandle_t**"));
    }
}
