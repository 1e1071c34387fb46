package io.github.nccl4j.internal.communicator;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.NcclException;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.Version;
import io.github.nccl4j.internal.cuda.Cuda;
import io.github.nccl4j.internal.cuda.NativeDevice;
import io.github.nccl4j.internal.cuda.NativeGraph;
import io.github.nccl4j.internal.cuda.OperationWait;
import io.github.nccl4j.internal.cuda.PendingOperations;
import io.github.nccl4j.internal.cuda.PendingReleases;
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
import io.github.nccl4j.internal.threads.Suppressed;
import io.github.nccl4j.internal.threads.Timeouts;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.StatusEntry;
import io.github.nccl4j.library.Engine;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/**
 * The native communicator behind a {@link Communicator}: its handle, its state, exclusive access to it, and the
 * deadline of calls that wait.
 *
 * <p>Operations enter the gate, which is open in state OPEN only. Changes of state also enter the gate, whether it is
 * open or barred. Only {@link #revoke} and {@link #abort} do not enter the gate, so that they can run during another
 * thread's call.
 */
public final class CommunicatorCore
        implements StalledDevices.StalledWork,
                ProcessRanks.Member,
                PendingOperations.Owner,
                CommunicatorInfo,
                AutoCloseable {
    public static final Set<CommunicatorState> ENDED = EnumSet.of(CommunicatorState.ABORTED, CommunicatorState.CLOSED);

    /** The first release whose ncclCommFinalize waits for all ranks of the process. */
    private static final Version FINALIZE_WAITS = new Version(2, 31, 2);

    private static final Set<CommunicatorState> ENDED_BY_FAILURE =
            EnumSet.of(CommunicatorState.REVOKED, CommunicatorState.FAILED, CommunicatorState.ABORTED);
    private static final Duration ABORT_GRACE = Duration.ofSeconds(5);

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
    /** True during and after the native call that stops all work; if NCCL refuses to revoke, only during it. */
    private volatile boolean revoked;

    private volatile boolean aborted;

    /** True if the program of this rank has failed, and its process is likely to end. */
    private volatile boolean ownFailure;

    private final Object revocation = new Object();

    private final Failures failures;
    private final NativeCalls calls;
    private final OperationLog operationLog;
    private final FlightRecord recorder;
    private final OwnedResources owned;

    /** The open batch of this communicator, its index in the batch, and the pass that it holds until the batch ends. */
    public volatile OpenGroup batch;

    public int batchIndex;
    private Gate.Pass batchPass;
    /** The batch's number among the groups of this communicator, or 0. */
    private int batchGroup;

    /** Compares collective calls across ranks; null if the check is off. Not volatile, like the handle. */
    private CallCheck check;

    /** Queries the other ranks when an operation is late; null if that is impossible. Not volatile, like the handle. */
    private RankStatusQuery statusQuery;

    /** As {@link #statusQuery} of the communicator from which this one is being derived; else null. */
    private RankStatusQuery queryOfParent;

    /** The entry in the status of this rank; null if no observer can ask for this communicator. */
    private StatusEntry status;

    /** The lost ranks, as the rendezvous reports them. Not volatile, like the handle. */
    private PeerWatch peers = new PeerWatch();

    private boolean watched;

    /** Identifies this communicator in the process; null if unknown. */
    private CommunicatorKey communicatorKey;

    /** The communicator from which this one was derived, if any: its rank in the first communicator; else -1. */
    private int ancestorRank = -1;

    /** The communicator's ranks in this process, on CUDA devices. */
    private ProcessRanks processRanks;

    private final Thread creator = Thread.currentThread();

    private final WeakReference<PendingOperations.Owner> reference = new WeakReference<>(this);

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
        return communicatorKey == null ? CommunicatorKey.UNKNOWN.text() : communicatorKey.text();
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

    /** A reference for objects that must not keep a dropped communicator; always the same one. */
    public WeakReference<PendingOperations.Owner> reference() {
        return reference;
    }

    public Listener listener() {
        return listener;
    }

    /** Reports a failure, which may throw an exception of the program. */
    public void reportFailure(NcclException failure) {
        listener.failed(failure);
    }

    public boolean hasEnded() {
        return ENDED.contains(state);
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
            graph.addCommunicator(reference);
        }
    }

    /** The key that identifies the communicator on all its ranks; null if there is none. */
    public CommunicatorKey key() {
        return communicatorKey;
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
        if (owner && device.isCuda() && communicatorKey != null) {
            processRanks = ProcessRanks.join(communicatorKey, this);
        }
        KnownCommunicators.add(
                handle, new KnownCommunicators.Member(rank, name, device.isCuda() ? device.number() : -1));
        // Earlier warnings of NCCL are not the cause of later failures.
        LastError.observe(library);
        calls.begun();
        giveThreadADevice();
        Rendezvous where = settings.check();
        if (where != null && where.rank() == rank && where.size() == size) {
            check = new CallCheck(this, where);
        }
        enableStatusQuery(settings.rendezvous() != null ? settings.rendezvous() : where);
        watchPeers(peers);
        if (owner && communicatorKey != null && communicatorKey.isKnown()) {
            status = CommunicatorStatus.add(settings.rendezvous() != null ? settings.rendezvous() : where, this);
        }
        recorder.begin();
        PendingOperations.add(reference);
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

    /** Enables status queries by a rendezvous, if the rendezvous has the same ranks; null disables them. */
    public void enableStatusQuery(Rendezvous where) {
        boolean named = communicatorKey != null && communicatorKey.isKnown();
        if (named && owner && where != null && where.rank() == rank && where.size() == size && size > 1) {
            WeakReference<CommunicatorCore> dropped = new WeakReference<>(this);
            statusQuery = RankStatusQuery.begin("roll-" + identity(), rank, size, where, () -> position(dropped.get()));
        }
    }

    /**
     * Watches for lost ranks through the rendezvous at which the communicator, or its origin, was created. Has no
     * effect if the other ranks can't know the name of the communicator, or if this method was called before.
     *
     * @param watch the watch to use; may have lost ranks already
     */
    public void watchPeers(PeerWatch watch) {
        peers = watch;
        boolean named = communicatorKey != null && communicatorKey.isKnown();
        if (named && owner && size > 1 && settings.rendezvous() != null && !watched) {
            watched = true;
            watch.enter(settings.rendezvous(), "members-" + identity(), rank);
        }
    }

    /** The ranks that are lost. */
    public PeerWatch peers() {
        return peers;
    }

    /** This rank's answer to the questions of other ranks; null is a communicator that was dropped. */
    public static RankStatusQuery.Position position(CommunicatorCore core) {
        if (core == null) {
            return new RankStatusQuery.Position(0, false, "", "", "has dropped its communicator");
        }
        OperationLog.Entry last = core.operationLog.last();
        String ended =
                switch (core.state) {
                    case CLOSED -> "has closed its communicator; its program may have failed: see its log";
                    case ABORTED -> "has aborted its communicator";
                    default -> "";
                };
        return new RankStatusQuery.Position(last.sequence(), last.done() != 0, last.describe(), core.waitsIn(), ended);
    }

    /** Null if the ranks can't be queried. */
    public RankStatusQuery statusQuery() {
        return state == CommunicatorState.PENDING ? queryOfParent : statusQuery;
    }

    /** Sets rank and size before the creation, for messages about it. */
    public void expect(int rank, int size) {
        this.rank = rank;
        this.size = size;
    }

    /** Sets the key that identifies the communicator on all its ranks. */
    public void setKey(CommunicatorKey key) {
        communicatorKey = key;
    }

    /** Sets the key of a communicator that is derived from another one. */
    public void setKey(CommunicatorKey key, CommunicatorCore parent) {
        communicatorKey = key;
        ancestorRank = parent.worldRank();
        queryOfParent = parent.statusQuery;
    }

    @Override
    public int worldRank() {
        boolean known = communicatorKey != null && communicatorKey.isKnown();
        return ancestorRank >= 0 || !known ? ancestorRank : expectedRank();
    }

    /** The last holder of the pass, or the creator before the first pass. */
    @Override
    public Thread user() {
        Thread last = gate.lastHolder();
        return last != null ? last : creator;
    }

    public CallCheck check() {
        return check;
    }

    /** Waits until a non-blocking communicator is created; checks that a blocking communicator has a handle. */
    public void awaitCreation(String function) {
        if (!blocking) {
            calls.awaitReady(function, function);
        } else if (calls.writtenHandle() == 0) {
            throw new IllegalStateException(function + " returned success, but no communicator");
        }
    }

    /**
     * Closes the communicator after its creation has failed.
     *
     * @param late true if the call continues, and will write to the cells
     */
    public void creationFailed(boolean late) {
        if (ENDED.contains(state)) {
            return;
        }
        state = CommunicatorState.CLOSED;
        if (late || stuck) {
            peers.close();
            return;
        }
        long made = calls.writtenHandle();
        end(false, () -> {
            // NCCL has already freed a blocking communicator whose creation failed.
            if (!blocking && made != 0) {
                calls.abort(made);
            }
        });
    }

    /** Aborts a communicator that was created after the caller gave up. */
    public void abortLate() {
        long made = calls.writtenHandle();
        end(false, () -> {
            if (made != 0) {
                calls.abort(made);
            }
        });
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
        if (ENDED_BY_FAILURE.contains(seen)) {
            failures.setTold();
        }
        String text =
                switch (seen) {
                    case PENDING -> "is pending: it can be used when its group has been launched";
                    case OPEN -> "is open";
                    case SUSPENDED -> "is suspended: resume it first";
                    case REVOKED -> "was revoked: it can be split, shrunk, closed or aborted";
                    case FINISHED -> "was finished: it can be closed or aborted";
                    case FAILED -> "has an abandoned call: it can be closed or aborted, with the same effect";
                    case ABORTED -> "was aborted";
                    case CLOSED -> "is closed";
                };
        return new IllegalStateException(
                this + " " + text + (what.equals("used") ? "" : "; to be " + what + " it must " + words(allowed)),
                ENDED_BY_FAILURE.contains(seen) ? failures.first() : null);
    }

    /** "be open or suspended", or "not be aborted or closed" for many states. */
    private static String words(Set<CommunicatorState> allowed) {
        Set<CommunicatorState> others = EnumSet.complementOf(EnumSet.copyOf(allowed));
        boolean few = allowed.size() <= others.size();
        return (few ? "be " : "not be ")
                + (few ? allowed : others)
                        .stream()
                                .map(one -> one.name().toLowerCase(Locale.ROOT))
                                .collect(Collectors.joining(" or "));
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

    public void enterFor(OpenGroup joining, int index) {
        batchPass = gate.enter();
        batchGroup = 0;
        batch = joining;
        batchIndex = index;
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
    private synchronized boolean become(CommunicatorState next) {
        if (ENDED.contains(state)) {
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
    private Gate.Pass barAs(CommunicatorState next) {
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

    /* Lifecycle. */

    public void suspend(int flags) {
        require("ncclCommSuspend");
        exclusively("suspended", EnumSet.of(CommunicatorState.OPEN), () -> {
            calls.hostCall("ncclCommSuspend", () -> nccl.ncclCommSuspend(handle, flags), () -> {});
            return become(CommunicatorState.SUSPENDED);
        });
    }

    public void resume() {
        exclusively("resumed", EnumSet.of(CommunicatorState.SUSPENDED), () -> {
            calls.hostCall("ncclCommResume", () -> nccl.ncclCommResume(handle), () -> {});
            return become(CommunicatorState.OPEN);
        });
    }

    public void finish() {
        require("ncclCommFinalize");
        exclusively("finished", EnumSet.of(CommunicatorState.OPEN), () -> {
            if (processRanks != null) {
                processRanks.setFinalized();
            }
            calls.hostCall("ncclCommFinalize", () -> nccl.ncclCommFinalize(handle), () -> {});
            return become(CommunicatorState.FINISHED);
        });
    }

    /** Revokes the communicator. May be called from any thread, also during another thread's call. */
    public void revoke(int flags) {
        require("ncclCommRevoke");
        int result;
        Gate.Pass inside = null;
        synchronized (revocation) {
            requireRevocable();
            listener.stopping();
            revoked = true;
            result = calls.revoke(flags);
            if (result != nccl.ncclSuccess && result != nccl.ncclInProgress) {
                // The state stays as it was: the holder of the pass must keep exclusive access.
                revoked = false;
            } else {
                synchronized (this) {
                    requireRevocable();
                    inside = barAs(CommunicatorState.REVOKED);
                }
            }
        }
        if (inside != null) {
            awaitLeft(inside, deadline);
        }
        calls.settle(result, "ncclCommRevoke", "ncclCommRevoke");
    }

    /** True if the end of work may mean that it was stopped. */
    @Override
    public boolean isStopped() {
        return revoked || aborted;
    }

    /* Waits for streams. */

    @Override
    public long context() {
        return device.context();
    }

    @Override
    public boolean isClosed() {
        return state == CommunicatorState.CLOSED;
    }

    @Override
    public boolean isLossKnown() {
        return failures.isTold();
    }

    @Override
    public void beginWait() {
        failures.beginWait();
    }

    @Override
    public void endWait() {
        failures.endWait();
    }

    @Override
    public void checkFailures(OperationLog.Entry last, OperationWait.Target work) {
        if (calls.mayWaitForLostRank()) {
            failures.markLate(work.lasting(this));
            throw failures.told(failures.rankLostDuringWork(last.function(), last.describe()));
        }
        int result = calls.tryPoll();
        if (result != nccl.ncclSuccess && result != nccl.ncclInProgress) {
            throw failures.told(failures.failed(result, last.function(), last.describe()));
        }
    }

    @Override
    public RuntimeException lost(OperationLog.Entry last) {
        return failures.told(failures.workStopped(last.function(), last.describe()));
    }

    @Override
    public RuntimeException late(OperationLog.Entry last, OperationWait.Target work) {
        failures.markLate(work.lasting(this));
        return failures.told(failures.workTimedOut(last.function(), last.describe(), deadline));
    }

    @Override
    public RuntimeException interrupted(OperationLog.Entry last) {
        return failures.told(failures.interrupted(last.describe()));
    }

    @Override
    public void keepUntilEnded(Runnable release) {
        owned.keepUntilEnded(release);
    }

    private void requireRevocable() {
        CommunicatorState seen = state;
        if (seen != CommunicatorState.OPEN) {
            throw wrongState(seen, "revoked", EnumSet.of(CommunicatorState.OPEN));
        }
    }

    private void awaitLeft(Gate.Pass inside, Duration limit) {
        long nanoseconds = Timeouts.nanoseconds(limit);
        long start = System.nanoTime();
        while (isInLibrary(inside) && System.nanoTime() - start <= nanoseconds) {
            LockSupport.parkNanos(100_000);
        }
    }

    /** True if another thread may be in NCCL. A thread with an open group checks the new state at the launch. */
    private boolean isInLibrary(Gate.Pass inside) {
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

    /** As {@link #abort}, because the program of this rank has failed: the others are told when its process ends. */
    public void abortAfterFailure() {
        ownFailure = true;
        abort();
    }

    /** Aborts the communicator. May be called from any thread, also during another thread's call. */
    public void abort() {
        Gate.Pass inside;
        synchronized (this) {
            if (ENDED.contains(state) || state == CommunicatorState.PENDING) {
                return;
            }
            inside = barAs(CommunicatorState.ABORTED);
        }
        listener.stopping();
        aborted = true;
        end(true, () -> {
            if ((stuck || isInLibrary(inside)) && !onHost) {
                getOut(inside);
            }
            RuntimeException problem = owned.closeGraphs();
            // Closing them would wait for other ranks.
            owned.owned(CommunicatorCore.class).forEach(CommunicatorCore::abort);
            try {
                calls.abort(handle);
            } catch (RuntimeException e) {
                problem = Suppressed.first(problem, e);
            }
            Suppressed.rethrow(problem);
        });
    }

    /**
     * Makes a thread leave its call before the communicator is freed. Not needed with the host engine, which looks its
     * handles up: freeing is safe during a call, and ends the call.
     */
    private void getOut(Gate.Pass inside) {
        if (library.provides("ncclCommRevoke")) {
            calls.onDevice(() -> nccl.ncclCommRevoke(handle, nccl.NCCL_REVOKE_DEFAULT));
        }
        awaitLeft(inside, ABORT_GRACE);
    }

    /**
     * Closes the owned resources and destroys the native communicator, in any state. Aborts a failed communicator,
     * since its destruction may never complete.
     */
    @Override
    public void close() {
        if (ENDED.contains(state)) {
            return;
        }
        Gate.Pass pass = gate.enterBarred();
        try {
            closeAlone();
        } finally {
            pass.leave();
        }
    }

    private void closeAlone() {
        if (ENDED.contains(state)) {
            return;
        }
        if (state == CommunicatorState.PENDING) {
            throw wrongState(
                    CommunicatorState.PENDING, "closed", EnumSet.complementOf(EnumSet.of(CommunicatorState.PENDING)));
        }
        if (!owner) {
            RuntimeException problem = owned.closeAll();
            become(CommunicatorState.CLOSED);
            end(false, () -> {});
            Suppressed.rethrow(problem);
            return;
        }
        if (isBroken()) {
            abort();
            state = CommunicatorState.CLOSED;
            return;
        }
        RuntimeException problem = null;
        boolean broken = false;
        try {
            if (state == CommunicatorState.SUSPENDED) {
                calls.hostCall("ncclCommResume", () -> nccl.ncclCommResume(handle), () -> {});
                become(CommunicatorState.OPEN);
            }
            problem = owned.closeAll();
            if (!mayNeverEnd()
                    && !hasEnded()
                    && state != CommunicatorState.FINISHED
                    && state != CommunicatorState.REVOKED
                    && mayFinalize()) {
                calls.hostCall("ncclCommFinalize", () -> nccl.ncclCommFinalize(handle), () -> {});
            }
        } catch (RuntimeException e) {
            problem = Suppressed.first(problem, e);
            broken = true;
        }
        if (broken || mayNeverEnd()) {
            abort();
            state = CommunicatorState.CLOSED;
            Suppressed.rethrow(problem);
            return;
        }
        if (become(CommunicatorState.CLOSED)) {
            RuntimeException earlier = problem;
            end(true, () -> {
                RuntimeException all = earlier;
                try {
                    calls.destroy();
                } catch (RuntimeException e) {
                    all = Suppressed.first(all, e);
                }
                Suppressed.rethrow(all);
            });
        }
        Suppressed.rethrow(problem);
    }

    /** Returns false if finalizing could wait for a rank that this thread closes later. */
    private boolean mayFinalize() {
        boolean waitsForProcess =
                library.engine() == Engine.NCCL && library.version().isAtLeast(FINALIZE_WAITS);
        return library.provides("ncclCommFinalize")
                && (!waitsForProcess || processRanks == null || processRanks.isFinalizedAlone());
    }

    private boolean isBroken() {
        if (mayNeverEnd() || peers.count() > 0) {
            return true;
        }
        int problem = calls.poll();
        return problem != nccl.ncclSuccess && problem != nccl.ncclInProgress && state != CommunicatorState.REVOKED;
    }

    /**
     * Frees the native communicator, and then its resources in Java even if that fails.
     *
     * @param waits true to wait for other ranks of this process
     */
    private void end(boolean waits, Runnable free) {
        calls.release();
        KnownCommunicators.remove(handle);
        if (processRanks == null) {
            endNow(free);
        } else {
            processRanks.leave(this, waits, () -> endNow(free));
        }
    }

    private void endNow(Runnable free) {
        try {
            free.run();
        } finally {
            if (isStopped()) {
                PendingOperations.stop(this, reference, false);
            }
            PendingOperations.remove(reference);
            calls.close();
            StalledDevices.remove(this);
            if (statusQuery != null) {
                statusQuery.end();
            }
            if (status != null) {
                status.close();
            }
            if (ownFailure) {
                peers.stay();
            } else {
                peers.close();
            }
            owned.abandonAll();
            owned.takeKept().forEach(PendingReleases::release);
            recorder.end();
            listener.ended();
        }
    }

    @Override
    public String toString() {
        boolean known = communicatorKey != null && communicatorKey.isKnown();
        String text = !name.isEmpty()
                ? "communicator '" + name + "'"
                : known ? "communicator " + communicatorKey.text() : "communicator";
        return size == 0 ? text : text + " (rank " + rank + " of " + size + " on " + device + ")";
    }
}
