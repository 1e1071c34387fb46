package io.github.nccl4j.ras;

import io.github.nccl4j.highlevel.NcclException;
import org.jspecify.annotations.NullUnmarked;

/**
 * Thrown if a RAS service can't be asked: nothing or another service listens at the address, or the service does not
 * respond in time.
 *
 * <p>Instances are immutable.
 *
 * @since 0.1
 */
public final class RasException extends NcclException {
    private static final long serialVersionUID = 1L;

    RasException(String message) {
        super(message);
    }

    @NullUnmarked
    RasException(String message, Throwable cause) {
        super(message, cause);
    }

    @Override
    public String helpId() {
        return "NCCL4J-0015";
    }
}
