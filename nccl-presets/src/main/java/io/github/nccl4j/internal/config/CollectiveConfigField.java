package io.github.nccl4j.internal.config;

import io.github.nccl4j.highlevel.Version;
import io.github.nccl4j.nccl.ncclCollConfig_t;
import java.util.function.ObjIntConsumer;

/**
 * Fields of {@code ncclCollConfig_t}, in the order of the struct: names, ranges, and the releases that added them. The
 * only place with these releases; a test compares them with {@code nccl.h}.
 */
public enum CollectiveConfigField {
    EXT("ext"),
    MIN_CTAS("minCTAs", 1, 64, ncclCollConfig_t::minCTAs),
    MAX_CTAS("maxCTAs", 1, 64, ncclCollConfig_t::maxCTAs),
    NVLS_CTAS("nvlsCTAs", 1, 64, ncclCollConfig_t::nvlsCTAs),
    CGA_CLUSTER_SIZE("cgaClusterSize", 0, 8, ncclCollConfig_t::cgaClusterSize),
    ALG_SELECTION("algSelection"),
    FORCE_ALG_SELECTION("forceAlgSelection"),
    CTA_POLICY("CTAPolicy"),
    USER_PROFILER_TAG("userProfilerTag"),
    LAUNCH_COMPLETION_EVENT("launchCompletionEvent", new Version(2, 32, 3), 0, 0, null);

    /** The name in C. */
    public final String cName;

    private final Version since;
    private final int least;
    private final int most;
    private final ObjIntConsumer<ncclCollConfig_t> setter;

    CollectiveConfigField(String cName) {
        this(cName, 0, 0, null);
    }

    /** Creates a field of the release that added the struct. */
    CollectiveConfigField(String cName, int least, int most, ObjIntConsumer<ncclCollConfig_t> setter) {
        this(cName, new Version(2, 31, 2), least, most, setter);
    }

    CollectiveConfigField(String cName, Version since, int least, int most, ObjIntConsumer<ncclCollConfig_t> setter) {
        this.cName = cName;
        this.since = since;
        this.least = least;
        this.most = most;
        this.setter = setter;
    }

    public Version since() {
        return since;
    }

    public void checkRange(int value) {
        if (value < least || value > most) {
            throw new IllegalArgumentException(cName + " must be in " + least + ".." + most + ": " + value);
        }
    }

    /** Writes the value of a field with a range to the struct. */
    public void write(ncclCollConfig_t config, int value) {
        setter.accept(config, value);
    }
}
