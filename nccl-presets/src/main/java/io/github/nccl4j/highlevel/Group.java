package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.submission.Batch;
import io.github.nccl4j.internal.submission.GroupScope;
import java.time.Duration;
import java.util.Objects;

/**
 * A group of operations that NCCL launches together: sends and receives that wait for each other, several collectives
 * at the cost of one launch, or operations of several communicators of one thread.
 *
 * <pre>{@code
 * Group.run(() -> {
 *     communicator.send(outgoing, next, stream);
 *     communicator.recv(incoming, previous, stream);
 * });
 * }</pre>
 *
 * <p>{@link #open}, {@link #launch} and {@link #close} do the same in parts, for code that does not fit into a lambda or
 * that calls {@link #simulate}.
 *
 * <p><b>All or nothing.</b> Until the launch, operations of this thread are checked and stored. If the body throws, none
 * of its operations is launched, and NCCL stays usable. Closing a group without {@link #launch} also drops its
 * operations, and logs a warning with them. Buffers, streams and operators that are closed before the launch are kept
 * until the launch.
 *
 * <p><b>Order.</b> Operations of one group may run at the same time, even in one stream. An operation must not read or
 * write memory that another operation of the group writes.
 *
 * <p><b>Nesting.</b> A group may be opened within another. Launching the inner group adds its operations to the outer
 * one; closing the inner group without a launch drops only its own operations. NCCL is called when the outermost group
 * is launched.
 *
 * <p><b>Results.</b> Communicators and windows that are created within a group are pending until the group has been
 * launched. {@link #launch} throws the errors that NCCL finds. A communicator with operations in the group allows no
 * other calls until the group has ended.
 *
 * <p><b>Threads.</b> A group belongs to the thread that opened it; a call in another thread throws {@link
 * IllegalStateException}. The thread may be virtual, within the limits that {@link Communicator} has for GPUs.
 *
 * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/group.html">NCCL: group calls</a>
 * @since 0.1
 */
public final class Group implements AutoCloseable {
    private final GroupScope scope = GroupScope.open();

    private Group() {}

    /**
     * Opens a group in this thread.
     *
     * @return the group, to be launched and closed by this thread
     */
    public static Group open() {
        return new Group();
    }

    /**
     * Opens a group, runs a piece of code, and launches the group.
     *
     * @param body the code; if it throws, none of its operations is launched
     * @throws NcclResultException as {@link #launch()}
     */
    public static void run(Runnable body) {
        GroupScope.run(Objects.requireNonNull(body, "body"));
    }

    /** {@return true if this thread has an open group} */
    public static boolean isOpenInThisThread() {
        return Batch.current() != null;
    }

    /**
     * Launches the operations and ends the group; an inner group adds them to the outer one. When this returns, the
     * operations are in their streams, as after calls without a group. With non-blocking communicators, waits until
     * NCCL has launched them, at most for the longest deadline of the communicators.
     *
     * <p>C functions: {@code ncclGroupStart} and {@code ncclGroupEnd}.
     *
     * @throws IllegalStateException if the group was launched or closed already, belongs to another thread or has an
     *     open inner group, if a communicator was aborted or revoked meanwhile, or if sends and receives of a rank to
     *     itself do not match
     * @throws NcclResultException if NCCL refuses an operation, and then launches none; or if NCCL fails
     * @throws NcclTimeoutException if the launch is not done by the deadline
     */
    public void launch() {
        scope.launch();
    }

    /**
     * Returns NCCL's estimate of the duration of the operations, and ends the group without launching them.
     *
     * <p>C function: {@code ncclGroupSimulateEnd}, since NCCL 2.22.3.
     *
     * @return the estimate
     * @throws IllegalStateException as {@link #launch()}; also if this is not the outermost group, if it has calls
     *     other than operations on data, or if its communicators are non-blocking, because NCCL would launch their
     *     operations
     * @throws NcclLibraryException if the library lacks the function
     * @throws NcclResultException if NCCL refuses one of the operations
     */
    public Duration simulate() {
        return Duration.ofNanos(Math.max(0, Math.round(1000 * scope.simulate())));
    }

    /**
     * Ends the group. If it was not launched, its operations are dropped, and a warning with the operations is logged.
     * Does nothing if the group has ended.
     *
     * @throws IllegalStateException if the group belongs to another thread
     */
    @Override
    public void close() {
        scope.close();
    }
}
