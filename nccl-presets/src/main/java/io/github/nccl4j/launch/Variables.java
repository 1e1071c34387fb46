package io.github.nccl4j.launch;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Settings by name: those with the prefix of nccl4j's system properties are properties, the others environment variables. */
final class Variables {
    private static final String PREFIX = "nccl4j.";

    private final Map<String, String> properties;
    private final Map<String, String> environment;

    Variables(Map<String, String> properties, Map<String, String> environment) {
        this.properties = properties;
        this.environment = environment;
    }

    /** The value without spaces around it, or null if there is none. */
    String text(String name) {
        String value = (name.startsWith(PREFIX) ? properties : environment).get(name);
        return value == null || value.isBlank() ? null : value.strip();
    }

    boolean has(String name) {
        return text(name) != null;
    }

    /** The first of these that is set, or null. */
    String firstOf(String... names) {
        for (String name : names) {
            if (has(name)) {
                return name;
            }
        }
        return null;
    }

    /** The value of the first of these that is set, or the default. */
    String textOf(String otherwise, String... names) {
        String name = firstOf(names);
        return name == null ? otherwise : text(name);
    }

    int number(String name, int least, int most) {
        return number(name, least, most, null);
    }

    /** As {@link #number(String, int, int)}; the message names the variable that sets the limit, with its value. */
    int number(String name, int least, int most, String limit) {
        String text = text(name);
        try {
            int value = Integer.parseInt(text);
            if (value >= least && value <= most) {
                return value;
            }
        } catch (NumberFormatException notANumber) {
            // The same message as for a number out of range.
        }
        throw new IllegalArgumentException(name + " must be a number from " + least + " to " + most
                + (limit == null ? "" : " (" + seen(limit) + ")") + ": " + text);
    }

    /** "RANK=5" */
    String seen(String name) {
        return name + "=" + text(name);
    }

    /** Throws if a name is not set; of names with a bar between them, one is enough. */
    void require(RankInfo.Source source, String... names) {
        List<String> missing = new ArrayList<>();
        List<String> present = new ArrayList<>();
        for (String name : names) {
            String first = firstOf(name.split("\\|"));
            if (first == null) {
                missing.add(name.replace("|", " or "));
            } else {
                present.add(seen(first));
            }
        }
        if (!missing.isEmpty()) {
            throw new IllegalArgumentException("this process is a rank by " + source + " (" + String.join(", ", present)
                    + "), but not set: " + String.join(", ", missing));
        }
    }
}
