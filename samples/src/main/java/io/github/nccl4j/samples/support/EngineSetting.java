package io.github.nccl4j.samples.support;

import io.github.nccl4j.library.Engine;
import io.github.nccl4j.library.NativeLibrary;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;

/**
 * Which library a run uses: what the user said, else the engine {@code auto}, decided once for all ranks.
 *
 * <p>An explicit library wins over an engine; an option wins over a system property, a system property over the environment.
 *
 * @param engine nccl, rccl, host or auto; not looked at when there is a library
 * @param library a path or a name for the dynamic linker, or null
 */
public record EngineSetting(String engine, String library) {

    private static final String ENGINE_PROPERTY = "nccl4j.engine";
    private static final String ENGINE_VARIABLE = "NCCL4J_ENGINE";
    private static final String LIBRARY_PROPERTY = "nccl4j.library";
    private static final String LIBRARY_VARIABLE = "NCCL4J_LIBRARY";
    private static final String AUTO = "auto";
    private static final Set<String> ENGINES = Set.of("nccl", "rccl", "host", AUTO);

    /**
     * Reads the options and settings.
     *
     * @param engineOption the value of {@code --engine}, or null
     * @param libraryOption the value of {@code --library}, or null
     * @param properties usually {@link System#getProperties()}
     * @param environment usually {@link System#getenv()}
     * @return the setting
     * @throws IllegalArgumentException if there is no such engine; the message lists them
     */
    public static EngineSetting of(
            String engineOption, String libraryOption, Properties properties, Map<String, String> environment) {
        String library = libraryOption;
        if (library == null && engineOption == null) {
            // --engine alone is about this run, and not meant to lose against a variable set long ago.
            library = properties.getProperty(LIBRARY_PROPERTY, environment.get(LIBRARY_VARIABLE));
        }
        String engine = engineOption == null
                ? properties.getProperty(ENGINE_PROPERTY, environment.get(ENGINE_VARIABLE))
                : engineOption;
        engine = engine == null || engine.isBlank() ? AUTO : engine.strip().toLowerCase(Locale.ROOT);
        if (!ENGINES.contains(engine)) {
            throw new IllegalArgumentException("no such engine: '" + engine + "' (nccl, rccl, host or auto)");
        }
        return new EngineSetting(engine, library == null || library.isBlank() ? null : library.strip());
    }

    /** {@return whether the engine is still to be chosen} */
    public boolean automatic() {
        return library == null && engine.equals(AUTO);
    }

    /** {@return whether ranks need no GPU, as far as can be said without loading the library} */
    public boolean onHost() {
        return library == null && engine.equals("host");
    }

    /**
     * An engine and what the user must know about the choice.
     *
     * @param setting the setting, not automatic any more
     * @param warning a line to show, if any
     */
    public record Decision(EngineSetting setting, Optional<String> warning) {}

    /**
     * Decides what {@code auto} means on this machine.
     *
     * @param localRanks the number of ranks, each of which needs a GPU if it is NCCL
     * @return the decision; this setting without a warning if there is nothing to choose
     */
    public Decision decide(int localRanks) {
        if (!automatic()) {
            return new Decision(this, Optional.empty());
        }
        keepQuiet();
        NativeLibrary.EngineChoice choice = NativeLibrary.automaticEngine(localRanks);
        Optional<String> warning = choice.engine() == Engine.HOST
                ? Optional.of("warning: " + choice.reason()
                        + ": running on the host engine (host memory and Unix sockets; for tests, not for speed)")
                : Optional.empty();
        return new Decision(new EngineSetting(choice.engine().toString(), null), warning);
    }

    /** {@return the number of GPUs of this machine that the driver shows, 0 without a driver} */
    public static int gpus() {
        keepQuiet();
        return NativeLibrary.gpuCount();
    }

    /** Settings are read with the first use of the class, which would choose, and warn, by itself for {@code auto}. */
    private static void keepQuiet() {
        if (System.getProperty(ENGINE_PROPERTY, AUTO).equalsIgnoreCase(AUTO)) {
            System.setProperty(ENGINE_PROPERTY, "nccl");
        }
    }

    /** {@return the environment variables that hand this setting on to a rank} */
    public Map<String, String> environment() {
        return Map.of(ENGINE_VARIABLE, engine, LIBRARY_VARIABLE, library == null ? "" : library);
    }

    /** Makes this, which must not be automatic any more, the setting of this process, before it loads a library. */
    public void apply() {
        if (library == null) {
            NativeLibrary.use(Engine.valueOf(engine.toUpperCase(Locale.ROOT)));
        } else {
            NativeLibrary.use(library);
        }
    }
}
