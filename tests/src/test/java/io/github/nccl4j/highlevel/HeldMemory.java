package io.github.nccl4j.highlevel;

/** What the package has allocated for itself and not freed, for tests in other packages. */
public final class HeldMemory {
    private HeldMemory() {}

    public static long bytes() {
        return NativeMemory.held();
    }
}
