package io.github.nccl4j.launch;

/**
 * A rank whose process ended, or could not be reached, while the rank was a member; see {@link Membership}.
 *
 * <p>Instances are immutable.
 *
 * @param rank the number of the member
 * @param process the address and id of the rank's process, such as "10.0.0.7, process 4711"
 * @param reason the reason why the rank counts as lost, such as "its connection to the store has ended"
 * @since 0.1
 */
public record LostRank(int rank, String process, String reason) {
    /**
     * {@return a description, such as "rank 2 (10.0.0.7, process 4711) is lost: its connection to the store has ended"}
     */
    @Override
    public String toString() {
        return "rank " + rank + " (" + process + ") is lost: " + reason;
    }
}
