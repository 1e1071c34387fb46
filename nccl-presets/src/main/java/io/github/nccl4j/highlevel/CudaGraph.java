package io.github.nccl4j.highlevel;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Work of a stream that was captured once, to be launched many times by one cheap call.
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
 * <p>Every launch works on the same memory with the same arguments. Graphs need a CUDA device; on host memory, where no
 * work waits in a stream, there are none.
 *
 * <p><b>Ownership.</b> A graph is destroyed when closed, not by the garbage collector; with {@code -Dnccl4j.leaks=true} one
 * that was dropped is logged. Buffers that captured copies use may be closed before the graph: their memory is kept for
 * it, and freed when the graph is closed and its launches are done. A communicator whose operations were captured can't be
 * destroyed before the graph: NCCL waits for that. Every use of a closed graph is an {@link IllegalStateException}.
 *
 * <p><b>Threads.</b> A graph may be launched and closed in any thread. Launches of one graph never run side by side: each
 * waits for the one before, in whatever streams they are.
 */
public final class CudaGraph implements AutoCloseable {
    private static final Map<Origin, CudaGraph> CAPTURING = new ConcurrentHashMap<>();
    private static final ThreadLocal<CudaGraph> OF_THREAD = new ThreadLocal<>();
    /** The number of captures under way, for calls that are not to look further when there is none. */
    private static final AtomicInteger CAPTURES = new AtomicInteger();

    private record Origin(Device device, long stream) {}

    /**
     * What is captured.
     *
     * @param <E> the exceptions that it may throw
     */
    @FunctionalInterface
    public interface Body<E extends Exception> {
        /**
         * Puts work into the stream.
         *
         * @throws E if it can't
         */
        void run() throws E;
    }

    private final Device device;
    private final Lifetime lifetime = new Lifetime(this);
    private final Deque<Runnable> onClose = new ArrayDeque<>();
    private final Deque<Runnable> kept = new ArrayDeque<>();
    /** Behind the last launch in each stream. */
    private final Map<Long, Long> launches = new HashMap<>();

    private long executable;

    private CudaGraph(Device device) {
        this.device = device;
    }

    /**
     * Captures what a piece of code puts into a stream, without running it. Into the stream go asynchronous copies,
     * collectives, events, and what other streams do that wait for such an event, if the stream waits for them in turn
     * before the end. Copies that are done when they return can't be captured, and the code may not wait for anything,
     * allocate or free device memory: CUDA refuses that in this thread while it captures. Other threads may.
     * A communicator's first operation may be captured, although NCCL then makes its connections.
     *
     * <p>When the code throws, the capture is given up, the stream can be used as before, and the exception goes on.
     *
     * @param <E> the exceptions that the code may throw
     * @param stream a stream of a CUDA device, but not the default stream; best a non-blocking one, because what waits for
     *     a blocking stream ends the capture
     * @param body the code
     * @return the graph, to be closed by the caller
     * @throws E if the code throws it
     * @throws IllegalStateException if the stream is one of host memory, is closed or is being captured already
     * @throws IllegalArgumentException if it is the default stream
     * @throws CudaException if CUDA can't capture the work, or can't make a graph of it
     * @see <a href="https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__STREAM.html">cudaStreamBeginCapture</a>
     */
    public static <E extends Exception> CudaGraph capture(CudaStream stream, Body<E> body) throws E {
        Objects.requireNonNull(stream, "stream");
        Objects.requireNonNull(body, "body");
        if (stream.device.isHost()) {
            throw new IllegalStateException("a graph needs a CUDA device, not a " + stream);
        }
        if (stream.isLegacyDefault()) {
            throw new IllegalArgumentException("stream must not be the default stream, which can't be captured, because"
                    + " blocking streams wait for it: use CudaStream.nonBlocking");
        }
        stream.pin();
        try {
            CudaGraph graph = new CudaGraph(stream.device);
            boolean made = false;
            try {
                graph.record(stream, body);
                made = true;
            } finally {
                if (!made) {
                    graph.abandon();
                }
            }
            graph.lifetime.watch(graph, graph.toString());
            return graph;
        } finally {
            stream.unpin();
        }
    }

    private <E extends Exception> void record(CudaStream stream, Body<E> body) throws E {
        Origin origin = new Origin(device, stream.handle);
        if (CAPTURING.putIfAbsent(origin, this) != null) {
            throw new IllegalStateException(stream + " is being captured already");
        }
        CudaGraph outer = OF_THREAD.get();
        CAPTURES.incrementAndGet();
        SlowPath.begin();
        try {
            OF_THREAD.set(this);
            Cuda.beginCapture(device, stream.handle);
            try {
                body.run();
            } catch (Throwable failure) {
                Cuda.discardCapture(device, stream.handle, failure);
                throw failure;
            }
            executable = Cuda.endCapture(device, stream.handle);
        } finally {
            SlowPath.end();
            CAPTURES.decrementAndGet();
            OF_THREAD.set(outer);
            CAPTURING.remove(origin);
        }
    }

    private void abandon() {
        runAll(onClose);
        runAll(kept);
    }

    /**
     * The graph that work in a stream goes into now, or null: the stream is not being captured, or not by this class. Costs
     * next to nothing while nothing at all is captured. The stream stays open.
     */
    static CudaGraph capturing(CudaStream stream) {
        if (CAPTURES.get() == 0 || !stream.isCapturingNow()) {
            return null;
        }
        // Else the stream came in by an event.
        CudaGraph graph = CAPTURING.get(new Origin(stream.device, stream.handle));
        return graph != null ? graph : OF_THREAD.get();
    }

    /** Whether anything at all is captured: quickly asked, by a plain read as that of {@link SlowPath#isRequired}. */
    static boolean anyCapturing() {
        return CAPTURES.getPlain() != 0;
    }

    /** The graph that the calling thread captures, else null. */
    static CudaGraph ofThread() {
        return anyCapturing() ? OF_THREAD.get() : null;
    }

    /** Keeps the memory of a buffer as long as the graph may use it. */
    void keep(DeviceBuffer<?> buffer) {
        buffer.pin();
        keep(buffer::unpin);
    }

    /** Whether the calling thread is capturing, and so may not free, allocate or wait. */
    static boolean isThreadCapturing() {
        return ofThread() != null;
    }

    /** Has something run right after the graph was destroyed, or not made at all; the last comes first. */
    void onClose(Runnable action) {
        synchronized (onClose) {
            onClose.push(action);
        }
    }

    /** Has something released when the graph was destroyed and its launches are done, or not made at all. */
    void keep(Runnable release) {
        synchronized (kept) {
            kept.push(release);
        }
    }

    private boolean keepsSomething() {
        synchronized (kept) {
            return !kept.isEmpty();
        }
    }

    private static void runAll(Deque<Runnable> actions) {
        synchronized (actions) {
            while (!actions.isEmpty()) {
                InFlight.release(actions.pop());
            }
        }
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
     * The handle for native code, valid as long as the graph is open.
     *
     * @return its {@code cudaGraphExec_t}
     * @throws IllegalStateException if it is closed
     */
    public long nativeHandle() {
        lifetime.check();
        return executable;
    }

    /**
     * Puts all the work into a stream, and returns. It begins when the work before in the stream, and earlier launches of
     * this graph, are done.
     *
     * @param stream a stream of this graph's device, not only the captured one
     * @throws IllegalArgumentException if the stream is of another device
     * @throws IllegalStateException if the graph or the stream is closed
     * @throws CudaException if CUDA can't launch it; an error of the work comes when the stream is waited for
     * @see <a href="https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__GRAPH.html">cudaGraphLaunch</a>
     */
    public void launch(CudaStream stream) {
        Objects.requireNonNull(stream, "stream");
        if (!stream.device.equals(device)) {
            throw new IllegalArgumentException(
                    "stream must be of the graph's device: a stream of " + stream.device + ", a graph of " + device);
        }
        lifetime.pin();
        try {
            stream.pin();
            try {
                launchOpen(stream);
            } finally {
                stream.unpin();
            }
        } finally {
            lifetime.unpin();
        }
    }

    /** One at a time: CUDA does not lock graphs. */
    private synchronized void launchOpen(CudaStream stream) {
        CudaGraph outer = capturing(stream);
        if (outer != null) {
            lifetime.pin();
            outer.keep(lifetime::unpin);
            Cuda.launchGraph(device, executable, stream.handle, 0);
            return;
        }
        long mark = 0;
        if (keepsSomething()) {
            mark = launches.computeIfAbsent(stream.handle, handle -> Cuda.createEvent(device, false));
        }
        Cuda.launchGraph(device, executable, stream.handle, mark);
    }

    /**
     * Destroys the graph; launches that are under way go on to their end. Does nothing if the graph is closed already.
     *
     * @throws CudaException if CUDA reports an error, which may be one of earlier work; the graph is closed all the same
     */
    @Override
    public void close() {
        lifetime.close(this::destroy);
        InFlight.poll();
    }

    private synchronized void destroy() {
        try {
            Cuda.destroyGraph(device, executable);
        } finally {
            runAll(onClose);
            // One more, for the case that it was never launched.
            AtomicInteger left = new AtomicInteger(launches.size() + 1);
            Runnable done = () -> {
                if (left.decrementAndGet() == 0) {
                    runAll(kept);
                }
            };
            launches.values().forEach(event -> InFlight.keep(device, event, done));
            done.run();
        }
    }

    /** {@return what it is: "CudaGraph 0x7f12 on CUDA device 0"} */
    @Override
    public String toString() {
        return (executable == 0 ? "CudaGraph" : "CudaGraph 0x" + Long.toHexString(executable)) + " on " + device;
    }
}
