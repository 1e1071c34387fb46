package io.github.nccl4j.internal.submission;

import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.communicator.CommunicatorState;
import io.github.nccl4j.internal.communicator.Resource;
import io.github.nccl4j.internal.cuda.NativeBuffer;
import io.github.nccl4j.internal.cuda.NativeEvent;
import io.github.nccl4j.internal.cuda.NativeGraph;
import io.github.nccl4j.internal.cuda.NativeStream;
import io.github.nccl4j.internal.memory.NativeMemory;
import io.github.nccl4j.internal.operation.Deferred;
import io.github.nccl4j.internal.operation.Operation;
import io.github.nccl4j.internal.operation.OperationKind;
import io.github.nccl4j.internal.threads.SlowPath;
import io.github.nccl4j.internal.threads.Suppressed;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * The recorded operations and calls of a thread's open groups, and the resources that they keep. A batch passes nothing
 * to NCCL before the launch of the outermost group, since NCCL can't discard operations of a group; then
 * {@link BatchLaunch} makes the calls.
 *
 * <p>Confined to its thread. The thread's next group reuses the batch.
 */
public final class Batch implements CommunicatorCore.OpenGroup {
    private static final ThreadLocal<Batch> OF_THREAD = ThreadLocal.withInitial(Batch::new);

    /** The most calls that a warning describes. */
    private static final int MOST_SHOWN = 10;

    private final Thread thread = Thread.currentThread();
    private final BatchLaunch launch = new BatchLaunch(this);
    private final List<Call> calls = new ArrayList<>();
    private final List<Object> pinned = new ArrayList<>();
    private final List<CommunicatorCore> communicators = new ArrayList<>();
    private final List<Deferred> deferred = new ArrayList<>();
    private final List<GroupScope> groups = new ArrayList<>();
    /** The last pinned stream; usually also the stream of the next operation. */
    private NativeStream lastStream;
    /** True if a rank may send to itself or receive from itself. */
    private boolean toSelf;
    /** True if a call may have to precede the others. */
    private boolean anyAlone;
    /** True if an operation may have a configuration. */
    private boolean anyConfigured;
    /** True if the thread may be in NCCL. Other threads change the state of a communicator before they read this. */
    private volatile boolean inLibrary;

    private Batch() {}

    /** The start of a group, to which discarding the group returns. */
    record Mark(int calls, int pinned, int deferred) {
        /** The mark of a group at the start of a batch. */
        private static final Mark NOTHING = new Mark(0, 0, 0);
    }

    /** The batch of this thread if the thread has an open group, else null. */
    public static Batch current() {
        if (!SlowPath.isRequired()) {
            return null;
        }
        Batch batch = OF_THREAD.get();
        return batch.groups.isEmpty() ? null : batch;
    }

    /** As {@link #current}, faster for a communicator that takes part in the batch. */
    static Batch currentFor(CommunicatorCore communicator) {
        Batch batch = (Batch) communicator.batch;
        return batch != null && batch.thread == Thread.currentThread() ? batch : current();
    }

    static Batch open(GroupScope group) {
        Batch batch = OF_THREAD.get();
        if (batch.groups.isEmpty()) {
            SlowPath.begin();
        }
        batch.groups.add(group);
        return batch;
    }

    /** Makes a call with results: at the launch of the thread's open group, or at once if there is none. */
    public static void call(CommunicatorCore communicator, Deferred call, Set<CommunicatorState> allowed) {
        Batch open = current();
        boolean done = false;
        try {
            if (open != null) {
                open.add(communicator, call);
            } else {
                communicator.exclusively("used", allowed, () -> {
                    communicator.calls().hostCall(call.toString(), call::call, () -> {});
                    return null;
                });
            }
            done = true;
        } finally {
            if (!done) {
                call.discarded();
            }
        }
        if (open == null) {
            call.completed();
        }
    }

    Thread thread() {
        return thread;
    }

    Mark mark() {
        boolean nothing = calls.isEmpty() && pinned.isEmpty() && deferred.isEmpty();
        return nothing ? Mark.NOTHING : new Mark(calls.size(), pinned.size(), deferred.size());
    }

    boolean isInnermost(GroupScope group) {
        return groups.get(groups.size() - 1) == group;
    }

    boolean isOutermost(GroupScope group) {
        return groups.get(0) == group;
    }

    /** The operations and the calls with results. An interceptor may add some during the launch. */
    List<Call> calls() {
        return calls;
    }

    List<CommunicatorCore> communicators() {
        return communicators;
    }

    List<Deferred> deferred() {
        return deferred;
    }

    /** True if a call may have to precede the others. */
    boolean hasAnyAlone() {
        return anyAlone;
    }

    private void addCall(CommunicatorCore communicator, Operation operation, CallConfig config, NativeStream stream) {
        if (stream != lastStream) {
            stream.pin();
            pinned.add(stream);
            lastStream = stream;
        }
        NativeGraph graph = NativeGraph.ofThread();
        if (graph != null) {
            communicator.registerGraph(graph);
        }
        join(communicator);
        toSelf |= operation.isTransferWith(communicator.rank());
        calls.add(new Call(communicator, operation, config, null));
    }

    /** Adds an operation whose arguments have been checked, and its configuration unless that is null. */
    void add(CommunicatorCore communicator, Operation operation, CallConfig config, NativeStream stream) {
        if (config == null) {
            addCall(communicator, operation, null, stream);
            return;
        }
        ConfiguredCall call = ConfiguredCall.begin(communicator, config, stream);
        boolean added = false;
        try {
            check(call);
            addCall(communicator, operation.configured(call.struct()), config, stream);
            pinned.add(call);
            anyConfigured = true;
            added = true;
        } finally {
            if (!added) {
                call.close();
            }
        }
    }

    /** Adds a call with results. */
    public void add(CommunicatorCore communicator, Deferred call) {
        join(communicator);
        anyAlone |= call.mustBeAlone();
        deferred.add(call);
        calls.add(new Call(communicator, null, null, call));
    }

    private void join(CommunicatorCore communicator) {
        if (communicator.batch == this) {
            return;
        }
        if (!communicators.isEmpty()) {
            CommunicatorCore first = communicators.get(0);
            if (first.isBlocking() != communicator.isBlocking()) {
                throw new IllegalArgumentException(
                        "communicators of one group must all block or all not block: " + first + " is "
                                + (first.isBlocking() ? "" : "not ") + "blocking, " + communicator + " is "
                                + (communicator.isBlocking() ? "" : "not ") + "blocking");
            }
        }
        communicator.enterFor(this);
        communicators.add(communicator);
    }

    /** Keeps a buffer's memory until the batch has ended. */
    void pin(NativeBuffer buffer) {
        NativeGraph graph = NativeGraph.ofThread();
        // A graph needs its own reference, even to a buffer that is already pinned.
        if (buffer.isPinnedFor(this) && graph == null) {
            return;
        }
        buffer.pinFor(this);
        pinned.add(buffer);
        if (graph != null) {
            buffer.keepFor(graph);
        }
    }

    /** Keeps an operator or a window until the batch has ended. */
    void pin(Resource resource) {
        resource.pin();
        pinned.add(resource);
    }

    /** Checks that a call with a configuration can be in one native group with the other calls of the batch. */
    private void check(ConfiguredCall call) {
        if (!anyConfigured) {
            return;
        }
        NativeEvent event = call.event();
        Integer size = call.config().cgaClusterSize();
        for (Object one : pinned) {
            if (!(one instanceof ConfiguredCall other)) {
                continue;
            }
            if (event != null && other.event() != null && other.core() == call.core()) {
                throw new IllegalArgumentException("one call of a communicator in a group may have a"
                        + " launchCompletionEvent: " + other.event() + " and " + event + " of " + call.core());
            }
            Integer otherSize = other.config().cgaClusterSize();
            if (size != null && otherSize != null && !size.equals(otherSize)) {
                throw new IllegalArgumentException(
                        "cgaClusterSize must be the same in all collectives of a group: " + otherSize + ", " + size);
            }
        }
    }

    /** Logs the calls that were added after a mark, if there are any: their group is closed without a launch. */
    void warnOfDropped(Mark mark) {
        if (calls.size() == mark.calls) {
            return;
        }
        int shown = Math.min(calls.size(), mark.calls + MOST_SHOWN);
        String dropped = calls.subList(mark.calls, shown).stream()
                .map(call -> call.describe() + " of " + call.core())
                .collect(Collectors.joining("; "));
        System.getLogger("io.github.nccl4j")
                .log(
                        Level.WARNING,
                        "a group was closed without launch(), which drops its calls (" + (calls.size() - mark.calls)
                                + "): " + dropped + (shown < calls.size() ? "; ..." : ""),
                        new Throwable("closed here"));
    }

    /** Marks all configured calls as launched; returns the first exception or null. */
    private RuntimeException configuredAreLaunched() {
        RuntimeException problem = null;
        for (Object one : pinned) {
            if (one instanceof ConfiguredCall call) {
                try {
                    call.launched();
                } catch (RuntimeException e) {
                    problem = Suppressed.first(problem, e);
                }
            }
        }
        return problem;
    }

    /** Takes ownership of native memory that an operation of the batch reads; frees it after the batch. */
    void take(NativeMemory memory) {
        pinned.add(memory);
    }

    /** Discards a group, and everything that was added after its mark. */
    void discard(GroupScope group, Mark mark) {
        while (!isInnermost(group)) {
            groups.remove(groups.size() - 1).abandoned();
        }
        for (int i = deferred.size(); i > mark.deferred; i--) {
            deferred.remove(i - 1).discarded();
        }
        calls.subList(mark.calls, calls.size()).clear();
        unpin(mark.pinned);
        leave(group);
    }

    /** Ends a group. The operations of an inner group stay in the batch for the enclosing group. */
    void leave(GroupScope group) {
        groups.remove(group);
        if (groups.isEmpty()) {
            clear();
        }
    }

    private void unpin(int from) {
        lastStream = null;
        for (int i = pinned.size(); i > from; i--) {
            unpin(pinned.remove(i - 1));
        }
    }

    /** Ends a pin of a batch. */
    static void unpin(Object one) {
        if (one instanceof NativeBuffer buffer) {
            buffer.unpinFromBatch();
        } else if (one instanceof NativeStream stream) {
            stream.unpin();
        } else if (one instanceof Resource resource) {
            resource.unpin();
        } else if (one instanceof ConfiguredCall call) {
            call.close();
        } else {
            ((NativeMemory) one).close();
        }
    }

    /** Hands the pins over, except those of configured calls; the caller ends them by {@link #unpin(Object)}. */
    List<Object> takePins() {
        for (Object one : pinned) {
            if (one instanceof NativeBuffer buffer) {
                // Another pin, because the thread's next batch must not take this one for its own.
                buffer.pin();
                buffer.unpinFromBatch();
            }
        }
        List<Object> taken = new ArrayList<>(pinned);
        taken.removeIf(ConfiguredCall.class::isInstance);
        pinned.removeAll(taken);
        lastStream = null;
        return taken;
    }

    private void clear() {
        calls.clear();
        toSelf = false;
        anyAlone = false;
        anyConfigured = false;
        deferred.clear();
        communicators.forEach(CommunicatorCore::leaveBatch);
        communicators.clear();
        SlowPath.end();
        // Last, since freeing may call NCCL for the communicators.
        unpin(0);
    }

    @Override
    public boolean isInLibrary() {
        return inLibrary;
    }

    /** Makes calls that must check the state of the communicators first. */
    @Override
    public void inLibrary(Runnable calls) {
        inLibrary = true;
        try {
            calls.run();
        } finally {
            inLibrary = false;
        }
    }

    /** Passes all operations and calls to NCCL in one native group. */
    void launch(GroupScope group) {
        boolean done = false;
        inLibrary = true;
        try {
            for (CommunicatorCore communicator : communicators) {
                communicator.requireOpen();
            }
            if (toSelf) {
                checkToSelf();
            }
            for (Object one : pinned) {
                if (one instanceof NativeBuffer buffer) {
                    buffer.checkMemory();
                }
            }
            if (!calls.isEmpty()) {
                launch.run();
            }
            done = true;
            // Completes all calls, even if one fails: each call owns memory.
            RuntimeException problem = anyConfigured ? configuredAreLaunched() : null;
            while (!deferred.isEmpty()) {
                try {
                    deferred.remove(0).completed();
                } catch (RuntimeException e) {
                    problem = Suppressed.first(problem, e);
                }
            }
            Suppressed.rethrow(problem);
        } finally {
            inLibrary = false;
            if (!done) {
                deferred.forEach(Deferred::discarded);
            }
            leave(group);
        }
    }

    /** Checks that each rank receives in this group what it sends to itself. */
    private void checkToSelf() {
        for (CommunicatorCore communicator : communicators) {
            int send = nextToSelf(OperationKind.SEND, communicator, 0);
            int recv = nextToSelf(OperationKind.RECV, communicator, 0);
            while (send < calls.size() || recv < calls.size()) {
                if (send == calls.size() || recv == calls.size()) {
                    int only = Math.min(send, recv);
                    throw new IllegalStateException(
                            communicator + " must send to itself and receive from itself as often"
                                    + " in one group: only " + calls.get(only).describe() + " is left");
                }
                if (!calls.get(send).operation().matches(calls.get(recv).operation())) {
                    throw new IllegalStateException(communicator + " must receive from itself what it sends to itself: "
                            + calls.get(send).describe() + ", but "
                            + calls.get(recv).describe());
                }
                send = nextToSelf(OperationKind.SEND, communicator, send + 1);
                recv = nextToSelf(OperationKind.RECV, communicator, recv + 1);
            }
        }
    }

    /** The index of the next send or receive whose peer is the rank itself, or the number of calls. */
    private int nextToSelf(OperationKind direction, CommunicatorCore communicator, int from) {
        for (int at = from; at < calls.size(); at++) {
            Call call = calls.get(at);
            if (call.core() == communicator
                    && call.deferred() == null
                    && call.operation().isTransfer(direction, communicator.rank())) {
                return at;
            }
        }
        return calls.size();
    }

    /** Returns NCCL's estimate of the batch's duration in microseconds, and discards the batch. */
    double simulate(GroupScope group) {
        inLibrary = true;
        try {
            if (!deferred.isEmpty()) {
                throw new IllegalStateException(
                        "only operations on data can be simulated, this group has " + deferred.get(0) + ", too");
            }
            for (CommunicatorCore communicator : communicators) {
                communicator.requireOpen();
                if (!communicator.isBlocking()) {
                    throw new IllegalStateException("operations of non-blocking communicators can't be simulated, NCCL"
                            + " would launch them: " + communicator + " is not blocking");
                }
            }
            if (toSelf) {
                checkToSelf();
            }
            return launch.simulate();
        } finally {
            inLibrary = false;
            deferred.forEach(Deferred::discarded);
            leave(group);
        }
    }
}
