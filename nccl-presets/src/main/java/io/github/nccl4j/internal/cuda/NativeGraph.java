package io.github.nccl4j.internal.cuda;

import io.github.nccl4j.internal.memory.Lifetime;
import io.github.nccl4j.internal.threads.SlowPath;
import java.lang.ref.WeakReference;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

/** Work that was captured from a stream, and the captures in progress. */
public final class NativeGraph implements AutoCloseable {
    private static final Map<Origin, NativeGraph> CAPTURING = new ConcurrentHashMap<>();
    private static final ThreadLocal<NativeGraph> OF_THREAD = new ThreadLocal<>();
    /** Number of captures in progress; checked first, so that calls cost little while it is 0. */
    private static final AtomicInteger CAPTURES = new AtomicInteger();

    private record Origin(NativeDevice device, long stream) {}

    /** The code of a capture. */
    @FunctionalInterface
    public interface Body<E extends Exception> {
        void run() throws E;
    }

    private final NativeDevice device;
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

    private NativeGraph(NativeDevice device) {
        this.device = device;
    }

    public static <E extends Exception> NativeGraph capture(NativeStream stream, Body<E> body) throws E {
        if (stream.isOwner() && stream.isLegacyDefault()) {
            throw new IllegalStateException("a graph in host memory needs the host engine, which has streams for it");
        }
        if (stream.isLegacyDefault()) {
            throw new IllegalArgumentException("stream must not be the default stream, which can't be captured, because"
                    + " blocking streams wait for it: use CudaStream.nonBlocking");
        }
        stream.pin();
        try {
            NativeGraph graph = new NativeGraph(stream.device);
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

    private <E extends Exception> void record(NativeStream stream, Body<E> body) throws E {
        Origin origin = new Origin(device, stream.handle);
        if (CAPTURING.putIfAbsent(origin, this) != null) {
            throw new IllegalStateException(stream + " is being captured already");
        }
        NativeGraph outer = OF_THREAD.get();
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
    public static void refuseOnHost(String call) {
        NativeGraph graph = ofThread();
        if (graph != null && graph.device.isHost()) {
            graph.refused = "a thread that captures must not make " + call;
            throw new IllegalStateException(graph.refused);
        }
    }

    /** Returns true if the calling thread captures work of a CUDA device. */
    public static boolean isThreadCapturingCuda() {
        NativeGraph graph = ofThread();
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
    public static NativeGraph capturing(NativeStream stream) {
        if (CAPTURES.get() == 0 || !stream.isCapturingNow()) {
            return null;
        }
        // Otherwise the stream joined the capture by an event.
        NativeGraph graph = CAPTURING.get(new Origin(stream.device, stream.handle));
        return graph != null ? graph : OF_THREAD.get();
    }

    /** Returns true if any capture is in progress. A plain read, as that of {@link SlowPath#isRequired}. */
    public static boolean anyCapturing() {
        return CAPTURES.getPlain() != 0;
    }

    /** Returns the graph that the calling thread captures, or null. */
    public static NativeGraph ofThread() {
        return anyCapturing() ? OF_THREAD.get() : null;
    }

    /** Returns true if the calling thread is capturing, and so must not free, allocate or wait. */
    public static boolean isThreadCapturing() {
        return ofThread() != null;
    }

    /**
     * Adds an action that runs right after the graph was destroyed, or if it could not be created; last added, first
     * run.
     */
    public void onClose(Runnable action) {
        synchronized (onClose) {
            onClose.push(action);
        }
    }

    /**
     * Adds a resource that is released when the graph was destroyed and its launches are done, or if it could not be
     * created.
     */
    public void keep(Runnable release) {
        synchronized (kept) {
            kept.push(release);
        }
    }

    /** Called once for each communicator whose operations are captured. */
    public void addCommunicator(WeakReference<PendingOperations.Owner> communicator) {
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

    public NativeDevice device() {
        return device;
    }

    public boolean isOpen() {
        return lifetime.isOpen();
    }

    public long handle() {
        lifetime.check();
        return executable;
    }

    public void launch(NativeStream stream) {
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
    private synchronized void launchOpen(NativeStream stream) {
        NativeGraph outer = capturing(stream);
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

    @Override
    public String toString() {
        return DeviceStreams.describe("CudaGraph", executable, device);
    }
}
