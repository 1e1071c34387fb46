package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.binding.CudaBanner;
import io.github.nccl4j.internal.config.SharedGpus;
import io.github.nccl4j.internal.failure.Failure;
import io.github.nccl4j.internal.log.HelpText;
import io.github.nccl4j.internal.log.Interception;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.library.SystemText;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.Optional;

/**
 * The NCCL library of this process: its kind, version, path, and functions.
 *
 * <p>A process uses one library for its whole life. The library is loaded at its first use. The system properties
 * {@code nccl4j.library} and {@code nccl4j.engine} (or the environment variables {@code NCCL4J_LIBRARY} and
 * {@code NCCL4J_ENGINE}) choose it, unless {@link #load(Path)} or {@link #load(Engine)} was called before.
 *
 * <pre>{@code
 * NcclLibrary library = NcclLibrary.get();
 * System.out.println(library + ", built for CUDA " + library.cudaVersion().orElse("?"));
 * library.require("ncclCommShrink");
 * }</pre>
 *
 * <p>Instances are immutable. All methods may be called from any thread.
 *
 * @since 0.1
 */
public final class NcclLibrary {
    private static NcclLibrary loaded;

    static {
        Failure.connect(NcclResultException::of, NcclLog::warningsOf);
    }

    private final Path path;
    private final Version version;
    private final Engine engine;
    private final Flavor flavor;
    // Lazy, since determining the form may call the library.
    private volatile AlltoAllvForm alltoAllvForm;
    // Lazy, since reading the file takes time.
    private Optional<String> cudaVersion;

    /** Kinds of libraries with NCCL's functions. */
    public enum Flavor {
        /** NVIDIA's NCCL. */
        NCCL("NCCL"),

        /** VCCL: a modified NCCL, of which some versions have {@code ncclAlltoAllv}. */
        VCCL("VCCL"),

        /** ByteDance's veCCL: a modified NCCL. */
        VECCL("veCCL"),

        /** AMD's RCCL. */
        RCCL("RCCL"),

        /** The host engine of nccl4j; its version is the NCCL release whose functions it provides. */
        HOST("host engine");

        private final String text;

        Flavor(String text) {
            this.text = text;
        }
    }

    private NcclLibrary() {
        NcclLog.startBySetting();
        version = Version.of(NativeLibrary.versionCode());
        path = SystemText.path(NativeLibrary.path());
        engine = NativeLibrary.engine();
        flavor = flavorOf(engine);
        if (engine != Engine.HOST) {
            warnOfOtherCopies();
        }
    }

    private void warnOfOtherCopies() {
        List<String> others = NativeLibrary.otherCopies();
        if (!others.isEmpty()) {
            System.getLogger("io.github.nccl4j")
                    .log(
                            System.Logger.Level.WARNING,
                            "{0} is used, and this process also has {1}. Each copy has its own communicators, groups and"
                                    + " errors: a handle of one crashes the other. NCCL4J_LIBRARY chooses the copy"
                                    + HelpText.of("NCCL4J-0104"),
                            this,
                            String.join(", ", others));
        }
    }

    private static Flavor flavorOf(Engine engine) {
        return switch (engine) {
            case HOST -> Flavor.HOST;
            case RCCL -> Flavor.RCCL;
            case NCCL ->
                NativeLibrary.isVccl()
                        ? Flavor.VCCL
                        : NativeLibrary.provides("ncclEnablePcieQos") ? Flavor.VECCL : Flavor.NCCL;
        };
    }

    /**
     * Returns the library of this process. The first call loads it.
     *
     * @return the library, the same object for every call
     * @throws NcclLibraryException if no library can be loaded; a later call tries again
     */
    public static NcclLibrary get() {
        synchronized (NcclLibrary.class) {
            if (loaded == null) {
                loaded = new NcclLibrary();
            }
            return loaded;
        }
    }

    /**
     * Loads a library; takes precedence over all settings. Must be called before any other use of NCCL. If the library
     * is loaded already, does nothing.
     *
     * @param file the library
     * @return the library
     * @throws NcclLibraryException if another library is loaded already, or if the library can't be loaded; after a
     *     failure to load, another library can be loaded
     */
    public static NcclLibrary load(Path file) {
        synchronized (NcclLibrary.class) {
            if (!isLoaded() || !isSameFile(file, get().path)) {
                NativeLibrary.use(SystemText.text(file.toAbsolutePath()));
            }
            return get();
        }
    }

    private static boolean isSameFile(Path file, Path loaded) {
        try {
            return Files.isSameFile(file, loaded);
        } catch (IOException missing) {
            return false;
        }
    }

    /**
     * As {@link #load(Path)} with the library of an engine, for example the host engine in a program's tests. If a
     * library of this engine is loaded already, does nothing.
     *
     * @param engine the engine
     * @return the library
     * @throws NcclLibraryException if a library of another engine is loaded already, or if no library of the engine can
     *     be loaded; after a failure to load, another library can be loaded
     * @throws IllegalArgumentException if the engine is the host engine, and the host engine is not on the class path
     */
    public static NcclLibrary load(Engine engine) {
        Objects.requireNonNull(engine, "engine");
        synchronized (NcclLibrary.class) {
            if (!isLoaded() || get().engine != engine) {
                NativeLibrary.use(engine);
            }
            return get();
        }
    }

    /**
     * Returns true if the library of this process is loaded. Loads nothing.
     *
     * @return true if the choice of the library is final
     */
    public static boolean isLoaded() {
        return NativeLibrary.isLoaded();
    }

    /**
     * Returns the path of the library.
     *
     * @return the path that the dynamic linker has found
     */
    public Path path() {
        return path;
    }

    /**
     * Returns the release of the library.
     *
     * @return the version
     * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/comms.html">ncclGetVersion</a>
     */
    public Version version() {
        return version;
    }

    /**
     * Returns the engine of the library.
     *
     * @return the engine
     */
    public Engine engine() {
        return engine;
    }

    /**
     * Returns the kind of the library.
     *
     * @return the flavor
     */
    public Flavor flavor() {
        return flavor;
    }

    /**
     * Returns the form of {@code ncclAlltoAllv}. For VCCL, which has two forms, the first call of this method or the
     * first use of the function determines the form by a call that both forms refuse.
     *
     * @return the form
     */
    public AlltoAllvForm alltoAllvForm() {
        AlltoAllvForm form = alltoAllvForm;
        if (form == null) {
            form = AlltoAllvForm.of(NativeLibrary.alltoAllvArguments());
            alltoAllvForm = form;
        }
        return form;
    }

    /**
     * Returns the CUDA release for which the library was built. The first call reads some megabytes of the library's
     * file.
     *
     * @return the release, such as "13.0"; empty if the file does not contain it or can't be read
     */
    public Optional<String> cudaVersion() {
        synchronized (this) {
            if (cudaVersion == null) {
                try {
                    cudaVersion = CudaBanner.read(path);
                } catch (IOException unreadable) {
                    // The file may have been removed after it was loaded. The release is informational only.
                    cudaVersion = Optional.empty();
                }
            }
            return cudaVersion;
        }
    }

    /**
     * Returns true if several ranks of a communicator may share a GPU: with NCCL 2.30.3 and newer, if the environment
     * variable {@code NCCL_MULTI_RANK_GPU_ENABLE} is a number other than 0.
     *
     * @return true if NCCL creates such communicators; false on the host engine, which has no GPUs
     */
    public boolean sharesGpus() {
        return SharedGpus.areAllowed(engine, version);
    }

    /**
     * Returns true if the library has a function.
     *
     * @param function a C name, such as "ncclCommGrow"
     * @return true if the function can be called
     */
    public boolean provides(String function) {
        return NativeLibrary.provides(Objects.requireNonNull(function, "function"));
    }

    /**
     * Checks that the library has a function.
     *
     * @param function a C name, such as "ncclCommGrow"
     * @throws NcclLibraryException if the library lacks the function; the message names the release that added the
     *     function and the loaded library
     */
    public void require(String function) {
        if (!provides(function)) {
            String release = NativeLibrary.release(function);
            throw new NcclLibraryException(
                    release.isEmpty()
                            ? function + " is not a function that nccl4j knows, loaded is " + this
                            : function + " needs " + release + ", loaded is " + this);
        }
    }

    /**
     * Installs an interceptor, which observes every call of NCCL until the returned installation is closed.
     * Interceptors are called in the order of their installation. Loads nothing.
     *
     * @param interceptor the interceptor
     * @return the installation; closing it again does nothing
     */
    public static CallInterceptor.Installed intercept(CallInterceptor interceptor) {
        return Interception.install(Objects.requireNonNull(interceptor, "interceptor"));
    }

    /** {@return the flavor, version and path, such as "NCCL 2.28.3 from /usr/lib/x86_64-linux-gnu/libnccl.so.2"} */
    @Override
    public String toString() {
        return flavor.text + " " + version + " from " + SystemText.text(path);
    }
}
