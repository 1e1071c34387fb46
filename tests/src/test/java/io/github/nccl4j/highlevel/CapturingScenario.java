package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.cuda.Cuda;
import io.github.nccl4j.internal.cuda.NativeGraph;
import io.github.nccl4j.internal.cuda.PendingReleases;
import io.github.nccl4j.testing.Waiting;
import java.io.IOException;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** What a capture tells the rest of the package; runs in a JVM with the fake CUDA. */
public final class CapturingScenario {
    private static final List<String> RUN = new ArrayList<>();

    private CapturingScenario() {}

    private static void isTrue(boolean condition, String what) {
        if (!condition) {
            throw new AssertionError(what);
        }
    }

    private static void ran(String... expected) {
        isTrue(RUN.equals(List.of(expected)), "expected " + List.of(expected) + ", was " + RUN);
        RUN.clear();
    }

    public static void main(String[] args) throws IOException, InterruptedException {
        Device device = Device.cuda(1);
        try (CudaStream stream = CudaStream.nonBlocking(device);
                CudaStream side = CudaStream.nonBlocking(device);
                CudaStream apart = CudaStream.nonBlocking(device);
                CudaEvent fork = CudaEvent.create(device);
                CudaEvent join = CudaEvent.create(device)) {
            isTrue(NativeGraph.capturing(stream.nativeStream) == null, "nothing is captured");
            NativeGraph[] seen = new NativeGraph[3];
            CudaGraph graph = CudaGraph.capture(stream, () -> {
                seen[0] = NativeGraph.capturing(stream.nativeStream);
                seen[1] = NativeGraph.capturing(CudaStream.wrap(device, stream.nativeHandle()).nativeStream);
                fork.record(stream);
                side.waitFor(fork);
                seen[2] = NativeGraph.capturing(side.nativeStream);
                join.record(side);
                stream.waitFor(join);
                isTrue(NativeGraph.capturing(apart.nativeStream) == null, "a stream apart");
                isTrue(NativeGraph.capturing(CudaStream.defaultOf(device).nativeStream) == null, "the default stream");
                isTrue(NativeGraph.capturing(CudaStream.defaultOf(Device.host()).nativeStream) == null, "host memory");
                isTrue(NativeGraph.isThreadCapturing(), "in this thread");
                NativeGraph.capturing(stream.nativeStream).onClose(() -> RUN.add("first"));
                NativeGraph.capturing(stream.nativeStream).onClose(() -> RUN.add("second"));
                NativeGraph.capturing(stream.nativeStream).keep(() -> RUN.add("kept"));
            });
            isTrue(List.of(seen).equals(Collections.nCopies(3, graph.nativeGraph)), "the graph, of each stream in it");
            isTrue(
                    NativeGraph.capturing(stream.nativeStream) == null && !NativeGraph.isThreadCapturing(),
                    "captured no more");
            ran();
            graph.launch(stream);
            graph.launch(apart);
            graph.close();
            ran("second", "first");
            stream.synchronize();
            apart.synchronize();
            ran("kept");
            abandoned(stream);
            nested(stream, apart);
            firstUse(stream);
            configured(stream);
        }
    }

    private static void abandoned(CudaStream stream) {
        try {
            CudaGraph.capture(stream, () -> {
                NativeGraph.capturing(stream.nativeStream).onClose(() -> RUN.add("closed"));
                NativeGraph.capturing(stream.nativeStream).onClose(() -> {
                    throw new IllegalStateException("logged, and the others run all the same");
                });
                NativeGraph.capturing(stream.nativeStream).keep(() -> RUN.add("kept"));
                throw new IOException("given up");
            });
            throw new AssertionError("nothing was thrown");
        } catch (IOException expected) {
            ran("closed", "kept");
        }
    }

    /** A graph within a graph lives as long as that. */
    private static void nested(CudaStream stream, CudaStream apart) {
        CudaGraph inner = CudaGraph.capture(
                stream, () -> NativeGraph.capturing(stream.nativeStream).onClose(() -> RUN.add("inner")));
        NativeGraph[] seen = new NativeGraph[2];
        CudaGraph outer = CudaGraph.capture(stream, () -> {
            inner.launch(stream);
            try (CudaGraph other =
                    CudaGraph.capture(apart, () -> seen[0] = NativeGraph.capturing(apart.nativeStream))) {
                isTrue(seen[0] == other.nativeGraph, "the graph of the stream, not of the thread");
            }
            seen[1] = NativeGraph.capturing(stream.nativeStream);
            isTrue(NativeGraph.ofThread() == seen[1], "the thread captures the outer graph again");
            NativeGraph.capturing(stream.nativeStream).onClose(() -> RUN.add("outer"));
        });
        isTrue(seen[1] == outer.nativeGraph, "the outer graph again");
        inner.close();
        isTrue(!inner.isOpen(), "closed");
        ran();
        outer.launch(stream);
        outer.close();
        ran("outer");
        stream.synchronize();
        ran("inner");
    }

    /** NCCL connects ranks when they first call it, also if that is captured; what the caller does stays refused. */
    private static void firstUse(CudaStream stream) {
        Device device = stream.device();
        for (boolean inGroup : new boolean[] {false, true}) {
            try (Communicator communicator =
                            Communicator.builder().device(device).create(UniqueId.create(), 0, 1);
                    DeviceBuffer<Element.Float32> buffer = device.allocate(ElementType.FLOAT32, 4)) {
                CudaGraph graph = CudaGraph.capture(stream, () -> {
                    if (inGroup) {
                        Group.run(() -> communicator.allReduce(buffer, ReduceOp.SUM, stream));
                    } else {
                        communicator.allReduce(buffer, ReduceOp.SUM, stream);
                    }
                });
                graph.close();
            }
        }
        try {
            CudaGraph.capture(stream, () -> device.allocate(ElementType.FLOAT32, 4));
            throw new AssertionError("memory was allocated");
        } catch (CudaException expected) {
            isTrue(expected.getMessage().contains("capturing"), expected.getMessage());
        }
    }

    /** A graph keeps the configurations that it has captured, and their events until its launches are done. */
    private static void configured(CudaStream stream) throws InterruptedException {
        Device device = stream.device();
        for (boolean inGroup : new boolean[] {false, true}) {
            try (Communicator communicator =
                            Communicator.builder().device(device).create(UniqueId.create(), 0, 1);
                    DeviceBuffer<Element.Float32> buffer = device.allocate(ElementType.FLOAT32, 4)) {
                CudaEvent event = CudaEvent.create(device);
                long handle = event.nativeHandle();
                List<WeakReference<CollectiveConfig>> used = new ArrayList<>();
                CudaGraph graph = CudaGraph.capture(stream, () -> {
                    Runnable call = () -> used.add(reduceAsConfigured(communicator, buffer, stream, event));
                    if (inGroup) {
                        Group.run(call);
                    } else {
                        call.run();
                    }
                });
                event.close();
                System.gc();
                Thread.sleep(20);
                System.gc();
                isTrue(used.get(0).get() != null, "the graph refers to the configuration");
                graph.launch(stream);
                exists(true, device, handle);
                graph.close();
                exists(true, device, handle);
                stream.synchronize();
                PendingReleases.poll();
                exists(false, device, handle);
                Waiting.until("collection of the configuration", () -> {
                    System.gc();
                    return used.get(0).get() == null;
                });
            }
        }
    }

    private static WeakReference<CollectiveConfig> reduceAsConfigured(
            Communicator communicator, DeviceBuffer<Element.Float32> buffer, CudaStream stream, CudaEvent event) {
        CollectiveConfig config = CollectiveConfig.builder()
                .algorithm("ring")
                .launchCompletionEvent(event)
                .build();
        communicator.allReduce(buffer, buffer, ReduceOp.SUM, stream, config);
        return new WeakReference<>(config);
    }

    private static void exists(boolean expected, Device device, long event) {
        boolean found = true;
        try {
            Cuda.eventIsDone(device.nativeDevice.context(), event);
        } catch (CudaException destroyed) {
            found = false;
        }
        isTrue(found == expected, "the event " + (found ? "exists" : "was destroyed"));
    }
}
