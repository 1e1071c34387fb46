package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.Communicator.State;
import io.github.nccl4j.internal.cuda.Cuda;
import io.github.nccl4j.internal.log.KnownCommunicators;
import io.github.nccl4j.internal.memory.Leaks;
import io.github.nccl4j.internal.memory.StalledDevices;
import io.github.nccl4j.internal.threads.Gate;
import io.github.nccl4j.internal.threads.Suppressed;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.library.Engine;
import java.time.Duration;
import java.util.EnumSet;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;

/**
 * The native communicator behind a {@link Communicator}: its handle, its state, exclusive access to it, and the
 * deadline of calls that wait.
 *
 * <p>Operations enter the gate, which is open in state OPEN only. Changes of state also enter the gate, whether it is
 * open or barred. Only {@link #revoke} and {@link #abort} do not enter the gate, so that they can run during another
 * thread's call.
 */
final class CommunicatorCore implements StalledDevices.StalledWork, ProcessRanks.Member, JfrEvents.Source {
    static final Set<State> ENDED = EnumSet.of(State.ABORTED, State.CLOSED);
    private static final Set<State> ENDED_BY_FAILURE = EnumSet.of(State.REVOKED, State.FAILED, State.ABORTED);
    private static final Duration ABORT_GRACE = Duration.ofSeconds(5);

    private final Communicator communicator;
    private final NcclLibrary library;
    private final Device device;
    private final boolean onHost;
    private final boolean blocking;
    private final boolean owner;
    private final Settings settings;
    private final Duration deadline;

    private final String name;
    private int rank;
    private int size;

    /** Not volatile: written before the gate opens for the first time. */
    private long handle;

    private final Gate gate = new Gate(this::inUse, this::giveThreadADevice);
    private volatile State state;
    /** True after a call was abandoned that is still in NCCL. */
    private volatile boolean stuck;

    private final Failures failures;
    private final NativeCalls calls;
    private final OwnedResources owned;
    private final DerivedCommunicators derived;

    /** The open batch of this communicator, its index in the batch, and the pass that it holds until the batch ends. */
    volatile Batch batch;

    int batchIndex;
    private Gate.Pass batchPass;
    /** The batch's number among the groups of this communicator, or 0. */
    private int batchGroup;

    /** Compares collective calls across ranks; null if the check is off. Not volatile, like the handle. */
    private CallCheck check;

    /** Queries the other ranks when an operation is late; null if that is impossible. Not volatile, like the handle. */
    private RankStatusQuery statusQuery;

    /** Identifies this communicator in the process; null if unknown. */
    private Object communicatorKey;

    /** The communicator's ranks in this process, on CUDA devices. */
    private ProcessRanks processRanks;

    private final Thread creator = Thread.currentThread();

    /** Stack of the request for the communicator: a group creates the communicator at its launch. */
    private final Throwable creation = new Throwable("created here");

    private Leaks.Watch watch;

    CommunicatorCore(
            Communicator communicator,
            NcclLibrary library,
            Device device,
            boolean blocking,
            boolean owner,
            Settings settings,
            String name) {
        this.communicator = communicator;
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
        derived = new DerivedCommunicators(this);
        barAs(State.PENDING);
    }

    NcclLibrary library() {
        return library;
    }

    @Override
    public Device device() {
        return device;
    }

    boolean isOnHost() {
        return onHost;
    }

    boolean isBlocking() {
        return blocking;
    }

    @Override
    public Duration deadline() {
        return deadline;
    }

    Communicator communicator() {
        return communicator;
    }

    Settings settings() {
        return settings;
    }

    @Override
    public String name() {
        return name;
    }

    /** The rank; throws if it is not known before the communicator is created. */
    int rank() {
        State seen = state;
        if (size == 0) {
            throw notOpen(seen);
        }
        return rank;
    }

    /** The rank, also before the communicator is created; 0 if not known yet. */
    @Override
    public int expectedRank() {
        return rank;
    }

    /** The size, also before the communicator is created; 0 if not known yet. */
    @Override
    public int expectedSize() {
        return size;
    }

    @Override
    public OperationLog.Entry lastOperation() {
        return communicator.operationLog().last();
    }

    /** A text that identifies the communicator on all its ranks, for records. Does not reveal the unique id. */
    @Override
    public String identity() {
        return ProcessRanks.text(communicatorKey);
    }

    int size() {
        State seen = state;
        if (size == 0) {
            throw notOpen(seen);
        }
        return size;
    }

    State state() {
        return state;
    }

    boolean hasEnded() {
        return ENDED.contains(state);
    }

    long handle() {
        return handle;
    }

    Gate gate() {
        return gate;
    }

    NativeCalls calls() {
        return calls;
    }

    OwnedResources owned() {
        return owned;
    }

    DerivedCommunicators derived() {
        return derived;
    }

    /** The key that identifies the communicator on all its ranks; null if there is none. */
    Object key() {
        return communicatorKey;
    }

    void require(String function) {
        library.require(function);
    }

    /* Creation. */

    /** Opens the communicator after NCCL has written its handle to {@link NativeCalls#handleCell}. */
    void created(int rank, int size) {
        opened(calls.writtenHandle(), rank, size);
    }

    /** As {@link #created(int, int)} with the rank and the size from NCCL. */
    void created() {
        long made = calls.writtenHandle();
        int[] answer = new int[1];
        Status.check(nccl.ncclCommUserRank(made, answer), "ncclCommUserRank");
        int itsRank = answer[0];
        Status.check(nccl.ncclCommCount(made, answer), "ncclCommCount");
        opened(made, itsRank, answer[0]);
    }

    void opened(long handle, int rank, int size) {
        this.handle = handle;
        this.rank = rank;
        this.size = size;
        if (owner && device.isCuda() && communicatorKey != null) {
            processRanks = ProcessRanks.join(communicatorKey, this);
        }
        KnownCommunicators.add(
                handle, new KnownCommunicators.Member(rank, name, device.isCuda() ? device.index() : -1));
        // Earlier warnings of NCCL are not the cause of later failures.
        LastError.observe(library);
        calls.begun();
        giveThreadADevice();
        Rendezvous where = settings.check();
        if (where != null && where.rank() == rank && where.size() == size) {
            check = new CallCheck(this, where);
        }
        enableStatusQuery(settings.meeting() != null ? settings.meeting() : where);
        communicator.flightRecorder().begin();
        gate.open(() -> state = State.OPEN);
        if (owner) {
            if (settings.watchdog()) {
                Watchdog.watch(this);
            }
            watch = Leaks.watchAlways(communicator, toString(), creation);
        }
    }

    /** Enables status queries by a rendezvous, if the rendezvous has the same ranks; null disables them. */
    void enableStatusQuery(Rendezvous where) {
        boolean named = communicatorKey != null && communicatorKey != ProcessRanks.UNKNOWN;
        if (named && owner && where != null && where.rank() == rank && where.size() == size && size > 1) {
            statusQuery = RankStatusQuery.begin(this, where);
        }
    }

    /** Null if the ranks can't be queried. */
    RankStatusQuery statusQuery() {
        return statusQuery;
    }

    /** Sets rank and size before the creation, for messages about it. */
    void expect(int rank, int size) {
        this.rank = rank;
        this.size = size;
    }

    /** Sets the key that identifies the communicator on all its ranks. */
    void setKey(Object key) {
        communicatorKey = key;
    }

    /** The last holder of the pass, or the creator before the first pass. */
    @Override
    public Thread user() {
        Thread last = gate.lastHolder();
        return last != null ? last : creator;
    }

    CallCheck check() {
        return check;
    }

    /** Waits until a non-blocking communicator is created; checks that a blocking communicator has a handle. */
    void awaitCreation(String function) {
        if (!blocking) {
            calls.awaitReady(function, function);
        } else if (calls.writtenHandle() == 0) {
            throw new IllegalStateException(function + " says that it succeeded, but gave no communicator");
        }
    }

    /**
     * Closes the communicator after its creation has failed.
     *
     * @param late true if the call continues, and will write to the cells
     */
    void creationFailed(boolean late) {
        if (state == State.CLOSED) {
            return;
        }
        state = State.CLOSED;
        if (late || stuck) {
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
    void abortLate() {
        long made = calls.writtenHandle();
        end(false, () -> {
            if (made != 0) {
                calls.abort(made);
            }
        });
    }

    boolean isStuckNow() {
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

    IllegalStateException notOpen() {
        return notOpen(state);
    }

    IllegalStateException notOpen(State seen) {
        return wrongState(seen, "used", EnumSet.of(State.OPEN));
    }

    /** The exception for the state that the caller has read; another thread may have changed the state since then. */
    IllegalStateException wrongState(State seen, String what, Set<State> allowed) {
        String text =
                switch (seen) {
                    case PENDING -> "is pending: it can be used when its group has been launched";
                    case OPEN -> "is open";
                    case SUSPENDED -> "is suspended: resume it first";
                    case REVOKED -> "was revoked: it can be split, shrunk, closed or aborted";
                    case FINISHED -> "was finished: it can be closed or aborted";
                    case FAILED -> "has a call that was given up: it can be closed or aborted, which are the same now";
                    case ABORTED -> "was aborted";
                    case CLOSED -> "is closed";
                };
        return new IllegalStateException(
                this + " " + text + (what.equals("used") ? "" : "; to be " + what + " it must be " + allowed),
                ENDED_BY_FAILURE.contains(seen) ? failures.first() : null);
    }

    void requireOpen() {
        State seen = state;
        if (seen != State.OPEN) {
            throw notOpen(seen);
        }
    }

    /** Resources of a suspended communicator can't be released. */
    void requireNotSuspended() {
        State seen = state;
        if (seen == State.SUSPENDED) {
            throw notOpen(seen);
        }
    }

    /** The pass that the open batch holds. */
    Gate.Pass batchPass() {
        return batchPass;
    }

    /** The batch's number among the groups of this communicator. Assigned when its first operation is recorded. */
    int batchGroup() {
        if (batchGroup == 0) {
            batchGroup = communicator.operationLog().beginGroup();
        }
        return batchGroup;
    }

    void enterFor(Batch joining, int index) {
        batchPass = gate.enter();
        batchGroup = 0;
        batch = joining;
        batchIndex = index;
    }

    void leaveBatch() {
        batch = null;
        Gate.Pass pass = batchPass;
        batchPass = null;
        pass.leave();
    }

    /** Runs an action with exclusive access in one of the given states. For changes of state, and for states except OPEN. */
    <R> R exclusively(String what, Set<State> allowed, Supplier<R> body) {
        Gate.Pass pass = gate.enterBarred();
        try {
            State seen = state;
            if (!allowed.contains(seen)) {
                throw wrongState(seen, what, allowed);
            }
            return body.get();
        } finally {
            pass.leave();
        }
    }

    /** Changes the state, unless another thread has closed or aborted the communicator; returns true if changed. */
    private synchronized boolean become(State next) {
        if (ENDED.contains(state)) {
            return false;
        }
        if (next == State.OPEN) {
            gate.open(() -> state = next);
        } else {
            barAs(next);
        }
        return true;
    }

    /** Changes to a state that refuses operations. State and gate change atomically for callers that are refused. */
    private Gate.Pass barAs(State next) {
        return gate.bar(this::notOpen, () -> state = next);
    }

    /** Marks the communicator as stuck after a call was abandoned. */
    void markStuck() {
        stuck = true;
        if (state != State.PENDING) {
            become(State.FAILED);
        }
    }

    /** Ends a call of an interrupted thread. Runs on a thread of its own. */
    void endInterruptedCall() {
        Watchdog.handle("interrupt", failures::endInterruptedCall);
    }

    Failures failures() {
        return failures;
    }

    /** True if NCCL or the device may never complete its work. Then nothing may wait for it. */
    @Override
    public boolean mayNeverEnd() {
        return stuck || failures.isStalled();
    }

    /* Lifecycle. */

    void suspend(int flags) {
        require("ncclCommSuspend");
        exclusively("suspended", EnumSet.of(State.OPEN), () -> {
            calls.hostCall("ncclCommSuspend", () -> nccl.ncclCommSuspend(handle, flags), () -> {});
            return become(State.SUSPENDED);
        });
    }

    void resume() {
        exclusively("resumed", EnumSet.of(State.SUSPENDED), () -> {
            calls.hostCall("ncclCommResume", () -> nccl.ncclCommResume(handle), () -> {});
            return become(State.OPEN);
        });
    }

    void finish() {
        require("ncclCommFinalize");
        exclusively("finished", EnumSet.of(State.OPEN), () -> {
            calls.hostCall("ncclCommFinalize", () -> nccl.ncclCommFinalize(handle), () -> {});
            return become(State.FINISHED);
        });
    }

    /** Revokes the communicator. May be called from any thread, also during another thread's call. */
    void revoke(int flags) {
        require("ncclCommRevoke");
        requireRevocable();
        int result = calls.revoke(flags);
        if (result != nccl.ncclSuccess && result != nccl.ncclInProgress) {
            // The state stays as it was: the holder of the pass must keep exclusive access.
            throw failures.failed(result, "ncclCommRevoke", "ncclCommRevoke");
        }
        Gate.Pass inside;
        synchronized (this) {
            requireRevocable();
            inside = barAs(State.REVOKED);
        }
        awaitLeft(inside, deadline);
        calls.settle(result, "ncclCommRevoke", "ncclCommRevoke");
    }

    private void requireRevocable() {
        State seen = state;
        if (seen != State.OPEN) {
            throw wrongState(seen, "revoked", EnumSet.of(State.OPEN));
        }
    }

    private void awaitLeft(Gate.Pass inside, Duration limit) {
        long nanoseconds = Waiting.nanoseconds(limit);
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
        Batch open = batch;
        return open == null || open.isInLibrary();
    }

    /** The pass of a thread that may be in NCCL, else null. For the watchdog. */
    Gate.Pass inLibrary() {
        Gate.Pass inside = gate.inside();
        return inside != null && isBatchInLibrary() ? inside : null;
    }

    /** Aborts the communicator. May be called from any thread, also during another thread's call. */
    void abort() {
        Gate.Pass inside;
        synchronized (this) {
            if (ENDED.contains(state) || state == State.PENDING) {
                return;
            }
            inside = barAs(State.ABORTED);
        }
        communicator.ending();
        end(true, () -> {
            if ((stuck || isInLibrary(inside)) && !onHost) {
                getOut(inside);
            }
            RuntimeException problem = owned.closeGraphs();
            // Closing them would wait for other ranks.
            owned.owned(Communicator.class).forEach(Communicator::abort);
            try {
                calls.abort(handle);
            } catch (RuntimeException e) {
                problem = Suppressed.first(problem, e);
            }
            Suppressed.rethrow(problem);
        });
    }

    /**
     * Makes a thread leave its call before the communicator is freed. Not needed with the host engine: its handles are
     * looked up, so freeing is safe during a call, and ends the call.
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
    void close() {
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
        if (state == State.PENDING) {
            throw wrongState(State.PENDING, "closed", EnumSet.complementOf(EnumSet.of(State.PENDING)));
        }
        if (!owner) {
            RuntimeException problem = owned.closeAll();
            become(State.CLOSED);
            end(false, () -> {});
            Suppressed.rethrow(problem);
            return;
        }
        if (isBroken()) {
            abort();
            state = State.CLOSED;
            return;
        }
        RuntimeException problem = null;
        boolean broken = false;
        try {
            if (state == State.SUSPENDED) {
                calls.hostCall("ncclCommResume", () -> nccl.ncclCommResume(handle), () -> {});
                become(State.OPEN);
            }
            problem = owned.closeAll();
            if (!mayNeverEnd()
                    && !hasEnded()
                    && state != State.FINISHED
                    && state != State.REVOKED
                    && library.provides("ncclCommFinalize")) {
                calls.hostCall("ncclCommFinalize", () -> nccl.ncclCommFinalize(handle), () -> {});
            }
        } catch (RuntimeException e) {
            problem = Suppressed.first(problem, e);
            broken = true;
        }
        if (broken || mayNeverEnd()) {
            abort();
            state = State.CLOSED;
            Suppressed.rethrow(problem);
            return;
        }
        if (become(State.CLOSED)) {
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

    private boolean isBroken() {
        if (mayNeverEnd()) {
            return true;
        }
        int problem = calls.poll();
        return problem != nccl.ncclSuccess && problem != nccl.ncclInProgress && state != State.REVOKED;
    }

    /**
     * Frees the native communicator, and then its resources in Java even if that fails.
     *
     * @param waits true to wait for other ranks of this process
     */
    private void end(boolean waits, Runnable free) {
        calls.release();
        Leaks.endWatch(watch);
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
            calls.close();
            StalledDevices.remove(this);
            if (statusQuery != null) {
                statusQuery.end();
            }
            owned.abandonAll();
            owned.releaseKept();
            communicator.ended();
        }
    }

    @Override
    public String toString() {
        String text = name.isEmpty() ? "communicator" : "communicator '" + name + "'";
        return size == 0 ? text : text + " (rank " + rank + " of " + size + " on " + device + ")";
    }
}
