package io.github.nccl4j.launch;

import java.util.List;

/**
 * The status of a job at the time of a {@link StoreObserver}'s query.
 *
 * @param job the name of the job
 * @param restart the number of the attempt
 * @param ranks the status of each rank, in the order of the ranks
 * @since 0.1
 */
public record JobStatus(String job, int restart, List<RankStatus> ranks) {
    /**
     * Copies the list.
     *
     * @param job the name of the job
     * @param restart the number of the attempt
     * @param ranks the status of each rank, in the order of the ranks
     */
    public JobStatus {
        ranks = List.copyOf(ranks);
    }
}
