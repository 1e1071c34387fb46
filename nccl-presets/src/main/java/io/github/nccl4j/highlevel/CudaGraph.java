package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.cuda.DeviceStreams;
import io.github.nccl4j.internal.memory.Lifetime;
import io.github.nccl4j.internal.threads.SlowPath;
import java.lang.ref.WeakReference;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

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
    private static final Map<Origin, CudaGraph> CAPTURING = new ConcurrentHashMap<>();
    private static final ThreadLocal<CudaGraph> OF_THREAD = new ThreadLocal<>();
    /** Number of captures in progress; checked first, so that calls cost little while it is 0. */
    private static final AtomicInteger CAPTURES = new AtomicInteger();

    private record Origin(Device device, long stream) {}

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
    private final Lifetime lifetime = new Lifetime(this);
    private final Deque<Runnable> onClose = new ArrayDeque<>();
    private final Deque<Runnable> kept = new ArrayDeque<>();
    /** Event behind the last launch, by stream. */
    private final Map<Long, Long> launches = new HashMap<>();

    /** The communicators whose operations were captured. */
    private final List<WeakReference<PendingOperations.Owner>> communicators = new CopyOnWriteArrayList<>();

    private long executable;
    /** On host memory: what the body must not have called, or null. Only the capturing thread uses it. */
    private String refused;

    private CudaGraph(Device device) {
        this.device = device;
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
        Objects.requireNonNull(body, "body");
        if (stream.isOwner() && stream.isLegacyDefault()) {
            throw new IllegalStateException("a graph in host memory needs the host engine, which has streams for it");
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
            DeviceStreams.beginCapture(device.context(), stream.handle);
            try {
                body.run();
                if (refused != null) {
                    throw new IllegalStateException("the capture failed: " + refused);
                }
            } catch (Throwable failure) {
                DeviceStreams.discardCapture(device.context(), stream.handle, failure);
                throw failure;
            }
            executable = DeviceStreams.endCapture(device.context(), stream.handle);
        } finally {
            SlowPath.end();
            CAPTURES.decrementAndGet();
            OF_THREAD.set(outer);
            CAPTURING.remove(origin);
        }
    }

    /**
     * Throws if the calling thread captures work of host memory, and makes the capture fail. CUDA refuses the same calls itself.
     */
    static void refuseOnHost(String call) {
        CudaGraph graph = ofThread();
        if (graph != null && graph.device.isHost()) {
            graph.refused = "a thread that captures must not make " + call;
            throw new IllegalStateException(graph.refused);
        }
    }

    /** Returns true if the calling thread captures work of a CUDA device. */
    static boolean isThreadCapturingCuda() {
        CudaGraph graph = ofThread();
        return graph != null && graph.device.isCuda();
    }

    private void abandon() {
        runAll(onClose);
        runAll(kept);
    }

    /**
     * Returns the graph that work of a stream is captured into, or null if the stream is not being captured, or not by
     * this class. Costs next to nothing while there is no capture. The caller keeps the stream open.
     */
    static CudaGraph capturing(CudaStream stream) {
        if (CAPTURES.get() == 0 || !stream.isCapturingNow()) {
            return null;
        }
        // Otherwise the stream joined the capture by an event.
        CudaGraph graph = CAPTURING.get(new Origin(stream.device, stream.handle));
        return graph != null ? graph : OF_THREAD.get();
    }

    /** Returns true if any capture is in progress. A plain read, as that of {@link SlowPath#isRequired}. */
    static boolean anyCapturing() {
        return CAPTURES.getPlain() != 0;
    }

    /** Returns the graph that the calling thread captures, or null. */
    static CudaGraph ofThread() {
        return anyCapturing() ? OF_THREAD.get() : null;
    }

    /** Keeps the memory of a buffer while the graph may use it. */
    void keep(DeviceBuffer<?> buffer) {
        buffer.pin();
        keep(buffer::unpin);
    }

    /** Returns true if the calling thread is capturing, and so must not free, allocate or wait. */
    static boolean isThreadCapturing() {
        return ofThread() != null;
    }

    /**
     * Adds an action that runs right after the graph was destroyed, or if it could not be created; last added, first
     * run.
     */
    void onClose(Runnable action) {
        synchronized (onClose) {
            onClose.push(action);
        }
    }

    /**
     * Adds a resource that is released when the graph was destroyed and its launches are done, or if it could not be
     * created.
     */
    void keep(Runnable release) {
        synchronized (kept) {
            kept.push(release);
        }
    }

    /** Called once for each communicator whose operations are captured. */
    void addCommunicator(WeakReference<PendingOperations.Owner> communicator) {
        communicators.add(communicator);
    }

    private boolean keepsSomething() {
        synchronized (kept) {
            return !kept.isEmpty();
        }
    }

    private static void runAll(Deque<Runnable> actions) {
        synchronized (actions) {
            while (!actions.isEmpty()) {
                PendingReleases.release(actions.pop());
            }
        }
    }

    /** {@return the device on which the graph runs} */
    public Device device() {
        return device;
    }

    /** {@return true if the graph is not closed} */
    public boolean isOpen() {
        return lifetime.isOpen();
    }

    /**
     * Returns the handle for native code. It is valid while the graph is open.
     *
     * @return the {@code cudaGraphExec_t}; on host memory, a graph of the host engine
     * @throws IllegalStateException if the graph is closed
     */
    public long nativeHandle() {
        lifetime.check();
        return executable;
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

    /** Synchronized, because CUDA does not lock graphs. */
    private synchronized void launchOpen(CudaStream stream) {
        CudaGraph outer = capturing(stream);
        if (outer != null) {
            lifetime.pin();
            outer.keep(lifetime::unpin);
            DeviceStreams.launchGraph(device.context(), executable, stream.handle, 0);
            communicators.forEach(outer::addCommunicator);
            return;
        }
        long mark = 0;
        if (keepsSomething()) {
            mark = launches.computeIfAbsent(
                    stream.handle, handle -> DeviceStreams.createEvent(device.context(), false));
        }
        DeviceStreams.launchGraph(device.context(), executable, stream.handle, mark);
        PendingOperations.launched(communicators, device.context(), stream.handle);
    }

    /**
     * Destroys the graph; launches in progress are completed. Does nothing if the graph is closed already.
     *
     * @throws CudaException if CUDA reports an error, possibly of earlier work; the graph is closed nevertheless
     */
    @Override
    public void close() {
        lifetime.close(this::destroy);
        PendingReleases.poll();
    }

    private synchronized void destroy() {
        try {
            DeviceStreams.destroyGraph(device.context(), executable);
        } finally {
            runAll(onClose);
            // The additional count is released last, and by a graph without launches, too.
            AtomicInteger left = new AtomicInteger(launches.size() + 1);
            Runnable done = () -> {
                if (left.decrementAndGet() == 0) {
                    runAll(kept);
                }
            };
            launches.values().forEach(event -> PendingReleases.add(device, event, done));
            done.run();
        }
    }

    /** {@return a description: "CudaGraph 0x7f12 on CUDA device 0"} */
    @Override
    public String toString() {
        return DeviceStreams.describe("CudaGraph", executable, device);
    }
}
