package io.github.nccl4j.tools.support;

import io.github.nccl4j.library.Engine;
import io.github.nccl4j.library.NativeLibrary;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;

/**
 * The engine or library of a run. The default is the engine {@code auto}, which is decided once for all ranks. Immutable.
 *
 * <p>A library takes precedence over an engine; an option over a system property, and a system property over an environment
 * variable. The option {@code --engine} also overrides a library that a property or variable names.
 *
 * @param engine nccl, rccl, host or auto; ignored if {@code library} is not null
 * @param library a path, or a name for the dynamic linker, or null
 */
public record EngineSetting(String engine, String library) {

    private static final String ENGINE_PROPERTY = "nccl4j.engine";
    private static final String ENGINE_VARIABLE = "NCCL4J_ENGINE";
    private static final String LIBRARY_PROPERTY = "nccl4j.library";
    private static final String LIBRARY_VARIABLE = "NCCL4J_LIBRARY";
    private static final String AUTO = "auto";
    private static final Set<String> ENGINES = Set.of("nccl", "rccl", "host", AUTO);

    /**
     * Determines the setting.
     *
     * @param engineOption the value of {@code --engine}, or null
     * @param libraryOption the value of {@code --library}, or null
     * @param properties system properties, usually {@link System#getProperties()}
     * @param environment environment variables, usually {@link System#getenv()}
     * @return the setting
     * @throws IllegalArgumentException if the engine is unknown
     */
    public static EngineSetting of(
            String engineOption, String libraryOption, Properties properties, Map<String, String> environment) {
        String library = libraryOption;
        if (library == null && engineOption == null) {
            // --engine is for this run, and must override a library variable that was set for all runs.
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

    /** {@return true if {@link #decide} must choose the engine} */
    public boolean isAutomatic() {
        return library == null && engine.equals(AUTO);
    }

    /** {@return true for the host engine; a library that is given by its path may also be one, but is not loaded to find out} */
    public boolean isHost() {
        return library == null && engine.equals("host");
    }

    /**
     * The result of {@link #decide}.
     *
     * @param setting the setting, which is not automatic
     * @param warning a line for the user, or empty
     */
    public record Decision(EngineSetting setting, Optional<String> warning) {}

    /**
     * Chooses the engine for {@code auto} on this machine.
     *
     * @param localRanks the number of ranks on this machine; with NCCL each needs a GPU
     * @return the decision; this setting, without a warning, if it is not automatic
     */
    public Decision decide(int localRanks) {
        if (!isAutomatic()) {
            return new Decision(this, Optional.empty());
        }
        preventAutomaticChoice();
        NativeLibrary.EngineChoice choice = NativeLibrary.automaticEngine(localRanks);
        Optional<String> warning = choice.engine() == Engine.HOST
                ? Optional.of("warning: " + choice.reason() + ": running on the host engine (host memory, no GPU)")
                : Optional.empty();
        return new Decision(new EngineSetting(choice.engine().toString(), null), warning);
    }

    /** {@return the number of GPUs that are visible to this process; 0 without a driver} */
    public static int gpus() {
        preventAutomaticChoice();
        return NativeLibrary.gpuCount();
    }

    /** Prevents {@link NativeLibrary} from choosing an engine, with a warning, when its class is initialized. */
    private static void preventAutomaticChoice() {
        if (System.getProperty(ENGINE_PROPERTY, AUTO).equalsIgnoreCase(AUTO)) {
            System.setProperty(ENGINE_PROPERTY, "nccl");
        }
    }

    /** {@return the environment variables that pass this setting to a rank} */
    public Map<String, String> environment() {
        return Map.of(ENGINE_VARIABLE, engine, LIBRARY_VARIABLE, library == null ? "" : library);
    }

    /** Applies this setting, which must not be automatic, to this process. Call before a library is loaded. */
    public void apply() {
        if (library == null) {
            NativeLibrary.use(Engine.valueOf(engine.toUpperCase(Locale.ROOT)));
        } else {
            NativeLibrary.use(library);
        }
    }
}
