package io.github.nccl4j.samples.support;

import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Sizes in bytes as nccl-tests takes them: a number with an optional suffix K, M or G (powers of 1024). */
public final class ByteSize {

    private static final Pattern FORM = Pattern.compile("(\\d{1,18})([KMG]?)B?");

    private ByteSize() {}

    /**
     * Reads a size.
     *
     * @param text such as {@code 8}, {@code 512K}, {@code 64m} or {@code 1GB}
     * @return the number of bytes
     * @throws IllegalArgumentException if the text is not a size or the size does not fit a long
     */
    public static long parse(String text) {
        Matcher matcher = FORM.matcher(text.strip().toUpperCase(Locale.ROOT));
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
