package io.github.nccl4j.header;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What comments say about releases. */
final class Comments {
    private static final Pattern SINCE = Pattern.compile("@since[ \\t]+([^\\r\\n]*[^\\s*])");
    private static final Pattern RELEASE = Pattern.compile("\\s*(\\d+\\.\\d+\\.\\d+)(?::|\\s|$)");

    private Comments() {}

    /**
     * What a doc comment says after {@code @since}.
     *
     * @return for example {@code NCCL 2.3.5}; empty if it has no such tag
     */
    static String since(String comment) {
        Matcher matcher = SINCE.matcher(comment);
        return matcher.find() ? matcher.group(1) : "";
    }

    /**
     * The release at the start of a comment behind a declaration, as in <code>{@literal /}* 2.27.3: 0 or 1
     * *{@literal /}</code>.
     *
     * @return for example {@code NCCL 2.27.3}; empty if it names none
     */
    static String release(String comment) {
        Matcher matcher = RELEASE.matcher(comment);
        return matcher.lookingAt() ? "NCCL " + matcher.group(1) : "";
    }
}
