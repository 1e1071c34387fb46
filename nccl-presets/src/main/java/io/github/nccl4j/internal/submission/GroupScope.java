package io.github.nccl4j.internal.submission;

import io.github.nccl4j.highlevel.NcclLibrary;

/**
 * One of the nested groups of a thread: the operations from its opening on, which are launched, added to the enclosing
 * group, or dropped together.
 */
public final class GroupScope implements AutoCloseable {
    private final Batch batch;
    private final Batch.Mark mark;
    private boolean ended;

    private GroupScope() {
        batch = Batch.open(this);
        mark = batch.mark();
    }

    /** Opens a group in this thread. */
    public static GroupScope open() {
        return new GroupScope();
    }

    /** Runs code in a group, and launches the group. */
    public static void run(Runnable body) {
        GroupScope group = open();
        try {
            body.run();
            group.launch();
        } finally {
            group.discard();
        }
    }

    /** Launches the operations, or adds them to the enclosing group. */
    public void launch() {
        requireOpen("launched");
        ended = true;
        if (batch.isOutermost(this)) {
            batch.launch(this);
        } else {
            batch.leave(this);
        }
    }

    /** Returns NCCL's estimate of the duration in microseconds, and ends the group without a launch. */
    public double simulate() {
        requireOpen("simulated");
        if (!batch.isOutermost(this)) {
            throw new IllegalStateException("a group within another can't be simulated");
        }
        NcclLibrary.get().require("ncclGroupSimulateEnd");
        ended = true;
        return batch.simulate(this);
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

    /** Called when the outer group was closed. */
    void abandoned() {
        ended = true;
    }

    /** Ends the group if it was not launched, with a warning that names the operations that are dropped. */
    @Override
    public void close() {
        requireThread("closed");
        if (!ended) {
            batch.warnOfDropped(mark);
            discard();
        }
    }

    /** As {@link #close} without the warning, because an exception says that the operations are not launched. */
    public void discard() {
        if (!ended) {
            ended = true;
            batch.discard(this, mark);
        }
    }
}
