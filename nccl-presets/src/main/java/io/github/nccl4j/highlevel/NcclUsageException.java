package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.failure.Failure;

/**
 * Thrown if NCCL refused a call because of its arguments, or because the call is not allowed in the present state:
 * {@link Result#INVALID_ARGUMENT} or {@link Result#INVALID_USAGE}. The program must be corrected; the same call fails
 * again.
 *
 * <p>Instances are immutable.
 *
 * @since 0.1
 */
public final class NcclUsageException extends NcclResultException {
    private static final long serialVersionUID = 1L;

    NcclUsageException(Failure failure) {
        super(failure);
    }

    @Override
    public String helpId() {
        return "NCCL4J-0004";
    }
}
