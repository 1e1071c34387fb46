package io.github.nccl4j.library;

import org.bytedeco.javacpp.Pointer;

/**
 * Superclass of {@link io.github.nccl4j.global.nccl_device}, as {@link LibraryBinding} is of {@link
 * io.github.nccl4j.global.nccl}. Not for programs.
 *
 * <p>Has static methods only, which any thread may call.
 */
public class DeviceBinding extends io.github.nccl4j.presets.nccl_device {
    static {
        NativeLibrary.initialize();
    }

    /** Not for programs. */
    protected DeviceBinding() {}

    /**
     * As {@link LibraryBinding#addressOf}.
     *
     * @param pointer any pointer, or null
     * @return the address, 0 for null
     */
    protected static long addressOf(Pointer pointer) {
        return LibraryBinding.addressOf(pointer);
    }
}
