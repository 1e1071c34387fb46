package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl_device;

/**
 * Types of GPU-initiated networking (GIN), by which kernels on a GPU start transfers over the network.
 *
 * <p>Constants are immutable and may be used in any thread.
 *
 * @see CommunicatorProperties#ginType
 * @since 0.1
 */
@Incubating
public enum GinType {
    /** Kernels can't start transfers. */
    NONE(nccl_device.NCCL_GIN_TYPE_NONE),

    /** A host thread starts the transfers for the kernels. */
    PROXY(nccl_device.NCCL_GIN_TYPE_PROXY),

    /** Kernels write to the queues of the InfiniBand adapter. */
    GDAKI(nccl_device.NCCL_GIN_TYPE_GDAKI),

    /** Kernels use the interface GPI; since NCCL 2.30.7. */
    GPI(nccl_device.NCCL_GIN_TYPE_GPI),

    /** Kernels write to the queues of an Elastic Fabric Adapter; since NCCL 2.31.2. */
    EFA_GDA(nccl_device.NCCL_GIN_TYPE_EFA_GDA),

    /** A type that nccl4j does not know. */
    UNKNOWN(-1);

    private final int code;

    GinType(int code) {
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

    static GinType of(int code) {
        for (GinType type : values()) {
            if (type.code == code) {
                return type;
            }
        }
        return UNKNOWN;
    }
}
