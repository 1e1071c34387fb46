package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.library.NcclLibraryException;
import io.github.nccl4j.library.SystemText;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.Optional;

/**
 * The library that this process uses: what it is, where it lies, and what it can do.
 *
 * <p>A process has one, for its whole life. It is loaded when it is first needed, and found by the settings
 * {@code nccl4j.library} and {@code nccl4j.engine} (or {@code NCCL4J_LIBRARY} and {@code NCCL4J_ENGINE}), unless
 * {@link #load(Path)} or {@link #load(Engine)} has chosen it before.
 *
 * <pre>{@code
 * NcclLibrary library = NcclLibrary.get();
 * System.out.println(library + ", built for CUDA " + library.cudaVersion().orElse("?"));
 * library.require("ncclCommShrink");
 * }</pre>
 *
 * <p>Instances are immutable. All methods may be called from any thread.
 */
public final class NcclLibrary {
    private static NcclLibrary loaded;

    private final Path path;
    private final int versionCode;
    private final Version version;
    private final Engine engine;
    private final Flavor flavor;
    // Null until it was asked for, which may call the library.
    private volatile AlltoAllvForm alltoAllvForm;
    // Null until it was asked for: reading it takes time.
    private Optional<String> cudaVersion;

    /** Whose library it is. */
    public enum Flavor {
        /** NVIDIA's NCCL. */
        NCCL("NCCL"),

        /** VCCL: NCCL with changes, some versions with {@code ncclAlltoAllv}. */
        VCCL("VCCL"),

        /** AMD's RCCL. */
        RCCL("RCCL"),

        /** The host engine of nccl4j; its version is that of the NCCL whose functions it has. */
        HOST("host engine");

        private final String text;

        Flavor(String text) {
            this.text = text;
        }
    }

    private NcclLibrary() {
        NcclLog.startBySetting();
        versionCode = NativeLibrary.versionCode();
        version = Version.of(versionCode);
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
                                    + " errors: a handle of one crashes the other. NCCL4J_LIBRARY chooses the copy",
                            this,
                            String.join(", ", others));
        }
    }

    /**
     * What the library's last error says of the program's calls; empty if it says nothing. Telling VCCL's forms of
     * ncclAlltoAllv apart leaves an error of its own.
     */
    String news(String lastError) {
        String text = lastError == null ? "" : lastError.strip();
        boolean isOurs = flavor == Flavor.VCCL && text.contains("corrupted comm object") && provides("ncclAlltoAllv");
        return isOurs ? "" : text;
    }

    /** What the library says of what went wrong last, of a communicator or of all; empty if it says nothing. */
    String lastError(long communicator) {
        return provides("ncclGetLastError") ? news(nccl.ncclGetLastError(communicator)) : "";
    }

    private static Flavor flavorOf(Engine engine) {
        return switch (engine) {
            case HOST -> Flavor.HOST;
            case RCCL -> Flavor.RCCL;
            case NCCL -> NativeLibrary.isVccl() ? Flavor.VCCL : Flavor.NCCL;
        };
    }

    /**
     * The library of this process; loads it at the first call.
     *
     * @return the library, always the same
     * @throws NcclLibraryException if none can be loaded; a later call tries again
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
     * Loads a library, over all settings. Call it before everything else that uses NCCL.
     *
     * @param file the library
     * @return the library
     * @throws NcclLibraryException if one is loaded already, be it this one, or if this one cannot be loaded; then
     *     another may be
     */
    public static NcclLibrary load(Path file) {
        NativeLibrary.use(SystemText.text(file.toAbsolutePath()));
        return get();
    }

    /**
     * Loads the library of an engine, over all settings: the host engine in a program's own tests, for example. Call it
     * before everything else that uses NCCL.
     *
     * @param engine the engine
     * @return the library
     * @throws NcclLibraryException if one is loaded already, be it this one, or if none of this engine can be loaded;
     *     then another may be
     * @throws IllegalArgumentException if it is the host engine and that is not on the class path
     */
    public static NcclLibrary load(Engine engine) {
        NativeLibrary.use(Objects.requireNonNull(engine, "engine"));
        return get();
    }

    /**
     * Whether the process has its library. Loads nothing.
     *
     * @return whether the choice is final
     */
    public static boolean isLoaded() {
        return NativeLibrary.isLoaded();
    }

    /**
     * Where the library lies.
     *
     * @return the path that the dynamic linker found
     */
    public Path path() {
        return path;
    }

    /**
     * The release of the library.
     *
     * @return the version
     * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/comms.html">ncclGetVersion</a>
     */
    public Version version() {
        return version;
    }

    int versionCode() {
        return versionCode;
    }

    /**
     * The engine that the library is.
     *
     * @return the engine
     */
    public Engine engine() {
        return engine;
    }

    /**
     * Whose library it is.
     *
     * @return the flavor
     */
    public Flavor flavor() {
        return flavor;
    }

    /**
     * The form of {@code ncclAlltoAllv}. The first call of this method, or the first use of the function, tells VCCL's two
     * forms apart by a call that either form refuses.
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
     * The release of CUDA that the library was built for. Reads the library's file at the first call, some megabytes.
     *
     * @return such as "13.0"; empty if the file does not tell or cannot be read
     */
    public Optional<String> cudaVersion() {
        synchronized (this) {
            if (cudaVersion == null) {
                try {
                    cudaVersion = CudaBanner.read(path);
                } catch (IOException unreadable) {
                    // The file may be gone since it was loaded; nothing depends on what it would tell.
                    cudaVersion = Optional.empty();
                }
            }
            return cudaVersion;
        }
    }

    /**
     * Whether the library has a function.
     *
     * @param function a C name, such as "ncclCommGrow"
     * @return whether it can be called
     */
    public boolean provides(String function) {
        return NativeLibrary.provides(Objects.requireNonNull(function, "function"));
    }

    /**
     * Checks that the library has a function.
     *
     * @param function a C name, such as "ncclCommGrow"
     * @throws NcclLibraryException if not; the message names the release that added the function and the loaded one
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
     * Shows every call of NCCL to an interceptor, from now on until what this returns is closed. Several see the calls in the
     * order in which they were installed. Loads nothing.
     *
     * @param interceptor what is told of the calls
     * @return what ends it; closing it once more does nothing
     */
    public static CallInterceptor.Installed intercept(CallInterceptor interceptor) {
        return Interception.install(Objects.requireNonNull(interceptor, "interceptor"));
    }

    /** As in messages: "NCCL 2.28.3 from /usr/lib/x86_64-linux-gnu/libnccl.so.2". */
    @Override
    public String toString() {
        return flavor.text + " " + version + " from " + SystemText.text(path);
    }
}
