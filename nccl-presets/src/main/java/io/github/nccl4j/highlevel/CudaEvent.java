package io.github.nccl4j.highlevel;

import java.time.Duration;
import java.util.Objects;

/**
 * A mark in a stream: done when all work before it is done. Other streams and threads can wait for it, and the time
 * between two can be read.
 *
 * <pre>{@code
 * start.record(stream);
 * ...
 * end.record(stream);
 * end.synchronize(Duration.ofSeconds(10));
 * System.out.println(end.elapsedSince(start));
 * }</pre>
 *
 * <p>An event may be recorded again and then stands for the new mark.
 *
 * <p><b>Ownership.</b> An event is destroyed when closed, not by the garbage collector; with {@code -Dnccl4j.leaks=true}
 * one that was dropped is logged. Every use of a closed event is an {@link IllegalStateException}.
 *
 * <p><b>Threads.</b> An event may be used in any thread, also in several at once. Closing waits for calls of this class
 * in other threads that use it, {@link #synchronize()} among them.
 */
public final class CudaEvent implements AutoCloseable {
    private final Device device;
    private final long handle;
    private final boolean timing;
    private final Lifetime lifetime = new Lifetime(this);
    private volatile boolean recorded;
    /** When it was recorded on host memory. */
    private volatile long hostTime;

    private CudaEvent(Device device, boolean timing) {
        this.device = Objects.requireNonNull(device, "device");
        this.timing = timing;
        handle = device.isHost() ? HostStreams.createEvent() : Cuda.createEvent(device, timing);
        lifetime.watch(this, toString());
    }

    /**
     * Creates an event that orders streams, without the cost of taking the time.
     *
     * @param device whose streams it will be recorded in
     * @return the event, to be closed by the caller
     * @throws CudaException if CUDA can't create it
     */
    public static CudaEvent create(Device device) {
        return new CudaEvent(device, false);
    }

    /**
     * Creates an event that takes the time, too.
     *
     * @param device whose streams it will be recorded in
     * @return the event, to be closed by the caller
     * @throws CudaException if CUDA can't create it
     */
    public static CudaEvent timing(Device device) {
        return new CudaEvent(device, true);
    }

    /** {@return the device whose streams it is recorded in} */
    public Device device() {
        return device;
    }

    /** {@return whether it was not closed} */
    public boolean isOpen() {
        return lifetime.isOpen();
    }

    /**
     * The handle for native code, valid as long as the event is open.
     *
     * @return its {@code cudaEvent_t}, or the host engine's event; 0 on host memory with another library
     * @throws IllegalStateException if it is closed
     */
    public long nativeHandle() {
        lifetime.check();
        return handle;
    }

    /**
     * Marks the end of the work that is in a stream now. Returns at once.
     *
     * @param stream a stream of this event's device
     * @throws IllegalArgumentException if the stream is of another device
     */
    public void record(CudaStream stream) {
        Objects.requireNonNull(stream, "stream");
        if (!stream.device().equals(device)) {
            throw new IllegalArgumentException(
                    "stream must be of the event's device: a stream of " + stream.device() + ", an event of " + device);
        }
        stream.record(this);
    }

    boolean takesTime() {
        return timing;
    }

    /** A library has recorded it, while it was pinned. */
    void markRecorded() {
        recorded = true;
    }

    /** Keeps the event from being destroyed by {@link #close()}, until {@link #unpin()}. */
    void pin() {
        lifetime.pin();
    }

    /** Ends a pin, in any thread, and destroys the event if it was closed meanwhile and no other pin is left. */
    void unpin() {
        lifetime.unpin();
    }

    /** Records it in a stream that is locked. */
    void recordOn(long stream) {
        lifetime.acquire();
        try {
            if (device.isCuda()) {
                Cuda.recordEvent(device, handle, stream);
            } else {
                HostStreams.recordEvent(handle, stream);
                hostTime = System.nanoTime();
            }
            recorded = true;
        } finally {
            lifetime.release();
        }
    }

    /** Makes a stream that is locked wait for it. */
    void delay(CudaStream stream) {
        acquireRecorded();
        try {
            if (device.isCuda()) {
                Cuda.streamWaits(stream.device(), stream.nativeHandle(), handle);
            } else {
                HostStreams.streamWaits(stream.nativeHandle(), handle);
            }
        } finally {
            lifetime.release();
        }
    }

    /**
     * Whether all work before the mark is done. Does not wait.
     *
     * @return whether it is done
     * @throws IllegalStateException if the event was not recorded yet
     * @throws CudaException if work on the device failed
     * @throws NcclResultException if an operation of the host engine failed
     */
    public boolean isDone() {
        acquireRecorded();
        try {
            return device.isHost() ? HostStreams.eventIsDone(handle) : Cuda.eventIsDone(device, handle);
        } finally {
            lifetime.release();
        }
    }

    /**
     * As {@link #isDone}, in a thread that has nothing to do with the captures of others, and must not end them. Work that
     * has failed is not done, on host memory too.
     */
    boolean isDoneWhileCapturing() {
        acquireRecorded();
        try {
            return device.isHost()
                    ? HostStreams.eventIsDoneWell(handle)
                    : Cuda.eventIsDoneWhileCapturing(device, handle);
        } finally {
            lifetime.release();
        }
    }

    /**
     * Waits until all work before the mark is done, for ever if a collective waits for a rank that never comes.
     *
     * @throws IllegalStateException if the event was not recorded yet
     * @throws CudaException if work on the device failed
     * @throws NcclResultException if an operation of the host engine failed
     */
    public void synchronize() {
        if (VirtualThreads.isCurrent()) {
            Waiting.until(this::isDone, this, Waiting.FOREVER);
            return;
        }
        acquireRecorded();
        try {
            if (device.isCuda()) {
                Cuda.synchronizeEvent(device, handle);
            } else {
                HostStreams.synchronizeEvent(handle);
            }
        } finally {
            lifetime.release();
        }
    }

    /**
     * Waits until all work before the mark is done, but not longer than a limit. An interrupt does not end the waiting; the
     * thread's interrupt status is kept. Asks again after pauses of up to a millisecond.
     *
     * @param timeout the limit; 0 asks once
     * @throws StreamTimeoutException if the work is not done by then; it goes on
     * @throws IllegalArgumentException if the limit is negative
     * @throws IllegalStateException if the event was not recorded yet
     * @throws CudaException if work on the device failed
     * @throws NcclResultException if an operation of the host engine failed
     */
    public void synchronize(Duration timeout) {
        Objects.requireNonNull(timeout, "timeout");
        lifetime.check();
        Waiting.until(this::isDone, this, timeout);
    }

    /**
     * The time from another event to this one; both are done. CUDA's clock has a resolution of about half a microsecond.
     *
     * @param start the earlier event, of the same device
     * @return the time; negative if this event came first
     * @throws IllegalArgumentException if the events are of different devices
     * @throws IllegalStateException if one of them does not take the time, was not recorded yet or is not done
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
        // Always in the same order: closing may be waiting for either.
        CudaEvent first = handle <= start.handle ? this : start;
        CudaEvent second = first == this ? start : this;
        first.lifetime.acquire();
        try {
            second.lifetime.acquire();
            try {
                return device.isHost()
                        ? Duration.ofNanos(Math.round(1e9 * HostStreams.elapsedSeconds(start.handle, handle)))
                        : Duration.ofNanos(Math.round(1e6 * Cuda.elapsedMilliseconds(device, start.handle, handle)));
            } finally {
                second.lifetime.release();
            }
        } finally {
            first.lifetime.release();
        }
    }

    private void requireTime() {
        if (!timing) {
            throw new IllegalStateException(this + " does not take the time; create it with CudaEvent.timing");
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
     * Destroys the event. Streams that wait for it go on doing so. Does nothing if the event is closed already.
     *
     * @throws CudaException if CUDA reports an error, which may be one of earlier work; the event is closed all the same
     */
    @Override
    public void close() {
        lifetime.close(() -> {
            if (device.isCuda()) {
                Cuda.destroyEvent(device, handle);
            } else {
                HostStreams.destroyEvent(handle);
            }
        });
    }

    /** {@return what it is: "CudaEvent 0x7f12 on CUDA device 0"} */
    @Override
    public String toString() {
        return (handle == 0 ? "CudaEvent" : "CudaEvent 0x" + Long.toHexString(handle)) + " on " + device;
    }
}
