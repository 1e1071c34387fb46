package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.cuda.NativeEvent;
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
    final NativeEvent nativeEvent;
    private final Device device;

    private CudaEvent(Device device, boolean timing) {
        this.device = Objects.requireNonNull(device, "device");
        nativeEvent = new NativeEvent(device.nativeDevice, timing);
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
        return nativeEvent.isOpen();
    }

    /**
     * Returns the handle for native code. It is valid while the event is open.
     *
     * @return the {@code cudaEvent_t}, or the host engine's event; 0 on host memory with another library
     * @throws IllegalStateException if the event is closed
     */
    public long nativeHandle() {
        return nativeEvent.handle();
    }

    /**
     * Marks the end of the present work of a stream. Returns at once. In stream order.
     *
     * @param stream a stream of this event's device
     * @throws IllegalArgumentException if the stream belongs to another device
     */
    public void record(CudaStream stream) {
        nativeEvent.record(Objects.requireNonNull(stream, "stream").nativeStream);
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
        return nativeEvent.isDone();
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
        nativeEvent.synchronize();
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
        if (!nativeEvent.isDoneWithin(Objects.requireNonNull(timeout, "timeout"))) {
            throw new StreamTimeoutException(toString(), timeout);
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
        return nativeEvent.elapsedSince(Objects.requireNonNull(start, "start").nativeEvent);
    }

    /**
     * Destroys the event. Streams that wait for it continue to wait. Does nothing if the event is closed already.
     *
     * @throws CudaException if CUDA reports an error, possibly of earlier work; the event is closed nevertheless
     */
    @Override
    public void close() {
        nativeEvent.close();
    }

    /** {@return a description: "CudaEvent 0x7f12 on CUDA device 0"} */
    @Override
    public String toString() {
        return nativeEvent.toString();
    }
}
