package io.github.nccl4j.library;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.URL;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
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
    private static final String HOST_RESOURCE = "io/github/nccl4j/host/%s/libnccl4j_host.so";

    static {
        // Before the loader's lock is taken: who initialises this class at the same time in another thread has its lock
        // and waits for the loader's.
        Pointer.isNull(null);
        try {
            Loader.load(NativeLibrary.class);
        } catch (UnsatisfiedLinkError e) {
            UnsatisfiedLinkError clear = new UnsatisfiedLinkError("nccl4j's native code for " + Loader.getPlatform()
                    + " cannot be loaded. Add io.github.nccl4j:nccl-platform to the class path, or io.github.nccl4j:nccl"
                    + " with the classifier of the platform (linux-x86_64 or linux-arm64): " + e.getMessage());
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

    /**
     * The path of the loaded library, as the dynamic linker has it.
     *
     * @return an absolute path, mostly
     * @throws NcclLibraryException if no library can be loaded
     */
    @Namespace("nccl4j")
    public static native String path() throws NcclLibraryException;

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
        return new File(path()).getName().startsWith("librccl") ? Engine.RCCL : Engine.NCCL;
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
     * @return such as "NCCL 2.29.2" or "VCCL a2av_base"; empty for a name that is not in the header
     */
    @Namespace("nccl4j")
    @Name("releaseOf")
    public static native String release(@Cast("const char*") String function);

    /**
     * The form of VCCL's {@code ncclAlltoAllv} in the loaded library. Both forms have one symbol and one version code;
     * the form is found by a call that either form refuses, or declared by the system property
     * {@code nccl4j.vccl.alltoallv} or the environment variable {@code NCCL4J_VCCL_ALLTOALLV}.
     *
     * @return 10 or 11, its number of arguments; 0 if the library lacks the function; -1 if its form cannot be told
     * @throws NcclLibraryException if no library can be loaded
     */
    @Namespace("nccl4j")
    @Name("alltoAllvForm")
    public static native int alltoAllvArguments() throws NcclLibraryException;

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
        for (String place : places().lines().toList()) {
            Candidate candidate = new Candidate(place, problemOf(place));
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
        configure(library, "", "The program chose this library.", declaredForm());
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
        configure(candidates, "", "The program chose this engine.", declaredForm());
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
        setEnvironment(name, value);
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
        if (!canOpen(lines(new LibrarySearch(System.getenv()).nccl()))) {
            return new EngineChoice(Engine.HOST, "no libnccl was found");
        }
        return new EngineChoice(Engine.NCCL, found + " GPUs and libnccl were found");
    }

    private static void configureFromSettings() {
        String candidates = "";
        String problem = "";
        String advice =
                "Set the system property nccl4j.library or the environment variable NCCL4J_LIBRARY to the path of the"
                        + " library; NVIDIA's package libnccl2 and pip's nvidia-nccl-cu13 have it. Without a GPU, the engine"
                        + " \"host\" (nccl4j.engine or NCCL4J_ENGINE) runs in host memory.";
        int form = 0;
        try {
            form = declaredForm();
            String library = setting(LIBRARY);
            if (library.isEmpty()) {
                candidates = lines(candidatesOf(setting(ENGINE)));
            } else {
                candidates = library;
                advice =
                        "It was chosen by the system property nccl4j.library or the environment variable NCCL4J_LIBRARY.";
            }
        } catch (IllegalArgumentException | UncheckedIOException e) {
            // Not thrown here, where it would make the class unusable and be seen once: every call will say it.
            problem = e.getMessage();
        }
        configure(candidates, problem, advice, form);
    }

    private static List<String> candidatesOf(String engine) {
        LibrarySearch search = new LibrarySearch(System.getenv());
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
        String resource = String.format(HOST_RESOURCE, Loader.getPlatform());
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
                    "The host engine could not be extracted from " + url + ": " + e.getMessage(), e);
        }
    }

    private static int declaredForm() {
        String form = setting(ALL_TO_ALL_V);
        switch (form) {
            case "":
            case "auto":
                return 0;
            case "10":
            case "11":
                return Integer.parseInt(form);
            default:
                throw new IllegalArgumentException(
                        ALL_TO_ALL_V + " (NCCL4J_VCCL_ALLTOALLV) is '" + form + "'; it must be 10, 11 or auto");
        }
    }

    /** A system property, else the environment variable of the same meaning, else "". */
    private static String setting(String property) {
        String value = System.getProperty(property);
        if (value == null) {
            value = System.getenv(property.toUpperCase(Locale.ROOT).replace('.', '_'));
        }
        return value == null ? "" : value.strip();
    }

    private static String lines(List<String> list) {
        return String.join("\n", list);
    }

    @Namespace("nccl4j")
    private static native void configure(
            @Cast("const char*") String candidates,
            @Cast("const char*") String problem,
            @Cast("const char*") String advice,
            int declaredForm)
            throws NcclLibraryException;

    @Namespace("nccl4j")
    @Name("candidates")
    private static native @StdString String places() throws NcclLibraryException;

    @Namespace("nccl4j")
    private static native @StdString String problemOf(@Cast("const char*") String candidate);

    @Namespace("nccl4j")
    private static native void setEnvironment(@Cast("const char*") String name, @Cast("const char*") String value);

    @Namespace("nccl4j")
    private static native boolean canOpen(@Cast("const char*") String candidates);
}
