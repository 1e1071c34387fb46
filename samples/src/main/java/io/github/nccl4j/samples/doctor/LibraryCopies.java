package io.github.nccl4j.samples.doctor;

import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** The copies of NCCL that a process has mapped, by its {@code /proc/PID/maps}. */
final class LibraryCopies {

    /** libnccl.so, but not the plugins, libnccl-net.so and others. */
    private static final Pattern MAPPED =
            Pattern.compile(".* (/\\S.*/(?:libnccl|librccl)\\.so[.\\d]*)( \\(deleted\\))?");

    private LibraryCopies() {}

    static List<String> of(Stream<String> maps) {
        return maps.map(MAPPED::matcher)
                .filter(Matcher::matches)
                .map(line -> line.group(1))
                .distinct()
                .sorted()
                .toList();
    }
}
