package io.github.nccl4j.highlevel;

import io.github.nccl4j.library.NcclException;

/**
 * What a communicator does when an operation has failed or was not done in time, before the exception is thrown. Errors
 * that only say that a call was wrong are not failures: the communicator can still be used.
 *
 * <p>It is called in the thread that found out, which may be any, and once for each failure: by several threads at a time
 * where several find one.
 */
@FunctionalInterface
public interface FailurePolicy {
    /** Does nothing: the program gets the exception and decides. The default. */
    FailurePolicy THROW = (communicator, failure) -> {};

    /** Aborts the communicator, so that its kernels leave the device and other threads that wait in it return. */
    FailurePolicy ABORT = (communicator, failure) -> communicator.abort();

    /**
     * Is called with a failure. An exception of this method is added to the failure as a suppressed one.
     *
     * @param communicator where it happened
     * @param failure what will be thrown
     */
    void onFailure(Communicator communicator, NcclException failure);
}
