package io.github.nccl4j.internal.cuda;

import io.github.nccl4j.internal.memory.Lifetime;
import io.github.nccl4j.internal.threads.Polling;
import io.github.nccl4j.internal.threads.VirtualThreads;
import java.time.Duration;

/** A queue of work on a device. Used by any number of threads at once. */
public final class NativeStream implements AutoCloseable {
    /** CUDA's {@code cudaStreamLegacy}. */
    private static final long LEGACY = 1;

    public final NativeDevice device;
    /** Valid only after {@link #checkOpen()}. */
    public final long handle;

    /** The {@linkplain NativeDevice#code code} of the device. */
    public final int deviceCode;

    private final boolean owner;
    /** True if the stream does not wait for the default stream. */
    private final boolean nonBlocking;

    private final Lifetime lifetime = new Lifetime(this);
    /** {@link Lifetime#CLOSED} or 0. For hot paths, which save a load of the lifetime. */
    private int closed;

    private NativeStream(NativeDevice device, long handle, boolean owner, boolean nonBlocking) {
        this.nonBlocking = nonBlocking;
        this.device = device;
        deviceCode = device.code();
        this.handle = handle;
        this.owner = owner;
        if (owner) {
            lifetime.watch(this, toString());
        }
    }

    public static NativeStream create(NativeDevice device, boolean nonBlocking) {
        return new NativeStream(device, DeviceStreams.createStream(device.context(), nonBlocking), true, nonBlocking);
    }

    /** Wraps a stream that other code destroys; 0 is the default stream. */
    public static NativeStream wrap(NativeDevice device, long handle) {
        if (device.isHost() && handle != 0 && !HostStreams.isStream(handle)) {
            throw new IllegalArgumentException(
                    "handle must be 0 on host memory, or a stream of the host engine: 0x" + Long.toHexString(handle));
        }
        return new NativeStream(device, handle, false, false);
    }

    public boolean isOpen() {
        return lifetime.isOpen();
    }

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

    /** Returns true if closing destroys the stream. */
    boolean isOwner() {
        return owner;
    }

    /** Returns true if this is the default stream for which blocking streams wait; CUDA has two handles for it. */
    boolean isLegacyDefault() {
        return handle == 0 || handle == LEGACY;
    }

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

    /** Waits for the work; returns false if it is not done in time. */
    public boolean isDoneWithin(Duration timeout) {
        lifetime.acquire();
        try {
            return awaitEnd(timeout);
        } finally {
            lifetime.release();
        }
    }

    /**
     * Waits until all work in the stream is done, at most until the deadline of the communicators with operations in it.
     *
     * @param timeout the limit instead of their deadlines, or null; without operations the limit of the wait
     * @return false if the timeout has passed
     */
    boolean awaitEnd(Duration timeout) {
        refuseWhileCapturing("a wait for a stream");
        PendingOperations before = pending();
        if (!before.isEmpty()) {
            return before.awaitStream(this, device.context(), handle, device.isCuda() && isLegacyDefault(), timeout);
        } else if (timeout != null || VirtualThreads.isCurrent()) {
            return Polling.until(this::isDone, timeout == null ? Polling.FOREVER : timeout);
        }
        DeviceStreams.synchronizeStream(device.context(), handle);
        return true;
    }

    private void refuseWhileCapturing(String call) {
        if (device.isHost()) {
            NativeGraph.refuseOnHost(call);
        }
    }

    /** Returns the operations of communicators in the stream. */
    public PendingOperations pending() {
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

    public void waitFor(NativeEvent event) {
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

    /** Returns a negative number if the stream is closed. */
    public int state() {
        return closed;
    }

    /** Throws if the stream is closed. Takes no lock and allocates nothing; the caller must keep the stream open. */
    public void checkOpen() {
        lifetime.check();
    }

    /** Prevents {@link #close()} from destroying the stream until {@link #unpin()}. */
    public void pin() {
        lifetime.pin();
    }

    /** Ends a pin, in any thread. Destroys the stream if it is closed and this was the last pin. */
    public void unpin() {
        lifetime.unpin();
    }

    /** Records an event. Lock order: streams before events. */
    void record(NativeEvent event, PendingOperations before) {
        lifetime.acquire();
        try {
            event.recordOn(handle, before);
        } finally {
            lifetime.release();
        }
    }

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

    @Override
    public String toString() {
        return DeviceStreams.describe(handle == 0 ? "default CudaStream" : "CudaStream", handle, device);
    }
}
