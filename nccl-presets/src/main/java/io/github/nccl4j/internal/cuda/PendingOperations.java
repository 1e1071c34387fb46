package io.github.nccl4j.internal.cuda;

import io.github.nccl4j.internal.operation.OperationLog;
import io.github.nccl4j.internal.threads.PolledFutures;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;

/**
 * The operations of communicators before a point of a stream that are not known to be done. A thread that waits for that
 * point obeys the deadlines of these communicators, ends when one of them fails, and aborts them if it is interrupted.
 * Work that was stopped with its communicator never counts as done.
 *
 * <p>The operations are found when a thread waits, so that calls of operations cost nothing: each communicator has a log
 * of its operations. Kept here are only those that are not in the log of an open communicator with the handle of the
 * stream: operations before events for which the stream waits, those in graphs, and those of communicators that were
 * stopped. Immutable.
 *
 * <p>A device is identified by its context, which is 0 for host memory.
 */
public final class PendingOperations {
    public static final PendingOperations NONE = new PendingOperations(List.of());

    /** The number of an operation in a graph, which has none. */
    private static final long IN_GRAPH = Long.MAX_VALUE;

    /** The open communicators. Replaced, never changed. */
    private static volatile List<WeakReference<Owner>> open = List.of();

    /** By stream, except the default streams of host memory. */
    private static final Map<Stream, PendingOperations> INHERITED = new ConcurrentHashMap<>();

    /** Those of the default stream of host memory of a thread. */
    private static final ThreadLocal<PendingOperations> OF_THREAD = new ThreadLocal<>();

    /** True once there were some in {@link #INHERITED}, or a thread has them. */
    private static volatile boolean anyInherited;

    /** A communicator, as waits for its operations need it. */
    public interface Owner {
        /** The context of the device. */
        long context();

        Duration deadline();

        OperationLog operationLog();

        /** True if the end of work may mean that it was stopped. */
        boolean isStopped();

        /** True if the communicator was closed after its operations, which are done then, unless it is stopped. */
        boolean isClosed();

        /** True if the program knows that work may be lost. */
        boolean isLossKnown();

        /** Called when a thread starts to wait, and checks for failures until {@link #endWait}. */
        void beginWait();

        void endWait();

        /**
         * Throws if the communicator has failed.
         *
         * @param work the work that the thread waits for; it is queried again later if a rank is lost
         */
        void checkFailures(OperationLog.Entry last, OperationWait.Target work);

        /** Returns the exception for work that was stopped. */
        RuntimeException lost(OperationLog.Entry last);

        /** Returns the exception for work that exceeds the deadline. */
        RuntimeException late(OperationLog.Entry last, OperationWait.Target work);

        /** Aborts the communicator and returns the exception for a thread that was interrupted. */
        RuntimeException interrupted(OperationLog.Entry last);

        /** Runs an action when the native communicator has ended. */
        void keepUntilEnded(Runnable release);
    }

    private record Stream(long context, long handle) {
        boolean isDefaultOfHost() {
            return context == 0 && handle == 0;
        }
    }

    /**
     * The operations of one communicator.
     *
     * @param stopped the communicator if it was stopped, which keeps it; else null
     * @param last the number of the last operation
     * @param implied true if CUDA orders them before the point only if their stream is a blocking one
     */
    private record Part(WeakReference<Owner> reference, Owner stopped, long last, boolean implied) {
        /** Returns the communicator, or null if its operations are done, or if the program knows of their loss. */
        Owner pending() {
            Owner owner = reference.get();
            if (owner == null || owner.operationLog().isDone(last)) {
                return null;
            }
            boolean over = owner.isStopped() ? implied || owner.isLossKnown() : owner.isClosed();
            return over ? null : owner;
        }
    }

    private final List<Part> parts;

    private PendingOperations(List<Part> parts) {
        this.parts = parts;
    }

    public boolean isEmpty() {
        return parts.isEmpty();
    }

    /** Returns false if no stream but a default one has other operations than those that were called with it. */
    public static boolean areInherited() {
        return anyInherited && !INHERITED.isEmpty();
    }

    /* Communicators. */

    /** Adds a communicator that was opened. */
    public static synchronized void add(WeakReference<Owner> owner) {
        List<WeakReference<Owner>> all = new ArrayList<>(open);
        all.removeIf(one -> one.get() == null);
        all.add(owner);
        open = List.copyOf(all);
    }

    /** Removes a communicator that has ended. */
    public static synchronized void remove(WeakReference<Owner> owner) {
        List<WeakReference<Owner>> all = new ArrayList<>(open);
        all.remove(owner);
        open = List.copyOf(all);
    }

    /**
     * Keeps the operations of a communicator that is being stopped, because they end without being done.
     *
     * @param asks true to ask the host engine first whether they are done: before they are stopped
     */
    public static void stop(Owner owner, WeakReference<Owner> reference, boolean asks) {
        INHERITED.values().removeIf(before -> before.parts.stream().allMatch(part -> part.pending() == null));
        OperationLog log = owner.operationLog();
        Set<Long> handles = new HashSet<>();
        log.pending(handles::add);
        for (long handle : handles) {
            Stream stream = new Stream(owner.context(), handle);
            long last = log.lastPending(handle);
            boolean host = stream.context == 0;
            if (last == 0 || host && !HostStreams.isStream(handle) || stream.isDefaultOfHost()) {
                // The stream was closed. Operations in the default stream of host memory are done when their call
                // returns.
                continue;
            }
            if (asks && host && HostStreams.streamIsDoneWithoutError(handle)) {
                log.markDone(last, System.currentTimeMillis());
            } else {
                // Only the newest stopped communicator is kept: perhaps nobody waits for the stream any more.
                INHERITED.computeIfPresent(
                        stream,
                        (same, before) -> new PendingOperations(before.parts.stream()
                                .filter(part -> part.stopped == null || part.stopped == owner)
                                .toList()));
                inherit(stream, List.of(new Part(reference, owner, last, false)));
            }
        }
    }

    /* Streams. */

    /**
     * Returns the operations that are in a stream now.
     *
     * @param waitsForOthers true if it may wait for other streams without an event, as CUDA's default stream and blocking
     *     streams do
     */
    public static PendingOperations of(long context, long handle, boolean waitsForOthers) {
        Stream stream = new Stream(context, handle);
        List<Part> found = stream.isDefaultOfHost() ? List.of() : called(context, handle, waitsForOthers);
        PendingOperations inherited = anyInherited ? inherited(stream) : null;
        if (inherited != null) {
            return merge(found, inherited.parts);
        }
        return found.isEmpty() ? NONE : new PendingOperations(found);
    }

    private static List<Part> called(long context, long handle, boolean waitsForOthers) {
        List<Part> found = List.of();
        for (WeakReference<Owner> reference : open) {
            Owner owner = reference.get();
            if (owner == null || owner.isStopped() || owner.context() != context) {
                continue;
            }
            long last = owner.operationLog().lastPending(handle);
            boolean implied = last == 0 && waitsForOthers;
            last = implied ? owner.operationLog().lastPending() : last;
            if (last != 0) {
                found = found.isEmpty() ? new ArrayList<>() : found;
                found.add(new Part(reference, null, last, implied));
            }
        }
        return found;
    }

    /** Returns the operations in all streams of a device. */
    public static PendingOperations of(long context) {
        List<Part> found = new ArrayList<>();
        for (WeakReference<Owner> reference : open) {
            Owner owner = reference.get();
            long last = owner == null || owner.context() != context || owner.isStopped()
                    ? 0
                    : owner.operationLog().lastPending();
            if (last != 0) {
                found.add(new Part(reference, null, last, true));
            }
        }
        return found.isEmpty() ? NONE : new PendingOperations(found);
    }

    private static PendingOperations inherited(Stream stream) {
        return stream.isDefaultOfHost() ? OF_THREAD.get() : INHERITED.get(stream);
    }

    /** Returns the operations of both, without those that are done. */
    private static PendingOperations merge(List<Part> some, List<Part> others) {
        List<Part> all = new ArrayList<>(some);
        for (Part other : others) {
            Part same = all.stream()
                    .filter(one -> one.reference == other.reference && one.implied == other.implied)
                    .findFirst()
                    .orElse(null);
            if (same == null) {
                all.add(other);
            } else if (other.last > same.last || other.last == same.last && other.stopped != null) {
                all.set(all.indexOf(same), other);
            }
        }
        all.removeIf(part -> part.pending() == null);
        return all.isEmpty() ? NONE : new PendingOperations(List.copyOf(all));
    }

    /** Adds these operations to those before later work of a stream. */
    public void precede(long context, long handle) {
        if (!parts.isEmpty()) {
            inherit(new Stream(context, handle), parts);
        }
    }

    private static void inherit(Stream stream, List<Part> parts) {
        anyInherited = true;
        if (stream.isDefaultOfHost()) {
            OF_THREAD.set(withInherited(parts, OF_THREAD.get()));
        } else {
            INHERITED.compute(stream, (same, before) -> withInherited(parts, before));
        }
    }

    private static PendingOperations withInherited(List<Part> parts, PendingOperations before) {
        PendingOperations merged = merge(parts, before == null ? List.of() : before.parts);
        return merged.isEmpty() ? null : merged;
    }

    /** Adds the operations of a graph that was launched in a stream. */
    public static void launched(List<WeakReference<Owner>> owners, long context, long handle) {
        if (!owners.isEmpty()) {
            List<Part> all = new ArrayList<>();
            owners.forEach(owner -> all.add(new Part(owner, null, IN_GRAPH, false)));
            inherit(new Stream(context, handle), all);
        }
    }

    /** Forgets a stream that was destroyed: another one may get its handle. */
    public static void forget(long context, long handle) {
        INHERITED.remove(new Stream(context, handle));
    }

    /* Waiting. */

    /**
     * Waits until a stream is done, before which these operations are. The caller keeps it from being destroyed.
     *
     * @param what describes the stream
     * @param marks true to wait for an event instead, because CUDA's query of the stream ignores others for which it waits
     * @param timeout the limit instead of the communicators' deadlines, or null
     * @return false if the timeout has passed
     */
    boolean awaitStream(Object what, long context, long handle, boolean marks, Duration timeout) {
        Stream stream = new Stream(context, handle);
        PendingOperations before = anyInherited ? inherited(stream) : null;
        if (marks) {
            long event = DeviceStreams.createEvent(context, false);
            try {
                DeviceStreams.recordEvent(context, event, handle);
                BooleanSupplier isDone = () -> DeviceStreams.eventIsDone(context, event);
                if (!await(what, new OperationWait.Query(context, handle, isDone), timeout)) {
                    return false;
                }
            } finally {
                DeviceStreams.destroyEvent(context, event);
            }
        } else {
            if (!await(what, OperationWait.ofStream(context, handle), timeout)) {
                return false;
            }
        }
        markDone();
        if (before != null && stream.isDefaultOfHost()) {
            OF_THREAD.remove();
        } else if (before != null) {
            INHERITED.remove(stream, before);
        }
        return true;
    }

    /** Waits for the default stream of a CUDA device, as a copy will. Not for a thread that captures. */
    public static void awaitDefaultOf(Object device, long context) {
        PendingOperations operations = of(context, 0, true);
        if (!operations.isEmpty()) {
            operations.awaitStream(device, context, 0, true, null);
        }
    }

    /** Waits for the default stream of host memory of this thread, before copies of its results. */
    public static void awaitDefaultOfHost() {
        PendingOperations operations = anyInherited ? OF_THREAD.get() : null;
        if (operations == null) {
            HostStreams.synchronizeStream(0);
        } else {
            operations.awaitStream("the default stream", 0, 0, false, null);
        }
    }

    /** Waits until work is done, before which these operations are; returns false if the timeout has passed. */
    boolean await(Object what, OperationWait.Target target, Duration timeout) {
        PolledFutures.requireMayWait();
        List<Owner> owners = new ArrayList<>();
        List<OperationLog.Entry> operations = new ArrayList<>();
        for (Part part : parts) {
            Owner owner = part.pending();
            if (owner != null) {
                owners.add(owner);
                operations.add(owner.operationLog().numberedOrLast(part.last));
            }
        }
        return new OperationWait(what, target, owners, operations).run(timeout);
    }

    /** Marks the operations as done, because work after them is. Throws if they were stopped. */
    public void markDone() {
        for (Part part : parts) {
            Owner owner = part.pending();
            if (owner == null) {
                continue;
            }
            if (owner.isStopped()) {
                throw owner.lost(owner.operationLog().numberedOrLast(part.last));
            }
            if (!part.implied && part.last != IN_GRAPH) {
                owner.operationLog().markDone(part.last, System.currentTimeMillis());
            }
        }
    }
}
