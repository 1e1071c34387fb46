package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;
import java.util.List;

/**
 * The result of a function of NCCL. A library newer than nccl4j may return a code without a constant in this class; the
 * result keeps that code.
 *
 * <pre>{@code
 * try {
 *     communicator.allReduce(gradients, ReduceOp.SUM, stream);
 * } catch (NcclResultException e) {
 *     if (e.result().equals(Result.SYSTEM_ERROR)) {
 *         System.err.println(e.result().advice());
 *     }
 * }
 * }</pre>
 *
 * <p>Instances are immutable, and equal if their codes are.
 *
 * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/types.html">NCCL: types</a>
 * @since 0.1
 */
public final class Result {
    /** The call succeeded. */
    public static final Result SUCCESS = new Result(nccl.ncclSuccess, "ncclSuccess", "the call succeeded", "");

    /** A call of CUDA failed. */
    public static final Result UNHANDLED_CUDA_ERROR = new Result(
            nccl.ncclUnhandledCudaError,
            "ncclUnhandledCudaError",
            "a call of CUDA failed",
            "Check that the process sees a GPU, that its driver is new enough, and that an earlier kernel did not fail.");

    /** A call of the operating system failed. */
    public static final Result SYSTEM_ERROR = new Result(
            nccl.ncclSystemError,
            "ncclSystemError",
            "a call of the operating system failed",
            "Check network interfaces, firewalls, /dev/shm and limits; NCCL_DEBUG=WARN shows the call.");

    /** An error within NCCL, or memory that was overwritten. */
    public static final Result INTERNAL_ERROR = new Result(
            nccl.ncclInternalError,
            "ncclInternalError",
            "an error within NCCL, or memory that was overwritten",
            "Run with NCCL_DEBUG=WARN and look for the first message of any rank.");

    /** An argument has a wrong value. */
    public static final Result INVALID_ARGUMENT = new Result(
            nccl.ncclInvalidArgument,
            "ncclInvalidArgument",
            "an argument has a wrong value",
            "Correct the call; it will fail again otherwise.");

    /** A call that is not allowed here, or that other ranks make differently. */
    public static final Result INVALID_USAGE = new Result(
            nccl.ncclInvalidUsage,
            "ncclInvalidUsage",
            "a call that is not allowed here, or that other ranks make differently",
            "Compare the calls of all ranks, and the devices they use; it will fail again otherwise.");

    /** Another rank has ended or cannot be reached. */
    public static final Result REMOTE_ERROR = new Result(
            nccl.ncclRemoteError,
            "ncclRemoteError",
            "another rank has ended or cannot be reached",
            "Look for the first error of the other ranks; abort the communicator and create a new one.");

    /** The operation has not finished; not an error, but the state of a non-blocking communicator. */
    public static final Result IN_PROGRESS = new Result(
            nccl.ncclInProgress,
            "ncclInProgress",
            "the operation has not finished",
            "Wait until the communicator's state is ncclSuccess before the next call.");

    /** The operation has not finished within its time limit. */
    public static final Result TIMEOUT = new Result(
            nccl.ncclTimeout,
            "ncclTimeout",
            "the operation has not finished within its time limit",
            "Look for a rank that has not made the call; abort the communicator and create a new one.");

    private static final List<Result> KNOWN = List.of(
            SUCCESS,
            UNHANDLED_CUDA_ERROR,
            SYSTEM_ERROR,
            INTERNAL_ERROR,
            INVALID_ARGUMENT,
            INVALID_USAGE,
            REMOTE_ERROR,
            IN_PROGRESS,
            TIMEOUT);

    private final int code;
    private final String name;
    private final String meaning;
    private final String advice;

    private Result(int code, String name, String meaning, String advice) {
        this.code = code;
        this.name = name;
        this.meaning = meaning;
        this.advice = advice;
    }

    /**
     * Returns the result of a code.
     *
     * @param code any value of {@code ncclResult_t}, known or not
     * @return the result; the constant if the code has one
     */
    public static Result of(int code) {
        if (code >= 0 && code < KNOWN.size()) {
            return KNOWN.get(code);
        }
        return new Result(
                code,
                "unknown result",
                "a code that nccl4j does not know",
                "Look it up in the nccl.h of the loaded library.");
    }

    /**
     * Returns the results that have a constant.
     *
     * @return an immutable list, by code
     */
    public static List<Result> known() {
        return KNOWN;
    }

    /**
     * Returns the value of {@code ncclResult_t}.
     *
     * @return the code
     */
    public int code() {
        return code;
    }

    /**
     * Returns the name in {@code nccl.h}.
     *
     * @return a name such as "ncclRemoteError"; "unknown result" if the code has no constant
     */
    public String name() {
        return name;
    }

    /**
     * Returns the meaning of the code.
     *
     * @return a clause in English
     */
    public String meaning() {
        return meaning;
    }

    /**
     * Returns a remedy.
     *
     * @return one or two sentences in English; empty for success
     */
    public String advice() {
        return advice;
    }

    /**
     * Returns true if the code has a constant in this class.
     *
     * @return false for codes that only newer libraries know
     */
    public boolean isKnown() {
        return code >= 0 && code < KNOWN.size();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Result result && result.code == code;
    }

    @Override
    public int hashCode() {
        return code;
    }

    /** Returns name and code: "ncclRemoteError (6)". */
    @Override
    public String toString() {
        return name + " (" + code + ")";
    }
}
