package io.github.nccl4j.internal.cuda;

import io.github.nccl4j.highlevel.CudaLibraryException;
import io.github.nccl4j.internal.binding.LibraryFiles;
import io.github.nccl4j.library.LibrarySearch;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.library.SystemText;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.javacpp.annotation.Platform;
import org.bytedeco.javacpp.annotation.Properties;

/**
 * Loads CUDA's runtime library and JavaCPP's class for it. Searches with the dynamic linker, then with {@link
 * LibrarySearch}.
 *
 * <p>JavaCPP's class {@code cudart} is unusable once it failed to load. Therefore the runtime library is loaded first:
 * the dynamic linker then uses the loaded library of the same name.
 */
public final class CudaRuntime {
    private static boolean loaded;
    private static CudaLibraryException failure;

    private CudaRuntime() {}

    /** Makes {@code Cuda} usable, or throws. */
    public static synchronized void require() {
        if (loaded) {
            return;
        }
        if (failure != null) {
            throw new CudaLibraryException(failure.getMessage(), failure);
        }
        String name;
        try {
            name = Presets.runtimeName();
        } catch (NoClassDefFoundError missing) {
            throw new CudaLibraryException(
                    "JavaCPP Presets CUDA is not on the class path: add org.bytedeco:cuda, and it once more with the"
                            + " classifier " + Loader.getPlatform(),
                    missing);
        }
        List<String> tried = new ArrayList<>();
        preload(name, tried);
        try {
            NativeLibrary.unpack(org.bytedeco.cuda.global.cudart.class);
            Class.forName("org.bytedeco.cuda.global.cudart");
            loaded = true;
        } catch (LinkageError | ClassNotFoundException | UncheckedIOException unusable) {
            failure = new CudaLibraryException(message(name, tried, unusable), unusable);
            throw failure;
        }
    }

    private static void preload(String name, List<String> tried) {
        for (String candidate : new LibrarySearch(SystemText.environment()).cuda(name)) {
            try {
                Loader.loadGlobal(LibraryFiles.loadable(candidate));
                return;
            } catch (UnsatisfiedLinkError | RuntimeException unusable) {
                String reason = unusable.getMessage();
                tried.add(candidate.equals(name) ? "the dynamic linker" : missing(reason) ? candidate : reason);
            }
        }
    }

    private static boolean missing(String reason) {
        return reason == null || reason.contains("No such file");
    }

    private static String message(String name, List<String> tried, Throwable unusable) {
        String natives = "/org/bytedeco/cuda/" + Loader.getPlatform() + "/libjnicudart.so";
        if (CudaRuntime.class.getResource(natives) == null) {
            return "The native code of JavaCPP Presets CUDA is not on the class path: add org.bytedeco:cuda with the"
                    + " classifier " + Loader.getPlatform() + ", in the version of the jar without one";
        }
        // JavaCPP's message names only its last attempt; the linker's message has the cause.
        Throwable reason = unusable;
        while (reason.getCause() != null) {
            reason = reason.getCause();
        }
        return "CUDA can't be used: " + reason.getMessage() + "; " + name + " was searched for by "
                + String.join(", ", tried) + ". Set CUDA_HOME or LD_LIBRARY_PATH, install pip's nvidia-cuda-runtime,"
                + " or use JavaCPP Presets CUDA of the installed CUDA's major version";
    }

    /** A class of its own, because it names a class that may be missing. */
    private static final class Presets {
        /**
         * Returns the file name of the runtime that the presets were built for, from their annotation such as
         * "cudart@.13".
         */
        static String runtimeName() {
            Properties properties = org.bytedeco.cuda.presets.cudart.class.getAnnotation(Properties.class);
            for (Platform platform : properties.value()) {
                for (String library : platform.link()) {
                    if (library.startsWith("cudart@")) {
                        return "libcudart.so"
                                + library.substring("cudart@".length()).replace("#", "");
                    }
                }
            }
            return "libcudart.so";
        }
    }
}
