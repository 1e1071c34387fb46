package io.github.nccl4j.launch;

/**
 * A rank whose process has ended, or cannot be reached, while it was a member: see {@link Membership}.
 *
 * <p>Instances are immutable.
 *
 * @param rank the number under which it was a member
 * @param process the address and id of its process, such as "10.0.0.7, process 4711"
 * @param reason how the loss was noticed, such as "its connection to the store has ended"
 * @since 0.1
 */
public record LostRank(int rank, String process, String reason) {
    /** {@return such as "rank 2 (10.0.0.7, process 4711) is lost: its connection to the store has ended"} */
    @Override
    public String toString() {
        return "rank " + rank + " (" + process + ") is lost: " + reason;
    }
}
