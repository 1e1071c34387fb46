package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.failure.Failure;
import java.util.Arrays;
import java.util.List;

/**
 * Thrown if another rank has ended or cannot be reached. This rank is intact: it can abort the communicator and
 * continue with a new one without the lost rank.
 *
 * <p>The loss is reported by NCCL or by the store at which the ranks met. NCCL reports no loss over NVLink and shared
 * memory; the store reports a loss at once and for every transport. The store's report names the rank, the address and
 * the id of its process, and the reason why the rank counts as lost:
 *
 * <pre>
 * The store reports: rank 2 (10.0.0.7, process 4711) is lost: its connection to the store has ended
 * </pre>
 *
 * <p>With a patience ({@code NCCL4J_STORE_PATIENCE}), a rank whose connection to the store is silent for longer, because a link is cut or
 * the rank was stopped, counts as lost for the others. It gets this exception, too, which then says "This rank is lost", and
 * can't continue with the others.
 *
 * <p>Instances are immutable.
 *
 * @since 0.1
 */
public final class NcclRemoteException extends NcclResultException {
    private static final long serialVersionUID = 1L;

    /** The ranks that the store reported. */
    private final int[] lostRanks;

    NcclRemoteException(Failure failure) {
        super(failure);
        lostRanks = failure.ranks().lost().stream().mapToInt(Integer::intValue).toArray();
    }

    /**
     * Returns the ranks of the communicator that the store reported as lost, until this exception was created.
     *
     * @return the ranks in ascending order, this rank if it is cut off from the store; empty if the ranks did not meet at a
     *     store, or the store did not report the loss
     */
    public List<Integer> lostRanks() {
        return Arrays.stream(lostRanks).boxed().toList();
    }

    @Override
    public String helpId() {
        return "NCCL4J-0005";
    }
}
