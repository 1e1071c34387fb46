package io.github.nccl4j.extensions.library;

import io.github.nccl4j.highlevel.NcclException;
import io.github.nccl4j.highlevel.NcclLibraryException;
import io.github.nccl4j.library.LibraryBinding;
import io.github.nccl4j.library.LibrarySearch;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.library.SystemText;
import java.util.Locale;
import java.util.Optional;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.annotation.Cast;
import org.bytedeco.javacpp.annotation.Name;
import org.bytedeco.javacpp.annotation.Namespace;
import org.bytedeco.javacpp.annotation.Properties;
import org.jspecify.annotations.NullUnmarked;

/**
 * A library of NCCL's extensions: NCCL M2N or NCCL EP, behind {@link io.github.nccl4j.extensions.global.nccl_m2n} and {@link
 * io.github.nccl4j.extensions.global.nccl_ep}.
 *
 * <p>A process uses one of each, which is chosen at its first use: by the system property {@code nccl4j.m2n.library} or
 * {@code nccl4j.ep.library}, else by the environment variable {@code NCCL4J_M2N_LIBRARY} or {@code NCCL4J_EP_LIBRARY} (a path,
 * or a name for the dynamic linker), else by the dynamic linker, else in the folders of pip's package {@code nccl-extensions}.
 * The libraries run with NVIDIA's libnccl only.
 *
 * <pre>{@code
 * if (ExtensionLibrary.M2N.isAvailable()) {
 *     System.out.println(ExtensionLibrary.M2N.path());
 * }
 * }</pre>
 *
 * <p>Methods that need the library load it. If it cannot be loaded, they throw {@link NcclLibraryException}, which lists every
 * place that was tried; a later call tries again. All methods may be called from any thread.
 *
 * @since 0.1
 */
@Properties(inherit = io.github.nccl4j.extensions.presets.nccl_m2n.class)
public final class ExtensionLibrary {
    /** NCCL M2N, which moves tensors from one mesh of ranks to another. */
    public static final ExtensionLibrary M2N = new ExtensionLibrary(0, "m2n", "nccl4j.m2n.library");

    /** NCCL EP, which dispatches tokens to experts and combines the results. */
    public static final ExtensionLibrary EP = new ExtensionLibrary(1, "ep", "nccl4j.ep.library");

    /** PATH_MAX of Linux. */
    private static final int LONGEST_PATH = 4096;

    static {
        NativeLibrary.initialize();
        NativeLibrary.unpack(ExtensionLibrary.class);
        Loader.load(ExtensionLibrary.class);
        M2N.configureFromSettings();
        EP.configureFromSettings();
    }

    /** The number of the library in native code. */
    private final int number;

    private final String name;
    private final String property;

    private ExtensionLibrary(int number, String name, String property) {
        this.number = number;
        this.name = name;
        this.property = property;
    }

    /** Loads the native code of this class, for the initialisers of other classes. */
    static void initialize() {}

    /** The address of a pointer, including its position; 0 for null. */
    @NullUnmarked
    static long addressOf(Pointer pointer) {
        return Address.of(pointer);
    }

    /** Gives access to the method of the superclass. */
    private static final class Address extends LibraryBinding {
        @NullUnmarked
        static long of(Pointer pointer) {
            return addressOf(pointer);
        }
    }

    /**
     * Returns true if the library can be loaded, and loads it.
     *
     * @return false if it cannot be loaded
     */
    public boolean isAvailable() {
        try {
            path();
            return true;
        } catch (NcclLibraryException unavailable) {
            return false;
        }
    }

    /**
     * Returns the path of the library, as the dynamic linker reports it.
     *
     * @return the path, usually absolute
     * @throws NcclLibraryException if the library cannot be loaded
     */
    public String path() {
        byte[] path = new byte[LONGEST_PATH];
        return SystemText.fromC(path, copyPath(number, path, path.length));
    }

    /**
     * Returns the version code of the library, such as 200 for 0.2.0.
     *
     * @return the code, or empty for NCCL M2N, which has no function for it
     * @throws NcclLibraryException if the library cannot be loaded
     */
    public Optional<Integer> versionCode() {
        int code = codeOfVersion(number);
        return code == 0 ? Optional.empty() : Optional.of(code);
    }

    /**
     * Returns true if the library has a function.
     *
     * @param function the name in C, such as "ncclReshard"
     * @return true if the library has the function
     * @throws NcclLibraryException if the library cannot be loaded
     */
    public boolean provides(String function) {
        return hasFunction(number, function);
    }

    private void configureFromSettings() {
        String variable = property.toUpperCase(Locale.ROOT).replace('.', '_');
        String chosen = SystemText.property(property);
        if (chosen == null) {
            chosen = SystemText.environment().getOrDefault(variable, "");
        }
        String candidates = chosen.strip();
        String problem = "";
        String advice =
                "It was chosen by the system property " + property + " or the environment variable " + variable + ".";
        if (candidates.isEmpty()) {
            advice = "Set the system property " + property + " or the environment variable " + variable
                    + " to the path of the library; pip's package nccl-extensions has it.";
            candidates =
                    String.join("\n", new LibrarySearch(SystemText.environment()).extension(name, cudaDriverVersion()));
        }
        try {
            // The extension must find the libnccl of the communicators.
            NativeLibrary.path();
        } catch (NcclException noNccl) {
            problem = noNccl.getMessage();
        }
        configure(number, SystemText.toC(candidates), SystemText.toC(problem), advice);
    }

    @Namespace("nccl4j")
    private static native int cudaDriverVersion();

    @Namespace("nccl4j")
    private static native void configure(
            int library,
            @Cast("const char*") byte[] candidates,
            @Cast("const char*") byte[] problem,
            @Cast("const char*") String advice);

    @Namespace("nccl4j")
    private static native int copyPath(int library, @Cast("char*") byte[] to, int room) throws NcclLibraryException;

    @Namespace("nccl4j")
    @Name("versionCode")
    private static native int codeOfVersion(int library) throws NcclLibraryException;

    @Namespace("nccl4j")
    @Name("provides")
    private static native boolean hasFunction(int library, @Cast("const char*") String function)
            throws NcclLibraryException;
}
