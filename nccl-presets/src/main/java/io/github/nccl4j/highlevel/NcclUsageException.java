package io.github.nccl4j.highlevel;

/**
 * NCCL refused a call for its arguments, or because it is not allowed here: {@link Result#INVALID_ARGUMENT} or
 * {@link Result#INVALID_USAGE}. The program has to be corrected; calling again fails again.
 *
 * <p>Instances are immutable.
 */
public final class NcclUsageException extends NcclResultException {
    private static final long serialVersionUID = 1L;

    NcclUsageException(Failure failure) {
        super(failure);
    }
}
