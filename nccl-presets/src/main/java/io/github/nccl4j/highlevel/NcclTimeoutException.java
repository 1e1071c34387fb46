package io.github.nccl4j.highlevel;

/**
 * An operation has not finished within its time limit. It may still be running, and a rank that was late may yet come:
 * abort the communicator before its buffers are used again.
 *
 * <p>Instances are immutable.
 */
public final class NcclTimeoutException extends NcclResultException {
    private static final long serialVersionUID = 1L;

    NcclTimeoutException(Failure failure) {
        super(failure);
    }
}
