package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.cuda.NativeStream;
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
    final NativeStream nativeStream;
    private final Device device;

    CudaStream(Device device, NativeStream nativeStream) {
        this.device = device;
        this.nativeStream = nativeStream;
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
        return new CudaStream(
                device, NativeStream.create(Objects.requireNonNull(device, "device").nativeDevice, nonBlocking));
    }

    /**
     * Returns the default stream of a device: the "legacy" one, for which blocking streams wait.
     *
     * @param device the device of the stream
     * @return the stream; closing it does not touch the device
     */
    public static CudaStream defaultOf(Device device) {
        return wrap(device, 0);
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
        return new CudaStream(device, NativeStream.wrap(Objects.requireNonNull(device, "device").nativeDevice, handle));
    }

    /** {@return the device on which the stream runs} */
    public Device device() {
        return device;
    }

    /** {@return true if the stream is not closed} */
    public boolean isOpen() {
        return nativeStream.isOpen();
    }

    /**
     * Returns the handle for native code. It is valid while the stream is open.
     *
     * @return the {@code cudaStream_t}; 0 for the default stream
     * @throws IllegalStateException if the stream is closed
     */
    public long nativeHandle() {
        nativeStream.checkOpen();
        return nativeStream.handle;
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
        return nativeStream.isDone();
    }

    /**
     * Returns true if work that enters the stream is captured for a graph instead of being run, by {@link
     * CudaGraph#capture} or other code. The default stream is never captured.
     *
     * @return true if work is captured
     * @throws CudaException if CUDA reports an error
     */
    public boolean isCapturing() {
        return nativeStream.isCapturing();
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
        nativeStream.synchronize();
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
        if (!nativeStream.isDoneWithin(Objects.requireNonNull(timeout, "timeout"))) {
            throw new StreamTimeoutException(toString(), timeout);
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
        nativeStream.waitFor(Objects.requireNonNull(event, "event").nativeEvent);
    }

    /**
     * Closes the stream, and destroys it if this class created it; work in it is completed. Does nothing if the stream
     * is closed already.
     *
     * @throws CudaException if CUDA reports an error, possibly of earlier work; the stream is closed nevertheless
     */
    @Override
    public void close() {
        nativeStream.close();
    }

    /** {@return a description: "CudaStream 0x7f12 on CUDA device 0"} */
    @Override
    public String toString() {
        return nativeStream.toString();
    }
}
