package io.github.nccl4j.internal.cuda;

import io.github.nccl4j.internal.memory.Lifetime;
import io.github.nccl4j.internal.threads.Polling;
import io.github.nccl4j.internal.threads.VirtualThreads;
import java.time.Duration;

/** A mark in the work of a stream. Used by any number of threads at once. */
public final class NativeEvent implements AutoCloseable {
    private final NativeDevice device;
    private final long handle;
    private final boolean timing;
    private final Lifetime lifetime = new Lifetime(this);
    private volatile boolean recorded;
    /** The operations before the mark. */
    private volatile PendingOperations operations = PendingOperations.NONE;

    /** Time of the last recording on host memory, in nanoseconds. */
    private volatile long hostTime;

    public NativeEvent(NativeDevice device, boolean timing) {
        this.device = device;
        this.timing = timing;
        handle = DeviceStreams.createEvent(device.context(), timing);
        lifetime.watch(this, toString());
    }

    public NativeDevice device() {
        return device;
    }

    public boolean isOpen() {
        return lifetime.isOpen();
    }

    public long handle() {
        lifetime.check();
        return handle;
    }

    public void record(NativeStream stream) {
        if (!stream.device.equals(device)) {
            throw new IllegalArgumentException(
                    "stream must be of the event's device: a stream of " + stream.device + ", an event of " + device);
        }
        stream.record(this, stream.pending());
    }

    /** As {@link #record}, for an event that is only queried. */
    public void recordUntracked(NativeStream stream) {
        stream.record(this, PendingOperations.NONE);
    }

    public boolean hasTiming() {
        return timing;
    }

    /** Marks the event as recorded by the library; the caller has pinned it. */
    public void markRecorded(NativeStream stream) {
        operations = stream.pending();
        recorded = true;
    }

    /** Prevents {@link #close()} from destroying the event until {@link #unpin()}. */
    public void pin() {
        lifetime.pin();
    }

    /** Ends a pin, in any thread. Destroys the event if it is closed and this was the last pin. */
    public void unpin() {
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
    void delay(NativeStream stream) {
        acquireRecorded();
        try {
            operations.precede(stream.device.context(), stream.handle);
            DeviceStreams.waitForEvent(stream.device.context(), stream.handle, handle);
        } finally {
            lifetime.release();
        }
    }

    public boolean isDone() {
        acquireRecorded();
        try {
            if (device.isHost()) {
                NativeGraph.refuseOnHost("a query of an event");
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
    public boolean isDoneWhileCapturing() {
        acquireRecorded();
        try {
            return DeviceStreams.eventIsDoneWhileCapturing(device.context(), handle);
        } finally {
            lifetime.release();
        }
    }

    public void synchronize() {
        acquireRecorded();
        try {
            if (device.isHost()) {
                NativeGraph.refuseOnHost("a wait for an event");
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

    /** Waits for the work before the mark; returns false if it is not done in time. */
    public boolean isDoneWithin(Duration timeout) {
        acquireRecorded();
        try {
            PendingOperations before = operations;
            return before.isEmpty()
                    ? Polling.until(this::isDone, timeout)
                    : before.await(this, new OperationWait.Target(this::isDone), timeout);
        } finally {
            lifetime.release();
        }
    }

    public Duration elapsedSince(NativeEvent start) {
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
        NativeEvent first = handle <= start.handle ? this : start;
        NativeEvent second = first == this ? start : this;
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

    @Override
    public void close() {
        lifetime.close(() -> DeviceStreams.destroyEvent(device.context(), handle));
    }

    @Override
    public String toString() {
        return DeviceStreams.describe("CudaEvent", handle, device);
    }
}
