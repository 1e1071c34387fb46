package io.github.nccl4j.tools.doctor;

import java.util.Locale;

/** Writes JSON objects, arrays and strings, and separates them by commas. Not thread-safe. */
final class Json {
    private final StringBuilder text = new StringBuilder();
    private boolean first = true;

    Json open(char bracket) {
        separate();
        text.append(bracket);
        first = true;
        return this;
    }

    Json close(char bracket) {
        text.append(bracket);
        first = false;
        return this;
    }

    Json name(String name) {
        separate();
        quote(name);
        text.append(':');
        first = true;
        return this;
    }

    Json value(String value) {
        separate();
        quote(value);
        return this;
    }

    Json field(String name, String value) {
        return name(name).value(value);
    }

    private void separate() {
        if (!first) {
            text.append(',');
        }
        first = false;
    }

    private void quote(String value) {
        text.append('"');
        value.chars().forEach(c -> {
            if (c == '"' || c == '\\') {
                text.append('\\').append((char) c);
            } else if (c < ' ') {
                text.append(String.format(Locale.ROOT, "\\u%04x", c));
            } else {
                text.append((char) c);
            }
        });
        text.append('"');
    }

    @Override
    public String toString() {
        return text.toString();
    }
}
