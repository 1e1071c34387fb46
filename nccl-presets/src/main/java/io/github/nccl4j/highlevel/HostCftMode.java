package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;

/**
 * True if the endpoints of NVIDIA's compute fabric (CFT) can be asked for on the host. Without a mode NCCL decides.
 *
 * <p>Constants are immutable and may be used in any thread.
 *
 * @see CommunicatorConfig.Builder#hostCftMode
 */
public enum HostCftMode {
    /** They are created with the first window; a failure to do so is an error. */
    ENABLE(nccl.ncclHostCftEnable),

    /** There are none. */
    DISABLE(nccl.ncclHostCftDisable),

    /** As {@link #ENABLE}, but the communicator goes on without them after a failure. */
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
