package io.github.nccl4j.internal.failure;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.NcclResultException;

/** Converts results of native functions to exceptions. */
public final class Status {
    private Status() {}

    /** As {@link #check(int, String, int, String, long)}, for a call that belongs to no communicator. */
    public static void check(int result, String operation) {
        if (result != nccl.ncclSuccess) {
            throw failure(result, operation, -1, "", 0);
        }
    }

    /**
     * Checks a call that must have succeeded when it returns. {@code ncclInProgress} is an error here: the communicator
     * is non-blocking, and the caller should have used {@link #isFinished}.
     *
     * @param result the result of the function
     * @param operation the C name of the function
     * @param rank the rank that made the call, or -1
     * @param communicatorName the communicator's name, or empty
     * @param communicator the communicator's handle, or 0
     */
    public static void check(int result, String operation, int rank, String communicatorName, long communicator) {
        if (result != nccl.ncclSuccess) {
            throw failure(result, operation, rank, communicatorName, communicator);
        }
    }

    /**
     * Checks a call that may continue after it has returned.
     *
     * @return true if it succeeded, false if it is in progress
     */
    public static boolean isFinished(
            int result, String operation, int rank, String communicatorName, long communicator) {
        if (result == nccl.ncclInProgress) {
            return false;
        }
        check(result, operation, rank, communicatorName, communicator);
        return true;
    }

    /** Returns the exception for an error. */
    public static NcclResultException failure(
            int result, String operation, int rank, String communicatorName, long communicator) {
        NcclLibrary library = NcclLibrary.get();
        long began = System.currentTimeMillis() - LastError.LONGEST_CALL_MILLIS;
        String text = LastError.current(communicator);
        LastError.Messages messages = new LastError.Messages(
                LastError.quote(library, text, began, communicator, operation + " " + result),
                Failure.warnings(rank, communicatorName, communicator, began));
        return new FailureReport(operation, library)
                .at(rank, communicatorName)
                .messages(messages)
                .failed(result);
    }
}
