package io.github.nccl4j.highlevel;

/**
 * The forms of VCCL's {@code ncclAlltoAllv}, which all have one name and one version code.
 *
 * <p>Constants are immutable and may be used in any thread.
 */
public enum AlltoAllvForm {
    /** The library has no such function, as NVIDIA's NCCL. */
    ABSENT,

    /** 10 arguments, as in VCCL before commit 3e0ac2e. */
    TEN_ARGUMENTS,

    /** 11 arguments, as in VCCL from commit 3e0ac2e on: with the number of elements of the relay buffer. */
    ELEVEN_ARGUMENTS,

    /** The library has the function, but in which form cannot be told; the setting nccl4j.vccl.alltoallv declares it. */
    UNKNOWN;

    static AlltoAllvForm of(int arguments) {
        return switch (arguments) {
            case 0 -> ABSENT;
            case 10 -> TEN_ARGUMENTS;
            case 11 -> ELEVEN_ARGUMENTS;
            default -> UNKNOWN;
        };
    }
}
