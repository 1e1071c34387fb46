package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.global.nccl_device;
import io.github.nccl4j.highlevel.Communicator.State;
import io.github.nccl4j.internal.cuda.Cuda;
import io.github.nccl4j.internal.log.KnownCommunicators;
import io.github.nccl4j.internal.memory.Address;
import io.github.nccl4j.internal.memory.Leaks;
import io.github.nccl4j.internal.memory.NativeMemory;
import io.github.nccl4j.internal.memory.StalledDevices;
import io.github.nccl4j.internal.operation.Deferred;
import io.github.nccl4j.internal.threads.Gate;
import io.github.nccl4j.internal.threads.Suppressed;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.library.NcclException;
import io.github.nccl4j.library.StructInitializers;
import io.github.nccl4j.nccl_device.ncclCommProperties_t;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.IntSupplier;
import java.util.function.LongToIntFunction;
import java.util.function.Supplier;
import org.bytedeco.javacpp.Loader;

/**
 * The native communicator behind a {@link Communicator}: its handle, its state, exclusive access to it, and the
 * deadline of calls that wait.
 *
 * <p>Operations enter the gate, which is open in state OPEN only. Changes of state also enter the gate, whether it is
 * open or barred. Only {@link #revoke} and {@link #abort} do not enter the gate, so that they can run during another
 * thread's call.
 */
final class CommunicatorCore implements StalledDevices.StalledWork, ProcessRanks.Member {
    private static final Set<State> ENDED = EnumSet.of(State.ABORTED, State.CLOSED);
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

    /** Memory to which NCCL writes the handle and the asynchronous error. */
    private final NativeMemory cells = new NativeMemory(2 * Long.BYTES);

    /** Guards the cells, and prevents that the handle is freed while its asynchronous error is queried. */
    private final ReentrantLock polling = new ReentrantLock();

    private boolean released;

    /** Number of calls that may wait, except operations. Written by the holder of the pass. */
    private long calls;

    /**
     * Start of the last such call, or time of creation, in milliseconds since 1970. Not volatile: readers may see
     * changes late.
     */
    private long lastCall = System.currentTimeMillis();

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

    /** Number of communicators that were derived from this communicator by collective calls. */
    private int derived;

    private UniqueId growId;

    private final Thread creator = Thread.currentThread();

    private final List<AutoCloseable> owned = new ArrayList<>();
    /** Releases of resources that abandoned calls may still use. */
    private final List<Runnable> kept = new ArrayList<>();

    /** True after {@link #kept} was released. Guarded by that list. */
    private boolean keepsNothing;

    private final Set<CudaGraph> graphs = new HashSet<>();
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

    String name() {
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
    int expectedRank() {
        return rank;
    }

    /** The size, also before the communicator is created; 0 if not known yet. */
    int expectedSize() {
        return size;
    }

    /** A text that identifies the communicator on all its ranks, for records. Does not reveal the unique id. */
    String identity() {
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

    /** The address of the cell for the handle. */
    long handleCell() {
        return cells.address();
    }

    void require(String function) {
        library.require(function);
    }

    /* Creation. */

    /** Opens the communicator after NCCL has written its handle to {@link #handleCell}. */
    void created(int rank, int size) {
        opened(cells.buffer().getLong(0), rank, size);
    }

    /** As {@link #created(int, int)} with the rank and the size from NCCL. */
    void created() {
        long made = cells.buffer().getLong(0);
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
        lastCall = System.currentTimeMillis();
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

    /** The key of the next communicator that all ranks, or all ranks of a color, derive from this communicator. */
    Object nameOfChild(int color) {
        return communicatorKey == null || communicatorKey == ProcessRanks.UNKNOWN
                ? communicatorKey
                : new ProcessRanks.Child(communicatorKey, derived++, color);
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
            awaitReady(function, function);
        } else if (cells.buffer().getLong(0) == 0) {
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
        long made = cells.buffer().getLong(0);
        end(false, () -> {
            // NCCL has already freed a blocking communicator whose creation failed.
            if (!blocking && made != 0) {
                abortHandle(made);
            }
        });
    }

    /** Aborts a communicator that was created after the caller gave up. */
    void abortLate() {
        long made = cells.buffer().getLong(0);
        end(false, () -> {
            if (made != 0) {
                abortHandle(made);
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

    private IllegalStateException notOpen(State seen) {
        return wrongState(seen, "used", EnumSet.of(State.OPEN));
    }

    /** The exception for the state that the caller has read; another thread may have changed the state since then. */
    private IllegalStateException wrongState(State seen, String what, Set<State> allowed) {
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

    <R> R onDevice(Cuda.Action<R> action) {
        return device.isCuda() ? Cuda.on(device.context(), action) : action.run();
    }

    /**
     * Makes a C call that is collective or may take long, and waits for its completion up to the deadline.
     *
     * @param late the action if the call succeeds after the caller gave up
     */
    void hostCall(String function, IntSupplier call, Runnable late) {
        begin();
        int result;
        if (blocking) {
            try {
                result = BlockingCall.run(function, deadline, () -> onDevice(call::getAsInt), code -> {
                    if (code == nccl.ncclSuccess) {
                        late.run();
                    }
                });
            } catch (BlockingCall.AbandonedException e) {
                throw givenUp(e, function);
            }
        } else {
            int returned = onDevice(call::getAsInt);
            // Some functions return success when they have only begun. The asynchronous error is reliable.
            result = returned == nccl.ncclSuccess ? nccl.ncclInProgress : returned;
        }
        settle(result, function, function);
    }

    /** Creates several communicators of this process in one native group. This communicator is the first of them. */
    void createTogether(List<Creation> creations) {
        String function = "ncclGroupEnd";
        IntSupplier call = () -> {
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
        };
        RuntimeException problem = null;
        try {
            int result = blocking
                    ? BlockingCall.run(
                            function,
                            deadline,
                            () -> onDevice(call::getAsInt),
                            late -> creations.forEach(Creation::abortLate))
                    : onDevice(call::getAsInt);
            if (result != nccl.ncclSuccess && result != nccl.ncclInProgress) {
                problem = failed(
                        result, creations.get(0).toString(), creations.get(0).toString());
            }
        } catch (BlockingCall.AbandonedException e) {
            creations.forEach(Creation::markStuck);
            String description = creations.get(0).toString();
            problem = e.isInterrupted() ? failures.interrupted(description) : timedOut(function, description, deadline);
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

    /** Makes a short C call for a resource of this communicator, in any state with a native communicator. */
    void callAlone(String function, LongToIntFunction call) {
        alone(() -> {
            if (!hasEnded()) {
                begin();
                settle(onDevice(() -> call.applyAsInt(handle)), function, function);
            }
        });
    }

    /** Runs an action with exclusive access in any state. The caller may already hold the pass. */
    void alone(Runnable body) {
        if (gate.isInside()) {
            Batch open = batch;
            if (open != null && open == Batch.current()) {
                open.inLibrary(body);
            } else {
                body.run();
            }
            return;
        }
        Gate.Pass pass = gate.enterBarred();
        try {
            body.run();
        } finally {
            pass.leave();
        }
    }

    /**
     * Makes a C call that takes memory back from NCCL. The caller must have exclusive access. Waits for the device,
     * which may still use the memory and may depend on other ranks.
     */
    void deregister(String function, LongToIntFunction call) {
        begin();
        int result;
        try {
            result = BlockingCall.run(
                    function,
                    deadline,
                    () -> {
                        if (device.isCuda()) {
                            Cuda.synchronizeDevice(device.context());
                        }
                        return onDevice(() -> call.applyAsInt(handle));
                    },
                    late -> {});
        } catch (BlockingCall.AbandonedException e) {
            throw givenUp(e, function);
        }
        settle(result, function, function);
    }

    private RuntimeException givenUp(BlockingCall.AbandonedException how, String function) {
        markStuck();
        return how.isInterrupted() ? failures.interrupted(function) : timedOut(function, function, deadline);
    }

    /** Marks the communicator as stuck after a call was abandoned. */
    void markStuck() {
        stuck = true;
        if (state != State.PENDING) {
            become(State.FAILED);
        }
    }

    /** Checks the result of a call; waits if the call is in progress. */
    void settle(int result, String function, String description) {
        if (result == nccl.ncclInProgress) {
            awaitReady(function, description);
        } else if (result != nccl.ncclSuccess) {
            throw failed(result, function, description);
        }
    }

    /** Waits until a non-blocking communicator has completed its calls. */
    void awaitReady(String function, String description) {
        int result = pollUntilReady(deadline);
        if (result == nccl.ncclInProgress) {
            if (state != State.PENDING) {
                // The call continues and will write its results.
                markStuck();
            }
            throw Thread.currentThread().isInterrupted()
                    ? failures.interrupted(description)
                    : timedOut(function, description, deadline);
        }
        if (result != nccl.ncclSuccess) {
            throw failed(result, function, description);
        }
    }

    /** Polls until the result is final, the limit has passed, or the thread is interrupted. */
    private int pollUntilReady(Duration limit) {
        begin();
        long nanoseconds = Waiting.nanoseconds(limit);
        long start = System.nanoTime();
        long pause = 1_000;
        while (true) {
            int result = poll();
            if (result != nccl.ncclInProgress
                    || System.nanoTime() - start > nanoseconds
                    || Thread.currentThread().isInterrupted()) {
                return result;
            }
            LockSupport.parkNanos(pause);
            pause = Math.min(2 * pause, 1_000_000);
        }
    }

    /** Queries the asynchronous error. May be called from any thread. */
    int poll() {
        polling.lock();
        try {
            if (released) {
                throw wrongState(state, "asked for errors", EnumSet.complementOf(EnumSet.copyOf(ENDED)));
            }
            return pollNow();
        } finally {
            polling.unlock();
        }
    }

    /** As {@link #poll}, but never waits, and returns success if the error can't be queried now. */
    int tryPoll() {
        if (!polling.tryLock()) {
            return nccl.ncclSuccess;
        }
        try {
            return released ? nccl.ncclSuccess : pollNow();
        } finally {
            polling.unlock();
        }
    }

    private int pollNow() {
        long from = handle != 0 ? handle : cells.buffer().getLong(0);
        if (from == 0) {
            return nccl.ncclInProgress;
        }
        int problem = nccl.ncclCommGetAsyncError(from, cells.address() + Long.BYTES);
        return problem != nccl.ncclSuccess ? problem : cells.buffer().getInt(Long.BYTES);
    }

    String lastError() {
        String told = BlockingCall.takeLastError();
        if (told != null) {
            return told;
        }
        polling.lock();
        try {
            return library.lastError(released ? 0 : handle);
        } finally {
            polling.unlock();
        }
    }

    /** Ends a call of an interrupted thread. Runs on a thread of its own. */
    void endInterruptedCall() {
        Watchdog.handle("interrupt", failures::endInterruptedCall);
    }

    /**
     * The library's messages about a failure of this communicator.
     *
     * @param call the call that returned an error, and the error; null if no call did
     */
    LastError.Messages libraryMessages(String call) {
        long began = failureBegan();
        String ofCall = BlockingCall.takeLastError();
        String text = ofCall != null ? ofCall : lastError();
        String quoted = LastError.quote(library, text, began, handle, call);
        // The host engine keeps a text for each failed communicator; an equal text of an earlier failure does not
        // matter.
        boolean isOwn = ofCall != null || library.engine() == Engine.HOST && hasAsyncError();
        return new LastError.Messages(isOwn ? text : quoted, NcclLog.warningsOf(expectedRank(), name, handle, began));
    }

    private boolean hasAsyncError() {
        polling.lock();
        try {
            int result = released ? nccl.ncclSuccess : pollNow();
            return result != nccl.ncclSuccess && result != nccl.ncclInProgress;
        } finally {
            polling.unlock();
        }
    }

    /** Start of the failed work: of the oldest operation that is not known to be done, else of the last call that waits. */
    private long failureBegan() {
        if (state == State.PENDING) {
            return lastCall;
        }
        for (OperationLog.Entry entry : communicator.operationLog().entries()) {
            if (entry.done() == 0) {
                return entry.enqueued() == 0 ? lastCall : entry.enqueued();
            }
        }
        return lastCall;
    }

    Failures failures() {
        return failures;
    }

    /** The exception for an error; applies the failure policy. */
    RuntimeException failed(int result, String function, String description) {
        return failures.failed(result, function, description);
    }

    /** The exception for a timeout; applies the failure policy. */
    NcclException timedOut(String function, String description, Duration limit) {
        return failures.timedOut(function, description, limit);
    }

    /** True if NCCL or the device may never complete its work. Then nothing may wait for it. */
    @Override
    public boolean mayNeverEnd() {
        return stuck || failures.isStalled();
    }

    /* Owned resources. */

    void own(AutoCloseable resource) {
        synchronized (owned) {
            owned.add(resource);
        }
    }

    void disown(AutoCloseable resource) {
        synchronized (owned) {
            owned.remove(resource);
        }
    }

    /** Runs a release after the native communicator has ended; immediately if it has already ended. */
    void keepUntilEnded(Runnable release) {
        synchronized (kept) {
            if (!keepsNothing) {
                kept.add(release);
                return;
            }
        }
        release.run();
    }

    private void releaseKept() {
        List<Runnable> all;
        synchronized (kept) {
            keepsNothing = true;
            all = List.copyOf(kept);
            kept.clear();
        }
        all.forEach(PendingReleases::release);
    }

    /** The owned resources, newest first. */
    private List<AutoCloseable> ownedNow() {
        synchronized (owned) {
            List<AutoCloseable> all = new ArrayList<>(owned);
            Collections.reverse(all);
            return all;
        }
    }

    /** Registers a graph that has captured operations: NCCL does not free the communicator before the graph is destroyed. */
    void registerGraph(CudaGraph graph) {
        synchronized (graphs) {
            if (graphs.add(graph)) {
                graph.onClose(() -> {
                    synchronized (graphs) {
                        graphs.remove(graph);
                    }
                });
            }
        }
    }

    private RuntimeException closeGraphs() {
        List<CudaGraph> all;
        synchronized (graphs) {
            all = new ArrayList<>(graphs);
        }
        RuntimeException problem = null;
        for (CudaGraph graph : all) {
            try {
                graph.close();
            } catch (RuntimeException e) {
                problem = Suppressed.first(problem, e);
            }
        }
        return problem;
    }

    private RuntimeException closeOwned() {
        RuntimeException problem = closeGraphs();
        for (AutoCloseable one : ownedNow()) {
            if (mayNeverEnd()) {
                break;
            }
            try {
                one.close();
                if (!(one instanceof Resource)) {
                    disown(one);
                }
            } catch (RuntimeException e) {
                problem = Suppressed.first(problem, e);
            } catch (Exception e) {
                problem = Suppressed.first(problem, new IllegalStateException(e));
            }
        }
        return problem;
    }

    /* Derived communicators. */

    /** Creates another communicator, immediately or at the launch of the open group. */
    void make(Creation creation, boolean alsoRevoked) {
        Batch open = Batch.current();
        if (open != null) {
            boolean added = false;
            try {
                open.add(this, creation);
                added = true;
            } finally {
                if (!added) {
                    creation.cancelled();
                }
            }
            return;
        }
        boolean begun = false;
        Gate.Pass pass = gate.enterBarred();
        try {
            State seen = state;
            if (seen != State.OPEN && !(alsoRevoked && seen == State.REVOKED)) {
                throw notOpen(seen);
            }
            begun = true;
            creation.callNow();
        } finally {
            pass.leave();
            if (!begun) {
                creation.cancelled();
            }
        }
    }

    /** Makes a call with results, immediately or at the launch of the open group. */
    void callWithResults(Deferred call, Set<State> allowed) {
        boolean done = false;
        try {
            Batch open = Batch.current();
            if (open != null) {
                open.add(this, call);
            } else {
                exclusively("used", allowed, () -> {
                    hostCall(call.toString(), call::call, () -> {});
                    return null;
                });
            }
            done = true;
        } finally {
            if (!done) {
                call.discarded();
            }
        }
        if (Batch.current() == null) {
            call.completed();
        }
    }

    /** Takes part in a split without a communicator for this rank. */
    void splitNone() {
        NativeMemory cell = new NativeMemory(Long.BYTES);
        Deferred call = new Deferred() {
            @Override
            public int call() {
                return onDevice(() -> nccl.ncclCommSplit(handle, nccl.NCCL_SPLIT_NOCOLOR, 0, cell.address(), 0));
            }

            @Override
            public void completed() {
                cell.close();
            }

            @Override
            public void discarded() {
                // An abandoned call may still write to the cell.
                if (!stuck) {
                    cell.close();
                }
            }

            @Override
            public String toString() {
                return "ncclCommSplit";
            }
        };
        callWithResults(call, EnumSet.of(State.OPEN, State.REVOKED));
    }

    UniqueId growId() {
        return exclusively("used", EnumSet.of(State.OPEN), () -> {
            try (NativeMemory id = new NativeMemory(UniqueId.BYTES)) {
                hostCall("ncclCommGetUniqueId", () -> nccl.ncclCommGetUniqueId(handle, id.address()), () -> {});
                byte[] bytes = new byte[UniqueId.BYTES];
                id.buffer().get(bytes);
                growId = UniqueId.of(bytes);
                return growId;
            }
        });
    }

    /** The unused id that this rank has created, if any: NCCL requires that this rank passes the id itself. */
    List<UniqueId> unusedGrowId() {
        return growId == null ? List.of() : List.of(growId);
    }

    void markGrowIdUsed() {
        growId = null;
    }

    long memory(int statistic) {
        require("ncclCommMemStats");
        return exclusively("asked for its memory", EnumSet.of(State.OPEN, State.SUSPENDED), () -> {
            long[] value = new long[1];
            int result = nccl.ncclCommMemStats(handle, statistic, value);
            settle(result, "ncclCommMemStats", "ncclCommMemStats");
            return value[0];
        });
    }

    CommunicatorProperties properties() {
        String function = "ncclCommQueryProperties";
        require(function);
        return exclusively("asked for its properties", EnumSet.of(State.OPEN), () -> {
            try (NativeMemory memory = new NativeMemory(Loader.sizeof(ncclCommProperties_t.class))) {
                StructInitializers.commProperties(memory.address());
                ncclCommProperties_t told = new ncclCommProperties_t(new Address(memory.address()));
                told.version(CommunicatorProperties.versionFor(NativeLibrary.versionCode()));
                int result = onDevice(() -> nccl_device.ncclCommQueryProperties(handle, memory.address()));
                settle(result, function, function);
                return new CommunicatorProperties(told, memory.buffer());
            }
        });
    }

    /* Lifecycle. */

    void suspend(int flags) {
        require("ncclCommSuspend");
        exclusively("suspended", EnumSet.of(State.OPEN), () -> {
            hostCall("ncclCommSuspend", () -> nccl.ncclCommSuspend(handle, flags), () -> {});
            return become(State.SUSPENDED);
        });
    }

    void resume() {
        exclusively("resumed", EnumSet.of(State.SUSPENDED), () -> {
            hostCall("ncclCommResume", () -> nccl.ncclCommResume(handle), () -> {});
            return become(State.OPEN);
        });
    }

    void finish() {
        require("ncclCommFinalize");
        exclusively("finished", EnumSet.of(State.OPEN), () -> {
            hostCall("ncclCommFinalize", () -> nccl.ncclCommFinalize(handle), () -> {});
            return become(State.FINISHED);
        });
    }

    /** Revokes the communicator. May be called from any thread, also during another thread's call. */
    void revoke(int flags) {
        require("ncclCommRevoke");
        requireRevocable();
        int result;
        polling.lock();
        try {
            if (released) {
                throw notOpen();
            }
            result = onDevice(() -> nccl.ncclCommRevoke(handle, flags));
        } finally {
            polling.unlock();
        }
        if (result != nccl.ncclSuccess && result != nccl.ncclInProgress) {
            // The state stays as it was: the holder of the pass must keep exclusive access.
            throw failed(result, "ncclCommRevoke", "ncclCommRevoke");
        }
        Gate.Pass inside;
        synchronized (this) {
            requireRevocable();
            inside = barAs(State.REVOKED);
        }
        awaitLeft(inside, deadline);
        settle(result, "ncclCommRevoke", "ncclCommRevoke");
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

    /** A count that changes with every call of NCCL that may wait. For the watchdog. */
    long calls() {
        return communicator.operationLog().recorded() + calls;
    }

    /** Records the start of a call that may wait. */
    void begin() {
        calls++;
        lastCall = System.currentTimeMillis();
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
            RuntimeException problem = closeGraphs();
            abortChildren();
            try {
                abortHandle(handle);
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
            onDevice(() -> nccl.ncclCommRevoke(handle, nccl.NCCL_REVOKE_DEFAULT));
        }
        awaitLeft(inside, ABORT_GRACE);
    }

    /** Aborts child communicators, since closing them waits for other ranks. */
    private void abortChildren() {
        for (AutoCloseable one : ownedNow()) {
            if (one instanceof Communicator child) {
                child.abort();
            }
        }
    }

    /**
     * Releases the resources that end with the native communicator. Must run after the native communicator has ended,
     * since the device may use memory until an abort.
     */
    private void abandonOwned() {
        for (AutoCloseable one : ownedNow()) {
            disown(one);
            if (one instanceof Resource resource) {
                resource.abandon();
            }
        }
    }

    private void abortHandle(long which) {
        try {
            int result = BlockingCall.runUninterruptibly(
                    "ncclCommAbort", deadline, () -> onDevice(() -> nccl.ncclCommAbort(which)));
            if (result != nccl.ncclSuccess && result != nccl.ncclInProgress) {
                throw Status.failure(
                        result,
                        "ncclCommAbort",
                        "ncclCommAbort",
                        rank,
                        name,
                        libraryMessages("ncclCommAbort " + result),
                        library);
            }
        } catch (BlockingCall.AbandonedException e) {
            throw Status.timeout(
                    "ncclCommAbort", "ncclCommAbort", deadline, rank, name, libraryMessages(null), library);
        }
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
            RuntimeException problem = closeOwned();
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
                hostCall("ncclCommResume", () -> nccl.ncclCommResume(handle), () -> {});
                become(State.OPEN);
            }
            problem = closeOwned();
            if (!mayNeverEnd()
                    && !hasEnded()
                    && state != State.FINISHED
                    && state != State.REVOKED
                    && library.provides("ncclCommFinalize")) {
                hostCall("ncclCommFinalize", () -> nccl.ncclCommFinalize(handle), () -> {});
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
                    destroy();
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
        int problem = poll();
        return problem != nccl.ncclSuccess && problem != nccl.ncclInProgress && state != State.REVOKED;
    }

    private void destroy() {
        try {
            int result = BlockingCall.runUninterruptibly(
                    "ncclCommDestroy", deadline, () -> onDevice(() -> nccl.ncclCommDestroy(handle)));
            if (result != nccl.ncclSuccess && result != nccl.ncclInProgress) {
                throw Status.failure(
                        result,
                        "ncclCommDestroy",
                        "ncclCommDestroy",
                        rank,
                        name,
                        libraryMessages("ncclCommDestroy " + result),
                        library);
            }
        } catch (BlockingCall.AbandonedException e) {
            throw Status.timeout(
                    "ncclCommDestroy", "ncclCommDestroy", deadline, rank, name, libraryMessages(null), library);
        }
    }

    /**
     * Frees the native communicator, and then its resources in Java even if that fails.
     *
     * @param waits true to wait for other ranks of this process
     */
    private void end(boolean waits, Runnable free) {
        polling.lock();
        // From here on no thread queries the handle for errors.
        released = true;
        polling.unlock();
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
            cells.close();
            StalledDevices.remove(this);
            if (statusQuery != null) {
                statusQuery.end();
            }
            abandonOwned();
            releaseKept();
            communicator.ended();
        }
    }

    @Override
    public String toString() {
        String text = name.isEmpty() ? "communicator" : "communicator '" + name + "'";
        return size == 0 ? text : text + " (rank " + rank + " of " + size + " on " + device + ")";
    }
}
