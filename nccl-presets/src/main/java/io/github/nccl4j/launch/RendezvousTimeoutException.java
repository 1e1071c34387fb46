package io.github.nccl4j.launch;

import java.util.Arrays;
import java.util.List;

/**
 * Not all ranks came in time.
 *
 * <p>Instances are immutable.
 */
public final class RendezvousTimeoutException extends RendezvousException {
    private static final long serialVersionUID = 1L;

    /** The ranks that did not come. */
    private final int[] missing;

    /**
     * Creates an exception; implementations of {@link Rendezvous} do.
     *
     * @param message what was waited for, for how long, and who is missing
     * @param missing the ranks that did not come, in their order; empty if it is not known who they are
     */
    public RendezvousTimeoutException(String message, List<Integer> missing) {
        super(message);
        this.missing = missing.stream().mapToInt(Integer::intValue).toArray();
    }

    /**
     * The ranks that did not come.
     *
     * @return the ranks in their order; empty if it is not known who they are
     */
    public List<Integer> missing() {
        return Arrays.stream(missing).boxed().toList();
    }
}
