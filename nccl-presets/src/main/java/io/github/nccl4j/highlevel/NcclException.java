package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.log.HelpText;
import org.jspecify.annotations.NullUnmarked;

/**
 * Superclass of all exceptions for failures of NCCL or CUDA, or between ranks.
 *
 * <ul>
 *   <li>{@link NcclLibraryException}: no library could be loaded, or the library lacks the requested function or
 *       setting. Nothing was called.
 *   <li>{@link NcclResultException}: a function returned an error. The subclasses are errors that programs can handle.
 *   <li>{@link NoWindowException}: NCCL can make no window for a communicator.
 *   <li>{@link CudaException} and {@link CudaLibraryException}: a call of CUDA by a buffer or a stream failed, or CUDA's
 *       library could not be loaded.
 *   <li>{@link io.github.nccl4j.launch.RendezvousException}: the ranks could not meet.
 *   <li>{@link io.github.nccl4j.ras.RasException}: NCCL's RAS service did not give an answer.
 *   <li>{@link StreamTimeoutException}: a stream or an event was not done in time.
 *   <li>{@link NcclInterruptedException}: a thread was interrupted while it waited for other ranks.
 * </ul>
 *
 * <p>Wrong arguments that nccl4j detects before it calls NCCL throw exceptions of the JDK instead: {@link
 * IllegalArgumentException}, {@link IllegalStateException}, {@link IndexOutOfBoundsException}, {@link
 * NullPointerException}.
 *
 * <p>Instances are immutable and may be used in any thread.
 *
 * @since 0.1
 */
public abstract class NcclException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception.
     *
     * @param message the message */
    protected NcclException(String message) {
        super(message);
    }

    /**
     * Creates an exception with a cause.
     *
     * @param message the message
     * @param cause the cause, or null
     */
    @NullUnmarked
    protected NcclException(String message, Throwable cause) {
        super(message, cause);
    }

    /**
     * Returns the id of this kind of failure: the section of {@code docs/errors.md} whose heading begins with the id says what to try.
     * The id is part of {@link #toString}, and so of stack traces, but not of the message. It stays the same in all releases.
     *
     * @return an id such as "NCCL4J-0006"
     */
    public String helpId() {
        return "NCCL4J-0001";
    }

    /**
     * {@return the name of the class and the message, with the command that explains the {@link #helpId} at the end of the first line}
     */
    @Override
    public String toString() {
        return HelpText.in(super.toString(), helpId());
    }
}
