package io.github.nccl4j.header;

import java.util.Comparator;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A release of NCCL, such as 2.30.7, or of one of its extensions. Immutable.
 *
 * @param major the first number
 * @param minor the second number
 * @param patch the third number
 */
public record Release(int major, int minor, int patch) implements Comparable<Release> {
    private static final Pattern TEXT = Pattern.compile("(?:NCCL (?:M2N |EP )?)?(\\d+)\\.(\\d+)\\.(\\d+)");
    private static final Comparator<Release> ORDER = Comparator.comparingInt(Release::major)
            .thenComparingInt(Release::minor)
            .thenComparingInt(Release::patch);

    /**
     * Parses a release such as {@code 2.30.7}, {@code NCCL 2.30.7} or {@code NCCL EP 0.2.0}.
     *
     * @param text the text
     * @return the release, or empty if the text is not a release of NCCL, such as {@code VCCL a2av_base}
     */
    public static Optional<Release> of(String text) {
        Matcher matcher = TEXT.matcher(text);
        return matcher.matches()
                ? Optional.of(new Release(
                        Integer.parseInt(matcher.group(1)),
                        Integer.parseInt(matcher.group(2)),
                        Integer.parseInt(matcher.group(3))))
                : Optional.empty();
    }

    @Override
    public int compareTo(Release other) {
        return ORDER.compare(this, other);
    }

    @Override
    public String toString() {
        return major + "." + minor + "." + patch;
    }
}
