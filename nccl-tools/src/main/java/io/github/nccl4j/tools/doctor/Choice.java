package io.github.nccl4j.tools.doctor;

import java.util.Map;
import java.util.Properties;

/**
 * The setting that decides which library an application on this machine would load. Immutable.
 *
 * @param text the setting, for messages
 * @param environment the environment variables that pass the setting to another process
 */
public record Choice(String text, Map<String, String> environment) {
    private static final String ENGINE = "NCCL4J_ENGINE";
    private static final String LIBRARY = "NCCL4J_LIBRARY";

    /** The host engine, independent of all settings. */
    static final Choice HOST = engine("the host engine", "host");

    /**
     * Determines the setting. Sources, in order of precedence: the options, the library in a property, the library in a variable,
     * the engine in a property, the engine in a variable; a library option precedes an engine option.
     *
     * @param engineOption the value of {@code --engine}, or null
     * @param libraryOption the value of {@code --library}, or null
     * @param properties system properties, usually {@link System#getProperties()}
     * @param environment environment variables, usually {@link System#getenv()}
     * @return the choice
     */
    public static Choice of(
            String engineOption, String libraryOption, Properties properties, Map<String, String> environment) {
        if (libraryOption != null) {
            return library("--library", libraryOption);
        }
        if (engineOption != null) {
            return engine("--engine " + engineOption, engineOption);
        }
        String library = properties.getProperty("nccl4j.library");
        if (library != null) {
            return library("the system property nccl4j.library", library);
        }
        library = environment.getOrDefault(LIBRARY, "");
        if (!library.isBlank()) {
            return library(LIBRARY, library);
        }
        String engine = properties.getProperty("nccl4j.engine");
        if (engine != null) {
            return engine("nccl4j.engine=" + engine, engine);
        }
        engine = environment.getOrDefault(ENGINE, "");
        return engine.isBlank() ? engine("the default, engine nccl", "nccl") : engine(ENGINE + "=" + engine, engine);
    }

    /** The path of the requested library, or empty if an engine is requested. */
    String library() {
        return environment.get(LIBRARY);
    }

    /** The requested engine, or empty if a library is requested. */
    String engine() {
        return environment.get(ENGINE);
    }

    private static Choice library(String text, String library) {
        return new Choice(text, Map.of(LIBRARY, library, ENGINE, ""));
    }

    private static Choice engine(String text, String engine) {
        return new Choice(text, Map.of(LIBRARY, "", ENGINE, engine));
    }
}
