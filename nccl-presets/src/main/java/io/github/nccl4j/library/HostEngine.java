package io.github.nccl4j.library;

import io.github.nccl4j.highlevel.NcclLibraryException;
import org.bytedeco.javacpp.annotation.Name;
import org.bytedeco.javacpp.annotation.Namespace;
import org.bytedeco.javacpp.annotation.Properties;

/**
 * Functions of the host engine besides NCCL's: streams, events and copies, for which GPUs use CUDA. For programs that
 * use the bindings; {@code CudaStream} and {@code CudaEvent} of {@code highlevel} call these functions on host memory.
 *
 * <pre>{@code
 * try (var cell = new org.bytedeco.javacpp.LongPointer(1)) {
 *     HostEngine.streamCreate(cell.address());
 *     long stream = cell.get();
 *     nccl.ncclAllReduce(send, recv, count, nccl.ncclFloat, nccl.ncclSum, comm, stream);
 *     HostEngine.streamSynchronize(stream);
 *     HostEngine.streamDestroy(stream);
 * }
 * }</pre>
 *
 * <p>Each call returns an {@code ncclResult_t}: {@code ncclSuccess}; for queries, {@code ncclInProgress} while work is
 * not done; after a failed operation, the operation's error, until its communicator is aborted, destroyed or revoked;
 * {@code ncclInvalidArgument} for invalid handles. {@code ncclGetLastError(0)} returns the text.
 *
 * <p>Each thread has its own default stream, 0. Operations of blocking communicators in it are done when their call
 * returns.
 *
 * <p>All methods load NCCL's library, may be called from any thread, and throw {@link NcclLibraryException} if the
 * library is not the host engine.
 *
 * @since 0.1
 */
@Properties(inherit = io.github.nccl4j.presets.nccl.class)
public final class HostEngine {
    static {
        NativeLibrary.initialize();
    }

    private HostEngine() {}

    /**
     * Creates a stream: a queue of work that runs in parallel with others.
     *
     * @param cell the address of 8 bytes for the handle
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostStreamCreate")
    public static native int streamCreate(long cell) throws NcclLibraryException;

    /**
     * Destroys a stream. Work in it is completed.
     *
     * @param stream the stream
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostStreamDestroy")
    public static native int streamDestroy(long stream) throws NcclLibraryException;

    /**
     * Queries the state of all work in a stream. Does not wait.
     *
     * @param stream the stream, 0 for the thread's default stream
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostStreamQuery")
    public static native int streamQuery(long stream) throws NcclLibraryException;

    /**
     * Waits until all work in a stream is done. Waits forever if a rank never joins.
     *
     * @param stream the stream, 0 for the thread's default stream
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostStreamSynchronize")
    public static native int streamSynchronize(long stream) throws NcclLibraryException;

    /**
     * As {@link #streamSynchronize}, for a limited time. The work continues after that time.
     *
     * @param stream the stream, 0 for the thread's default stream
     * @param seconds the limit; the call may take somewhat longer
     * @return the result code; {@code ncclInProgress} if the work is not done in time
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostStreamSynchronizeFor")
    public static native int streamSynchronizeFor(long stream, double seconds) throws NcclLibraryException;

    /**
     * Returns the address of an {@code int}. While it is 0, {@link #streamSynchronize} would return {@code ncclSuccess}
     * at once for each created stream, and the call can be saved. To be read with acquire order; valid until the
     * process ends.
     *
     * @return the address
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostBusyStreams")
    public static native long busyStreams() throws NcclLibraryException;

    /**
     * Makes later work of a stream wait for an event of another stream.
     *
     * @param stream the stream, 0 for the thread's default stream
     * @param event the mark
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostStreamWaitEvent")
    public static native int streamWaitEvent(long stream, long event) throws NcclLibraryException;

    /**
     * Creates an event: a mark in a stream.
     *
     * @param cell the address of 8 bytes for the handle
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostEventCreate")
    public static native int eventCreate(long cell) throws NcclLibraryException;

    /**
     * Destroys an event. Streams that wait for it continue to wait.
     *
     * @param event the event
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostEventDestroy")
    public static native int eventDestroy(long event) throws NcclLibraryException;

    /**
     * Records an event behind the present work of a stream.
     *
     * @param event the event
     * @param stream the stream, 0 for the thread's default stream
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostEventRecord")
    public static native int eventRecord(long event, long stream) throws NcclLibraryException;

    /**
     * Queries the state of all work before an event. Does not wait.
     *
     * @param event the event
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostEventQuery")
    public static native int eventQuery(long event) throws NcclLibraryException;

    /**
     * Waits until all work before an event is done. Waits forever if a rank never joins.
     *
     * @param event the event
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostEventSynchronize")
    public static native int eventSynchronize(long event) throws NcclLibraryException;

    /**
     * Returns the time between two events that are done.
     *
     * @param seconds an array whose first element gets the time
     * @param start the earlier mark
     * @param end the later mark
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostEventElapsedTime")
    public static native int eventElapsedTime(double[] seconds, long start, long end) throws NcclLibraryException;

    /**
     * Begins a capture: the work of a stream is recorded instead of being run. The rules are CUDA's; {@code nccl4j_host.h}
     * has them.
     *
     * @param stream the stream, not the default stream
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostStreamBeginCapture")
    public static native int streamBeginCapture(long stream) throws NcclLibraryException;

    /**
     * Ends a capture, and makes a graph of the work. After a failure, too, the stream is not captured any more.
     *
     * @param stream the stream in which the capture began
     * @param cell the address of 8 bytes for the handle of the graph
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostStreamEndCapture")
    public static native int streamEndCapture(long stream, long cell) throws NcclLibraryException;

    /**
     * Asks whether the work of a stream is recorded instead of being run.
     *
     * @param stream the stream, 0 for the thread's default stream
     * @param capturing an array whose first element becomes 1 if it is, or 0
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostStreamIsCapturing")
    public static native int streamIsCapturing(long stream, int[] capturing) throws NcclLibraryException;

    /**
     * Puts the work of a graph behind the present work of a stream, and behind the launches of the graph.
     *
     * @param graph the graph
     * @param stream the stream, 0 for the thread's default stream
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostGraphLaunch")
    public static native int graphLaunch(long graph, long stream) throws NcclLibraryException;

    /**
     * Destroys a graph. Its launches are completed.
     *
     * @param graph the graph
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostGraphDestroy")
    public static native int graphDestroy(long graph) throws NcclLibraryException;

    /**
     * Copies memory, in stream order.
     *
     * @param target the address to copy to
     * @param source the address to copy from
     * @param bytes the number of bytes
     * @param stream the stream; in the default stream, 0, the copy is done when this returns
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostMemcpyAsync")
    public static native int memcpyAsync(long target, long source, long bytes, long stream) throws NcclLibraryException;

    /**
     * Frees memory of C's {@code malloc} once the present work of all streams is done: at once, or later.
     *
     * @param memory the address of the memory
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostFree")
    public static native int free(long memory) throws NcclLibraryException;
}
