package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;

/**
 * How freely NCCL may use the multiprocessors of the GPU, which it calls CTAs.
 *
 * <p>Constants are immutable and may be used in any thread.
 */
public enum CtaPolicy {
    /** As many as are best for the speed of communication. */
    DEFAULT(nccl.NCCL_CTA_POLICY_DEFAULT, new Version(2, 27, 3)),

    /** Fewer, where communication is hardly slower for it. */
    EFFICIENCY(nccl.NCCL_CTA_POLICY_EFFICIENCY, new Version(2, 27, 3)),

    /** None where another part of the hardware, such as a copy engine, can do the work. */
    ZERO(nccl.NCCL_CTA_POLICY_ZERO, new Version(2, 28, 3));

    private final int code;
    private final Version since;

    CtaPolicy(int code, Version since) {
        this.code = code;
        this.since = since;
    }

    /**
     * The value in {@code nccl.h}.
     *
     * @return the code
     */
    public int code() {
        return code;
    }

    /**
     * The release of NCCL that added it.
     *
     * @return the release
     */
    public Version since() {
        return since;
    }
}
