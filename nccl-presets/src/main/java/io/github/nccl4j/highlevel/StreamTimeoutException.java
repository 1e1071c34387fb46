package io.github.nccl4j.highlevel;

import io.github.nccl4j.library.NcclException;
import java.time.Duration;

/**
 * A stream or an event was not done in time. Its work goes on: it may be waited for again, or be given up by aborting the
 * communicator that it belongs to. Instances are immutable.
 */
public final class StreamTimeoutException extends NcclException {
    private static final long serialVersionUID = 1L;

    /** The limit. */
    private final Duration timeout;

    StreamTimeoutException(String what, Duration timeout) {
        super(what + " was not done after " + timeout);
        this.timeout = timeout;
    }

    /** {@return how long was waited} */
    public Duration timeout() {
        return timeout;
    }
}
