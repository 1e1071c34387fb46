package io.github.nccl4j.library;

import org.bytedeco.javacpp.annotation.Name;
import org.bytedeco.javacpp.annotation.Namespace;
import org.bytedeco.javacpp.annotation.Properties;

/** NCCL's initializers for structs in memory that someone has already. Of no use to programs. Any thread may call it. */
@Properties(inherit = io.github.nccl4j.presets.nccl.class)
public final class StructInitializers {
    static {
        NativeLibrary.initialize();
    }

    private StructInitializers() {}

    /**
     * Writes {@code NCCL_CONFIG_INITIALIZER}.
     *
     * @param address where there is memory for a {@code ncclConfig_t}
     */
    @Namespace("nccl4j")
    @Name("initializeConfig")
    public static native void config(long address);

    /**
     * Writes {@code NCCL_SIM_INFO_INITIALIZER}.
     *
     * @param address where there is memory for a {@code ncclSimInfo_t}
     */
    @Namespace("nccl4j")
    @Name("initializeSimInfo")
    public static native void simInfo(long address);
}
