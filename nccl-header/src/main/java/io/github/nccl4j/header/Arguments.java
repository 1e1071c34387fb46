package io.github.nccl4j.header;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/** Parses command lines of the form {@code --name value}. Immutable. */
final class Arguments {
    private final Map<String, String> values = new HashMap<>();
    private final String usage;

    Arguments(String usage, String... args) {
        this.usage = usage;
        for (int i = 0; i < args.length; i += 2) {
            if (!args[i].startsWith("--") || i + 1 == args.length) {
                throw new IllegalArgumentException("usage: " + usage);
            }
            values.put(args[i].substring(2), args[i + 1]);
        }
    }

    Path path(String name) {
        return Path.of(text(name));
    }

    String text(String name) {
        String value = values.get(name);
        if (value == null) {
            throw new IllegalArgumentException("missing --" + name + "; usage: " + usage);
        }
        return value;
    }
}
