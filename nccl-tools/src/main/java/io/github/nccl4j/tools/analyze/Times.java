package io.github.nccl4j.tools.analyze;

import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Locale;

/** Times in reports. */
final class Times {
    private static final DateTimeFormatter TIME =
            DateTimeFormatter.ofPattern("HH:mm:ss.SSS", Locale.ROOT).withZone(ZoneOffset.UTC);

    private Times() {}

    /** "12:03:04.120", UTC. */
    static String text(long micros) {
        return TIME.format(Instant.ofEpochMilli(micros / 1000));
    }

    /** "1.204 s". */
    static String seconds(long micros) {
        return String.format(Locale.ROOT, "%.3f s", micros / 1e6);
    }
}
