package io.github.nccl4j.samples.doctor;

import java.util.Map;
import java.util.Properties;

/**
 * The setting that decides which library is loaded, as an application would take it.
 *
 * @param text the setting in words
 * @param environment the variables that hand it on to another process
 */
public record Choice(String text, Map<String, String> environment) {
    private static final String ENGINE = "NCCL4J_ENGINE";
    private static final String LIBRARY = "NCCL4J_LIBRARY";

    /** The host engine, whatever was set. */
    static final Choice HOST = engine("the host engine", "host");

    /**
     * Finds the setting: an option wins over a system property, that over a variable, a library over an engine.
     *
     * @param engineOption the value of an option, or null
     * @param libraryOption the value of an option, or null
     * @param properties usually {@link System#getProperties()}
     * @param environment usually {@link System#getenv()}
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

    /** The path of the library that is asked for, empty if an engine is. */
    String library() {
        return environment.get(LIBRARY);
    }

    /** The engine that is asked for, empty if a library is. */
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
