package io.github.nccl4j.library;

import org.bytedeco.javacpp.annotation.Name;
import org.bytedeco.javacpp.annotation.Namespace;
import org.bytedeco.javacpp.annotation.Properties;

/**
 * A memory barrier in every running thread of the process, so that code on a hot path does without one of its own. Of no
 * use to programs.
 */
@Properties(inherit = io.github.nccl4j.presets.nccl.class)
public final class ProcessBarrier {
    static {
        NativeLibrary.initialize();
    }

    private ProcessBarrier() {}

    /**
     * Passes the barrier. Loads no NCCL library.
     *
     * @return false if the system has none; if the first call says so, all do
     */
    @Namespace("nccl4j")
    @Name("processBarrier")
    public static native boolean pass();
}
