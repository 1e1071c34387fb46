package io.github.nccl4j.internal.binding;

import io.github.nccl4j.library.NativeLibrary;
import org.bytedeco.javacpp.annotation.Cast;
import org.bytedeco.javacpp.annotation.Namespace;
import org.bytedeco.javacpp.annotation.Properties;
import org.bytedeco.javacpp.annotation.StdString;

/** Looks at the files of libraries before the dynamic linker maps them. Not for programs. Any thread may call it. */
@Properties(inherit = io.github.nccl4j.presets.nccl.class)
public final class LibraryFiles {
    static {
        NativeLibrary.initialize();
    }

    private LibraryFiles() {}

    /**
     * Checks the file of a library, or the file that the dynamic linker finds for a name.
     *
     * @param library a path, or a name for the dynamic linker
     * @return the path or name for the dynamic linker
     * @throws RuntimeException with the reason, if the linker cannot load the library
     */
    @Namespace("nccl4j")
    public static native @StdString String loadable(@Cast("const char*") String library);
}
