package io.github.nccl4j.tools.support;

import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** Finds the copies of NCCL in the lines of {@code /proc/PID/maps}. */
public final class LibraryCopies {

    /** Matches libnccl.so and librccl.so, but not plugins such as libnccl-net.so. */
    private static final Pattern LIBRARY =
            Pattern.compile(".* (/\\S.*/(?:libnccl|librccl)\\.so[.\\d]*)( \\(deleted\\))?");

    /** Matches also the host engine. */
    private static final Pattern LIBRARY_OR_ENGINE =
            Pattern.compile(".* (/\\S.*/(?:libnccl|librccl|libnccl4j_host)\\.so[.\\d]*)( \\(deleted\\))?");

    private LibraryCopies() {}

    /**
     * Returns the paths of the copies, sorted.
     *
     * @param maps the lines
     */
    public static List<String> of(Stream<String> maps) {
        return matching(LIBRARY, maps);
    }

    /**
     * As {@link #of}, with the host engine.
     *
     * @param maps the lines
     */
    public static List<String> withHostEngine(Stream<String> maps) {
        return matching(LIBRARY_OR_ENGINE, maps);
    }

    private static List<String> matching(Pattern library, Stream<String> maps) {
        return maps.map(library::matcher)
                .filter(Matcher::matches)
                .map(line -> line.group(1))
                .distinct()
                .sorted()
                .toList();
    }
}
