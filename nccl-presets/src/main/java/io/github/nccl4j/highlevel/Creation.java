package io.github.nccl4j.highlevel;

import java.util.function.IntSupplier;

/** The making of a communicator: what NCCL is to be told, and what is done when it has answered, now or with a group. */
final class Creation implements Deferred {
    private final String function;
    private final CommunicatorCore made;
    /** The communicator that it is made from, or null. */
    private final CommunicatorCore parent;

    private final NativeArguments arguments;
    private final IntSupplier call;
    private final Runnable created;
    private boolean called;

    /**
     * A creation.
     *
     * @param arguments what the call reads; closed after it
     * @param created tells the core its rank and size
     */
    Creation(
            String function,
            CommunicatorCore made,
            CommunicatorCore parent,
            NativeArguments arguments,
            IntSupplier call,
            Runnable created) {
        this.function = function;
        this.made = made;
        this.parent = parent;
        this.arguments = arguments;
        this.call = call;
        this.created = created;
    }

    /** Makes the call by itself. */
    void now() {
        JfrEvents.CreationEvent event = Jfr.recording ? JfrEvents.creation(function) : null;
        boolean done = false;
        try {
            // The thread that makes the call closes its arguments: it may go on when nobody waits any more.
            (parent != null ? parent : made).hostCall(function, this::call, made::abortLate);
            await();
            done = true;
        } finally {
            if (event != null) {
                JfrEvents.end(event, made);
            }
            if (!done) {
                made.creationFailed(parent != null && parent.isStuckNow());
            }
        }
    }

    @Override
    public int call() {
        called = true;
        try (arguments) {
            return call.getAsInt();
        }
    }

    /** It was never begun. */
    void cancelled() {
        arguments.close();
        made.creationFailed(false);
    }

    /** Does not make the call; an earlier one of the group has failed. */
    int skip() {
        called = true;
        arguments.close();
        return 0;
    }

    void abortLate() {
        made.abortLate();
    }

    void isStuck() {
        made.isStuck();
    }

    private void await() {
        made.awaitCreation(function);
        created.run();
    }

    @Override
    public void completed() {
        boolean done = false;
        try {
            await();
            done = true;
        } finally {
            if (!done) {
                made.creationFailed(false);
            }
        }
    }

    @Override
    public void discarded() {
        if (!called) {
            arguments.close();
        }
        made.creationFailed(parent != null && parent.isStuckNow());
    }

    @Override
    public String toString() {
        return function;
    }
}
