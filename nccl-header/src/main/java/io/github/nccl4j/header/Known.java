package io.github.nccl4j.header;

import java.util.Locale;
import java.util.Map;
import java.util.Set;

/** Known differences between releases that do not matter, and other facts about {@code nccl.h} for the check. */
final class Known {
    /** Macros that contain the release, and therefore differ. */
    static final Set<String> VERSION_MACROS =
            Set.of("NCCL_MAJOR", "NCCL_MINOR", "NCCL_PATCH", "NCCL_SUFFIX", "NCCL_VERSION_CODE", "NCCL_H_");

    /** Typedefs that only our header has, in place of CUDA's header. */
    static final Set<String> OWN_ALIASES = Set.of("cudaStream_t", "cudaEvent_t");

    /** Enumerators that are one greater than the largest value before them, and grow with the enumeration. */
    static final Set<String> COUNTS = Set.of("ncclNumResults", "ncclNumOps", "ncclNumTypes");

    /** Enumerators that are upper bounds of values, and do not affect counts. */
    static final Set<String> BOUNDS = Set.of("ncclMaxRedOp");

    /** Fields whose initial value contains the size or the release. */
    static final Set<String> RELEASE_FIELDS = Set.of("size", "version");

    /** Other types of opaque handles with the same ABI, by name of the typedef. */
    private static final Map<String, String> HANDLES = Map.of(
            // 2.27.3 to 2.27.7
            "ncclWindow_t", "struct ncclWindow*",
            // 2.30.4, where functions take a pointer to it
            "ncclParamHandle_t", "struct ncclParamHandle");

    private static final String ALLTOALLV_10 = "ncclResult_t (const void*, const size_t*, const size_t*, void*, "
            + "const size_t*, const size_t*, %s, ncclDataType_t, ncclComm_t, cudaStream_t)";

    private Known() {}

    /** True if {@code theirs} is an accepted other type of a handle. */
    static boolean isSameHandle(String name, String theirs) {
        return theirs.equals(HANDLES.get(name));
    }

    /** True if the types of {@code theirs} are accepted instead of those of our function. */
    static boolean isSameFunction(Function ours, Function theirs, Header theirHeader) {
        String signature = theirs.signature();
        if (ours.name().endsWith("ncclAlltoAllv")) {
            // VCCL's earlier signature, which nccl4j binds, too.
            return signature.equals(String.format(Locale.ROOT, ALLTOALLV_10, "void*"))
                    || signature.equals(String.format(Locale.ROOT, ALLTOALLV_10, "const void*"));
        }
        Alias handle = theirHeader.aliases().get("ncclParamHandle_t");
        if (handle == null || !isSameHandle("ncclParamHandle_t", handle.type())) {
            return false;
        }
        return signature.equals(ours.signature().replaceAll("ncclParamHandle_t(?!\\*)", "ncclParamHandle_t*"))
                || signature.equals(ours.signature().replace("ncclParamHandle_t*", "ncclParamHandle_t**"));
    }
}
