package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.cuda.NativeGraph;
import java.util.Objects;

/**
 * A graph of a stream's work. The work is captured once and launched many times, each time by one cheap call.
 *
 * <pre>{@code
 * try (CudaGraph graph = CudaGraph.capture(stream, () -> {
 *         buffer.copyFromAsync(staging, stream);
 *         ...
 *     })) {
 *     for (int step = 0; step < 1000; step++) {
 *         graph.launch(stream);
 *     }
 *     stream.synchronize(Duration.ofSeconds(10));
 * }
 * }</pre>
 *
 * <p>Every launch uses the same memory and the same arguments. On host memory, graphs need the host engine, which records the
 * work and runs it anew at each launch, by CUDA's rules.
 *
 * <p><b>Ownership.</b> A graph is destroyed when it is closed, not by the garbage collector; with {@code
 * -Dnccl4j.leaks=true} a graph that is dropped without being closed is logged. Buffers of captured copies may be closed
 * before the graph: their memory is freed when the graph is closed and its launches are done. A communicator whose
 * operations were captured can't be destroyed before the graph, since NCCL waits for the graph's end. Every use of a
 * closed graph throws {@link IllegalStateException}.
 *
 * <p><b>Threads.</b> Any thread may launch and close a graph. Launches of one graph never overlap: each waits for the
 * previous one, also across streams.
 *
 * @since 0.1
 */
public final class CudaGraph implements AutoCloseable {
    /**
     * A piece of code whose work is captured.
     *
     * @param <E> the exceptions that the code may throw
     */
    @FunctionalInterface
    public interface Body<E extends Exception> {
        /**
         * Puts work into the stream.
         *
         * @throws E if the code fails
         */
        void run() throws E;
    }

    private final Device device;
    final NativeGraph nativeGraph;

    private CudaGraph(Device device, NativeGraph nativeGraph) {
        this.device = device;
        this.nativeGraph = nativeGraph;
    }

    /**
     * Captures the work that a piece of code puts into a stream, without running the work. A capture contains
     * asynchronous copies, collectives and events. It also contains the work of other streams that wait for such an
     * event, if the stream waits for them in turn before the code ends. The code must not wait, make synchronous
     * copies, or allocate or free memory of the device: such calls are refused in this thread during a capture, which
     * then fails; only memory of the host engine may be freed. Other threads may make them. A communicator's first
     * operation may be captured, although NCCL then creates its connections.
     *
     * <p>If the code throws, the capture is discarded, the stream stays usable, and the exception is passed on.
     *
     * @param <E> the exceptions that the code may throw
     * @param stream a stream of a CUDA device, not the default stream; preferably non-blocking, because waiting for a
     *     blocking stream ends the capture
     * @param body the code
     * @return the graph, to be closed by the caller
     * @throws E if the code throws it
     * @throws IllegalStateException if the stream is closed or is being captured already; on host memory also without the
     *     host engine, and if the code made a call that is refused
     * @throws IllegalArgumentException if the stream is the default stream
     * @throws CudaException if CUDA can't capture the work or can't create the graph
     * @throws NcclResultException if the host engine can't, for example because the stream does not wait for another one
     * @see <a
     *     href="https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__STREAM.html">cudaStreamBeginCapture</a>
     */
    public static <E extends Exception> CudaGraph capture(CudaStream stream, Body<E> body) throws E {
        Objects.requireNonNull(stream, "stream");
        return new CudaGraph(
                stream.device(), NativeGraph.capture(stream.nativeStream, Objects.requireNonNull(body, "body")::run));
    }

    /** {@return the device on which the graph runs} */
    public Device device() {
        return device;
    }

    /** {@return true if the graph is not closed} */
    public boolean isOpen() {
        return nativeGraph.isOpen();
    }

    /**
     * Returns the handle for native code. It is valid while the graph is open.
     *
     * @return the {@code cudaGraphExec_t}; on host memory, a graph of the host engine
     * @throws IllegalStateException if the graph is closed
     */
    public long nativeHandle() {
        return nativeGraph.handle();
    }

    /**
     * Launches the graph's work in a stream and returns. The work begins when the earlier work of the stream and the
     * earlier launches of this graph are done.
     *
     * @param stream a stream of this graph's device; need not be the captured one
     * @throws IllegalArgumentException if the stream belongs to another device
     * @throws IllegalStateException if the graph or the stream is closed
     * @throws NcclResultException on host memory, if a communicator of the graph was closed or has failed
     * @throws CudaException if CUDA can't launch the graph; waiting for the stream throws errors of the work, and obeys the
     *     communicators whose operations were captured
     * @see <a href="https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__GRAPH.html">cudaGraphLaunch</a>
     */
    public void launch(CudaStream stream) {
        nativeGraph.launch(Objects.requireNonNull(stream, "stream").nativeStream);
    }

    /**
     * Destroys the graph; launches in progress are completed. Does nothing if the graph is closed already.
     *
     * @throws CudaException if CUDA reports an error, possibly of earlier work; the graph is closed nevertheless
     */
    @Override
    public void close() {
        nativeGraph.close();
    }

    /** {@return a description: "CudaGraph 0x7f12 on CUDA device 0"} */
    @Override
    public String toString() {
        return nativeGraph.toString();
    }
}
