package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.threads.Timeouts;
import java.time.Duration;

/**
 * Thrown if a stream or an event was not done in time. The work continues: wait for it again, or abort the communicator
 * of the work. Instances are immutable.
 *
 * @since 0.1
 */
public final class StreamTimeoutException extends NcclException {
    private static final long serialVersionUID = 1L;

    /** The limit. */
    private final Duration timeout;

    StreamTimeoutException(String what, Duration timeout) {
        super(what + " was not done after " + Timeouts.text(timeout));
        this.timeout = timeout;
    }

    /** {@return the timeout} */
    public Duration timeout() {
        return timeout;
    }

    @Override
    public String helpId() {
        return "NCCL4J-0013";
    }
}
