package io.github.nccl4j.extensions.library;

import org.bytedeco.javacpp.Pointer;
import org.jspecify.annotations.NullUnmarked;

/**
 * Superclass of {@link io.github.nccl4j.extensions.global.nccl_m2n}: passes the places of the library to the native code
 * before the first function is called. Not for programs.
 *
 * <p>Has static methods only, which any thread may call.
 *
 * @since 0.1
 */
public class M2nBinding extends io.github.nccl4j.extensions.presets.nccl_m2n {
    static {
        ExtensionLibrary.initialize();
    }

    /** For the generated subclass only. */
    protected M2nBinding() {}

    /**
     * Returns the address of a pointer, including its position.
     *
     * @param pointer any pointer, or null
     * @return the address, 0 for null
     */
    @NullUnmarked
    protected static long addressOf(Pointer pointer) {
        return ExtensionLibrary.addressOf(pointer);
    }
}
