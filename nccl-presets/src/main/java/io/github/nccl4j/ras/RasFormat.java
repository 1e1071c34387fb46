package io.github.nccl4j.ras;

/**
 * Formats of a RAS service's reports and events.
 *
 * @since 0.1
 */
public enum RasFormat {
    /** Text for people: a summary, and the ranks that differ from most others. Its form changes with the release of NCCL. */
    TEXT,
    /** As {@link #TEXT}, with more of the differing ranks and the state of the connections between the processes. */
    VERBOSE_TEXT,
    /** JSON objects with all data of RAS, since NCCL 2.28.7. */
    JSON
}
