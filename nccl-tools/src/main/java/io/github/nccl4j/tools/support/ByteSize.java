package io.github.nccl4j.tools.support;

import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Parses sizes in bytes as nccl-tests does: a number with an optional suffix K, M or G (powers of 1024). Stateless. */
public final class ByteSize {

    private static final Pattern SIZE = Pattern.compile("(\\d{1,18})([KMG]?)B?");

    private ByteSize() {}

    /**
     * Parses a size.
     *
     * @param text a size such as {@code 8}, {@code 512K}, {@code 64m} or {@code 1GB}
     * @return the number of bytes
     * @throws IllegalArgumentException if the text is not a size, or the size exceeds {@link Long#MAX_VALUE}
     */
    public static long parse(String text) {
        Matcher matcher = SIZE.matcher(text.strip().toUpperCase(Locale.ROOT));
        if (!matcher.matches()) {
            throw new IllegalArgumentException("not a size: '" + text + "' (a number, then K, M, G or nothing)");
        }
        int shift =
                switch (matcher.group(2)) {
                    case "K" -> 10;
                    case "M" -> 20;
                    case "G" -> 30;
                    default -> 0;
                };
        long number = Long.parseLong(matcher.group(1));
        if (number > Long.MAX_VALUE >> shift) {
            throw new IllegalArgumentException("size too large: '" + text + "'");
        }
        return number << shift;
    }
}
