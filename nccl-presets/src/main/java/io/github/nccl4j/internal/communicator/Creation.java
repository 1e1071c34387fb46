package io.github.nccl4j.internal.communicator;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.internal.config.NativeArguments;
import io.github.nccl4j.internal.diagnostics.Jfr;
import io.github.nccl4j.internal.diagnostics.JfrEvents;
import io.github.nccl4j.internal.failure.BlockingCall;
import io.github.nccl4j.internal.failure.Status;
import io.github.nccl4j.internal.operation.Deferred;
import io.github.nccl4j.internal.threads.Suppressed;
import java.util.List;
import java.util.function.IntSupplier;

/** Creation of a communicator: the native call, and the steps after its result, at once or when a group ends. */
public final class Creation implements Deferred {
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
    public Creation(
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
    public void callNow() {
        JfrEvents.CreationEvent event = Jfr.recording ? JfrEvents.creation(function) : null;
        boolean done = false;
        try {
            if (function.equals("ncclCommShrink")) {
                // A shrink excludes the ranks that are lost now; all other derivations need every rank.
                parent.calls().tolerateLostRanks();
            }
            // The calling thread closes the arguments: the call may continue after the caller stopped waiting.
            (parent != null ? parent : made).calls().hostCall(function, this::call, made.lifecycle()::abortLate);
            await();
            done = true;
        } finally {
            if (event != null) {
                JfrEvents.end(event, made);
            }
            if (!done) {
                made.lifecycle().creationFailed(parent != null && parent.isStuckNow());
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
    public void cancelled() {
        arguments.close();
        made.lifecycle().creationFailed(false);
    }

    /** Skips the call, because an earlier call of the group failed. */
    private int skip() {
        called = true;
        arguments.close();
        return 0;
    }

    /** Creates several communicators of this process in one native group. */
    public static void callTogether(List<Creation> creations) {
        CommunicatorCore first = creations.get(0).made;
        String function = "ncclGroupEnd";
        String description = creations.get(0).toString();
        RuntimeException problem = null;
        try {
            int result = first.isBlocking()
                    ? BlockingCall.run(
                            function,
                            first.deadline(),
                            () -> first.calls().onDevice(() -> callInGroup(creations)),
                            first.calls()::mayWaitForLostRank,
                            late -> creations.forEach(
                                    creation -> creation.made.lifecycle().abortLate()))
                    : first.calls().onDevice(() -> callInGroup(creations));
            if (result != nccl.ncclSuccess && result != nccl.ncclInProgress) {
                problem = first.failures().failed(result, description, description);
            }
        } catch (BlockingCall.AbandonedException e) {
            creations.forEach(creation -> creation.made.markStuck());
            problem = first.failures().abandoned(e.reason(), function, description);
        } catch (RuntimeException e) {
            problem = e;
        }
        for (Creation creation : creations) {
            try {
                if (problem == null) {
                    creation.completed();
                } else {
                    creation.discarded();
                }
            } catch (RuntimeException e) {
                problem = Suppressed.first(problem, e);
            }
        }
        Suppressed.rethrow(problem);
    }

    private static int callInGroup(List<Creation> creations) {
        Status.check(nccl.ncclGroupStart(), "ncclGroupStart");
        int problem = nccl.ncclSuccess;
        for (Creation creation : creations) {
            int result = problem == nccl.ncclSuccess ? creation.call() : creation.skip();
            if (result != nccl.ncclSuccess && result != nccl.ncclInProgress) {
                problem = result;
            }
        }
        int end = nccl.ncclGroupEnd();
        return problem == nccl.ncclSuccess ? end : problem;
    }

    private void await() {
        if (parent == null) {
            made.awaitCreation(function);
        } else {
            parent.calls().waitingIn(function, () -> made.awaitCreation(function));
        }
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
                made.lifecycle().creationFailed(false);
            }
        }
    }

    @Override
    public void discarded() {
        if (!called) {
            arguments.close();
        }
        made.lifecycle().creationFailed(parent != null && parent.isStuckNow());
    }

    @Override
    public String toString() {
        return function;
    }
}
