package io.github.nccl4j.highlevel;

import java.time.Duration;
import java.util.Objects;

/**
 * A queue of work on a device, in which each operation begins when the one before is done.
 *
 * <pre>{@code
 * try (CudaStream stream = CudaStream.nonBlocking(device);
 *         CudaEvent ready = CudaEvent.create(device)) {
 *     ready.record(producer);
 *     stream.waitFor(ready);
 *     ...
 *     stream.synchronize(Duration.ofSeconds(10));
 * }
 * }</pre>
 *
 * <p>On host memory streams are the host engine's, which have a thread each; what fails in one, waiting for it throws, until
 * the communicator is aborted, closed or revoked. The default stream is another one in each thread there, waits for no
 * other stream unless it is told to, and operations in it are done when their call returns. With other libraries than the
 * host engine, streams of host memory are always empty.
 *
 * <p><b>Ownership.</b> A stream that was created is destroyed when closed, after the work that is in it; the default
 * stream and wrapped ones are not. A stream is not destroyed by the garbage collector; with {@code -Dnccl4j.leaks=true}
 * one that was dropped is logged. Every use of a closed stream is an {@link IllegalStateException}.
 *
 * <p><b>Threads.</b> A stream may be used in any thread, also in several at once. Closing waits for calls of this class
 * in other threads that use it, {@link #synchronize()} among them.
 */
public final class CudaStream implements AutoCloseable {
    /** CUDA's {@code cudaStreamLegacy}. */
    private static final long LEGACY = 1;

    final Device device;
    /** For those who call {@link #checkOpen()}. */
    final long handle;

    /** Of the device. */
    final int deviceCode;

    private final boolean owner;
    private final Lifetime lifetime = new Lifetime(this);
    /** {@link Lifetime#CLOSED} or 0, for hot paths, which have this object at hand and not its lifetime. */
    private int closed;

    private CudaStream(Device device, long handle, boolean owner) {
        this.device = device;
        deviceCode = device.deviceCode();
        this.handle = handle;
        this.owner = owner;
        if (owner) {
            lifetime.watch(this, toString());
        }
    }

    /**
     * Creates a stream that runs beside the default stream, without waiting for it: what collectives should use.
     *
     * @param device where it runs
     * @return the stream, to be closed by the caller
     * @throws CudaException if CUDA can't create it
     */
    public static CudaStream nonBlocking(Device device) {
        return create(device, true);
    }

    /**
     * Creates a stream that waits for work on the default stream, and is waited for by it.
     *
     * @param device where it runs
     * @return the stream, to be closed by the caller
     * @throws CudaException if CUDA can't create it
     */
    public static CudaStream blocking(Device device) {
        return create(device, false);
    }

    private static CudaStream create(Device device, boolean nonBlocking) {
        Objects.requireNonNull(device, "device");
        return device.isHost()
                ? new CudaStream(device, HostStreams.createStream(), true)
                : new CudaStream(device, Cuda.createStream(device, nonBlocking), true);
    }

    /**
     * The default stream of a device, the "legacy" one that blocking streams wait for.
     *
     * @param device where it runs
     * @return the stream; closing it does not touch the device
     */
    public static CudaStream defaultOf(Device device) {
        return new CudaStream(Objects.requireNonNull(device, "device"), 0, false);
    }

    /**
     * A stream of someone else, who keeps it valid until this object is closed and destroys it.
     *
     * @param device where it runs
     * @param handle its {@code cudaStream_t}; 0 for the default stream; for host memory, one of the
     *     host engine
     * @return the stream; closing it does not touch the device
     * @throws IllegalArgumentException if the device is host memory, and the handle is neither 0 nor one of the host engine
     */
    public static CudaStream wrap(Device device, long handle) {
        Objects.requireNonNull(device, "device");
        if (device.isHost() && handle != 0 && !HostStreams.isStream(handle)) {
            throw new IllegalArgumentException(
                    "handle must be 0 on host memory, or a stream of the host engine: 0x" + Long.toHexString(handle));
        }
        return new CudaStream(device, handle, false);
    }

    /** {@return where it runs} */
    public Device device() {
        return device;
    }

    /** {@return whether it was not closed} */
    public boolean isOpen() {
        return lifetime.isOpen();
    }

    /**
     * The handle for native code, valid as long as the stream is open.
     *
     * @return its {@code cudaStream_t}, 0 for the default stream
     * @throws IllegalStateException if it is closed
     */
    public long nativeHandle() {
        lifetime.check();
        return handle;
    }

    /**
     * Whether all work in the stream is done. Does not wait.
     *
     * @return whether it is done
     * @throws CudaException if work on the device failed
     * @throws NcclResultException if an operation of the host engine failed
     */
    public boolean isDone() {
        lifetime.acquire();
        try {
            return device.isHost() ? HostStreams.streamIsDone(handle) : Cuda.streamIsDone(device, handle);
        } finally {
            lifetime.release();
        }
    }

    /**
     * Whether work that comes into the stream is captured for a graph and not run, by {@link CudaGraph#capture} or other
     * code. The default stream never is, nor one of host memory.
     *
     * @return whether it is captured
     * @throws CudaException if CUDA can't tell
     */
    public boolean isCapturing() {
        lifetime.acquire();
        try {
            return isCapturingNow();
        } finally {
            lifetime.release();
        }
    }

    /** {@link #isCapturing()} of a stream that stays open, or is pinned. */
    boolean isCapturingNow() {
        return device.isCuda() && !isLegacyDefault() && Cuda.isCapturing(device, handle);
    }

    /** Whether it is the default stream that blocking streams wait for; CUDA has two handles for that. */
    boolean isLegacyDefault() {
        return handle == 0 || handle == LEGACY;
    }

    /**
     * Waits until all work in the stream is done, for ever if a collective in it waits for a rank that never comes.
     *
     * @throws CudaException if work on the device failed
     * @throws NcclResultException if an operation of the host engine failed
     */
    public void synchronize() {
        if (VirtualThreads.isCurrent()) {
            Waiting.until(this::isDone, this, Waiting.FOREVER);
            InFlight.poll();
            return;
        }
        lifetime.acquire();
        try {
            if (device.isCuda()) {
                Cuda.synchronizeStream(device, handle);
            } else {
                HostStreams.synchronizeStream(handle);
            }
        } finally {
            lifetime.release();
        }
        InFlight.poll();
    }

    /**
     * Waits until all work in the stream is done, but not longer than a limit. An interrupt does not end the waiting; the
     * thread's interrupt status is kept. Asks again after pauses of up to a millisecond.
     *
     * @param timeout the limit; 0 asks once
     * @throws StreamTimeoutException if the work is not done by then; it goes on
     * @throws IllegalArgumentException if the limit is negative
     * @throws CudaException if work on the device failed
     * @throws NcclResultException if an operation of the host engine failed
     */
    public void synchronize(Duration timeout) {
        Objects.requireNonNull(timeout, "timeout");
        lifetime.check();
        Waiting.until(this::isDone, this, timeout);
    }

    /**
     * Makes work that comes into the stream from now on wait for an event. Returns at once; only in a virtual thread, for the
     * default stream of host memory, waits for the event itself.
     *
     * @param event the event, possibly of another CUDA device
     * @throws IllegalStateException if the event was not recorded yet: nothing would be waited for
     * @throws IllegalArgumentException if one is of host memory and the other is not
     */
    public void waitFor(CudaEvent event) {
        Objects.requireNonNull(event, "event");
        if (event.device().isHost() != device.isHost()) {
            throw new IllegalArgumentException("event must be of a device that the stream can wait for: an event of "
                    + event.device() + ", a stream of " + device);
        }
        if (device.isHost() && handle == 0 && VirtualThreads.isCurrent()) {
            // The engine has a default stream for each of the system's threads, of which this one has none.
            lifetime.check();
            event.synchronize();
            return;
        }
        lifetime.acquire();
        try {
            event.delay(this);
        } finally {
            lifetime.release();
        }
    }

    /** Negative if it can't be used, as {@link DeviceBuffer#state}. */
    int state() {
        return closed;
    }

    /** Throws if it can't be used. Takes no lock and allocates nothing; that it stays open is the caller's concern. */
    void checkOpen() {
        lifetime.check();
    }

    /** Keeps the stream from being destroyed by {@link #close()}, until {@link #unpin()}. */
    void pin() {
        lifetime.pin();
    }

    /** Ends a pin, in any thread, and destroys the stream if it was closed meanwhile and no other pin is left. */
    void unpin() {
        lifetime.unpin();
    }

    /** Records an event, for {@link CudaEvent#record}. Streams are always locked before events. */
    void record(CudaEvent event) {
        lifetime.acquire();
        try {
            event.recordOn(handle);
        } finally {
            lifetime.release();
        }
    }

    /**
     * Destroys the stream if it was created here; work that is in it goes on to its end. Does nothing if the stream is
     * closed already.
     *
     * @throws CudaException if CUDA reports an error, which may be one of earlier work; the stream is closed all the same
     */
    @Override
    public void close() {
        closed = Lifetime.CLOSED;
        lifetime.close(() -> {
            if (owner && device.isCuda()) {
                Cuda.destroyStream(device, handle);
            } else if (owner) {
                HostStreams.destroyStream(handle);
            }
        });
        InFlight.poll();
    }

    /** {@return what it is: "CudaStream 0x7f12 on CUDA device 0"} */
    @Override
    public String toString() {
        return (handle == 0 ? "default CudaStream" : "CudaStream 0x" + Long.toHexString(handle)) + " on " + device;
    }
}
