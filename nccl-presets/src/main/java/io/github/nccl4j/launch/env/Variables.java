package io.github.nccl4j.launch.env;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Settings by name. A name that begins with {@code nccl4j.} is that of a system property, any other that of an environment
 * variable.
 */
public final class Variables {
    private static final String PREFIX = "nccl4j.";

    private final Map<String, String> properties;
    private final Map<String, String> environment;

    public Variables(Map<String, String> properties, Map<String, String> environment) {
        this.properties = properties;
        this.environment = environment;
    }

    /** Returns the value without surrounding white space; null if it is not set or blank. */
    String text(String name) {
        String value = (name.startsWith(PREFIX) ? properties : environment).get(name);
        return value == null || value.isBlank() ? null : value.strip();
    }

    boolean has(String name) {
        return text(name) != null;
    }

    /** Returns the first name that is set; null if none is. */
    String firstSet(String... names) {
        for (String name : names) {
            if (has(name)) {
                return name;
            }
        }
        return null;
    }

    /** Returns the value of the first name that is set, or the default. */
    String textOrDefault(String defaultValue, String... names) {
        String name = firstSet(names);
        return name == null ? defaultValue : text(name);
    }

    int number(String name, int min, int max) {
        return number(name, min, max, null);
    }

    /** As {@link #number(String, int, int)}; the message includes the variable that sets the maximum. */
    int number(String name, int min, int max, String maxName) {
        String text = text(name);
        try {
            int value = Integer.parseInt(text);
            if (value >= min && value <= max) {
                return value;
            }
        } catch (NumberFormatException notANumber) {
            // Falls through to the message for a number out of range.
        }
        throw new IllegalArgumentException(name + " must be a number from " + min + " to " + max
                + (maxName == null ? "" : " (" + assignment(maxName) + ")") + ": " + text);
    }

    /** The name and the value, such as "RANK=5". */
    String assignment(String name) {
        return name + "=" + text(name);
    }

    /** Requires that all names are set; of names with a bar between them, at least one. */
    void require(Launcher launcher, String... names) {
        List<String> missing = new ArrayList<>();
        List<String> present = new ArrayList<>();
        for (String name : names) {
            String first = firstSet(name.split("\\|"));
            if (first == null) {
                missing.add(name.replace("|", " or "));
            } else {
                present.add(assignment(first));
            }
        }
        if (!missing.isEmpty()) {
            throw new IllegalArgumentException("rank information from " + launcher + " (" + String.join(", ", present)
                    + ") is incomplete, not set: " + String.join(", ", missing));
        }
    }
}
