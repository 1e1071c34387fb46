package io.github.nccl4j.internal.communicator;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.global.nccl_device;
import io.github.nccl4j.internal.cuda.Cuda;
import io.github.nccl4j.internal.failure.BlockingCall;
import io.github.nccl4j.internal.failure.Failure;
import io.github.nccl4j.internal.failure.LastError;
import io.github.nccl4j.internal.failure.Reason;
import io.github.nccl4j.internal.memory.Address;
import io.github.nccl4j.internal.memory.NativeMemory;
import io.github.nccl4j.internal.operation.OperationLog;
import io.github.nccl4j.internal.threads.Gate;
import io.github.nccl4j.internal.threads.Timeouts;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.library.StructInitializers;
import io.github.nccl4j.nccl_device.ncclCommProperties_t;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.EnumSet;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BiFunction;
import java.util.function.IntSupplier;
import java.util.function.LongToIntFunction;
import org.bytedeco.javacpp.Loader;

/**
 * The native calls of a communicator except its operations. They may wait for other ranks, up to the deadline; the
 * results are returned at once or come from the asynchronous error. Also collects the library's messages about
 * failures.
 */
public final class NativeCalls {
    private final CommunicatorCore core;

    /** Memory to which NCCL writes the handle and the asynchronous error. */
    private final NativeMemory cells = new NativeMemory(2 * Long.BYTES);

    /** Guards the cells, and prevents that the handle is freed while its asynchronous error is queried. */
    private final ReentrantLock polling = new ReentrantLock();

    private boolean released;

    /** Number of lost ranks that end no call. */
    private volatile int tolerated;

    /** Number of calls that may wait, except operations. Written by the holder of the pass. */
    private long calls;

    /**
     * Start of the last such call, or time of creation, in milliseconds since 1970. Not volatile: readers may see
     * changes late.
     */
    private long lastCall = System.currentTimeMillis();

    /** The function in which the rank waits for others, also after it has given up; else empty. */
    private volatile String waitsIn = "";

    public NativeCalls(CommunicatorCore core) {
        this.core = core;
    }

    /** The handle that NCCL has written; 0 if it has not written one yet. */
    public long writtenHandle() {
        return cells.buffer().getLong(0);
    }

    /** The address of the cell for the handle. */
    public long handleCell() {
        return cells.address();
    }

    public <R> R onDevice(Cuda.Action<R> action) {
        return core.device().isCuda() ? Cuda.on(core.device().context(), action) : action.run();
    }

    /** Records the start of a call that may wait. */
    public void begin() {
        calls++;
        lastCall = System.currentTimeMillis();
    }

    /** Sets the start of the last call to now, without a call that waits. */
    public void begun() {
        lastCall = System.currentTimeMillis();
    }

    /** The function, other than an operation, in which this rank waits for other ranks; empty if there is none. */
    public String waitsIn() {
        return waitsIn;
    }

    /** The start of the last call that may wait, in milliseconds since 1970. */
    public long lastCall() {
        return lastCall;
    }

    /** Makes a call in which this rank may wait for others. */
    public void waitingIn(String function, Runnable call) {
        waitsIn = function;
        try {
            call.run();
        } finally {
            // A call that was given up continues.
            if (!core.isStuckNow()) {
                waitsIn = "";
            }
        }
    }

    /** A count that changes with every call of NCCL that may wait. For the watchdog. */
    public long count() {
        return core.operationLog().recorded() + calls;
    }

    /**
     * Makes a C call that is collective or may take long, and waits for its completion up to the deadline.
     *
     * @param late the action if the call succeeds after the caller gave up
     */
    public void hostCall(String function, IntSupplier call, Runnable late) {
        waitingIn(function, () -> hostCallNow(function, call, late));
    }

    private void hostCallNow(String function, IntSupplier call, Runnable late) {
        begin();
        int result;
        if (core.isBlocking()) {
            try {
                result = BlockingCall.run(
                        function, core.deadline(), () -> onDevice(call::getAsInt), this::mayWaitForLostRank, code -> {
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

    /** Makes a short C call for a resource of this communicator, in any state with a native communicator. */
    public void callAlone(String function, LongToIntFunction call) {
        alone(() -> {
            if (!core.hasEnded()) {
                begin();
                settle(onDevice(() -> call.applyAsInt(core.handle())), function, function);
            }
        });
    }

    /** Runs an action with exclusive access in any state. The caller may already hold the pass. */
    public void alone(Runnable body) {
        if (core.gate().isInside()) {
            CommunicatorCore.OpenGroup open = core.batch;
            if (open != null) {
                open.inLibrary(body);
            } else {
                body.run();
            }
            return;
        }
        Gate.Pass pass = core.gate().enterBarred();
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
    public void deregister(String function, LongToIntFunction call) {
        begin();
        int result;
        try {
            result = BlockingCall.run(
                    function,
                    core.deadline(),
                    () -> {
                        if (core.device().isCuda()) {
                            Cuda.synchronizeDevice(core.device().context());
                        }
                        return onDevice(() -> call.applyAsInt(core.handle()));
                    },
                    this::mayWaitForLostRank,
                    late -> {});
        } catch (BlockingCall.AbandonedException e) {
            throw givenUp(e, function);
        }
        settle(result, function, function);
    }

    private RuntimeException givenUp(BlockingCall.AbandonedException how, String function) {
        core.markStuck();
        return core.failures().told(core.failures().abandoned(how.reason(), function));
    }

    /** True if a rank is lost for which a call may wait. */
    public boolean mayWaitForLostRank() {
        return core.peers().count() > tolerated;
    }

    /** Lets later calls continue although ranks are lost: a shrink excludes these ranks. */
    public void tolerateLostRanks() {
        tolerated = core.peers().count();
    }

    /** Checks the result of a call; waits if the call is in progress. */
    public void settle(int result, String function, String description) {
        if (result == nccl.ncclInProgress) {
            awaitReady(function, description);
        } else if (result != nccl.ncclSuccess) {
            throw core.failures().told(core.failures().failed(result, function, description));
        }
    }

    /** Waits until a non-blocking communicator has completed its calls. */
    public void awaitReady(String function, String description) {
        int result = pollUntilReady(core.deadline());
        if (result == nccl.ncclInProgress) {
            if (core.state() != CommunicatorState.PENDING) {
                // The call continues and will write its results.
                core.markStuck();
            }
            Reason reason = Reason.of(Thread.currentThread().isInterrupted(), mayWaitForLostRank());
            throw core.failures().told(core.failures().abandoned(reason, function, description));
        }
        if (result != nccl.ncclSuccess) {
            throw core.failures().told(core.failures().failed(result, function, description));
        }
    }

    /** Polls until the result is final, the limit has passed, or the thread is interrupted. */
    private int pollUntilReady(Duration limit) {
        begin();
        long nanoseconds = Timeouts.nanoseconds(limit);
        long start = System.nanoTime();
        long pause = 1_000;
        while (true) {
            int result = poll();
            if (result != nccl.ncclInProgress
                    || System.nanoTime() - start > nanoseconds
                    || mayWaitForLostRank()
                    || Thread.currentThread().isInterrupted()) {
                return result;
            }
            LockSupport.parkNanos(pause);
            pause = Math.min(2 * pause, 1_000_000);
        }
    }

    /** Queries the asynchronous error. May be called from any thread. */
    public int poll() {
        polling.lock();
        try {
            if (released) {
                throw core.wrongState(
                        core.state(),
                        "asked for errors",
                        EnumSet.complementOf(EnumSet.of(CommunicatorState.ABORTED, CommunicatorState.CLOSED)));
            }
            return pollNow();
        } finally {
            polling.unlock();
        }
    }

    /** As {@link #poll}, but never waits, and returns success if the error can't be queried now. */
    public int tryPoll() {
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
        long from = core.handle() != 0 ? core.handle() : cells.buffer().getLong(0);
        if (from == 0) {
            return nccl.ncclInProgress;
        }
        int problem = nccl.ncclCommGetAsyncError(from, cells.address() + Long.BYTES);
        return problem != nccl.ncclSuccess ? problem : cells.buffer().getInt(Long.BYTES);
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

    public String lastError() {
        String told = BlockingCall.takeLastError();
        if (told != null) {
            return told;
        }
        polling.lock();
        try {
            return LastError.current(released ? 0 : core.handle());
        } finally {
            polling.unlock();
        }
    }

    /**
     * The library's messages about a failure of this communicator.
     *
     * @param call the call that returned an error, and the error; null if no call did
     */
    public LastError.Messages libraryMessages(String call) {
        long began = failureBegan();
        String ofCall = BlockingCall.takeLastError();
        String text = ofCall != null ? ofCall : lastError();
        String quoted = LastError.quote(core.library(), text, began, core.handle(), call);
        // The host engine keeps a text for each failed communicator; an equal text of an earlier failure does not
        // matter.
        boolean isOwn = ofCall != null || core.library().engine() == Engine.HOST && hasAsyncError();
        return new LastError.Messages(
                isOwn ? text : quoted, Failure.warnings(core.expectedRank(), core.name(), core.handle(), began));
    }

    /** Start of the failed work: of the oldest operation that is not known to be done, else of the last call that waits. */
    private long failureBegan() {
        if (core.state() == CommunicatorState.PENDING) {
            return lastCall;
        }
        for (OperationLog.Entry entry : core.operationLog().entries()) {
            if (entry.done() == 0) {
                return entry.enqueued() == 0 ? lastCall : entry.enqueued();
            }
        }
        return lastCall;
    }

    public long memory(int statistic) {
        core.require("ncclCommMemStats");
        return core.exclusively(
                "asked for its memory", EnumSet.of(CommunicatorState.OPEN, CommunicatorState.SUSPENDED), () -> {
                    long[] value = new long[1];
                    int result = nccl.ncclCommMemStats(core.handle(), statistic, value);
                    settle(result, "ncclCommMemStats", "ncclCommMemStats");
                    return value[0];
                });
    }

    /** Returns what a function makes of the properties, whose memory is valid only during its call. */
    public <R> R properties(int version, BiFunction<ncclCommProperties_t, ByteBuffer, R> reader) {
        String function = "ncclCommQueryProperties";
        core.require(function);
        return core.exclusively("asked for its properties", EnumSet.of(CommunicatorState.OPEN), () -> {
            try (NativeMemory memory = new NativeMemory(Loader.sizeof(ncclCommProperties_t.class))) {
                StructInitializers.commProperties(memory.address());
                ncclCommProperties_t told = new ncclCommProperties_t(new Address(memory.address()));
                told.version(version);
                int result = onDevice(() -> nccl_device.ncclCommQueryProperties(core.handle(), memory.address()));
                settle(result, function, function);
                return reader.apply(told, memory.buffer());
            }
        });
    }

    public void abort(long handle) {
        endNative("ncclCommAbort", () -> nccl.ncclCommAbort(handle));
    }

    public void destroy() {
        endNative("ncclCommDestroy", () -> nccl.ncclCommDestroy(core.handle()));
    }

    /** Makes a call that frees the native communicator, up to the deadline. */
    private void endNative(String function, IntSupplier call) {
        try {
            int result = BlockingCall.runUninterruptibly(function, core.deadline(), () -> onDevice(call::getAsInt));
            if (result != nccl.ncclSuccess && result != nccl.ncclInProgress) {
                throw core.failures()
                        .report(function, function, function + " " + result)
                        .failed(result);
            }
        } catch (BlockingCall.AbandonedException e) {
            throw core.failures().report(function, function, null).timedOut(core.deadline());
        }
    }

    /** Revokes the native communicator, which other threads may use meanwhile. */
    public int revoke(int flags) {
        polling.lock();
        try {
            if (released) {
                throw core.notOpen();
            }
            return onDevice(() -> nccl.ncclCommRevoke(core.handle(), flags));
        } finally {
            polling.unlock();
        }
    }

    /** Ends the queries of the asynchronous error: the native communicator will be freed. */
    public void release() {
        polling.lock();
        released = true;
        polling.unlock();
    }

    /** Frees the memory to which NCCL wrote its results, after the native communicator has ended. */
    public void close() {
        cells.close();
    }
}
