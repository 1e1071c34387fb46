package io.github.nccl4j.highlevel;

import io.github.nccl4j.library.NcclException;

/**
 * A thread was interrupted while it waited for other ranks or for work on the device. The communicator was aborted: what
 * the other ranks have of the call is not known. The thread's interrupt status is set.
 *
 * <p>Instances are immutable and may be used in any thread.
 */
public final class NcclInterruptedException extends NcclException {
    private static final long serialVersionUID = 1L;

    NcclInterruptedException(String message) {
        super(message);
    }
}
