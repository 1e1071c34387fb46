package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.memory.NativeMemory;

/** What the package has allocated for itself and not freed, for tests in other packages. */
public final class HeldMemory {
    private HeldMemory() {}

    public static long bytes() {
        return NativeMemory.held();
    }
}
