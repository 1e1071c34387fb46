package io.github.nccl4j.ras;

/**
 * Format of what a RAS service sends.
 *
 * @since 0.1
 */
public enum RasFormat {
    /** Text for people: a summary, and the ranks that differ from most others. Its form changes with the release of NCCL. */
    TEXT,
    /** As {@link #TEXT}, with more of the ranks that differ, and with the state of the connections between the processes. */
    VERBOSE_TEXT,
    /** JSON objects with all that RAS has collected, since NCCL 2.28.7. */
    JSON
}
