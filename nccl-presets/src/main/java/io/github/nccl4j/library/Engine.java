package io.github.nccl4j.library;

import java.util.Locale;

/**
 * Implementation behind NCCL's functions, chosen by the system property {@code nccl4j.engine} or the variable {@code
 * NCCL4J_ENGINE}.
 *
 * <p>Constants are immutable and may be used in any thread.
 *
 * @since 0.1
 */
public enum Engine {
    /** NVIDIA's NCCL, or VCCL: {@code libnccl.so.2}. The default. */
    NCCL,

    /** AMD's RCCL: {@code librccl.so.1}. */
    RCCL,

    /** The host engine of artifact {@code nccl-host}: host memory, no GPU. */
    HOST;

    /** The name as the property spells it. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
