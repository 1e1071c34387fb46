package io.github.nccl4j.library;

import org.bytedeco.javacpp.Pointer;
import org.jspecify.annotations.NullUnmarked;

/**
 * Superclass of {@link io.github.nccl4j.global.nccl}. Passes the choice of library to the native code before the first
 * function is called, and provides addresses for the generated Pointer forms. Not for programs.
 *
 * <p>Has static methods only, which any thread may call.
 *
 * @since 0.1
 */
public class LibraryBinding extends io.github.nccl4j.presets.nccl {
    static {
        NativeLibrary.initialize();
    }

    /** Not for programs. */
    protected LibraryBinding() {}

    /**
     * Returns the address of a pointer, including its position. JavaCPP's own code takes the position of a {@code
     * void*} argument as a number of bytes, for any type.
     *
     * @param pointer any pointer, or null
     * @return the address, 0 for null
     */
    @NullUnmarked
    protected static long addressOf(Pointer pointer) {
        if (pointer == null) {
            return 0;
        }
        long position = pointer.position();
        return position == 0 ? pointer.address() : pointer.address() + position * pointer.sizeof();
    }
}
