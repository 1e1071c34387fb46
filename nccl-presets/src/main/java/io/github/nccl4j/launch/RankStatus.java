package io.github.nccl4j.launch;

import java.time.Duration;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The status of one rank at the time of a {@link StoreObserver}'s query.
 *
 * @param rank the rank
 * @param state the state of the rank, by its answer or by its connection to the store
 * @param process the address and id of the process, such as "10.0.0.7, process 4711"; empty if the rank has not joined
 * @param silence the time since the last heartbeat of the rank; zero unless the state is {@link State#SILENT}
 * @param texts the rank's answer, by topic: see {@link Rendezvous#status}
 * @param omitted the number of texts that were omitted because the answer would be too long
 * @since 0.1
 */
public record RankStatus(
        int rank, State state, String process, Duration silence, Map<String, String> texts, int omitted) {

    /** States of a rank. */
    public enum State {
        /** The rank answered. */
        ANSWERED,
        /** No answer and no heartbeats: the process is stopped, or can't be reached. */
        SILENT,
        /** The rank did not answer in time. */
        NO_ANSWER,
        /** The connection of the rank to the store has ended. */
        LOST,
        /** The rank has closed its store. */
        LEFT,
        /** The rank has not joined. */
        MISSING
    }

    /**
     * Copies the texts.
     *
     * @param rank the rank
     * @param state the state of the rank, by its answer or by its connection to the store
     * @param process the address and id of the process, such as "10.0.0.7, process 4711"; empty if the rank has not joined
     * @param silence the time since the last heartbeat of the rank; zero unless the state is {@link State#SILENT}
     * @param texts the rank's answer, by topic: see {@link Rendezvous#status}
     * @param omitted the number of texts that were omitted because the answer would be too long
     */
    public RankStatus {
        texts = Collections.unmodifiableMap(new LinkedHashMap<>(texts));
    }
}
