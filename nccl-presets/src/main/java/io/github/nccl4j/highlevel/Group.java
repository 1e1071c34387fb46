package io.github.nccl4j.highlevel;

import io.github.nccl4j.library.NcclLibraryException;
import java.time.Duration;
import java.util.Objects;

/**
 * Operations that NCCL launches together: sends and receives that wait for each other, several collectives at the price
 * of one launch, or the operations of several communicators that one thread has.
 *
 * <pre>{@code
 * try (Group group = Group.open()) {
 *     communicator.send(outgoing, next, stream);
 *     communicator.recv(incoming, previous, stream);
 *     group.launch();
 * }
 * }</pre>
 *
 * <p>or, the same, {@code Group.run(() -> { ... })}.
 *
 * <p><b>All or nothing.</b> Between {@link #open} and {@link #launch} operations of this thread are checked, and kept. So
 * nothing of a group that is closed without being launched, because an exception came before it, is done, and NCCL stays
 * usable. Buffers, streams and operators that are closed before the launch live on until then.
 *
 * <p><b>Order.</b> Operations of one group may run at the same time, also those in one stream. What one of them writes no
 * other one may read or write.
 *
 * <p><b>Nesting.</b> A group may be opened within another. Launching it hands its operations to the outer one; closing it
 * without gives up its own only. NCCL is called when the outermost is launched.
 *
 * <p><b>Results.</b> Communicators and windows that are made within a group can be used when it has been launched; before,
 * they are pending. What NCCL finds wrong is thrown by {@link #launch}. A communicator that takes part can do nothing else
 * until the group has ended.
 *
 * <p><b>Threads.</b> A group belongs to the thread that opened it; every call in another thread is an {@link
 * IllegalStateException}. It may be a virtual thread, within the limits that {@link Communicator} has for GPUs.
 *
 * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/group.html">NCCL: group calls</a>
 */
public final class Group implements AutoCloseable {
    private final Batch batch;
    private final Batch.Mark mark;
    private boolean ended;

    private Group() {
        batch = Batch.open(this);
        mark = batch.mark();
    }

    /**
     * Opens a group in this thread.
     *
     * @return the group, to be launched and closed by this thread
     */
    public static Group open() {
        return new Group();
    }

    /**
     * Launches what a piece of code does, together.
     *
     * @param body the code; if it throws, nothing of it is launched
     * @throws NcclResultException as {@link #launch()}
     */
    public static void run(Runnable body) {
        Objects.requireNonNull(body, "body");
        try (Group group = open()) {
            body.run();
            group.launch();
        }
    }

    /** {@return whether this thread has an open group} */
    public static boolean isOpenInThisThread() {
        return Batch.current() != null;
    }

    /**
     * Launches the operations and ends the group; within another group, hands them to that one. When this returns they
     * are in their streams, as after a call without a group. With communicators that do not block, waits until NCCL has
     * launched them, but not longer than the deadline of the communicators.
     *
     * <p>C functions: {@code ncclGroupStart} and {@code ncclGroupEnd}.
     *
     * @throws IllegalStateException if the group was launched or closed already, belongs to another thread, has an open
     *     group within it, if a communicator was aborted or revoked since, or if a rank does not receive from itself what it
     *     sends to itself
     * @throws NcclResultException if NCCL refuses one of the operations, and then launches none; or if it fails
     * @throws NcclTimeoutException if the deadline has passed
     */
    public void launch() {
        requireOpen("launched");
        ended = true;
        if (batch.isOutermost(this)) {
            batch.launch(this);
        } else {
            batch.leave(this);
        }
    }

    /**
     * Asks NCCL how long the operations would take, and ends the group without launching them.
     *
     * <p>C function: {@code ncclGroupSimulateEnd}, since NCCL 2.22.3.
     *
     * @return the library's estimate
     * @throws IllegalStateException as {@link #launch()}, also if this is not the outermost group, if it has more than
     *     operations on data, or if its communicators are non-blocking: NCCL would launch their operations
     * @throws NcclLibraryException if the library lacks the function
     * @throws NcclResultException if NCCL refuses one of the operations
     */
    public Duration simulate() {
        requireOpen("simulated");
        if (!batch.isOutermost(this)) {
            throw new IllegalStateException("a group within another can't be simulated");
        }
        NcclLibrary.get().require("ncclGroupSimulateEnd");
        ended = true;
        double microseconds = batch.simulate(this);
        return Duration.ofNanos(Math.max(0, Math.round(1000 * microseconds)));
    }

    private void requireOpen(String what) {
        requireThread(what);
        if (ended) {
            throw new IllegalStateException("this group has ended, it can't be " + what + " any more");
        }
        if (!batch.isInnermost(this)) {
            throw new IllegalStateException("a group within this one is open: launch or close it first");
        }
    }

    private void requireThread(String what) {
        if (Thread.currentThread() != batch.thread()) {
            throw new IllegalStateException("a group must be " + what + " by the thread that opened it: thread '"
                    + batch.thread().getName() + "', not '"
                    + Thread.currentThread().getName() + "'");
        }
    }

    /** A group around this one was closed. */
    void abandoned() {
        ended = true;
    }

    /**
     * Ends the group. If it was not launched, nothing of it is done. Does nothing if the group has ended.
     *
     * @throws IllegalStateException if the group belongs to another thread
     */
    @Override
    public void close() {
        requireThread("closed");
        if (!ended) {
            ended = true;
            batch.discard(this, mark);
        }
    }
}
