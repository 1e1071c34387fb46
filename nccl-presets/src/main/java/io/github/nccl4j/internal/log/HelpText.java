package io.github.nccl4j.internal.log;

/** Names the command that explains an id of docs/errors.md, at the end of exceptions and warnings. */
public final class HelpText {
    private HelpText() {}

    /** {@return " (nccl4j explain NCCL4J-0006)"} */
    public static String of(String id) {
        return " (nccl4j explain " + id + ")";
    }

    /** Puts the command at the end of the first line of a text. */
    public static String in(String text, String id) {
        int end = text.indexOf('\n');
        return end < 0 ? text + of(id) : text.substring(0, end) + of(id) + text.substring(end);
    }
}
