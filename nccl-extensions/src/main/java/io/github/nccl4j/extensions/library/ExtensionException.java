package io.github.nccl4j.extensions.library;

import io.github.nccl4j.highlevel.NcclException;
import io.github.nccl4j.highlevel.Result;

/**
 * A function of NCCL M2N or NCCL EP failed. The message has the function, its result, and the reason that the library gives.
 *
 * <p>Instances are immutable and may be used in any thread.
 *
 * @since 0.1
 */
public final class ExtensionException extends NcclException {
    private static final long serialVersionUID = 1L;

    /** The result of the function. */
    private final int code;

    /**
     * Creates an exception.
     *
     * @param function the name of the function in C
     * @param code the result of the call
     * @param reason the reason that the library gives; may be empty
     */
    public ExtensionException(String function, int code, String reason) {
        super(function + " failed: " + Result.of(code).name() + (reason.isBlank() ? "" : ": " + reason.strip()));
        this.code = code;
    }

    /** {@return the result of the function} */
    public Result result() {
        return Result.of(code);
    }
}
