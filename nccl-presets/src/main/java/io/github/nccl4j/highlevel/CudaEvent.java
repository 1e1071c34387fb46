package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.cuda.Cuda;
import io.github.nccl4j.internal.cuda.DeviceStreams;
import io.github.nccl4j.internal.cuda.HostStreams;
import io.github.nccl4j.internal.memory.Lifetime;
import io.github.nccl4j.internal.threads.Polling;
import io.github.nccl4j.internal.threads.VirtualThreads;
import java.time.Duration;
import java.util.Objects;

/**
 * A mark in the work of a stream. The event is done when all work before the mark is done. Other streams and threads
 * can wait for it, and the time between two events can be measured.
 *
 * <pre>{@code
 * start.record(stream);
 * ...
 * end.record(stream);
 * end.synchronize(Duration.ofSeconds(10));
 * System.out.println(end.elapsedSince(start));
 * }</pre>
 *
 * <p>An event may be recorded again; it then refers to the new mark. A thread that waits for an event behind operations of
 * a communicator obeys that communicator, as for a {@link CudaStream}.
 *
 * <p><b>Ownership.</b> An event is destroyed when it is closed, not by the garbage collector; with {@code
 * -Dnccl4j.leaks=true} an event that is dropped without being closed is logged. Every use of a closed event throws
 * {@link IllegalStateException}.
 *
 * <p><b>Threads.</b> An event may be used by any number of threads at once. {@link #close} waits for calls of other
 * threads on this object, including {@link #synchronize()}.
 *
 * @since 0.1
 */
public final class CudaEvent implements AutoCloseable {
    private final Device device;
    private final long handle;
    private final boolean timing;
    private final Lifetime lifetime = new Lifetime(this);
    private volatile boolean recorded;
    /** The operations before the mark. */
    private volatile PendingOperations operations = PendingOperations.NONE;

    /** Time of the last recording on host memory, in nanoseconds. */
    private volatile long hostTime;

    private CudaEvent(Device device, boolean timing) {
        this.device = Objects.requireNonNull(device, "device");
        this.timing = timing;
        handle = DeviceStreams.createEvent(device.context(), timing);
        lifetime.watch(this, toString());
    }

    /**
     * Creates an event without timing, for ordering streams. As {@link #timing} without the cost of the timestamps.
     *
     * @param device the device of the streams that will record the event
     * @return the event, to be closed by the caller
     * @throws CudaException if CUDA can't create it
     */
    public static CudaEvent create(Device device) {
        return new CudaEvent(device, false);
    }

    /**
     * Creates an event that also records the time, for {@link #elapsedSince}.
     *
     * @param device the device of the streams that will record the event
     * @return the event, to be closed by the caller
     * @throws CudaException if CUDA can't create it
     */
    public static CudaEvent timing(Device device) {
        return new CudaEvent(device, true);
    }

    /** {@return the device of the streams that can record the event} */
    public Device device() {
        return device;
    }

    /** {@return true if the event is not closed} */
    public boolean isOpen() {
        return lifetime.isOpen();
    }

    /**
     * Returns the handle for native code. It is valid while the event is open.
     *
     * @return the {@code cudaEvent_t}, or the host engine's event; 0 on host memory with another library
     * @throws IllegalStateException if the event is closed
     */
    public long nativeHandle() {
        lifetime.check();
        return handle;
    }

    /**
     * Marks the end of the present work of a stream. Returns at once. In stream order.
     *
     * @param stream a stream of this event's device
     * @throws IllegalArgumentException if the stream belongs to another device
     */
    public void record(CudaStream stream) {
        Objects.requireNonNull(stream, "stream");
        if (!stream.device().equals(device)) {
            throw new IllegalArgumentException(
                    "stream must be of the event's device: a stream of " + stream.device() + ", an event of " + device);
        }
        stream.record(this, stream.pending());
    }

    /** As {@link #record}, for an event that is only queried. */
    void recordUntracked(CudaStream stream) {
        stream.record(this, PendingOperations.NONE);
    }

    boolean hasTiming() {
        return timing;
    }

    /** Marks the event as recorded by the library; the caller has pinned it. */
    void markRecorded(CudaStream stream) {
        operations = stream.pending();
        recorded = true;
    }

    /** Prevents {@link #close()} from destroying the event until {@link #unpin()}. */
    void pin() {
        lifetime.pin();
    }

    /** Ends a pin, in any thread. Destroys the event if it is closed and this was the last pin. */
    void unpin() {
        lifetime.unpin();
    }

    /** Records the event in a stream that the caller has locked. */
    void recordOn(long stream, PendingOperations before) {
        lifetime.acquire();
        try {
            operations = before;
            DeviceStreams.recordEvent(device.context(), handle, stream);
            if (device.isHost()) {
                hostTime = System.nanoTime();
            }
            recorded = true;
        } finally {
            lifetime.release();
        }
    }

    /** Makes a stream that the caller has locked wait for the event. */
    void delay(CudaStream stream) {
        acquireRecorded();
        try {
            operations.precede(stream.device().context(), stream.nativeHandle());
            DeviceStreams.waitForEvent(stream.device().context(), stream.nativeHandle(), handle);
        } finally {
            lifetime.release();
        }
    }

    /**
     * Returns true if all work before the mark is done. Does not wait.
     *
     * @return true if the event is done
     * @throws IllegalStateException if the event was not recorded yet, or if a communicator was revoked or aborted before
     *     its operation was done
     * @throws CudaException if work on the device failed
     * @throws NcclResultException if an operation of the host engine failed
     */
    public boolean isDone() {
        acquireRecorded();
        try {
            if (device.isHost()) {
                CudaGraph.refuseOnHost("a query of an event");
            }
            PendingOperations before = operations;
            boolean done = DeviceStreams.eventIsDone(device.context(), handle);
            if (done) {
                before.markDone();
            }
            return done;
        } finally {
            lifetime.release();
        }
    }

    /**
     * As {@link #isDone}, for threads that must not disturb captures of other threads. Failed work is not done, on host
     * memory either.
     */
    boolean isDoneWhileCapturing() {
        acquireRecorded();
        try {
            return DeviceStreams.eventIsDoneWhileCapturing(device.context(), handle);
        } finally {
            lifetime.release();
        }
    }

    /**
     * Waits until all work before the mark is done. Operations of communicators are awaited at most until the deadline of
     * their communicator.
     *
     * @throws NcclTimeoutException if an operation of a communicator is not done at the communicator's deadline; the work
     *     continues
     * @throws NcclResultException if an operation of a communicator failed
     * @throws NcclInterruptedException if the thread was interrupted while it waited for an operation of a communicator;
     *     the communicator was aborted then
     * @throws IllegalStateException if the event was not recorded yet, or if a communicator was revoked or aborted before
     *     its operation was done
     * @throws CudaException if work on the device failed
     */
    public void synchronize() {
        acquireRecorded();
        try {
            if (device.isHost()) {
                CudaGraph.refuseOnHost("a wait for an event");
            }
            PendingOperations before = operations;
            if (!before.isEmpty()) {
                before.await(this, new OperationWait.Target(this::isDone), null);
            } else if (VirtualThreads.isCurrent()) {
                Polling.until(this::isDone, Polling.FOREVER);
            } else {
                DeviceStreams.synchronizeEvent(device.context(), handle);
            }
        } finally {
            lifetime.release();
        }
    }

    /**
     * Waits until all work before the mark is done, at most for a timeout, which replaces the deadlines of communicators.
     * An interrupt ends the wait only if operations of a communicator are before the mark; the thread keeps its interrupt
     * status. Polls, with pauses of up to 1 ms.
     *
     * @param timeout the timeout; 0 checks once
     * @throws StreamTimeoutException if the work is not done in time; the work continues
     * @throws IllegalArgumentException if the timeout is negative
     * @throws NcclResultException if an operation of a communicator failed
     * @throws NcclInterruptedException if the thread was interrupted while it waited for an operation of a communicator;
     *     the communicator was aborted then
     * @throws IllegalStateException if the event was not recorded yet, or if a communicator was revoked or aborted before
     *     its operation was done
     * @throws CudaException if work on the device failed
     */
    public void synchronize(Duration timeout) {
        Objects.requireNonNull(timeout, "timeout");
        acquireRecorded();
        try {
            PendingOperations before = operations;
            if (before.isEmpty()) {
                if (!Polling.until(this::isDone, timeout)) {
                    throw new StreamTimeoutException(toString(), timeout);
                }
            } else {
                before.await(this, new OperationWait.Target(this::isDone), timeout);
            }
        } finally {
            lifetime.release();
        }
    }

    /**
     * Returns the time from another event to this one. Both must be done. CUDA's clock has a resolution of about 0.5
     * us.
     *
     * @param start the earlier event, of the same device
     * @return the time; negative if this event was earlier
     * @throws IllegalArgumentException if the events are of different devices
     * @throws IllegalStateException if one of the events has no timing, was not recorded yet or is not done
     */
    public Duration elapsedSince(CudaEvent start) {
        Objects.requireNonNull(start, "start");
        if (!start.device.equals(device)) {
            throw new IllegalArgumentException(
                    "start must be of the event's device: " + start.device + ", not " + device);
        }
        start.requireTime();
        requireTime();
        if (device.isHost() && (handle == 0 || start.handle == 0)) {
            return Duration.ofNanos(hostTime - start.hostTime);
        }
        // One lock order for both directions: another thread may be closing either event.
        CudaEvent first = handle <= start.handle ? this : start;
        CudaEvent second = first == this ? start : this;
        first.lifetime.acquire();
        try {
            second.lifetime.acquire();
            try {
                return device.isHost()
                        ? Duration.ofNanos(Math.round(1e9 * HostStreams.elapsedSeconds(start.handle, handle)))
                        : Duration.ofNanos(
                                Math.round(1e6 * Cuda.elapsedMilliseconds(device.context(), start.handle, handle)));
            } finally {
                second.lifetime.release();
            }
        } finally {
            first.lifetime.release();
        }
    }

    private void requireTime() {
        if (!timing) {
            throw new IllegalStateException(this + " records no time; create it with CudaEvent.timing");
        }
        if (!isDone()) {
            throw new IllegalStateException(this + " is not done; synchronize with it first");
        }
    }

    private void acquireRecorded() {
        lifetime.acquire();
        if (!recorded) {
            lifetime.release();
            throw new IllegalStateException(this + " was not recorded yet");
        }
    }

    /**
     * Destroys the event. Streams that wait for it continue to wait. Does nothing if the event is closed already.
     *
     * @throws CudaException if CUDA reports an error, possibly of earlier work; the event is closed nevertheless
     */
    @Override
    public void close() {
        lifetime.close(() -> DeviceStreams.destroyEvent(device.context(), handle));
    }

    /** {@return a description: "CudaEvent 0x7f12 on CUDA device 0"} */
    @Override
    public String toString() {
        return DeviceStreams.describe("CudaEvent", handle, device);
    }
}
