package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;

/**
 * Purposes of a window. Several flags are combined by {@code |} of their codes.
 *
 * <p>Constants are immutable and may be used in any thread.
 *
 * @since 0.1
 */
public enum WindowFlag {
    /** No flag: the window speeds up communication of its memory. */
    DEFAULT(nccl.NCCL_WIN_DEFAULT, new Version(2, 27, 3)),

    /**
     * All ranks call collectives with the same offsets into the window. Data can be put only from such a window, and
     * into any window.
     */
    COLL_SYMMETRIC(nccl.NCCL_WIN_COLL_SYMMETRIC, new Version(2, 27, 3)),

    /** Writes to the window arrive in the order in which they were issued. */
    STRICT_ORDERING(nccl.NCCL_WIN_STRICT_ORDERING, new Version(2, 29, 7)),

    /** The window is only for communication that kernels start over the network (GIN). */
    GIN_ONLY(nccl.NCCL_WIN_GIN_ONLY, new Version(2, 32, 3)),

    /** The window is for counted writes over NVIDIA's compute fabric (CFT), and for no other writes over it. */
    CFT_COUNTED(nccl.NCCL_WIN_CFT_COUNTED, new Version(2, 32, 3));

    /** Required alignment of a window's address, in bytes. Its size need not be aligned. */
    public static final int REQUIRED_ALIGNMENT = nccl.NCCL_WIN_REQUIRED_ALIGNMENT;

    private final int code;
    private final Version since;

    WindowFlag(int code, Version since) {
        this.code = code;
        this.since = since;
    }

    /**
     * The value in {@code nccl.h}.
     *
     * @return the bits
     */
    public int code() {
        return code;
    }

    /**
     * Returns the NCCL release that added the flag.
     *
     * @return the release
     */
    public Version since() {
        return since;
    }
}
