package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.failure.Failure;
import java.util.Arrays;
import java.util.List;

/**
 * Thrown if an operation did not finish within its time limit. The operation may still be running, and a late rank may
 * still join: abort the communicator before reusing its buffers.
 *
 * <p>Instances are immutable.
 *
 * @since 0.1
 */
public final class NcclTimeoutException extends NcclResultException {
    private static final long serialVersionUID = 1L;

    /** The ranks that were asked and have not answered. */
    private final int[] silentRanks;

    NcclTimeoutException(Failure failure) {
        super(failure);
        silentRanks =
                failure.ranks().silent().stream().mapToInt(Integer::intValue).toArray();
    }

    /**
     * Returns the ranks that did not answer within 1 s when this rank asked all ranks at its deadline: these ranks are
     * stopped, lost, or have dropped the communicator. The message gives the status of each rank that answered, if that
     * status differs from this rank's.
     *
     * <p>Ranks can be asked if they met at a {@link io.github.nccl4j.launch.TcpStore} that is still open, as the ranks
     * of {@link Communicator#fromEnvironment()} do.
     *
     * @return the ranks; empty if all have answered, or if they could not be asked
     */
    public List<Integer> silentRanks() {
        return Arrays.stream(silentRanks).boxed().toList();
    }

    @Override
    public String helpId() {
        return "NCCL4J-0006";
    }
}
