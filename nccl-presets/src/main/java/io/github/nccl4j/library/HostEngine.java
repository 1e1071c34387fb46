package io.github.nccl4j.library;

import org.bytedeco.javacpp.annotation.Name;
import org.bytedeco.javacpp.annotation.Namespace;
import org.bytedeco.javacpp.annotation.Properties;

/**
 * What the host engine has besides NCCL's functions: streams, events and copies, which GPUs have from CUDA. For programs
 * that use the bindings; {@code CudaStream} and {@code CudaEvent} of {@code highlevel} call it on host memory.
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
 * <p>Each call returns an {@code ncclResult_t}: {@code ncclSuccess}; for queries {@code ncclInProgress} as long as work is
 * not done; when it is done, the error of an operation in the stream that failed, until its communicator was aborted,
 * destroyed or revoked; {@code ncclInvalidArgument} for handles that are none. {@code ncclGetLastError(0)} has the text.
 *
 * <p>Each thread has a default stream, 0, of its own. Operations of blocking communicators in it are done when their call
 * returns.
 *
 * <p>All methods load NCCL's library, may be called from any thread, and throw {@link NcclLibraryException} if the library is
 * not the host engine.
 */
@Properties(inherit = io.github.nccl4j.presets.nccl.class)
public final class HostEngine {
    static {
        NativeLibrary.initialize();
    }

    private HostEngine() {}

    /**
     * Creates a stream: a queue of work that runs beside others.
     *
     * @param cell where its handle is written: 8 bytes
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostStreamCreate")
    public static native int streamCreate(long cell) throws NcclLibraryException;

    /**
     * Destroys a stream. What is in it goes on to its end.
     *
     * @param stream the stream
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostStreamDestroy")
    public static native int streamDestroy(long stream) throws NcclLibraryException;

    /**
     * Returns true if all work in a stream is done. Does not wait.
     *
     * @param stream the stream, 0 for the thread's default stream
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostStreamQuery")
    public static native int streamQuery(long stream) throws NcclLibraryException;

    /**
     * Waits until all work in a stream is done, for ever if a rank never comes.
     *
     * @param stream the stream, 0 for the thread's default stream
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostStreamSynchronize")
    public static native int streamSynchronize(long stream) throws NcclLibraryException;

    /**
     * Makes work that comes into a stream from now on wait for a mark in another.
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
     * @param cell where its handle is written: 8 bytes
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostEventCreate")
    public static native int eventCreate(long cell) throws NcclLibraryException;

    /**
     * Destroys an event. Streams that wait for it go on doing so.
     *
     * @param event the event
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostEventDestroy")
    public static native int eventDestroy(long event) throws NcclLibraryException;

    /**
     * Makes an event stand for what is in a stream now.
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
     * Returns true if all work before a mark is done. Does not wait.
     *
     * @param event the event
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostEventQuery")
    public static native int eventQuery(long event) throws NcclLibraryException;

    /**
     * Waits until all work before a mark is done, for ever if a rank never comes.
     *
     * @param event the event
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostEventSynchronize")
    public static native int eventSynchronize(long event) throws NcclLibraryException;

    /**
     * The time between two marks that are done.
     *
     * @param seconds where it is written
     * @param start the earlier mark
     * @param end the later mark
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostEventElapsedTime")
    public static native int eventElapsedTime(double[] seconds, long start, long end) throws NcclLibraryException;

    /**
     * Puts a copy into a stream.
     *
     * @param target the address to which it goes
     * @param source the address from which it comes
     * @param bytes how much
     * @param stream the stream; in the default stream, 0, the copy is done when this returns
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostMemcpyAsync")
    public static native int memcpyAsync(long target, long source, long bytes, long stream) throws NcclLibraryException;

    /**
     * Frees memory of C's {@code malloc} when all work that is in any stream now is done: at once, or later.
     *
     * @param memory its address
     * @return the result code
     * @throws NcclLibraryException if the library is not the host engine
     */
    @Namespace("nccl4j")
    @Name("hostFree")
    public static native int free(long memory) throws NcclLibraryException;
}
