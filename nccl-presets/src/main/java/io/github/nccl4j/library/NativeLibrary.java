package io.github.nccl4j.library;

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
 * The library behind {@link io.github.nccl4j.global.nccl}: which one is or will be loaded, and what it provides.
 *
 * <p>A process has one, chosen when it is first needed: by the system property {@code nccl4j.library} or the environment
 * variable {@code NCCL4J_LIBRARY} (a path, or a name for the dynamic linker), else by the engine in {@code nccl4j.engine}
 * or {@code NCCL4J_ENGINE}: {@code nccl} (the default), {@code rccl}, {@code host}, or {@code auto}, which takes NCCL
 * where a library and a GPU are there and else the host engine, with a warning. A property wins over a variable.
 *
 * <pre>{@code
 * System.out.println(NativeLibrary.path() + ", NCCL " + NativeLibrary.version());
 * if (NativeLibrary.provides("ncclAlltoAll")) {
 *     nccl.ncclAlltoAll(send, recv, count, nccl.ncclFloat, comm, stream);
 * }
 * }</pre>
 *
 * <p>Methods that need the library load it, and throw {@link NcclLibraryException} with every place that was tried when
 * that fails; a later call tries again. All methods may be called from any thread.
 */
@Properties(inherit = io.github.nccl4j.presets.nccl.class)
public final class NativeLibrary {
    private static final String LIBRARY = "nccl4j.library";
    private static final String ENGINE = "nccl4j.engine";
    private static final String ALL_TO_ALL_V = "nccl4j.vccl.alltoallv";
    /** PATH_MAX of Linux. */
    private static final int LONGEST_PATH = 4096;

    private static final String HOST_RESOURCE = "io/github/nccl4j/host/%s/libnccl4j_host.so";

    static {
        avoidUnspellableHome();
        // Before the loader's lock is taken: who initialises this class at the same time in another thread has its lock
        // and waits for the loader's.
        Pointer.isNull(null);
        try {
            loadJavaCpp();
            Loader.load(NativeLibrary.class);
        } catch (UnsatisfiedLinkError e) {
            UnsatisfiedLinkError clear = new UnsatisfiedLinkError(whyNotLoaded(e));
            clear.initCause(e);
            throw clear;
        }
        configureFromSettings();
    }

    private NativeLibrary() {}

    /**
     * An engine and why it was chosen.
     *
     * @param engine the engine
     * @param reason why, as a clause: "no GPU was found"
     */
    public record EngineChoice(Engine engine, String reason) {}

    /**
     * A place where the library is looked for, and what came of it.
     *
     * @param place a path, or a name for the dynamic linker
     * @param problem why the library can't be loaded from there; empty if it can
     */
    public record Candidate(String place, String problem) {}

    /** Initialises this class. */
    static void initialize() {}

    /** JavaCPP would make a folder with question marks in its name, where it may. Its third choice is this one. */
    private static void avoidUnspellableHome() {
        String property = "org.bytedeco.javacpp.cachedir";
        if (System.getProperty(property) == null
                && !SystemText.problem(System.getProperty("user.home", "")).isEmpty()) {
            String folder = System.getProperty("java.io.tmpdir") + "/.javacpp-" + System.getProperty("user.name");
            System.setProperty(property, folder + "/cache");
        }
    }

    /** JavaCPP's class keeps silent when its own native code cannot be loaded; this throws the reason. */
    private static void loadJavaCpp() {
        try {
            Pointer.totalPhysicalBytes();
        } catch (UnsatisfiedLinkError notLoaded) {
            Loader.load(Pointer.class);
        }
    }

    private static String whyNotLoaded(UnsatisfiedLinkError error) {
        Throwable reason = error;
        while (reason.getCause() != null) {
            reason = reason.getCause();
        }
        ClassLoader loader = NativeLibrary.class.getClassLoader();
        String platform = "/" + Loader.getPlatform() + "/";
        if (loader.getResource("io/github/nccl4j" + platform + "libjninccl4j.so") == null
                || loader.getResource("org/bytedeco/javacpp" + platform + "libjnijavacpp.so") == null) {
            return "nccl4j's native code for " + Loader.getPlatform()
                    + " cannot be loaded. Add io.github.nccl4j:nccl-platform to the class path, or io.github.nccl4j:nccl"
                    + " with the classifier of the platform (linux-x86_64 or linux-arm64): " + error.getMessage();
        }
        return "nccl4j's native code cannot be loaded: " + reason.getMessage() + ". " + cacheAdvice();
    }

    /** Where JavaCPP extracts native code to, and what to do if it can't. */
    private static String cacheAdvice() {
        String folder;
        try {
            folder = Loader.getCacheDir().getAbsolutePath();
        } catch (IOException none) {
            folder = "none could be made";
        }
        return "JavaCPP extracts it to its cache (" + folder + "), which must be writable, have free space and not be"
                + " mounted noexec; name another folder by the system property org.bytedeco.javacpp.cachedir";
    }

    /**
     * The path of the loaded library, as the dynamic linker has it.
     *
     * @return an absolute path, mostly
     * @throws NcclLibraryException if no library can be loaded
     */
    public static String path() {
        byte[] path = new byte[LONGEST_PATH];
        return SystemText.fromC(path, copyPath(path, path.length));
    }

    /**
     * What {@code ncclGetVersion} gives: 22803 for 2.28.3.
     *
     * @return the version code
     * @throws NcclLibraryException if no library can be loaded
     */
    @Namespace("nccl4j")
    public static native int versionCode() throws NcclLibraryException;

    /**
     * The version of the loaded library as people write it.
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
     * Which engine the loaded library is.
     *
     * @return the engine, never an unresolved {@code auto}
     * @throws NcclLibraryException if no library can be loaded
     */
    public static Engine engine() {
        if (provides("nccl4jHostEngineVersion")) {
            return Engine.HOST;
        }
        return isRccl() ? Engine.RCCL : Engine.NCCL;
    }

    /**
     * Whether the loaded library has a function.
     *
     * @param function a C name, such as {@code "ncclCommGrow"}
     * @return whether a call of it reaches the library
     * @throws NcclLibraryException if no library can be loaded
     */
    @Namespace("nccl4j")
    public static native boolean provides(@Cast("const char*") String function) throws NcclLibraryException;

    /**
     * What added a function. Loads nothing.
     *
     * @param function a C name, such as {@code "ncclCommGrow"}
     * @return such as "NCCL 2.29.2" or "RCCL"; empty for a name that is not in the header
     */
    @Namespace("nccl4j")
    @Name("releaseOf")
    public static native String release(@Cast("const char*") String function);

    /**
     * The form of {@code ncclAlltoAllv} in the loaded library: VCCL has had two and RCCL has a third, under one symbol. RCCL
     * is recognized by its file name and symbols, VCCL by its version or its texts. VCCL's forms are told apart when this
     * method or the function is called first, by a call that either form refuses; no other library is called. The system
     * property {@code nccl4j.vccl.alltoallv} or the environment variable {@code NCCL4J_VCCL_ALLTOALLV} declares the form
     * of a library that is neither RCCL nor the host engine.
     *
     * @return 9, 10 or 11, its number of arguments; 0 if the library lacks the function; -1 if its form is not known
     * @throws NcclLibraryException if no library can be loaded
     */
    @Namespace("nccl4j")
    @Name("alltoAllvForm")
    public static native int alltoAllvArguments() throws NcclLibraryException;

    /**
     * True if the loaded library is VCCL: by its version, its texts, or a declared form of {@code ncclAlltoAllv} with 10 or
     * 11 arguments. Calls nothing in the library but {@code ncclGetVersion}.
     *
     * @return whether it is VCCL
     * @throws NcclLibraryException if no library can be loaded
     */
    @Namespace("nccl4j")
    public static native boolean isVccl() throws NcclLibraryException;

    @Namespace("nccl4j")
    private static native boolean isRccl() throws NcclLibraryException;

    /**
     * The other copies of NCCL or RCCL that are in this process now, such as PyTorch's. Each copy has its own communicators,
     * groups and errors: a handle of one must not be passed to another.
     *
     * @return their paths; mostly none
     * @throws NcclLibraryException if no library can be loaded
     */
    public static List<String> otherCopies() {
        return lines(copies());
    }

    /**
     * True if this process has called a function by the bindings. Loads nothing.
     *
     * @param function a C name, such as "ncclGetUniqueId"
     * @return whether it was called; false for a name that is not in the header
     */
    @Namespace("nccl4j")
    public static native boolean wasCalled(@Cast("const char*") String function);

    /**
     * Whether the library is loaded already. Loads nothing.
     *
     * @return whether the choice of library is final
     */
    @Namespace("nccl4j")
    public static native boolean isLoaded();

    /**
     * Where the library is looked for by the settings, best first: every place up to the one from which it can be loaded,
     * or all if it can't. For diagnosis: libraries are opened, which stay open, but none is chosen.
     *
     * @return the places that were tried
     * @throws NcclLibraryException if a setting is wrong
     */
    public static List<Candidate> candidates() {
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
     * Chooses the library for this process, over all settings. It is loaded when it is first needed.
     *
     * @param library a path, or a name for the dynamic linker
     * @throws NcclLibraryException if one is loaded already
     */
    public static void use(String library) {
        Objects.requireNonNull(library, "library");
        if (library.isBlank() || library.indexOf('\n') >= 0) {
            throw new IllegalArgumentException("library must be a path or a name: '" + library + "'");
        }
        configure(SystemText.toC(withProblem(library)), "", "The program chose this library.", declaredForm());
    }

    /**
     * Chooses the engine for this process, over all settings. Its library is loaded when it is first needed.
     *
     * @param engine the engine, such as {@link #automaticEngine} proposes it
     * @throws NcclLibraryException if a library is loaded already
     * @throws IllegalArgumentException if it is the host engine and that is not on the class path
     */
    public static void use(Engine engine) {
        String candidates = lines(candidatesOf(engine.toString()));
        configure(SystemText.toC(candidates), "", "The program chose this engine.", declaredForm());
    }

    /**
     * Sets an environment variable of this process for NCCL, which Java can't do otherwise: NCCL_SOCKET_IFNAME, for example.
     * NCCL reads most variables once, when it needs them first, so set them before anything else of NCCL is called, and
     * while no other thread calls native code that reads the environment. {@link System#getenv} does not
     * see it.
     *
     * @param name the variable, which begins with "NCCL_"
     * @param value its value
     * @throws IllegalArgumentException if it is another variable
     */
    public static void setVariable(String name, String value) {
        Objects.requireNonNull(value, "value");
        if (!name.matches("NCCL_[A-Z0-9_]+")) {
            throw new IllegalArgumentException("name must be that of a variable of NCCL, NCCL_...: '" + name + "'");
        }
        setEnvironment(name, SystemText.toC(value));
    }

    /**
     * How many GPUs the CUDA driver shows to this process. Initialises the driver, but creates no context.
     *
     * @return the number of GPUs, 0 where there is no driver
     */
    @Namespace("nccl4j")
    public static native int gpuCount();

    /**
     * What the engine {@code auto} is on this machine. A launcher asks once and hands the answer to its ranks, which
     * could come to different ones. Sets nothing.
     *
     * @param gpus how many GPUs are needed
     * @return {@link Engine#NCCL} if so many GPUs and a library are there, else {@link Engine#HOST}
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
            // Not thrown here, where it would make the class unusable and be seen once: every call will say it.
            problem = e.getMessage();
        }
        configure(SystemText.toC(candidates), problem, advice, form);
    }

    /** Where a library is to be had, and the verb. */
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
                logger.log(
                        Level.WARNING,
                        "{0}: running on the host engine (host memory and Unix sockets; for tests, not for speed)",
                        choice.reason());
                return List.of(hostEngine());
            default:
                throw new IllegalArgumentException(
                        ENGINE + " (NCCL4J_ENGINE) is '" + engine + "'; it must be nccl, rccl, host or auto");
        }
    }

    /** The path of the host engine, which JavaCPP extracts from its jar into its cache. */
    private static String hostEngine() {
        String resource = String.format(Locale.ROOT, HOST_RESOURCE, Loader.getPlatform());
        // By the loader, which looks into the modules of other jars, too.
        URL url = NativeLibrary.class.getClassLoader().getResource(resource);
        if (url == null) {
            throw new IllegalArgumentException("The host engine was chosen, but is not on the class path: add"
                    + " io.github.nccl4j:nccl-host with the classifier " + Loader.getPlatform()
                    + (NativeLibrary.class.getModule().isNamed()
                            ? "; with a module path, --add-modules ALL-MODULE-PATH, too"
                            : ""));
        }
        try {
            return Loader.cacheResource(url).getAbsolutePath();
        } catch (IOException e) {
            throw new UncheckedIOException(
                    "The host engine could not be extracted from " + url + ": " + e.getMessage() + ". " + cacheAdvice(),
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

    /** A system property, else the environment variable of the same meaning, else "". */
    private static String setting(String property) {
        String value = SystemText.property(property);
        if (value == null) {
            value = SystemText.environment()
                    .get(property.toUpperCase(Locale.ROOT).replace('.', '_'));
        }
        return value == null ? "" : value.strip();
    }

    /** A library that the system cannot be asked for is not tried. */
    private static String withProblem(String library) {
        String problem = SystemText.problem(library);
        return problem.isEmpty() ? library : library + LibrarySearch.SKIPPED + problem;
    }

    /** JavaCPP makes null of an empty text. */
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
