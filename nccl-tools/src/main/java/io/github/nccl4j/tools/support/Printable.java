package io.github.nccl4j.tools.support;

import java.util.Locale;
import java.util.regex.Pattern;

/**
 * Texts that strangers may have made, without the characters that a terminal or a page obeys: control characters, which include
 * those of escape sequences, marks that change the direction of text, and separators of lines.
 */
public final class Printable {
    private static final String OBEYED = "\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}";
    private static final Pattern IN_LINE = Pattern.compile("[" + OBEYED + "]");
    private static final Pattern IN_LINES = Pattern.compile("[" + OBEYED + "&&[^\n\t]]");

    private Printable() {}

    /**
     * Makes a text printable in one line.
     *
     * @param text the text
     * @return the text with a space for each such character
     */
    public static String line(String text) {
        return IN_LINE.matcher(text).replaceAll(" ");
    }

    /**
     * Makes a text of several lines printable.
     *
     * @param text the text
     * @return the text with a question mark for each such character, except newlines and tabs
     */
    public static String lines(String text) {
        return IN_LINES.matcher(text).replaceAll("?");
    }

    /**
     * Makes JSON printable, without a change of its values.
     *
     * @param json JSON that has such characters only in its strings
     * @return the JSON with an escape for each such character
     */
    public static String json(String json) {
        return IN_LINE.matcher(json).replaceAll(match -> {
            StringBuilder escaped = new StringBuilder();
            match.group().chars().forEach(unit -> escaped.append(String.format(Locale.ROOT, "\\\\u%04x", unit)));
            return escaped.toString();
        });
    }
}
