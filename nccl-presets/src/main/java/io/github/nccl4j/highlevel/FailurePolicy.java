package io.github.nccl4j.highlevel;

/**
 * A policy for failures. It is called when an operation has failed or timed out, before the exception is thrown. Errors
 * that only report a wrong call are not failures; the communicator stays usable.
 *
 * <p><b>Threads.</b> The thread that detected the failure calls the policy once per failure. It may be any thread, and
 * several threads may call the policy at the same time.
 *
 * @since 0.1
 */
@FunctionalInterface
public interface FailurePolicy {
    /** Does nothing: the program gets the exception and decides. The default. */
    FailurePolicy THROW = (communicator, failure) -> {};

    /** Aborts the communicator, so that its kernels leave the device and other threads that wait in it return. */
    FailurePolicy ABORT = (communicator, failure) -> communicator.abort();

    /**
     * Handles a failure. An exception that this method throws is added to the failure as a suppressed exception.
     *
     * @param communicator the communicator that failed
     * @param failure the exception that will be thrown
     */
    void onFailure(Communicator communicator, NcclException failure);
}
