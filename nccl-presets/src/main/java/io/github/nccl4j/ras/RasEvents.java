package io.github.nccl4j.ras;

import java.util.Locale;

/**
 * Groups of events that a RAS service reports, since NCCL 2.29.
 *
 * @since 0.1
 */
public enum RasEvents {
    /** Processes that join, leave, or are considered dead. */
    LIFECYCLE,
    /** The messages between the RAS threads of the processes. */
    TRACE;

    String word() {
        return name().toLowerCase(Locale.ROOT);
    }
}
