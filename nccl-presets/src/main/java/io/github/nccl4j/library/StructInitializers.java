package io.github.nccl4j.library;

import org.bytedeco.javacpp.annotation.Namespace;
import org.bytedeco.javacpp.annotation.Properties;

/**
 * NCCL's initializers for structs in existing memory. Not for programs. Any thread may call the methods.
 *
 * @since 0.1
 */
@Properties(inherit = io.github.nccl4j.presets.nccl.class)
public final class StructInitializers {
    static {
        NativeLibrary.initialize();
    }

    private StructInitializers() {}

    /**
     * Writes {@code NCCL_CONFIG_INITIALIZER}.
     *
     * @param address the address of memory for a {@code ncclConfig_t}
     */
    public static void config(long address) {
        initialize("ncclConfig_t", address);
    }

    /**
     * Writes {@code NCCL_COLLCONFIG_INITIALIZER}.
     *
     * @param address the address of memory for a {@code ncclCollConfig_t}
     */
    public static void collConfig(long address) {
        initialize("ncclCollConfig_t", address);
    }

    /**
     * Writes {@code NCCL_ENCRYPTION_CONFIG_INITIALIZER}.
     *
     * @param address the address of memory for a {@code ncclEncryptionConfig_t}
     */
    public static void encryptionConfig(long address) {
        initialize("ncclEncryptionConfig_t", address);
    }

    /**
     * Writes {@code NCCL_SIM_INFO_INITIALIZER}.
     *
     * @param address the address of memory for a {@code ncclSimInfo_t}
     */
    public static void simInfo(long address) {
        initialize("ncclSimInfo_t", address);
    }

    /**
     * Writes {@code NCCL_COMM_PROPERTIES_INITIALIZER}.
     *
     * @param address the address of memory for a {@code ncclCommProperties_t}
     */
    public static void commProperties(long address) {
        initialize("ncclCommProperties_t", address);
    }

    @Namespace("nccl4j")
    private static native void initialize(String type, long address);
}
