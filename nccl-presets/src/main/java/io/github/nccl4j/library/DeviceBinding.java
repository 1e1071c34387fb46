package io.github.nccl4j.library;

import org.bytedeco.javacpp.Pointer;
import org.jspecify.annotations.NullUnmarked;

/**
 * Superclass of {@link io.github.nccl4j.global.nccl_device}, as {@link LibraryBinding} is of {@link
 * io.github.nccl4j.global.nccl}. Internal; not for use by programs.
 *
 * <p>All methods are static and may be called from any thread.
 *
 * @since 0.1
 */
public class DeviceBinding extends io.github.nccl4j.presets.nccl_device {
    static {
        NativeLibrary.initialize();
    }

    /** For the generated subclass only. */
    protected DeviceBinding() {}

    /**
     * As {@link LibraryBinding#addressOf}.
     *
     * @param pointer any pointer, or null
     * @return the address, 0 for null
     */
    @NullUnmarked
    protected static long addressOf(Pointer pointer) {
        return LibraryBinding.addressOf(pointer);
    }
}
