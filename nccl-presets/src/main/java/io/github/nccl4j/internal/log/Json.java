package io.github.nccl4j.internal.log;

import java.util.List;
import java.util.Locale;
import java.util.function.BiConsumer;

/**
 * Writer for a JSON object of strings, numbers and lists of objects. Each element of a list is on a line of its own.
 */
public final class Json {
    private final StringBuilder text = new StringBuilder();
    private boolean first;

    public Json begin() {
        text.append('{');
        first = true;
        return this;
    }

    public Json end() {
        text.append('}');
        first = false;
        return this;
    }

    public Json field(String name, Object value) {
        name(name);
        if (value == null || value instanceof Number) {
            text.append(value);
        } else {
            string(value.toString());
        }
        return this;
    }

    /** Begins an object in a field; {@link #end} ends it. */
    public Json object(String name) {
        name(name);
        return begin();
    }

    public <T> Json list(String name, List<T> elements, BiConsumer<Json, T> fields) {
        name(name);
        text.append('[');
        String separator = "\n";
        for (T element : elements) {
            text.append(separator);
            begin();
            fields.accept(this, element);
            end();
            separator = ",\n";
        }
        text.append("\n]");
        return this;
    }

    private void name(String name) {
        text.append(first ? "" : ", ");
        first = false;
        string(name);
        text.append(": ");
    }

    private void string(String value) {
        text.append('"');
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            if (c == '"' || c == '\\') {
                text.append('\\').append(c);
            } else if (c == '\n') {
                text.append("\\n");
            } else if (c < ' ') {
                text.append(String.format(Locale.ROOT, "\\u%04x", (int) c));
            } else {
                text.append(c);
            }
        }
        text.append('"');
    }

    @Override
    public String toString() {
        return text.toString();
    }
}
