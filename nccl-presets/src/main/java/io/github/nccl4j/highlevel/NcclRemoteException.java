package io.github.nccl4j.highlevel;

/**
 * Another rank has ended or cannot be reached. This rank is sound: it can abort the communicator and go on with a new one
 * that leaves the lost rank out.
 *
 * <p>Instances are immutable.
 */
public final class NcclRemoteException extends NcclResultException {
    private static final long serialVersionUID = 1L;

    NcclRemoteException(Failure failure) {
        super(failure);
    }
}
