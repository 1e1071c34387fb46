package io.github.nccl4j.library;

import io.github.nccl4j.highlevel.NcclLibraryException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.URL;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.annotation.Cast;
import org.bytedeco.javacpp.annotation.Name;
import org.bytedeco.javacpp.annotation.Namespace;
import org.bytedeco.javacpp.annotation.Properties;
import org.bytedeco.javacpp.annotation.StdString;

/**
 * The native library behind {@link io.github.nccl4j.global.nccl}: its choice, its version, and its functions.
 *
 * <p>A process uses one library, which is chosen at its first use: by the system property {@code nccl4j.library} or the
 * environment variable {@code NCCL4J_LIBRARY} (a path, or a name for the dynamic linker), else by the engine in
 * {@code nccl4j.engine} or {@code NCCL4J_ENGINE}: {@code nccl} (the default), {@code rccl}, {@code host}, or {@code auto}. The
 * engine {@code auto} is NCCL if a library and a GPU are found, else the host engine, with a warning. A system
 * property takes precedence over an environment variable.
 *
 * <pre>{@code
 * System.out.println(NativeLibrary.path() + ", NCCL " + NativeLibrary.version());
 * if (NativeLibrary.provides("ncclAlltoAll")) {
 *     nccl.ncclAlltoAll(send, recv, count, nccl.ncclFloat, comm, stream);
 * }
 * }</pre>
 *
 * <p>Methods that need the library load it. If no library can be loaded, they throw {@link NcclLibraryException},
 * which lists every place that was tried; a later call tries again. All methods may be called from any thread.
 *
 * @since 0.1
 */
@Properties(inherit = io.github.nccl4j.presets.nccl.class)
public final class NativeLibrary {
    private static final String LIBRARY = "nccl4j.library";
    private static final String ENGINE = "nccl4j.engine";
    private static final String ALL_TO_ALL_V = "nccl4j.vccl.alltoallv";
    /** PATH_MAX of Linux. */
    private static final int LONGEST_PATH = 4096;

    private static final String HOST_RESOURCE = "io/github/nccl4j/host/%s/libnccl4j_host.so";

    /** The reason why this class's native methods cannot be called; null if they can. */
    private static NcclLibraryException failure;

    static {
        try {
            NativeFiles.chooseFolder();
            NativeFiles.unpack(Pointer.class);
            // Initialises Pointer before this thread takes the loader's lock. Else a deadlock is possible with a thread
            // that initialises Pointer, holds the lock of that class, and waits for the loader's lock.
            Pointer.isNull(null);
            loadJavaCpp();
            NativeFiles.unpack(NativeLibrary.class);
            Loader.load(NativeLibrary.class);
            configureFromSettings();
        } catch (IOException | RuntimeException | LinkageError e) {
            // An exception here would make the class unusable and appear only once.
            failure = new NcclLibraryException(LoadProblem.describe(e));
            failure.initCause(e);
        }
    }

    private NativeLibrary() {}

    /**
     * An engine and the reason for its choice.
     *
     * @param engine the engine
     * @param reason the reason as a clause, such as "no GPU was found"
     */
    public record EngineChoice(Engine engine, String reason) {}

    /**
     * A place that was searched for the library, with the result.
     *
     * @param place a path, or a name for the dynamic linker
     * @param problem the reason why the library can't be loaded from the place; empty if it can be loaded
     */
    public record Candidate(String place, String problem) {}

    /** Loads the native code of this class, or throws an error, for the initialisers of other classes. Not for programs. */
    public static void initialize() {
        if (failure != null) {
            UnsatisfiedLinkError error = new UnsatisfiedLinkError(failure.getMessage());
            error.initCause(failure.getCause());
            throw error;
        }
    }

    /** Throws if the native methods cannot be called. */
    private static void requireNativeCode() {
        if (failure != null) {
            NcclLibraryException again = new NcclLibraryException(failure.getMessage());
            again.initCause(failure.getCause());
            throw again;
        }
    }

    /** Loads JavaCPP's native code and throws the reason of a failure, which the initialiser of JavaCPP's class hides. */
    private static void loadJavaCpp() {
        try {
            Pointer.totalPhysicalBytes();
        } catch (UnsatisfiedLinkError notLoaded) {
            Loader.load(Pointer.class);
        }
    }

    /**
     * Returns the path of the loaded library, as the dynamic linker reports it.
     *
     * @return the path, usually absolute
     * @throws NcclLibraryException if no library can be loaded
     */
    public static String path() {
        requireNativeCode();
        byte[] path = new byte[LONGEST_PATH];
        return SystemText.fromC(path, copyPath(path, path.length));
    }

    /**
     * Returns the version code of {@code ncclGetVersion}, such as 22803 for 2.28.3.
     *
     * @return the version code
     * @throws NcclLibraryException if no library can be loaded
     */
    public static int versionCode() {
        requireNativeCode();
        return codeOfVersion();
    }

    /**
     * Returns the version of the loaded library in the usual notation.
     *
     * @return the version, such as "2.28.3"
     * @throws NcclLibraryException if no library can be loaded
     */
    public static String version() {
        int code = versionCode();
        return code < 10000
                ? code / 1000 + "." + code / 100 % 10 + "." + code % 100
                : code / 10000 + "." + code / 100 % 100 + "." + code % 100;
    }

    /**
     * Returns the engine of the loaded library.
     *
     * @return the engine; {@code auto} is resolved
     * @throws NcclLibraryException if no library can be loaded
     */
    public static Engine engine() {
        if (provides("nccl4jHostEngineVersion")) {
            return Engine.HOST;
        }
        return isRccl() ? Engine.RCCL : Engine.NCCL;
    }

    /**
     * Returns true if the loaded library has a function.
     *
     * @param function a C name, such as {@code "ncclCommGrow"}
     * @return true if the library has the function
     * @throws NcclLibraryException if no library can be loaded
     */
    public static boolean provides(String function) {
        requireNativeCode();
        return hasFunction(function);
    }

    /**
     * Returns the release or library that added a function. Loads nothing.
     *
     * @param function a C name, such as {@code "ncclCommGrow"}
     * @return the release or library, such as "NCCL 2.29.2" or "RCCL"; empty for a name that is not in the header
     */
    public static String release(String function) {
        requireNativeCode();
        return releaseOf(function);
    }

    /**
     * Returns the form of {@code ncclAlltoAllv} in the loaded library. VCCL has two forms and RCCL has a third form,
     * under the same symbol. RCCL is recognized by its file name and symbols, VCCL by its version or its texts. For
     * VCCL, the first call of this method or of the function determines the form by a call that both forms refuse; no
     * other library is called for this purpose. The system property {@code nccl4j.vccl.alltoallv} or the environment
     * variable {@code NCCL4J_VCCL_ALLTOALLV} declares the form of a library that is neither RCCL nor the host engine.
     *
     * @return the number of arguments, 9, 10 or 11; 0 if the library lacks the function; -1 if the form is not known
     * @throws NcclLibraryException if no library can be loaded
     */
    public static int alltoAllvArguments() {
        requireNativeCode();
        return alltoAllvForm();
    }

    /**
     * Returns true if the loaded library is VCCL, according to its version, its texts, or a declared form of {@code
     * ncclAlltoAllv} with 10 or 11 arguments. Calls no function of the library except {@code ncclGetVersion}.
     *
     * @return true if the library is VCCL
     * @throws NcclLibraryException if no library can be loaded
     */
    public static boolean isVccl() {
        requireNativeCode();
        return hasVccl();
    }

    @Namespace("nccl4j")
    private static native boolean isRccl() throws NcclLibraryException;

    /**
     * Returns the other copies of NCCL or RCCL that are loaded in this process, such as PyTorch's. Each copy has its
     * own communicators, groups and errors: a handle of one copy must not be passed to another.
     *
     * @return the paths of the copies; usually empty
     * @throws NcclLibraryException if no library can be loaded
     */
    public static List<String> otherCopies() {
        requireNativeCode();
        return lines(copies());
    }

    /**
     * Returns true if this process has called a function by the bindings. Loads nothing.
     *
     * @param function a C name, such as "ncclGetUniqueId"
     * @return true if the function was called; false for a name that is not in the header
     */
    public static boolean wasCalled(String function) {
        requireNativeCode();
        return hasCalled(function);
    }

    /**
     * Returns true if the library is loaded. Loads nothing.
     *
     * @return true if the choice of the library is final
     */
    public static boolean isLoaded() {
        requireNativeCode();
        return hasLibrary();
    }

    /**
     * Returns the places of the library according to the settings, in order of precedence: every place up to the first
     * from which the library can be loaded, or all places if there is none. For diagnosis: this opens libraries, which
     * stay open, but chooses none.
     *
     * @return the places that were tried
     * @throws NcclLibraryException if a setting is wrong
     */
    public static List<Candidate> candidates() {
        requireNativeCode();
        List<Candidate> tried = new ArrayList<>();
        for (String place : lines(places())) {
            int end = place.indexOf(LibrarySearch.SKIPPED);
            Candidate candidate =
                    new Candidate(end < 0 ? place : place.substring(0, end), problemOf(SystemText.toC(place)));
            tried.add(candidate);
            if (candidate.problem().isEmpty()) {
                break;
            }
        }
        return List.copyOf(tried);
    }

    /**
     * Returns the places of the library that follow the first from which the library can be loaded. For diagnosis: opens
     * libraries as {@link #candidates} does, but none of these places.
     *
     * @return paths, and names for the dynamic linker
     * @throws NcclLibraryException if a setting is wrong
     */
    public static List<String> shadowed() {
        List<String> all = lines(places());
        return all.subList(Math.min(candidates().size(), all.size()), all.size()).stream()
                .filter(place -> place.indexOf(LibrarySearch.SKIPPED) < 0)
                .toList();
    }

    /**
     * Chooses the library for this process; takes precedence over all settings. The library is loaded at its first use.
     *
     * @param library a path, or a name for the dynamic linker
     * @throws NcclLibraryException if a library is loaded already
     */
    public static void use(String library) {
        Objects.requireNonNull(library, "library");
        if (library.isBlank() || library.indexOf('\n') >= 0) {
            throw new IllegalArgumentException("library must be a path or a name: '" + library + "'");
        }
        requireNativeCode();
        configure(SystemText.toC(withProblem(library)), "", "The program chose this library.", declaredForm());
    }

    /**
     * Chooses the engine for this process; takes precedence over all settings. The engine's library is loaded at its
     * first use.
     *
     * @param engine the engine, for example the engine of {@link #automaticEngine}
     * @throws NcclLibraryException if a library is loaded already
     * @throws IllegalArgumentException if the engine is the host engine, and the host engine is not on the class path
     */
    public static void use(Engine engine) {
        requireNativeCode();
        String candidates = lines(candidatesOf(engine.toString()));
        configure(SystemText.toC(candidates), "", "The program chose this engine.", declaredForm());
    }

    /**
     * Sets an environment variable of this process for NCCL, such as NCCL_SOCKET_IFNAME; the JDK has no method for
     * this. NCCL reads most variables once, at their first use. Therefore call this method before any function of
     * NCCL, and while no other thread calls native code that reads the environment. {@link System#getenv} does not
     * return the new value.
     *
     * @param name the name of the variable, which begins with "NCCL_"
     * @param value the value
     * @throws IllegalArgumentException if the name is not the name of a variable of NCCL
     */
    public static void setVariable(String name, String value) {
        Objects.requireNonNull(value, "value");
        if (!name.matches("NCCL_[A-Z0-9_]+")) {
            throw new IllegalArgumentException("name must be that of a variable of NCCL, NCCL_...: '" + name + "'");
        }
        requireNativeCode();
        setEnvironment(name, SystemText.toC(value));
    }

    /**
     * Unpacks the native files of JavaCPP presets into JavaCPP's cache, and replaces files there that differ from those in
     * the jars. Loads none. If several processes of a machine use presets whose libraries depend on each other, such as
     * PyTorch's, call this method before the first use of the presets: a process that loads a file while another process
     * unpacks the file crashes.
     *
     * @param presets a class of the presets, such as {@code torch.class}
     * @throws UncheckedIOException if a file cannot be unpacked, or if another user can change it
     * @throws NcclLibraryException if no folder for native files can be used
     */
    public static void unpack(Class<?> presets) {
        requireNativeCode();
        try {
            NativeFiles.unpack(presets);
        } catch (IOException e) {
            throw new UncheckedIOException(
                    "The native files of " + presets.getName() + " cannot be unpacked: " + e.getMessage() + ". "
                            + LoadProblem.cacheAdvice(),
                    e);
        }
    }

    /**
     * Returns the number of GPUs that the CUDA driver shows to this process. Initialises the driver, but creates no
     * context.
     *
     * @return the number of GPUs; 0 without a driver
     */
    public static int gpuCount() {
        requireNativeCode();
        return countGpus();
    }

    /**
     * Resolves the engine {@code auto} on this machine. A launcher should call this method once and pass the result to
     * its ranks, which could otherwise choose different engines. Chooses no engine.
     *
     * @param gpus the number of GPUs that are needed
     * @return {@link Engine#NCCL} if at least this number of GPUs and a library are found, else {@link Engine#HOST}
     */
    public static EngineChoice automaticEngine(int gpus) {
        int found = gpuCount();
        if (found < gpus) {
            return new EngineChoice(
                    Engine.HOST, found == 0 ? "no GPU was found" : found + " of " + gpus + " GPUs were found");
        }
        if (!canOpen(SystemText.toC(lines(new LibrarySearch(SystemText.environment()).nccl())))) {
            return new EngineChoice(Engine.HOST, "no libnccl was found");
        }
        return new EngineChoice(Engine.NCCL, found + " GPUs and libnccl were found");
    }

    private static void configureFromSettings() {
        String candidates = "";
        String problem = "";
        String advice =
                "Set the system property nccl4j.library or the environment variable NCCL4J_LIBRARY to the path of the"
                        + " library; " + packagesOf(setting(ENGINE)) + " it. Without a GPU, the engine"
                        + " \"host\" (nccl4j.engine or NCCL4J_ENGINE) runs in host memory.";
        int form = 0;
        try {
            form = declaredForm();
            String library = setting(LIBRARY);
            if (library.isEmpty()) {
                candidates = lines(candidatesOf(setting(ENGINE)));
            } else {
                candidates = withProblem(library);
                advice =
                        "It was chosen by the system property nccl4j.library or the environment variable NCCL4J_LIBRARY.";
            }
        } catch (IllegalArgumentException | UncheckedIOException e) {
            // An exception here would make the class unusable and appear only once. Every later call throws the
            // problem.
            problem = e.getMessage();
        }
        configure(SystemText.toC(candidates), problem, advice, form);
    }

    /** The packages that contain the engine's library, with the verb of the sentence. */
    private static String packagesOf(String engine) {
        return engine.equals("rccl")
                ? "ROCm's package rccl (Debian and Ubuntu: librccl1) has"
                : "NVIDIA's package libnccl2 and pip's nvidia-nccl-cu13 have";
    }

    private static List<String> candidatesOf(String engine) {
        LibrarySearch search = new LibrarySearch(SystemText.environment());
        switch (engine) {
            case "":
            case "nccl":
                return search.nccl();
            case "rccl":
                return search.rccl();
            case "host":
                return List.of(hostEngine());
            case "auto":
                EngineChoice choice = automaticEngine(1);
                if (choice.engine() == Engine.NCCL) {
                    return search.nccl();
                }
                Logger logger = System.getLogger("io.github.nccl4j");
                logger.log(Level.WARNING, "{0}: running on the host engine (host memory, no GPU)", choice.reason());
                return List.of(hostEngine());
            default:
                throw new IllegalArgumentException(
                        ENGINE + " (NCCL4J_ENGINE) is '" + engine + "'; it must be nccl, rccl, host or auto");
        }
    }

    /** Extracts the host engine from its jar into JavaCPP's cache and returns its path. */
    private static String hostEngine() {
        String resource = String.format(Locale.ROOT, HOST_RESOURCE, Loader.getPlatform());
        // The class loader also searches the modules of other jars; the class does not.
        URL url = NativeLibrary.class.getClassLoader().getResource(resource);
        if (url == null) {
            throw new IllegalArgumentException("The host engine was chosen, but is not on the class path: add"
                    + " io.github.nccl4j:nccl-host with the classifier " + Loader.getPlatform()
                    + LoadProblem.modulePathAdvice());
        }
        try {
            return NativeFiles.cached(url).toString();
        } catch (IOException e) {
            throw new UncheckedIOException(
                    "The host engine could not be extracted from " + url + ": " + e.getMessage() + ". "
                            + LoadProblem.cacheAdvice(),
                    e);
        }
    }

    private static int declaredForm() {
        String form = setting(ALL_TO_ALL_V);
        switch (form) {
            case "":
            case "auto":
                return 0;
            case "9":
            case "10":
            case "11":
                return Integer.parseInt(form);
            default:
                throw new IllegalArgumentException(
                        ALL_TO_ALL_V + " (NCCL4J_VCCL_ALLTOALLV) is '" + form + "'; it must be 9, 10, 11 or auto");
        }
    }

    /** The value of a system property, else of the corresponding environment variable, else "". */
    private static String setting(String property) {
        String value = SystemText.property(property);
        if (value == null) {
            value = SystemText.environment()
                    .get(property.toUpperCase(Locale.ROOT).replace('.', '_'));
        }
        return value == null ? "" : value.strip();
    }

    /** Marks a library whose name can't be passed to the system as skipped. */
    private static String withProblem(String library) {
        String problem = SystemText.problem(library);
        return problem.isEmpty() ? library : library + LibrarySearch.SKIPPED + problem;
    }

    /** The lines of a text; JavaCPP returns null for an empty text. */
    private static List<String> lines(BytePointer text) {
        if (text == null) {
            return List.of();
        }
        byte[] bytes = text.getStringBytes();
        return SystemText.fromC(bytes, bytes.length).lines().toList();
    }

    private static String lines(List<String> list) {
        return String.join("\n", list);
    }

    @Namespace("nccl4j")
    @Name("versionCode")
    private static native int codeOfVersion() throws NcclLibraryException;

    @Namespace("nccl4j")
    @Name("provides")
    private static native boolean hasFunction(@Cast("const char*") String function) throws NcclLibraryException;

    @Namespace("nccl4j")
    private static native String releaseOf(@Cast("const char*") String function);

    @Namespace("nccl4j")
    private static native int alltoAllvForm() throws NcclLibraryException;

    @Namespace("nccl4j")
    @Name("isVccl")
    private static native boolean hasVccl() throws NcclLibraryException;

    @Namespace("nccl4j")
    @Name("wasCalled")
    private static native boolean hasCalled(@Cast("const char*") String function);

    @Namespace("nccl4j")
    @Name("isLoaded")
    private static native boolean hasLibrary();

    @Namespace("nccl4j")
    @Name("gpuCount")
    private static native int countGpus();

    @Namespace("nccl4j")
    private static native void configure(
            @Cast("const char*") byte[] candidates,
            @Cast("const char*") String problem,
            @Cast("const char*") String advice,
            int declaredForm)
            throws NcclLibraryException;

    /** Writes the path of the library and returns its length in bytes. */
    @Namespace("nccl4j")
    private static native int copyPath(@Cast("char*") byte[] to, int room) throws NcclLibraryException;

    @Namespace("nccl4j")
    @Name("candidates")
    private static native @StdString BytePointer places() throws NcclLibraryException;

    @Namespace("nccl4j")
    @Name("otherCopies")
    private static native @StdString BytePointer copies() throws NcclLibraryException;

    @Namespace("nccl4j")
    private static native @StdString String problemOf(@Cast("const char*") byte[] candidate);

    @Namespace("nccl4j")
    private static native void setEnvironment(@Cast("const char*") String name, @Cast("const char*") byte[] value);

    @Namespace("nccl4j")
    private static native boolean canOpen(@Cast("const char*") byte[] candidates);
}
