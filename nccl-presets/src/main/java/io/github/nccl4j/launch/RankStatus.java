package io.github.nccl4j.launch;

import java.time.Duration;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The status of one rank, as a {@link StoreObserver} saw it.
 *
 * @param rank the rank
 * @param state the state of the rank, by its answer or by its connection to the store
 * @param process its address and process, such as "10.0.0.7, process 4711"; empty if it has not joined
 * @param silence how long the store has heard nothing from it; zero unless it is {@link State#SILENT}
 * @param texts what it answered, by topic: see {@link Rendezvous#status}
 * @param omitted the number of texts that are left out because the answer would be too long
 * @since 0.1
 */
public record RankStatus(
        int rank, State state, String process, Duration silence, Map<String, String> texts, int omitted) {

    /** Whether a rank answered. */
    public enum State {
        /** It answered. */
        ANSWERED,
        /** It did not answer, and has sent no heartbeat for a while: its process is stopped, or can't be reached. */
        SILENT,
        /** It did not answer in time. */
        NO_ANSWER,
        /** Its connection to the store has ended. */
        LOST,
        /** It has closed its store. */
        LEFT,
        /** It has not joined. */
        MISSING
    }

    /**
     * Copies the texts.
     *
     * @param rank the rank
     * @param state the state of the rank, by its answer or by its connection to the store
     * @param process its address and process, such as "10.0.0.7, process 4711"; empty if it has not joined
     * @param silence how long the store has heard nothing from it; zero unless it is {@link State#SILENT}
     * @param texts what it answered, by topic: see {@link Rendezvous#status}
     * @param omitted the number of texts that are left out because the answer would be too long
     */
    public RankStatus {
        texts = Collections.unmodifiableMap(new LinkedHashMap<>(texts));
    }
}
