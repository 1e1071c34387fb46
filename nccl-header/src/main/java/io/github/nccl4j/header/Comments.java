package io.github.nccl4j.header;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Extracts releases from comments. */
final class Comments {
    private static final Pattern SINCE = Pattern.compile("@since[ \\t]+([^\\r\\n]*[^\\s*])");
    private static final Pattern RELEASE = Pattern.compile("\\s*(\\d+\\.\\d+\\.\\d+)(?::|\\s|$)");

    private Comments() {}

    /**
     * Returns the text after {@code @since} in a doc comment.
     *
     * @return the text, such as {@code NCCL 2.3.5}, or empty if the comment has no such tag
     */
    static String since(String comment) {
        Matcher matcher = SINCE.matcher(comment);
        return matcher.find() ? matcher.group(1) : "";
    }

    /**
     * Returns the release at the start of a comment after a declaration, as in <code>{@literal /}* 2.27.3: 0 or 1
     * *{@literal /}</code>.
     *
     * @return the release, such as {@code NCCL 2.27.3}, or empty if the comment does not begin with one
     */
    static String release(String comment) {
        Matcher matcher = RELEASE.matcher(comment);
        return matcher.lookingAt() ? "NCCL " + matcher.group(1) : "";
    }
}
