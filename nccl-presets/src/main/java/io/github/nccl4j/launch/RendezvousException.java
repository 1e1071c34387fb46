package io.github.nccl4j.launch;

import io.github.nccl4j.highlevel.NcclException;
import org.jspecify.annotations.NullUnmarked;

/**
 * Thrown if ranks can't exchange values: a rank is lost, has failed, or disagrees with the others. The message names
 * the rank.
 *
 * <p>Instances are immutable.
 *
 * @since 0.1
 */
public class RendezvousException extends NcclException {
    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception. For implementations of {@link Rendezvous}.
     *
     * @param message the failure and its rank
     */
    public RendezvousException(String message) {
        super(message);
    }

    /**
     * Creates an exception with a cause.
     *
     * @param message the failure and its rank
     * @param cause the cause, or null
     */
    @NullUnmarked
    public RendezvousException(String message, Throwable cause) {
        super(message, cause);
    }

    @Override
    public String helpId() {
        return "NCCL4J-0011";
    }
}
