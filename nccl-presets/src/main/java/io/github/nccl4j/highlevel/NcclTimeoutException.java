package io.github.nccl4j.highlevel;

import java.util.Arrays;
import java.util.List;

/**
 * An operation has not finished within its time limit. It may still be running, and a rank that was late may yet come:
 * abort the communicator before its buffers are used again.
 *
 * <p>Instances are immutable.
 */
public final class NcclTimeoutException extends NcclResultException {
    private static final long serialVersionUID = 1L;

    /** The ranks that were asked and have not answered. */
    private final int[] silentRanks;

    NcclTimeoutException(Failure failure) {
        super(failure);
        silentRanks = failure.silent().stream().mapToInt(Integer::intValue).toArray();
    }

    /**
     * The ranks that did not answer within a second when this rank asked all of them at its deadline: they are stopped, lost,
     * or have dropped the communicator. The message tells what those that did answer are at, where that is something else.
     *
     * <p>Ranks can be asked where they have met at a {@link io.github.nccl4j.launch.TcpStore} that is still open, as those of
     * {@link Communicator#fromEnvironment()} have.
     *
     * @return the ranks; empty if all have answered, or none could be asked
     */
    public List<Integer> silentRanks() {
        return Arrays.stream(silentRanks).boxed().toList();
    }
}
