package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.operation.Deferred;
import java.util.function.IntSupplier;

/** Creation of a communicator: the native call, and the steps after its result, at once or when a group ends. */
final class Creation implements Deferred {
    private final String function;
    private final CommunicatorCore made;
    /** The parent communicator, or null. */
    private final CommunicatorCore parent;

    private final NativeArguments arguments;
    private final IntSupplier call;
    private final Runnable created;
    private boolean called;

    /**
     * Creates the description of a creation.
     *
     * @param arguments the native arguments; closed after the call
     * @param created sets the core's rank and size
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

    /** Makes the call outside a group. */
    void callNow() {
        JfrEvents.CreationEvent event = Jfr.recording ? JfrEvents.creation(function) : null;
        boolean done = false;
        try {
            // The calling thread closes the arguments: the call may continue after the caller stopped waiting.
            (parent != null ? parent : made).calls().hostCall(function, this::call, made::abortLate);
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

    /** Called if the creation was never started. */
    void cancelled() {
        arguments.close();
        made.creationFailed(false);
    }

    /** Skips the call, because an earlier call of the group failed. */
    int skip() {
        called = true;
        arguments.close();
        return 0;
    }

    void abortLate() {
        made.abortLate();
    }

    void markStuck() {
        made.markStuck();
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
