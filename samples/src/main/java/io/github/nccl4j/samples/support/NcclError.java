package io.github.nccl4j.samples.support;

import io.github.nccl4j.global.nccl;

/** A call of NCCL or CUDA that did not succeed. */
public final class NcclError extends RuntimeException {

    private static final long serialVersionUID = 1;

    NcclError(String message) {
        super(message);
    }

    /**
     * Checks a result of NCCL.
     *
     * @param result what the function returned
     * @param operation its name
     * @param rank the rank that called it
     * @param comm the communicator, or 0
     * @throws NcclError if the result is not {@code ncclSuccess}
     */
    public static void check(int result, String operation, int rank, long comm) {
        if (result == nccl.ncclSuccess) {
            return;
        }
        String detail = nccl.ncclGetLastError(comm);
        throw new NcclError("rank " + rank + ": " + operation + " failed: " + nccl.ncclGetErrorString(result)
                + " (result " + result + ")" + (detail == null || detail.isBlank() ? "" : ": " + detail.strip()));
    }
}
