package io.github.nccl4j.library;

import org.bytedeco.javacpp.Pointer;

/**
 * The superclass of {@link io.github.nccl4j.global.nccl}: makes the choice of library known to the native code before
 * the first function can be called, and gives the generated Pointer forms their addresses. Of no use to programs.
 *
 * <p>Has static methods only, which any thread may call.
 */
public class LibraryBinding extends io.github.nccl4j.presets.nccl {
    static {
        NativeLibrary.initialize();
    }

    /** Not for programs. */
    protected LibraryBinding() {}

    /**
     * The address that a pointer stands for, its position included. JavaCPP's own code takes the position of a pointer
     * that is passed as {@code void*} for a number of bytes, whatever its type.
     *
     * @param pointer any pointer, or null
     * @return the address, 0 for null
     */
    protected static long addressOf(Pointer pointer) {
        if (pointer == null) {
            return 0;
        }
        long position = pointer.position();
        return position == 0 ? pointer.address() : pointer.address() + position * pointer.sizeof();
    }
}
