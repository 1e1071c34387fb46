package io.github.nccl4j.internal.communicator;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.NcclException;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.internal.cuda.Cuda;
import io.github.nccl4j.internal.cuda.NativeDevice;
import io.github.nccl4j.internal.cuda.NativeGraph;
import io.github.nccl4j.internal.cuda.PendingOperations;
import io.github.nccl4j.internal.diagnostics.CommunicatorInfo;
import io.github.nccl4j.internal.diagnostics.FlightRecord;
import io.github.nccl4j.internal.failure.LastError;
import io.github.nccl4j.internal.failure.Reason;
import io.github.nccl4j.internal.failure.Status;
import io.github.nccl4j.internal.log.KnownCommunicators;
import io.github.nccl4j.internal.memory.StalledDevices;
import io.github.nccl4j.internal.operation.OperationLog;
import io.github.nccl4j.internal.threads.DaemonThreads;
import io.github.nccl4j.internal.threads.Gate;
import io.github.nccl4j.library.Engine;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;

/**
 * The native communicator behind a {@code Communicator}: its handle, its state, exclusive access to it, and the
 * deadline of calls that wait.
 *
 * <p>Operations enter the gate, which is open in state OPEN only. Changes of state also enter the gate, whether it is
 * open or barred. Only {@link CommunicatorLifecycle#revoke} and {@link #abort} do not enter the gate, so that they can run during another
 * thread's call.
 */
public final class CommunicatorCore
        implements StalledDevices.StalledWork, ProcessRanks.Member, CommunicatorInfo, AutoCloseable {

    /** The object that programs use, which receives the events of the native communicator. */
    public interface Listener {
        /** The communicator was created, and is open. */
        void opened();

        /** The communicator has failed. Called in the thread that has found the failure, which may be any thread. */
        void failed(NcclException failure);

        /** The native communicator is about to be revoked or aborted. */
        void stopping();

        /** The native communicator has ended. */
        void ended();

        /** Returns the exception for a thread that was interrupted. */
        NcclException interrupted(String message);

        /** Returns the exception for calls of the ranks that differ: the number of the call, and the call of each rank. */
        NcclException mismatch(long number, List<String> calls);
    }

    /** Compares the next call of all ranks; in {@code CallCheck}. */
    @FunctionalInterface
    public interface Comparison {
        void compare(String function, String call);
    }

    /** A group of calls that a thread has not launched yet, and in which the communicator takes part. */
    public interface OpenGroup {
        /** True if the thread may be in NCCL. */
        boolean isInLibrary();

        /** Makes calls of NCCL that threads which end the communicator wait for. */
        void inLibrary(Runnable calls);
    }

    private final Listener listener;
    private final NcclLibrary library;
    private final NativeDevice device;
    private final boolean onHost;
    private final boolean blocking;
    private final boolean owner;
    private final CommunicatorSettings settings;
    private final Duration deadline;

    private final String name;
    private int rank;
    private int size;

    /** Not volatile: written before the gate opens for the first time. */
    private long handle;

    private final Gate gate = new Gate(this::inUse, this::giveThreadADevice);
    private volatile CommunicatorState state;
    /** True after a call was abandoned that is still in NCCL. */
    private volatile boolean stuck;

    private final Failures failures;
    private final NativeCalls calls;
    private final OperationLog operationLog;
    private final FlightRecord recorder;
    private final OwnedResources owned;

    /** The open batch of this communicator, and the pass that it holds until the batch ends. */
    public volatile OpenGroup batch;

    private Gate.Pass batchPass;
    /** The batch's number among the groups of this communicator, or 0. */
    private int batchGroup;

    /** Compares collective calls across ranks; null if the check is off. Not volatile, like the handle. */
    private Comparison check;

    private final Thread creator = Thread.currentThread();

    private final CommunicatorRanks ranks;
    private final CommunicatorLifecycle lifecycle = new CommunicatorLifecycle(this);

    public CommunicatorCore(
            NcclLibrary library,
            NativeDevice device,
            boolean blocking,
            boolean owner,
            CommunicatorSettings settings,
            String name,
            Listener listener) {
        this.listener = listener;
        this.library = library;
        this.device = device;
        onHost = library.engine() == Engine.HOST;
        this.blocking = blocking;
        this.owner = owner;
        this.settings = settings;
        deadline = settings.deadline();
        this.name = name;
        ranks = new CommunicatorRanks(this, this, owner, settings);
        failures = new Failures(this);
        calls = new NativeCalls(this);
        owned = new OwnedResources(this::mayNeverEnd);
        operationLog = new OperationLog(settings.recorded(), gate);
        recorder = new FlightRecord(this);
        barAs(CommunicatorState.PENDING);
    }

    @Override
    public NcclLibrary library() {
        return library;
    }

    @Override
    public NativeDevice device() {
        return device;
    }

    public boolean isOnHost() {
        return onHost;
    }

    public boolean isBlocking() {
        return blocking;
    }

    @Override
    public Duration deadline() {
        return deadline;
    }

    /** True if closing destroys the native communicator. */
    public boolean isOwner() {
        return owner;
    }

    public CommunicatorSettings settings() {
        return settings;
    }

    @Override
    public String name() {
        return name;
    }

    /** The rank; throws if it is not known before the communicator is created. */
    public int rank() {
        CommunicatorState seen = state;
        if (size == 0) {
            throw notOpen(seen);
        }
        return rank;
    }

    @Override
    public int expectedRank() {
        return rank;
    }

    @Override
    public int expectedSize() {
        return size;
    }

    /** Written by the holder of the gate's pass. */
    @Override
    public OperationLog operationLog() {
        return operationLog;
    }

    public FlightRecord recorder() {
        return recorder;
    }

    @Override
    public String identity() {
        return ranks.identity();
    }

    public int size() {
        CommunicatorState seen = state;
        if (size == 0) {
            throw notOpen(seen);
        }
        return size;
    }

    @Override
    public CommunicatorState state() {
        return state;
    }

    @Override
    public String waitsIn() {
        return calls.waitsIn();
    }

    @Override
    public long waitsSince() {
        return calls.lastCall();
    }

    @Override
    public NcclException failure() {
        return failures.first();
    }

    public Listener listener() {
        return listener;
    }

    /** Reports a failure, which may throw an exception of the program. */
    public void reportFailure(NcclException failure) {
        listener.failed(failure);
    }

    public boolean hasEnded() {
        return state.hasEnded();
    }

    public long handle() {
        return handle;
    }

    public Gate gate() {
        return gate;
    }

    public NativeCalls calls() {
        return calls;
    }

    public OwnedResources owned() {
        return owned;
    }

    /**
     * Registers a graph that has captured operations. The graph is closed with the communicator, if it is still open.
     */
    public void registerGraph(NativeGraph graph) {
        if (owned.addGraph(graph)) {
            graph.onClose(() -> owned.removeGraph(graph));
            graph.addCommunicator(failures.reference());
        }
    }

    public void require(String function) {
        library.require(function);
    }

    /** Requires that an argument is a rank of the communicator. */
    public void requireRank(String what, int value) {
        if (value < 0 || value >= size()) {
            throw new IllegalArgumentException(what + " must be >= 0 and < size(): " + value + ", size " + size());
        }
    }

    public CommunicatorRanks ranks() {
        return ranks;
    }

    /** The ranks that are lost. */
    public PeerWatch peers() {
        return ranks.peers();
    }

    /* Creation. */

    /** Opens the communicator after NCCL has written its handle to {@link NativeCalls#handleCell}. */
    public void created(int rank, int size) {
        opened(calls.writtenHandle(), rank, size);
    }

    /** As {@link #created(int, int)} with the rank and the size from NCCL. */
    public void created() {
        long made = calls.writtenHandle();
        int[] answer = new int[1];
        Status.check(nccl.ncclCommUserRank(made, answer), "ncclCommUserRank");
        int itsRank = answer[0];
        Status.check(nccl.ncclCommCount(made, answer), "ncclCommCount");
        opened(made, itsRank, answer[0]);
    }

    public void opened(long handle, int rank, int size) {
        this.handle = handle;
        this.rank = rank;
        this.size = size;
        ranks.join();
        KnownCommunicators.add(
                handle, new KnownCommunicators.Member(rank, name, device.isCuda() ? device.number() : -1));
        // Earlier warnings of NCCL are not the cause of later failures.
        LastError.observe(library);
        calls.begun();
        giveThreadADevice();
        ranks.meet();
        recorder.begin();
        PendingOperations.add(failures.reference());
        gate.open(() -> state = CommunicatorState.OPEN);
        boolean done = false;
        try {
            listener.opened();
            done = true;
        } finally {
            if (!done) {
                // Without the watchdog, for example, the program gets no communicator.
                abort();
            }
        }
    }

    /** Sets rank and size before the creation, for messages about it. */
    public void expect(int rank, int size) {
        this.rank = rank;
        this.size = size;
    }

    @Override
    public int worldRank() {
        return ranks.worldRank();
    }

    /** The last holder of the pass, or the creator before the first pass. */
    @Override
    public Thread user() {
        Thread last = gate.lastHolder();
        return last != null ? last : creator;
    }

    /** Null if the calls of the ranks are not compared. */
    public Comparison check() {
        return check;
    }

    public void setCheck(Comparison comparison) {
        check = comparison;
    }

    /** Waits until a non-blocking communicator is created; checks that a blocking communicator has a handle. */
    public void awaitCreation(String function) {
        if (!blocking) {
            calls.awaitReady(function, function);
        } else if (calls.writtenHandle() == 0) {
            throw new IllegalStateException(function + " returned success, but no communicator");
        }
    }

    public boolean isStuckNow() {
        return stuck;
    }

    /* Calls. */

    private RuntimeException inUse(Thread other) {
        if (other == Thread.currentThread()) {
            return new IllegalStateException(
                    batch != null
                            ? this + " takes part in an open group of this thread: launch or close the group first"
                            : this + " is in a call of this thread");
        }
        return new IllegalStateException(
                this + " is in use by thread '" + other.getName() + "': a communicator serves one thread at a time");
    }

    /** Sets the device of a thread that has none; else NCCL's calls would leave the thread with device 0. */
    private void giveThreadADevice() {
        if (device.isCuda()) {
            Cuda.giveThread(device.context());
        }
    }

    public IllegalStateException notOpen() {
        return notOpen(state);
    }

    public IllegalStateException notOpen(CommunicatorState seen) {
        return wrongState(seen, "used", EnumSet.of(CommunicatorState.OPEN));
    }

    /** The exception for the state that the caller has read; another thread may have changed the state since then. */
    public IllegalStateException wrongState(CommunicatorState seen, String what, Set<CommunicatorState> allowed) {
        if (seen.isFailure()) {
            failures.setTold();
        }
        return new IllegalStateException(
                this + " " + seen.text()
                        + (what.equals("used")
                                ? ""
                                : "; to be " + what + " it must " + CommunicatorState.words(allowed)),
                seen.isFailure() ? failures.first() : null);
    }

    /** The exception for the use of a communicator that is not open. */
    private RuntimeException refusal(CommunicatorState seen) {
        RuntimeException failure = failures.ofEndedCall();
        return failure != null ? failure : notOpen(seen);
    }

    public void requireOpen() {
        CommunicatorState seen = state;
        if (seen != CommunicatorState.OPEN) {
            throw refusal(seen);
        }
    }

    /** Resources of a suspended communicator can't be released. */
    public void requireNotSuspended() {
        CommunicatorState seen = state;
        if (seen == CommunicatorState.SUSPENDED) {
            throw notOpen(seen);
        }
    }

    /** The pass that the open batch holds. */
    public Gate.Pass batchPass() {
        return batchPass;
    }

    /** The batch's number among the groups of this communicator. Assigned when its first operation is recorded. */
    public int batchGroup() {
        if (batchGroup == 0) {
            batchGroup = operationLog.beginGroup();
        }
        return batchGroup;
    }

    public void enterFor(OpenGroup joining) {
        batchPass = gate.enter();
        batchGroup = 0;
        batch = joining;
    }

    public void leaveBatch() {
        batch = null;
        Gate.Pass pass = batchPass;
        batchPass = null;
        pass.leave();
    }

    /** Runs an action with exclusive access in one of the given states. For changes of state, and for states except OPEN. */
    public <R> R exclusively(String what, Set<CommunicatorState> allowed, Supplier<R> body) {
        Gate.Pass pass = gate.enterBarred();
        try {
            CommunicatorState seen = state;
            if (!allowed.contains(seen)) {
                throw wrongState(seen, what, allowed);
            }
            return body.get();
        } finally {
            pass.leave();
        }
    }

    /** Changes the state, unless another thread has closed or aborted the communicator; returns true if changed. */
    synchronized boolean become(CommunicatorState next) {
        if (state.hasEnded()) {
            return false;
        }
        if (next == CommunicatorState.OPEN) {
            gate.open(() -> state = next);
        } else {
            barAs(next);
        }
        return true;
    }

    /** Changes to a state that refuses operations. State and gate change atomically for callers that are refused. */
    Gate.Pass barAs(CommunicatorState next) {
        return gate.bar(
                () -> {
                    CommunicatorState seen = state;
                    // Another thread may have opened the communicator since the refusal.
                    return refusal(seen == CommunicatorState.OPEN ? next : seen);
                },
                () -> state = next);
    }

    /** Marks the communicator as stuck after a call was abandoned. */
    public void markStuck() {
        stuck = true;
        if (state != CommunicatorState.PENDING) {
            become(CommunicatorState.FAILED);
        }
    }

    /** Ends a call of an interrupted thread, in a thread of its own if the system has one. */
    public void endInterruptedCall() {
        DaemonThreads.startOrRun("nccl4j interrupted call", () -> failures.endCall(Reason.INTERRUPTED));
    }

    public Failures failures() {
        return failures;
    }

    /** True if NCCL or the device may never complete its work. Then nothing may wait for it. */
    @Override
    public boolean mayNeverEnd() {
        return stuck || failures.isStalled();
    }

    /** True if another thread may be in NCCL. A thread with an open group checks the new state at the launch. */
    boolean isInLibrary(Gate.Pass inside) {
        return inside.isHeld() && inside.holder() != Thread.currentThread() && isBatchInLibrary();
    }

    private boolean isBatchInLibrary() {
        OpenGroup open = batch;
        return open == null || open.isInLibrary();
    }

    /** The pass of a thread that may be in NCCL, else null. For the watchdog. */
    public Gate.Pass inLibrary() {
        Gate.Pass inside = gate.inside();
        return inside != null && isBatchInLibrary() ? inside : null;
    }

    /* End. */

    /** Called before all work is stopped. */
    void stopping() {
        listener.stopping();
        failures.stop(true);
    }

    /** True if the end of work may mean that it was stopped. */
    public boolean isStopped() {
        return lifecycle.isStopped();
    }

    /** Changes to state CLOSED from any other. */
    void setClosed() {
        state = CommunicatorState.CLOSED;
    }

    public CommunicatorLifecycle lifecycle() {
        return lifecycle;
    }

    /** Aborts the communicator. May be called from any thread, also during another thread's call. */
    public void abort() {
        lifecycle.abort();
    }

    /**
     * Closes the owned resources and destroys the native communicator, in any state. Aborts a failed communicator,
     * since its destruction may never complete.
     */
    @Override
    public void close() {
        lifecycle.close();
    }

    @Override
    public String toString() {
        String text = !name.isEmpty()
                ? "communicator '" + name + "'"
                : ranks.isNamed() ? "communicator " + ranks.identity() : "communicator";
        return size == 0 ? text : text + " (rank " + rank + " of " + size + " on " + device + ")";
    }
}
