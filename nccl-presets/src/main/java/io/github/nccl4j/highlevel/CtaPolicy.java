package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;

/**
 * Policies for NCCL's use of the GPU's multiprocessors, called CTAs. The codes are bits, but one policy applies at a
 * time: NCCL accepts {@link #EFFICIENCY} and {@link #ZERO} together from 2.29 on, and treats them as {@link #ZERO}.
 *
 * <p>Constants are immutable and may be used in any thread.
 *
 * @since 0.1
 */
public enum CtaPolicy {
    /** As many multiprocessors as give the best speed. */
    DEFAULT(nccl.NCCL_CTA_POLICY_DEFAULT, new Version(2, 27, 3)),

    /** Fewer multiprocessors, if communication is hardly slower. */
    EFFICIENCY(nccl.NCCL_CTA_POLICY_EFFICIENCY, new Version(2, 27, 3)),

    /** No multiprocessors, if other hardware, such as a copy engine, can do the work. */
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
     * Returns the NCCL release that added the policy.
     *
     * @return the release
     */
    public Version since() {
        return since;
    }
}
