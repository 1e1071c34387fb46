package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.cuda.DeviceStreams;
import io.github.nccl4j.internal.cuda.HostStreams;
import io.github.nccl4j.internal.memory.Lifetime;
import io.github.nccl4j.internal.threads.Polling;
import io.github.nccl4j.internal.threads.VirtualThreads;
import java.time.Duration;
import java.util.Objects;

/**
 * A queue of work on a device. Each operation begins when the previous one is done.
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
 * <p>A thread that waits for a stream with operations of a communicator obeys that communicator, as {@link Work#await()}
 * does: the wait ends at the communicator's deadline, when the communicator fails or loses a rank, and when the thread is
 * interrupted. An operation counts for a stream until a wait, a query or {@link Work} has shown that it is done. It also
 * counts for a stream that waits for an event behind it, for a stream in which a graph with it was launched, and, on a CUDA
 * device, for the default stream and blocking and wrapped streams. If a communicator is revoked or aborted before its
 * operations are done, the first wait or query after that throws, unless a call of the communicator or of its work has thrown
 * before; a future that failed does not count. A wait for work without operations of a communicator has no deadline.
 *
 * <p>The host engine provides the streams of host memory, with one thread each. There, blocking streams are as
 * non-blocking ones. Each thread has its own default stream of
 * host memory. That stream waits for no other stream unless {@link #waitFor} is called, and its operations are done
 * when their call returns. With libraries other than the host engine, streams of host memory are always empty.
 *
 * <p><b>Ownership.</b> A stream that this class created is destroyed when it is closed, after the work in it. The
 * default stream and wrapped streams are not destroyed. The garbage collector does not destroy a stream; with {@code
 * -Dnccl4j.leaks=true} a stream that is dropped without being closed is logged. Every use of a closed stream throws
 * {@link IllegalStateException}.
 *
 * <p><b>Threads.</b> A stream may be used by any number of threads at once. {@link #close} waits for calls of other
 * threads on this object, on a CUDA device including {@link #synchronize()}. A stream of host memory is destroyed when the
 * last such wait has ended.
 *
 * @since 0.1
 */
public final class CudaStream implements AutoCloseable {
    /** CUDA's {@code cudaStreamLegacy}. */
    private static final long LEGACY = 1;

    final Device device;
    /** Valid only after {@link #checkOpen()}. */
    final long handle;

    /** The {@linkplain Device#deviceCode code} of the device. */
    final int deviceCode;

    private final boolean owner;
    /** True if the stream does not wait for the default stream. */
    private final boolean nonBlocking;

    private final Lifetime lifetime = new Lifetime(this);
    /** {@link Lifetime#CLOSED} or 0. For hot paths, which save a load of the lifetime. */
    private int closed;

    private CudaStream(Device device, long handle, boolean owner, boolean nonBlocking) {
        this.nonBlocking = nonBlocking;
        this.device = device;
        deviceCode = device.deviceCode();
        this.handle = handle;
        this.owner = owner;
        if (owner) {
            lifetime.watch(this, toString());
        }
    }

    /**
     * Creates a stream that runs in parallel with the default stream and does not wait for it. Collectives should use
     * such a stream.
     *
     * @param device the device of the stream
     * @return the stream, to be closed by the caller
     * @throws CudaException if CUDA can't create it
     */
    public static CudaStream nonBlocking(Device device) {
        return create(device, true);
    }

    /**
     * Creates a blocking stream: it waits for work on the default stream, and the default stream waits for its work.
     *
     * @param device the device of the stream
     * @return the stream, to be closed by the caller
     * @throws CudaException if CUDA can't create it
     */
    public static CudaStream blocking(Device device) {
        return create(device, false);
    }

    private static CudaStream create(Device device, boolean nonBlocking) {
        Objects.requireNonNull(device, "device");
        return new CudaStream(device, DeviceStreams.createStream(device.context(), nonBlocking), true, nonBlocking);
    }

    /**
     * Returns the default stream of a device: the "legacy" one, for which blocking streams wait.
     *
     * @param device the device of the stream
     * @return the stream; closing it does not touch the device
     */
    public static CudaStream defaultOf(Device device) {
        return new CudaStream(Objects.requireNonNull(device, "device"), 0, false, false);
    }

    /**
     * Wraps a stream of other code. That code must keep the stream valid until this object is closed, and destroys the
     * stream.
     *
     * @param device the device of the stream
     * @param handle the {@code cudaStream_t}; 0 for the default stream; on host memory, a stream of the host engine
     * @return the stream; closing it does not touch the device
     * @throws IllegalArgumentException if the device is host memory and the handle is neither 0 nor a stream of the
     *     host engine
     */
    public static CudaStream wrap(Device device, long handle) {
        Objects.requireNonNull(device, "device");
        if (device.isHost() && handle != 0 && !HostStreams.isStream(handle)) {
            throw new IllegalArgumentException(
                    "handle must be 0 on host memory, or a stream of the host engine: 0x" + Long.toHexString(handle));
        }
        return new CudaStream(device, handle, false, false);
    }

    /** {@return the device on which the stream runs} */
    public Device device() {
        return device;
    }

    /** {@return true if the stream is not closed} */
    public boolean isOpen() {
        return lifetime.isOpen();
    }

    /**
     * Returns the handle for native code. It is valid while the stream is open.
     *
     * @return the {@code cudaStream_t}; 0 for the default stream
     * @throws IllegalStateException if the stream is closed
     */
    public long nativeHandle() {
        lifetime.check();
        return handle;
    }

    /**
     * Returns true if all work in the stream is done. Does not wait.
     *
     * @return true if all work is done
     * @throws CudaException if work on the device failed
     * @throws NcclResultException if an operation of the host engine failed
     * @throws IllegalStateException if a communicator was revoked or aborted before its operation was done
     */
    public boolean isDone() {
        lifetime.acquire();
        try {
            refuseWhileCapturing("a query of a stream");
            PendingOperations before = pending();
            boolean done = DeviceStreams.streamIsDone(device.context(), handle);
            if (done) {
                before.markDone();
            }
            return done;
        } finally {
            lifetime.release();
        }
    }

    /**
     * Returns true if work that enters the stream is captured for a graph instead of being run, by {@link
     * CudaGraph#capture} or other code. The default stream is never captured.
     *
     * @return true if work is captured
     * @throws CudaException if CUDA reports an error
     */
    public boolean isCapturing() {
        lifetime.acquire();
        try {
            return isCapturingNow();
        } finally {
            lifetime.release();
        }
    }

    /** As {@link #isCapturing()}, for a stream that the caller keeps open or has pinned. */
    boolean isCapturingNow() {
        return !isLegacyDefault() && DeviceStreams.isCapturing(device.context(), handle);
    }

    /** Returns true if this object created the stream. */
    boolean isOwner() {
        return owner;
    }

    /** Returns true if this is the default stream for which blocking streams wait; CUDA has two handles for it. */
    boolean isLegacyDefault() {
        return handle == 0 || handle == LEGACY;
    }

    /**
     * Waits until all work in the stream is done. Operations of communicators are awaited at most until the deadline of
     * their communicator.
     *
     * @throws NcclTimeoutException if an operation of a communicator is not done at the communicator's deadline; the work
     *     continues
     * @throws NcclResultException if an operation of a communicator failed
     * @throws NcclInterruptedException if the thread was interrupted while it waited for an operation of a communicator;
     *     the communicator was aborted then
     * @throws IllegalStateException if a communicator was revoked or aborted before its operation was done
     * @throws CudaException if work on the device failed
     */
    public void synchronize() {
        if (!device.isHost()) {
            lifetime.acquire();
            try {
                awaitEnd(null);
            } finally {
                lifetime.release();
            }
        } else if (HostStreams.isIdle(handle) && !PendingOperations.areInherited()) {
            lifetime.check();
        } else {
            synchronizeOnHost();
        }
        PendingReleases.poll();
    }

    /**
     * Waits until all work in the stream is done, at most until the deadline of the communicators with operations in it.
     *
     * @param timeout the limit instead of their deadlines, or null; without operations the limit of the wait
     */
    void awaitEnd(Duration timeout) {
        refuseWhileCapturing("a wait for a stream");
        PendingOperations before = pending();
        if (!before.isEmpty()) {
            before.awaitStream(this, device.context(), handle, device.isCuda() && isLegacyDefault(), timeout);
        } else if (timeout != null || VirtualThreads.isCurrent()) {
            if (!Polling.until(this::isDone, timeout == null ? Polling.FOREVER : timeout)) {
                throw new StreamTimeoutException(toString(), timeout);
            }
        } else {
            DeviceStreams.synchronizeStream(device.context(), handle);
        }
    }

    private void refuseWhileCapturing(String call) {
        if (device.isHost()) {
            CudaGraph.refuseOnHost(call);
        }
    }

    /** Returns the operations of communicators in the stream. */
    PendingOperations pending() {
        return PendingOperations.of(device.context(), handle, device.isCuda() && !nonBlocking);
    }

    /** Without the lock of the lifetime, which takes as long as the wait for a small operation. */
    private void synchronizeOnHost() {
        lifetime.pin();
        try {
            awaitEnd(null);
        } finally {
            lifetime.unpin();
        }
    }

    /**
     * Waits until all work in the stream is done, at most for a timeout, which replaces the deadlines of communicators.
     * An interrupt ends the wait only if the stream has operations of a communicator; the thread keeps its interrupt
     * status. Polls, with pauses of up to 5 ms.
     *
     * @param timeout the timeout; 0 checks once
     * @throws StreamTimeoutException if the work is not done in time; the work continues
     * @throws IllegalArgumentException if the timeout is negative
     * @throws NcclResultException if an operation of a communicator failed
     * @throws NcclInterruptedException if the thread was interrupted while it waited for an operation of a communicator;
     *     the communicator was aborted then
     * @throws IllegalStateException if a communicator was revoked or aborted before its operation was done
     * @throws CudaException if work on the device failed
     */
    public void synchronize(Duration timeout) {
        Objects.requireNonNull(timeout, "timeout");
        lifetime.acquire();
        try {
            awaitEnd(timeout);
        } finally {
            lifetime.release();
        }
    }

    /**
     * Makes later work of the stream wait for an event. Returns at once, except in a virtual thread for the default
     * stream of host memory: there, the call itself waits for the event.
     *
     * @param event the event, possibly of another CUDA device
     * @throws IllegalStateException if the event was not recorded yet
     * @throws IllegalArgumentException if only one of the two belongs to host memory
     */
    public void waitFor(CudaEvent event) {
        Objects.requireNonNull(event, "event");
        if (event.device().isHost() != device.isHost()) {
            throw new IllegalArgumentException("event must be of a device that the stream can wait for: an event of "
                    + event.device() + ", a stream of " + device);
        }
        if (device.isHost() && handle == 0 && VirtualThreads.isCurrent()) {
            // The engine has one default stream per platform thread; a virtual thread has none.
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

    /** Returns a negative number if the stream is closed, as {@link DeviceBuffer#state}. */
    int state() {
        return closed;
    }

    /** Throws if the stream is closed. Takes no lock and allocates nothing; the caller must keep the stream open. */
    void checkOpen() {
        lifetime.check();
    }

    /** Prevents {@link #close()} from destroying the stream until {@link #unpin()}. */
    void pin() {
        lifetime.pin();
    }

    /** Ends a pin, in any thread. Destroys the stream if it is closed and this was the last pin. */
    void unpin() {
        lifetime.unpin();
    }

    /** Records an event, for {@link CudaEvent#record}. Lock order: streams before events. */
    void record(CudaEvent event, PendingOperations before) {
        lifetime.acquire();
        try {
            event.recordOn(handle, before);
        } finally {
            lifetime.release();
        }
    }

    /**
     * Closes the stream, and destroys it if this class created it; work in it is completed. Does nothing if the stream
     * is closed already.
     *
     * @throws CudaException if CUDA reports an error, possibly of earlier work; the stream is closed nevertheless
     */
    @Override
    public void close() {
        closed = Lifetime.CLOSED;
        lifetime.close(() -> {
            if (owner) {
                PendingOperations.forget(device.context(), handle);
                DeviceStreams.destroyStream(device.context(), handle);
            }
        });
        PendingReleases.poll();
    }

    /** {@return a description: "CudaStream 0x7f12 on CUDA device 0"} */
    @Override
    public String toString() {
        return DeviceStreams.describe(handle == 0 ? "default CudaStream" : "CudaStream", handle, device);
    }
}
