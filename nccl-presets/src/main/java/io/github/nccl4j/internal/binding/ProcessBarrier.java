package io.github.nccl4j.internal.binding;

import io.github.nccl4j.library.NativeLibrary;
import org.bytedeco.javacpp.annotation.Name;
import org.bytedeco.javacpp.annotation.Namespace;
import org.bytedeco.javacpp.annotation.Properties;

/** Memory barrier in every running thread of the process, which saves a barrier on hot paths. Not for programs. */
@Properties(inherit = io.github.nccl4j.presets.nccl.class)
public final class ProcessBarrier {
    static {
        NativeLibrary.initialize();
    }

    private ProcessBarrier() {}

    /**
     * Executes the barrier. Loads no NCCL library.
     *
     * @return false if the system has no such barrier; if the first call returns false, all calls do
     */
    @Namespace("nccl4j")
    @Name("processBarrier")
    public static native boolean pass();
}
