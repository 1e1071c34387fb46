package io.github.nccl4j.highlevel;

/**
 * The forms of {@code ncclAlltoAllv}: two of VCCL, which share a version code, and one of RCCL. The function has the
 * same name in all forms.
 *
 * <p>Constants are immutable and may be used in any thread.
 *
 * @since 0.1
 */
public enum AlltoAllvForm {
    /** The library lacks the function, as NVIDIA's NCCL does. */
    ABSENT,

    /** 9 arguments, as in RCCL from API 2.28 on: this rank's counts and displacements. */
    NINE_ARGUMENTS,

    /** 10 arguments, as in VCCL before commit 3e0ac2e. */
    TEN_ARGUMENTS,

    /**
     * 11 arguments, as in VCCL from commit 3e0ac2e on; the additional argument is the number of elements of the relay
     * buffer.
     */
    ELEVEN_ARGUMENTS,

    /** The library has the function in an unknown form; the setting nccl4j.vccl.alltoallv declares the form. */
    UNKNOWN;

    static AlltoAllvForm of(int arguments) {
        return switch (arguments) {
            case 0 -> ABSENT;
            case 9 -> NINE_ARGUMENTS;
            case 10 -> TEN_ARGUMENTS;
            case 11 -> ELEVEN_ARGUMENTS;
            default -> UNKNOWN;
        };
    }
}
