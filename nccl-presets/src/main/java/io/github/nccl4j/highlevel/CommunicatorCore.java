package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.global.nccl_device;
import io.github.nccl4j.highlevel.Communicator.State;
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
 * The native communicator behind a {@link Communicator}: its handle and state, who may call it when, and how calls that
 * take long are waited for.
 *
 * <p>Operations go through the gate, which is open in state OPEN only. Changes of state go through it, too, whether it is
 * open or not. {@link #abort} alone does not wait for who is inside.
 */
final class CommunicatorCore {
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

    /** Plain: written before the gate is opened for the first time. */
    private long handle;

    private final Gate gate = new Gate(this::inUse, this::giveThreadADevice);
    private volatile State state;
    /** A call that was given up is still in NCCL. */
    private volatile boolean stuck;

    private final Failures failures;

    /** Where NCCL writes the handle, and the asynchronous error. */
    private final NativeMemory cells = new NativeMemory(2 * Long.BYTES);

    /** Guards the cells, and the handle against being freed while its asynchronous error is asked for. */
    private final ReentrantLock polling = new ReentrantLock();

    private boolean released;

    /** Calls that may wait, besides operations. Written by the thread that is in the gate. */
    private long calls;

    /** When the last of them began, or it came to be; in milliseconds since 1970. Not volatile: readers may see changes late. */
    private long lastCall = System.currentTimeMillis();

    /** The batch that this takes part in, its place there, and the pass until the batch has ended. */
    volatile Batch batch;

    int batchIndex;
    private Gate.Pass batchPass;
    /** The batch's number among the groups of this communicator, or 0. */
    private int batchGroup;

    /** Compares calls with other ranks; null if nobody does. Plain, as the handle is. */
    private CallCheck check;

    /** Asks the other ranks when something is late; null where that can't be. Plain, as the handle is. */
    private RankStatusQuery statusQuery;

    /** What names this communicator in the process; null if it is not known. */
    private Object communicatorKey;

    /** The ranks of it in this process, on CUDA devices. */
    private ProcessRanks processRanks;

    /** How many communicators were made from it, by calls of all ranks. */
    private int derived;

    private UniqueId growId;

    private final Thread creator = Thread.currentThread();

    private final List<AutoCloseable> owned = new ArrayList<>();
    /** What calls that were given up may still use. */
    private final List<Runnable> kept = new ArrayList<>();

    /** Guarded by the list. */
    private boolean keepsNothing;

    private final Set<CudaGraph> graphs = new HashSet<>();
    /** Where it was asked for: in a group it comes to be somewhere else. */
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

    Device device() {
        return device;
    }

    boolean isOnHost() {
        return onHost;
    }

    boolean isBlocking() {
        return blocking;
    }

    Duration deadline() {
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

    /** Known from the start, or when it has come to be. */
    int rank() {
        State seen = state;
        if (size == 0) {
            throw notOpen(seen);
        }
        return rank;
    }

    /** The rank, or what it is to be; 0 as long as that is not known. */
    int expectedRank() {
        return rank;
    }

    /** The size, or what it is to be; 0 as long as that is not known. */
    int expectedSize() {
        return size;
    }

    /** What all of its ranks know it by, for records: neither the id nor a way to find it. */
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

    /* Becoming open. */

    /** The library has made it: {@link #handleCell} holds its handle. */
    void created(int rank, int size) {
        opened(cells.buffer().getLong(0), rank, size);
    }

    /** As {@link #created(int, int)}, where NCCL knows rank and size. */
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
        KnownCommunicators.add(handle, rank, name, device);
        // What NCCL warned of until now is no reason of a later failure.
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

    /** Where its ranks can be asked what they are at, if that is a place of these ranks; or null. */
    void enableStatusQuery(Rendezvous where) {
        boolean named = communicatorKey != null && communicatorKey != ProcessRanks.UNKNOWN;
        if (named && owner && where != null && where.rank() == rank && where.size() == size && size > 1) {
            statusQuery = RankStatusQuery.begin(this, where);
        }
    }

    /** Null where ranks can't be asked. */
    RankStatusQuery statusQuery() {
        return statusQuery;
    }

    /** What it will be, for messages about its creation. */
    void expect(int rank, int size) {
        this.rank = rank;
        this.size = size;
    }

    /** What all of its ranks know it by. */
    void isNamed(Object key) {
        communicatorKey = key;
    }

    /** The name of a communicator that all ranks, or all of a color, make from this by their next such call. */
    Object nameOfChild(int color) {
        return communicatorKey == null || communicatorKey == ProcessRanks.UNKNOWN
                ? communicatorKey
                : new ProcessRanks.Child(communicatorKey, derived++, color);
    }

    /** The thread that was in last. */
    Thread user() {
        Thread last = gate.lastHolder();
        return last != null ? last : creator;
    }

    CallCheck check() {
        return check;
    }

    /** Waits until one that does not block has come to be. */
    void awaitCreation(String function) {
        if (!blocking) {
            awaitReady(function, function);
        } else if (cells.buffer().getLong(0) == 0) {
            throw new IllegalStateException(function + " says that it succeeded, but gave no communicator");
        }
    }

    /**
     * It does not come to be.
     *
     * @param late whether the call goes on, and will write to the cells
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
            // What was to block, NCCL has freed itself.
            if (!blocking && made != 0) {
                abortHandle(made);
            }
        });
    }

    /** It has come to be, but nobody waits for it any more. */
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

    /** NCCL's calls leave a thread with the device that it had before; one that has none must not get another's. */
    private void giveThreadADevice() {
        if (device.isCuda()) {
            Cuda.giveThread(device);
        }
    }

    IllegalStateException notOpen() {
        return notOpen(state);
    }

    private IllegalStateException notOpen(State seen) {
        return wrongState(seen, "used", EnumSet.of(State.OPEN));
    }

    /** The state as it was seen: another thread may have changed it meanwhile. */
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

    /** What is suspended can't give anything back. */
    void requireNotSuspended() {
        State seen = state;
        if (seen == State.SUSPENDED) {
            throw notOpen(seen);
        }
    }

    /** The pass of the batch that this takes part in. */
    Gate.Pass batchPass() {
        return batchPass;
    }

    /** The number of the batch among the groups of this communicator: from when one of its operations is recorded. */
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

    /** Does something that changes the state, or that needs one other than OPEN; alone. */
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

    /** Changes the state unless it has ended meanwhile. */
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

    /** Changes the state to one that operations are refused in; the state and the gate at once for who is refused. */
    private Gate.Pass barAs(State next) {
        return gate.bar(this::notOpen, () -> state = next);
    }

    <R> R onDevice(Cuda.Action<R> action) {
        return device.isCuda() ? Cuda.on(device, action) : action.run();
    }

    /**
     * Makes a C call that is collective or may take long for another reason, and waits until it has done its work, but not
     * longer than the deadline.
     *
     * @param late what to do if the call has worked, but nobody waits any more
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
            // Some functions say that they have succeeded when they have only begun; the state of the communicator is
            // true.
            result = returned == nccl.ncclSuccess ? nccl.ncclInProgress : returned;
        }
        settle(result, function, function);
    }

    /** Makes communicators of this process in one native group; this is the first of them. */
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
            creations.forEach(Creation::isStuck);
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

    /** Makes a short C call of a resource of this communicator, in any state that has a native communicator. */
    void callAlone(String function, LongToIntFunction call) {
        alone(() -> {
            if (!hasEnded()) {
                begin();
                settle(onDevice(() -> call.applyAsInt(handle)), function, function);
            }
        });
    }

    /** Does something that needs the communicator for itself, in any state; also if this thread is inside already. */
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
     * Makes a C call after which memory is no longer NCCL's, for who is alone. Waits for the device, which may still use
     * the memory, and may need other ranks to be done.
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
                            Cuda.synchronizeDevice(device);
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
        isStuck();
        return how.isInterrupted() ? failures.interrupted(function) : timedOut(function, function, deadline);
    }

    /** A call of this communicator was given up. */
    void isStuck() {
        stuck = true;
        if (state != State.PENDING) {
            become(State.FAILED);
        }
    }

    /** Turns what a call has returned into success or an exception; waits for what is in progress. */
    void settle(int result, String function, String description) {
        if (result == nccl.ncclInProgress) {
            awaitReady(function, description);
        } else if (result != nccl.ncclSuccess) {
            throw failed(result, function, description);
        }
    }

    /** Waits until a communicator that does not block has done what it was told. */
    void awaitReady(String function, String description) {
        int result = pollUntilReady(deadline);
        if (result == nccl.ncclInProgress) {
            if (state != State.PENDING) {
                // It goes on, and will write its results.
                isStuck();
            }
            throw Thread.currentThread().isInterrupted()
                    ? failures.interrupted(description)
                    : timedOut(function, description, deadline);
        }
        if (result != nccl.ncclSuccess) {
            throw failed(result, function, description);
        }
    }

    /** Ends at the limit, or when the thread is interrupted. */
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

    /** The asynchronous error, from any thread. */
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

    /** As {@link #poll}, but never waits, and says that all is well where it can't tell. */
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

    /** A thread of its own ends a call whose thread was interrupted. */
    void endInterruptedCall() {
        Watchdog.handle("interrupt", failures::endInterruptedCall);
    }

    /**
     * What NCCL says of a failure of this communicator.
     *
     * @param call the call that returned an error, and the error; null if none did
     */
    LastError.Messages libraryMessages(String call) {
        long began = failureBegan();
        String ofCall = BlockingCall.takeLastError();
        String text = ofCall != null ? ofCall : lastError();
        String quoted = LastError.quote(library, text, began, handle, call);
        // The host engine keeps a text for each failed communicator; an equal text of an earlier failure does not matter.
        boolean isOwn = ofCall != null || library.engine() == Engine.HOST && hasAsyncError();
        return new LastError.Messages(
                isOwn ? text : quoted, NcclLog.warningsOf(expectedRank(), name, handle, began));
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

    /** When what fails now was called: the oldest operation that was not seen done, or the last call that waits. */
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

    /** The exception for an error, after the policy was asked. */
    RuntimeException failed(int result, String function, String description) {
        return failures.failed(result, function, description);
    }

    /** The exception for what was not done in time, after the policy was asked. */
    NcclException timedOut(String function, String description, Duration limit) {
        return failures.timedOut(function, description, limit);
    }

    /** Whether NCCL or the device may never be done with what it was told, so that nothing may wait for it. */
    boolean mayNeverEnd() {
        return stuck || failures.isStalled();
    }

    /* What it owns. */

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

    /** Has something released when the native communicator is gone; at once if that has happened. */
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
        all.forEach(InFlight::release);
    }

    /** The newest first. */
    private List<AutoCloseable> ownedNow() {
        synchronized (owned) {
            List<AutoCloseable> all = new ArrayList<>(owned);
            Collections.reverse(all);
            return all;
        }
    }

    /** A graph has captured operations: NCCL does not end before it was destroyed. */
    void isUsedBy(CudaGraph graph) {
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

    /* Making others. */

    /** Makes another communicator, now or with the group that is open. */
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
            creation.now();
        } finally {
            pass.leave();
            if (!begun) {
                creation.cancelled();
            }
        }
    }

    /** Makes a call with results, now or with the group that is open. */
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

    /** Takes part in a split, and gets no communicator. */
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
                // A call that was given up may still write to it.
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

    /** The id that this rank has made and that was not used yet: NCCL wants it back from this rank. */
    List<UniqueId> unusedGrowId() {
        return growId == null ? List.of() : List.of(growId);
    }

    void growIdIsUsed() {
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

    /** From any thread, also while another is in a call. */
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
            // As it was: who is inside must stay there alone.
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

    /** Whether another thread may be in NCCL: who only has an open group learns of the new state at its launch. */
    private boolean isInLibrary(Gate.Pass inside) {
        return inside.isHeld() && inside.holder() != Thread.currentThread() && isBatchInLibrary();
    }

    private boolean isBatchInLibrary() {
        Batch open = batch;
        return open == null || open.isInLibrary();
    }

    /** The pass of a thread that may be in NCCL, else null; for the watchdog. */
    Gate.Pass inLibrary() {
        Gate.Pass inside = gate.inside();
        return inside != null && isBatchInLibrary() ? inside : null;
    }

    /** A number that changes with every call of NCCL that may wait; for the watchdog. */
    long calls() {
        return communicator.operationLog().recorded() + calls;
    }

    /** A call begins that may wait. */
    void begin() {
        calls++;
        lastCall = System.currentTimeMillis();
    }

    /** From any thread, also while another is in a call. */
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
     * Makes a thread leave its call before the communicator is freed. With the host engine, whose handles are numbers that
     * it looks up, freeing is safe and does it.
     */
    private void getOut(Gate.Pass inside) {
        if (library.provides("ncclCommRevoke")) {
            onDevice(() -> nccl.ncclCommRevoke(handle, nccl.NCCL_REVOKE_DEFAULT));
        }
        awaitLeft(inside, ABORT_GRACE);
    }

    /** Closing children would wait for other ranks. */
    private void abortChildren() {
        for (AutoCloseable one : ownedNow()) {
            if (one instanceof Communicator child) {
                child.abort();
            }
        }
    }

    /** What goes with the native communicator. Memory is not freed before, since the device may wait for an abort. */
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
     * Closes what is owned and destroys the native communicator, in any state. One that has failed is aborted: destroying
     * it would wait for what never comes.
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
     * Frees the native communicator, and what belongs to it here whether that works or not.
     *
     * @param waits whether to wait for other ranks of this process
     */
    private void end(boolean waits, Runnable free) {
        polling.lock();
        // From here on nobody asks the handle for errors.
        released = true;
        polling.unlock();
        Leaks.closed(watch);
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
