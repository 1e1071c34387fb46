package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;

/**
 * Modes of the host's access to the endpoints of NVIDIA's compute fabric (CFT). Without a mode, NCCL decides.
 *
 * <p>Constants are immutable and may be used in any thread.
 *
 * @see CommunicatorConfig.Builder#hostCftMode
 * @since 0.1
 */
@Incubating
public enum HostCftMode {
    /** Endpoints are created with the first window; a failure is an error. */
    ENABLE(nccl.ncclHostCftEnable),

    /** No endpoints are created. */
    DISABLE(nccl.ncclHostCftDisable),

    /** As {@link #ENABLE}, but a failure is ignored and the communicator has no endpoints. */
    FALLBACK(nccl.ncclHostCftFallback);

    private final int code;

    HostCftMode(int code) {
        this.code = code;
    }

    /**
     * The value in {@code nccl.h}.
     *
     * @return the code
     */
    public int code() {
        return code;
    }
}
