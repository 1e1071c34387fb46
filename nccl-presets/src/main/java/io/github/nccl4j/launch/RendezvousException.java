package io.github.nccl4j.launch;

import io.github.nccl4j.library.NcclException;

/**
 * The ranks could not tell each other what they wanted to: one is lost, has failed, or does not agree with the others. The
 * message says which.
 *
 * <p>Instances are immutable.
 */
public class RendezvousException extends NcclException {
    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception; implementations of {@link Rendezvous} do.
     *
     * @param message what went wrong, and at which rank
     */
    public RendezvousException(String message) {
        super(message);
    }

    /**
     * Creates an exception with a cause.
     *
     * @param message what went wrong, and at which rank
     * @param cause what led to it, or null
     */
    public RendezvousException(String message, Throwable cause) {
        super(message, cause);
    }
}
