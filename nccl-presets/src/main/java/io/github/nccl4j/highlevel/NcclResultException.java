package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.failure.Failure;
import io.github.nccl4j.library.SystemText;
import java.nio.file.Path;
import java.util.List;

/**
 * Thrown if a function of NCCL returned an error. The message contains all properties and a remedy:
 *
 * <pre>
 * ncclCommInitRank failed at rank 3 of communicator 'train': ncclSystemError (2), a call of the operating system failed.
 * NCCL says: Call to connect to 10.0.0.7 failed : Connection refused [NCCL 2.28.3 from /usr/lib/libnccl.so.2]
 * Check network interfaces, firewalls, /dev/shm and limits; NCCL_DEBUG=WARN shows the call.
 * </pre>
 *
 * <p>This class itself represents errors of CUDA, of the system and within NCCL, and codes that nccl4j does not know,
 * which a program cannot handle. Errors that a program can handle have subclasses: {@link NcclUsageException} (correct
 * the program), {@link NcclRemoteException} (continue without the lost rank) and {@link NcclTimeoutException} (find the
 * late rank).
 *
 * <p>Instances are immutable.
 *
 * @since 0.1
 */
public sealed class NcclResultException extends NcclException
        permits NcclRemoteException, NcclTimeoutException, NcclUsageException {
    private static final long serialVersionUID = 1L;

    /** The code that was returned. */
    private final int code;

    /** The C function. */
    private final String operation;

    /** The rank, or -1. */
    private final int rank;

    /** The communicator's name, or empty. */
    private final String communicatorName;

    /** The path of the library. */
    private final String libraryPath;

    /** The version code from {@code ncclGetVersion}. */
    private final int versionCode;

    /** NCCL's text, or empty. */
    private final String lastError;

    /** NCCL's last warnings; null in an exception that came from another process. */
    private final transient List<NcclLog.Line> warnings;

    /** Returns the exception of the class for a failure. */
    static NcclResultException of(Failure failure) {
        Result result = failure.result();
        if (result.equals(Result.REMOTE_ERROR)) {
            return new NcclRemoteException(failure);
        }
        if (result.equals(Result.TIMEOUT)) {
            return new NcclTimeoutException(failure);
        }
        if (result.equals(Result.INVALID_ARGUMENT) || result.equals(Result.INVALID_USAGE)) {
            return new NcclUsageException(failure);
        }
        return new NcclResultException(failure);
    }

    NcclResultException(Failure failure) {
        super(failure.message());
        this.code = failure.result().code();
        this.operation = failure.call().function();
        this.rank = failure.call().rank();
        this.communicatorName = failure.call().communicatorName();
        this.libraryPath = failure.call().library().path();
        this.versionCode = failure.call().library().versionCode();
        this.lastError = failure.lastError();
        this.warnings = List.copyOf(failure.warnings());
    }

    /**
     * Returns the result of the function.
     *
     * @return the result, one without a constant if the library is newer than nccl4j
     */
    public Result result() {
        return Result.of(code);
    }

    /**
     * Returns the function that failed.
     *
     * @return a C name, such as "ncclAllReduce"
     */
    public String operation() {
        return operation;
    }

    /**
     * Returns the rank that called the function.
     *
     * @return the rank; -1 if the function belongs to no communicator
     */
    public int rank() {
        return rank;
    }

    /**
     * Returns the name of the communicator.
     *
     * @return the name; empty if the communicator has no name or the function belongs to no communicator
     */
    public String communicatorName() {
        return communicatorName;
    }

    /**
     * Returns the library that returned the error.
     *
     * @return the path of the library
     */
    public Path libraryPath() {
        return SystemText.path(libraryPath);
    }

    /**
     * Returns the release of the library.
     *
     * @return the version of the library
     */
    public Version libraryVersion() {
        return Version.of(versionCode);
    }

    /**
     * Returns NCCL's last-error text if NCCL wrote it after the call or the operation began. NCCL has one text per
     * process; with several threads, the text may belong to another call.
     *
     * @return NCCL's text; empty if there is none, or only an older one
     */
    public String lastError() {
        return lastError;
    }

    /**
     * Returns NCCL's warnings since the call or the operation began, oldest first: those of this rank and communicator,
     * and those of unknown origin.
     *
     * @return the warnings; empty unless {@link NcclLog} was started
     */
    public List<NcclLog.Line> warnings() {
        return warnings == null ? List.of() : warnings;
    }

    @Override
    public String helpId() {
        return "NCCL4J-0003";
    }
}
