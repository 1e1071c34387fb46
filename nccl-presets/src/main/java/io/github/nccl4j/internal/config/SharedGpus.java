package io.github.nccl4j.internal.config;

import io.github.nccl4j.highlevel.Version;
import io.github.nccl4j.library.Engine;

/** Support for several ranks on one GPU, which NCCL refuses unless an environment variable allows them. */
public final class SharedGpus {
    public static final String VARIABLE = "NCCL_MULTI_RANK_GPU_ENABLE";
    public static final Version SINCE = new Version(2, 30, 3);

    private SharedGpus() {}

    /** Returns true if NCCL creates communicators with several ranks on one GPU. */
    public static boolean areAllowed(Engine engine, Version version) {
        return areAllowed(engine, version, System.getenv(VARIABLE));
    }

    /**
     * Returns true if an engine, its release and the value of the variable allow several ranks.
     *
     * @param value a number in C's notation; null, 0 and other texts allow nothing
     */
    public static boolean areAllowed(Engine engine, Version version, String value) {
        if (engine != Engine.NCCL || value == null || !version.isAtLeast(SINCE)) {
            return false;
        }
        try {
            return Long.decode(value.strip()) != 0;
        } catch (NumberFormatException ignoredByNccl) {
            return false;
        }
    }
}
