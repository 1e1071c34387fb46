package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl_device;

/**
 * How kernels on a GPU start transfers over the network themselves ("GPU-initiated networking").
 *
 * <p>Constants are immutable and may be used in any thread.
 *
 * @see CommunicatorProperties#ginType
 */
public enum GinType {
    /** They can't. */
    NONE(nccl_device.NCCL_GIN_TYPE_NONE),

    /** A thread of the host does it for them. */
    PROXY(nccl_device.NCCL_GIN_TYPE_PROXY),

    /** They write to the InfiniBand adapter's queues. */
    GDAKI(nccl_device.NCCL_GIN_TYPE_GDAKI),

    /** By the interface GPI; since NCCL 2.30.7. */
    GPI(nccl_device.NCCL_GIN_TYPE_GPI),

    /** They write to the queues of an Elastic Fabric Adapter; since NCCL 2.31.2. */
    EFA_GDA(nccl_device.NCCL_GIN_TYPE_EFA_GDA),

    /** In a way that nccl4j does not know. */
    UNKNOWN(-1);

    private final int code;

    GinType(int code) {
        this.code = code;
    }

    /**
     * The value in {@code nccl_device.h}.
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
