package io.github.nccl4j.header;

/** The extensions of NCCL for which we have a header. */
public enum Extension {
    /** Resharding of tensors between meshes of ranks. */
    M2N("nccl_m2n"),
    /** Expert parallelism. */
    EP("nccl_ep");

    private final String stem;

    Extension(String stem) {
        this.stem = stem;
    }

    /**
     * Returns the name of the header.
     *
     * @return the name of the file, such as {@code nccl_ep.h}
     */
    public String file() {
        return stem + ".h";
    }

    /** The folder beside the header that has the other files of the same header. */
    String folder() {
        return stem;
    }

    /** The text before MAJOR, MINOR and PATCH in the macros of the release. */
    String macroPrefix() {
        return "NCCL_" + name() + "_";
    }
}
