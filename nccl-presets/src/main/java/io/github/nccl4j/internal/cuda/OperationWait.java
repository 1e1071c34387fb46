package io.github.nccl4j.internal.cuda;

import io.github.nccl4j.highlevel.NcclResultException;
import io.github.nccl4j.internal.operation.OperationLog;
import io.github.nccl4j.internal.threads.DaemonThreads;
import io.github.nccl4j.internal.threads.Suppressed;
import io.github.nccl4j.internal.threads.Timeouts;
import io.github.nccl4j.internal.threads.VirtualThreads;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/**
 * A wait of one thread for work after operations of communicators, as {@code Work} waits for those of its communicator.
 *
 * @param what describes the work
 * @param owners the communicators
 * @param operations the last operation of each
 */
public record OperationWait(
        Object what, Target target, List<PendingOperations.Owner> owners, List<OperationLog.Entry> operations) {
    private static final int SPINS = 1_000;
    private static final long CHECK_NANOSECONDS = 1_000_000;

    /** Time in the host engine between two checks. The thread runs operations there, and hands them over at the end. */
    private static final long HOST_WAIT_NANOSECONDS = 5_000_000;

    /** The work. */
    public static class Target {
        private final BooleanSupplier isDone;

        Target(BooleanSupplier isDone) {
            this.isDone = isDone;
        }

        /** Returns true if the work is done. */
        boolean isDone() {
            return isDone.getAsBoolean();
        }

        /** True to poll without pauses at first. */
        boolean spins() {
            return true;
        }

        boolean isInterruptible() {
            return true;
        }

        /** Waits before the next query, at most for a time in nanoseconds. */
        void pause(long nanoseconds) {
            LockSupport.parkNanos(nanoseconds);
        }

        /** Returns a query that is valid until the communicator has ended. */
        public BooleanSupplier lasting(PendingOperations.Owner owner) {
            return isDone;
        }
    }

    /** A stream that is polled. */
    public static final class Query extends Target {
        private final long context;
        private final long handle;

        public Query(long context, long handle, BooleanSupplier isDone) {
            super(isDone);
            this.context = context;
            this.handle = handle;
        }

        /** The stream may be closed meanwhile, an event of its own is not. */
        @Override
        public BooleanSupplier lasting(PendingOperations.Owner owner) {
            Mark mark = new Mark(context);
            owner.keepUntilEnded(mark::destroy);
            DeviceStreams.recordEvent(context, mark.event, handle);
            return mark;
        }
    }

    /** An event that is destroyed when it was seen to be done. */
    private static final class Mark implements BooleanSupplier {
        private final long context;
        private final long event;
        private boolean destroyed;

        Mark(long context) {
            this.context = context;
            event = DeviceStreams.createEvent(context, false);
        }

        @Override
        public synchronized boolean getAsBoolean() {
            if (!destroyed && DeviceStreams.eventIsDoneWhileCapturing(context, event)) {
                destroy();
            }
            return destroyed;
        }

        synchronized void destroy() {
            if (!destroyed) {
                destroyed = true;
                DeviceStreams.destroyEvent(context, event);
            }
        }
    }

    /** A stream of host memory. The thread runs the operations in it while it waits. */
    private static final class HostWait extends Target {
        private final long handle;

        HostWait(long handle) {
            super(() -> HostStreams.streamIsDone(handle));
            this.handle = handle;
        }

        @Override
        boolean spins() {
            return false;
        }

        @Override
        void pause(long nanoseconds) {
            HostStreams.synchronizeFor(handle, nanoseconds);
        }
    }

    /** A call in a thread of its own. An interrupt does not end the wait for it. */
    private static final class Call extends Target {
        Call(CompletableFuture<Void> called) {
            super(called::isDone);
        }

        @Override
        boolean isInterruptible() {
            return false;
        }
    }

    public static Target ofStream(long context, long handle) {
        return context == 0 && !VirtualThreads.isCurrent()
                ? new HostWait(handle)
                : new Query(context, handle, () -> DeviceStreams.streamIsDone(context, handle));
    }

    /**
     * Makes a call that waits for all work of a CUDA device. If the wait ends earlier, the call continues. The call comes after
     * cudaDeviceSynchronize: cudaFree keeps all other threads out of CUDA while it waits itself.
     */
    public static void run(long context, String name, Runnable body) {
        PendingOperations all = PendingOperations.of(context);
        if (all.isEmpty()) {
            body.run();
            return;
        }
        CompletableFuture<Void> called = CompletableFuture.runAsync(
                () -> {
                    Cuda.synchronizeDevice(context);
                    body.run();
                },
                task -> DaemonThreads.start("nccl4j " + name, task));
        all.await(name, new Call(called), null);
        try {
            called.join();
        } catch (CompletionException failure) {
            throw failure.getCause() instanceof RuntimeException cause ? cause : failure;
        }
    }

    /**
     * Waits, at most until the first deadline, or instead for a timeout that is not null.
     *
     * @return false if the timeout has passed
     */
    boolean run(Duration timeout) {
        owners.forEach(PendingOperations.Owner::beginWait);
        boolean interrupted = false;
        try {
            requireNoneStopped();
            long limit = timeout == null ? shortestDeadline() : Timeouts.nanoseconds(timeout);
            long start = System.nanoTime();
            long nextCheck = CHECK_NANOSECONDS;
            long pause = 1_000;
            for (int asked = 0; !isDone(); asked++) {
                long passed = System.nanoTime() - start;
                if (passed >= nextCheck) {
                    checkFailures();
                    nextCheck = passed + CHECK_NANOSECONDS;
                }
                if (passed >= limit) {
                    if (timeout == null) {
                        throw late(passed);
                    }
                    return false;
                }
                if (target.spins() && asked < SPINS) {
                    Thread.onSpinWait();
                    continue;
                }
                if (Thread.currentThread().isInterrupted()) {
                    if (target.isInterruptible()) {
                        throw interruption();
                    }
                    // A pending interrupt would make the pauses return at once.
                    interrupted = Thread.interrupted();
                }
                target.pause(Math.min(target.spins() ? pause : HOST_WAIT_NANOSECONDS, limit - passed));
                pause = Math.min(2 * pause, CHECK_NANOSECONDS);
            }
            requireNoneStopped();
            return true;
        } finally {
            owners.forEach(PendingOperations.Owner::endWait);
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private long shortestDeadline() {
        return owners.stream()
                .mapToLong(owner -> Timeouts.nanoseconds(owner.deadline()))
                .min()
                .orElse(Long.MAX_VALUE);
    }

    /** A failure that the host engine reports for a stream is that of a communicator. */
    private boolean isDone() {
        try {
            return target.isDone();
        } catch (NcclResultException failure) {
            checkFailures();
            throw failure;
        }
    }

    private void requireNoneStopped() {
        for (int i = 0; i < owners.size(); i++) {
            if (owners.get(i).isStopped()) {
                throw owners.get(i).lost(operations.get(i));
            }
        }
    }

    private void checkFailures() {
        requireNoneStopped();
        for (int i = 0; i < owners.size(); i++) {
            owners.get(i).checkFailures(operations.get(i), target);
        }
    }

    /** Returns the exception of the communicator whose deadline has passed. */
    private RuntimeException late(long passed) {
        int first = 0;
        while (Timeouts.nanoseconds(owners.get(first).deadline()) > passed) {
            first++;
        }
        return owners.get(first).late(operations.get(first), target);
    }

    private RuntimeException interruption() {
        RuntimeException first = null;
        for (int i = 0; i < owners.size(); i++) {
            first = Suppressed.first(first, owners.get(i).interrupted(operations.get(i)));
        }
        return first;
    }
}
