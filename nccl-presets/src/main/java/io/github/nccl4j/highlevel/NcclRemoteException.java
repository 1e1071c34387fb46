package io.github.nccl4j.highlevel;

/**
 * Thrown if another rank has ended or cannot be reached. This rank is intact: it can abort the communicator and
 * continue with a new one without the lost rank.
 *
 * <p>Instances are immutable.
 *
 * @since 0.1
 */
public final class NcclRemoteException extends NcclResultException {
    private static final long serialVersionUID = 1L;

    NcclRemoteException(Failure failure) {
        super(failure);
    }

    @Override
    public String helpId() {
        return "NCCL4J-0005";
    }
}
