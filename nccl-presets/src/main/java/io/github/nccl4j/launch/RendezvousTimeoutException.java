package io.github.nccl4j.launch;

import java.util.Arrays;
import java.util.List;

/**
 * Thrown if a call on a {@link Rendezvous} reaches its timeout.
 *
 * <p>Instances are immutable.
 *
 * @since 0.1
 */
public final class RendezvousTimeoutException extends RendezvousException {
    private static final long serialVersionUID = 1L;

    /** The missing ranks; an array, because the exception must be serializable. */
    private final int[] missing;

    /**
     * Creates an exception. For implementations of {@link Rendezvous}.
     *
     * @param message the call, its timeout, and the missing ranks
     * @param missing the ranks that did not arrive, in ascending order; empty if they are not known
     */
    public RendezvousTimeoutException(String message, List<Integer> missing) {
        super(message);
        this.missing = missing.stream().mapToInt(Integer::intValue).toArray();
    }

    /**
     * Returns the ranks that did not arrive.
     *
     * @return the ranks in ascending order; empty if they are not known
     */
    public List<Integer> missing() {
        return Arrays.stream(missing).boxed().toList();
    }

    @Override
    public String helpId() {
        return "NCCL4J-0012";
    }
}
