package io.github.nccl4j.highlevel;

/**
 * Thrown if a thread was interrupted while it waited for other ranks or for work on the device. The communicator was
 * aborted; the progress of the call on the other ranks is unknown. The thread's interrupt status is set.
 *
 * <p>Instances are immutable and may be used in any thread.
 *
 * @since 0.1
 */
public final class NcclInterruptedException extends NcclException {
    private static final long serialVersionUID = 1L;

    NcclInterruptedException(String message) {
        super(message);
    }

    @Override
    public String helpId() {
        return "NCCL4J-0014";
    }
}
