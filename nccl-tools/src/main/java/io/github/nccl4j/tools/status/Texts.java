package io.github.nccl4j.tools.status;

import java.util.Locale;

/** Words of the reports. */
final class Texts {
    private Texts() {}

    /** "3.2 s". */
    static String seconds(double seconds) {
        return String.format(Locale.ROOT, "%.1f s", seconds);
    }
}
