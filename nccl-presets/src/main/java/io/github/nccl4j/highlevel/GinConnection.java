package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl_device;

/**
 * Sets of ranks that kernels on a GPU reach over the network.
 *
 * <p>Constants are immutable and may be used in any thread.
 *
 * @see CommunicatorProperties#ginConnection
 * @since 0.1
 */
@Incubating
public enum GinConnection {
    /** No ranks. */
    NONE(nccl_device.NCCL_GIN_CONNECTION_NONE),

    /** All ranks. */
    FULL(nccl_device.NCCL_GIN_CONNECTION_FULL),

    /** The ranks with the same index in other teams with shared memory. */
    RAIL(nccl_device.NCCL_GIN_CONNECTION_RAIL),

    /** The ranks at a stride of {@link CommunicatorProperties#ginMinStride} or a multiple of it. */
    CUSTOM_STRIDE(nccl_device.NCCL_GIN_CONNECTION_CUSTOM_STRIDE),

    /** A set of ranks that nccl4j does not know. */
    UNKNOWN(-1);

    private final int code;

    GinConnection(int code) {
        this.code = code;
    }

    /**
     * Returns the value in {@code nccl_device.h}.
     *
     * @return the code; -1 for {@link #UNKNOWN}
     */
    public int code() {
        return code;
    }

    static GinConnection of(int code) {
        for (GinConnection connection : values()) {
            if (connection.code == code) {
                return connection;
            }
        }
        return UNKNOWN;
    }
}
