package io.github.nccl4j.internal.communicator;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.Version;
import io.github.nccl4j.internal.cuda.PendingOperations;
import io.github.nccl4j.internal.cuda.PendingReleases;
import io.github.nccl4j.internal.log.KnownCommunicators;
import io.github.nccl4j.internal.memory.StalledDevices;
import io.github.nccl4j.internal.threads.Gate;
import io.github.nccl4j.internal.threads.Suppressed;
import io.github.nccl4j.internal.threads.Timeouts;
import io.github.nccl4j.library.Engine;
import java.time.Duration;
import java.util.EnumSet;
import java.util.concurrent.locks.LockSupport;

/** The changes of a communicator's state after its creation: each with its native call, up to the end. */
public final class CommunicatorLifecycle {
    /** The first release whose ncclCommFinalize waits for all ranks of the process. */
    private static final Version FINALIZE_WAITS = new Version(2, 31, 2);

    private static final Duration ABORT_GRACE = Duration.ofSeconds(5);

    private final CommunicatorCore core;

    /** True during and after the native call that stops all work; if NCCL refuses to revoke, only during it. */
    private volatile boolean revoked;

    private volatile boolean aborted;

    /** True if the program of this rank has failed, and its process is likely to end. */
    private volatile boolean ownFailure;

    private final Object revocation = new Object();

    CommunicatorLifecycle(CommunicatorCore core) {
        this.core = core;
    }

    public void suspend(int flags) {
        core.require("ncclCommSuspend");
        core.exclusively("suspended", EnumSet.of(CommunicatorState.OPEN), () -> {
            core.calls().hostCall("ncclCommSuspend", () -> nccl.ncclCommSuspend(core.handle(), flags), () -> {});
            return core.become(CommunicatorState.SUSPENDED);
        });
    }

    public void resume() {
        core.exclusively("resumed", EnumSet.of(CommunicatorState.SUSPENDED), () -> {
            core.calls().hostCall("ncclCommResume", () -> nccl.ncclCommResume(core.handle()), () -> {});
            return core.become(CommunicatorState.OPEN);
        });
    }

    public void finish() {
        core.require("ncclCommFinalize");
        core.exclusively("finished", EnumSet.of(CommunicatorState.OPEN), () -> {
            core.ranks().setFinalized();
            core.calls().hostCall("ncclCommFinalize", () -> nccl.ncclCommFinalize(core.handle()), () -> {});
            return core.become(CommunicatorState.FINISHED);
        });
    }

    /** Revokes the communicator. May be called from any thread, also during another thread's call. */
    public void revoke(int flags) {
        core.require("ncclCommRevoke");
        int result;
        Gate.Pass inside = null;
        synchronized (revocation) {
            requireRevocable();
            core.stopping();
            revoked = true;
            result = core.calls().revoke(flags);
            if (result != nccl.ncclSuccess && result != nccl.ncclInProgress) {
                // The state stays as it was: the holder of the pass must keep exclusive access.
                revoked = false;
            } else {
                synchronized (core) {
                    requireRevocable();
                    inside = core.barAs(CommunicatorState.REVOKED);
                }
            }
        }
        if (inside != null) {
            awaitLeft(inside, core.deadline());
        }
        core.calls().settle(result, "ncclCommRevoke", "ncclCommRevoke");
    }

    /** True if the end of work may mean that it was stopped. */
    public boolean isStopped() {
        return revoked || aborted;
    }

    private void requireRevocable() {
        CommunicatorState seen = core.state();
        if (seen != CommunicatorState.OPEN) {
            throw core.wrongState(seen, "revoked", EnumSet.of(CommunicatorState.OPEN));
        }
    }

    void awaitLeft(Gate.Pass inside, Duration limit) {
        long nanoseconds = Timeouts.nanoseconds(limit);
        long start = System.nanoTime();
        while (core.isInLibrary(inside) && System.nanoTime() - start <= nanoseconds) {
            LockSupport.parkNanos(100_000);
        }
    }

    /**
     * Closes the communicator after its creation has failed.
     *
     * @param late true if the call continues, and will write to the cells
     */
    public void creationFailed(boolean late) {
        if (core.hasEnded()) {
            return;
        }
        core.setClosed();
        if (late || core.isStuckNow()) {
            core.peers().close();
            return;
        }
        long made = core.calls().writtenHandle();
        end(false, () -> {
            // NCCL has already freed a blocking communicator whose creation failed.
            if (!core.isBlocking() && made != 0) {
                core.calls().abort(made);
            }
        });
    }

    /** Aborts a communicator that was created after the caller gave up. */
    public void abortLate() {
        long made = core.calls().writtenHandle();
        end(false, () -> {
            if (made != 0) {
                core.calls().abort(made);
            }
        });
    }

    /** As {@link #abort}, because the program of this rank has failed: the others are told when its process ends. */
    public void abortAfter(Throwable failure) {
        ownFailure = true;
        try {
            abort();
        } catch (RuntimeException e) {
            failure.addSuppressed(e);
        }
    }

    /** Aborts the communicator. May be called from any thread, also during another thread's call. */
    public void abort() {
        Gate.Pass inside;
        synchronized (core) {
            if (core.hasEnded() || core.state() == CommunicatorState.PENDING) {
                return;
            }
            inside = core.barAs(CommunicatorState.ABORTED);
        }
        core.stopping();
        aborted = true;
        end(true, () -> {
            if ((core.isStuckNow() || core.isInLibrary(inside)) && !core.isOnHost()) {
                getOut(inside);
            }
            RuntimeException problem = core.owned().closeGraphs();
            // Closing them would wait for other ranks.
            core.owned().owned(CommunicatorCore.class).forEach(CommunicatorCore::abort);
            try {
                core.calls().abort(core.handle());
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
        if (core.library().provides("ncclCommRevoke")) {
            core.calls().onDevice(() -> nccl.ncclCommRevoke(core.handle(), nccl.NCCL_REVOKE_DEFAULT));
        }
        awaitLeft(inside, ABORT_GRACE);
    }

    /**
     * Closes the owned resources and destroys the native communicator, in any state. Aborts a failed communicator,
     * since its destruction may never complete.
     */
    void close() {
        if (core.hasEnded()) {
            return;
        }
        Gate.Pass pass = core.gate().enterBarred();
        try {
            closeAlone();
        } finally {
            pass.leave();
        }
    }

    private void closeAlone() {
        if (core.hasEnded()) {
            return;
        }
        if (core.state() == CommunicatorState.PENDING) {
            throw core.wrongState(
                    CommunicatorState.PENDING, "closed", EnumSet.complementOf(EnumSet.of(CommunicatorState.PENDING)));
        }
        if (!core.isOwner()) {
            RuntimeException problem = core.owned().closeAll();
            core.become(CommunicatorState.CLOSED);
            end(false, () -> {});
            Suppressed.rethrow(problem);
            return;
        }
        if (isBroken()) {
            abort();
            core.setClosed();
            return;
        }
        RuntimeException problem = null;
        boolean broken = false;
        try {
            if (core.state() == CommunicatorState.SUSPENDED) {
                core.calls().hostCall("ncclCommResume", () -> nccl.ncclCommResume(core.handle()), () -> {});
                core.become(CommunicatorState.OPEN);
            }
            problem = core.owned().closeAll();
            if (!core.mayNeverEnd()
                    && !core.hasEnded()
                    && core.state() != CommunicatorState.FINISHED
                    && core.state() != CommunicatorState.REVOKED
                    && mayFinalize()) {
                core.calls().hostCall("ncclCommFinalize", () -> nccl.ncclCommFinalize(core.handle()), () -> {});
            }
        } catch (RuntimeException e) {
            problem = Suppressed.first(problem, e);
            broken = true;
        }
        if (broken || core.mayNeverEnd()) {
            abort();
            core.setClosed();
            Suppressed.rethrow(problem);
            return;
        }
        if (core.become(CommunicatorState.CLOSED)) {
            RuntimeException earlier = problem;
            end(true, () -> {
                RuntimeException all = earlier;
                try {
                    core.calls().destroy();
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
        boolean waitsForProcess = core.library().engine() == Engine.NCCL
                && core.library().version().isAtLeast(FINALIZE_WAITS);
        return core.library().provides("ncclCommFinalize")
                && (!waitsForProcess || core.ranks().isFinalizedAlone());
    }

    private boolean isBroken() {
        if (core.mayNeverEnd() || core.peers().count() > 0) {
            return true;
        }
        int problem = core.calls().poll();
        return problem != nccl.ncclSuccess
                && problem != nccl.ncclInProgress
                && core.state() != CommunicatorState.REVOKED;
    }

    /**
     * Frees the native communicator, and then its resources in Java even if that fails.
     *
     * @param waits true to wait for other ranks of this process
     */
    private void end(boolean waits, Runnable free) {
        core.calls().release();
        KnownCommunicators.remove(core.handle());
        core.ranks().leave(waits, () -> endNow(free));
    }

    private void endNow(Runnable free) {
        try {
            free.run();
        } finally {
            if (isStopped()) {
                core.failures().stop(false);
            }
            PendingOperations.remove(core.failures().reference());
            core.calls().close();
            StalledDevices.remove(core);
            core.ranks().end(ownFailure);
            core.owned().abandonAll();
            core.owned().takeKept().forEach(PendingReleases::release);
            core.recorder().end();
            core.listener().ended();
        }
    }
}
