package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.cuda.Cuda;
import io.github.nccl4j.testing.Waiting;
import java.io.IOException;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
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
            isTrue(CudaGraph.capturing(stream) == null, "nothing is captured");
            CudaGraph[] seen = new CudaGraph[3];
            CudaGraph graph = CudaGraph.capture(stream, () -> {
                seen[0] = CudaGraph.capturing(stream);
                seen[1] = CudaGraph.capturing(CudaStream.wrap(device, stream.nativeHandle()));
                fork.record(stream);
                side.waitFor(fork);
                seen[2] = CudaGraph.capturing(side);
                join.record(side);
                stream.waitFor(join);
                isTrue(CudaGraph.capturing(apart) == null, "a stream apart");
                isTrue(CudaGraph.capturing(CudaStream.defaultOf(device)) == null, "the default stream");
                isTrue(CudaGraph.capturing(CudaStream.defaultOf(Device.host())) == null, "host memory");
                isTrue(CudaGraph.isThreadCapturing(), "in this thread");
                CudaGraph.capturing(stream).onClose(() -> RUN.add("first"));
                CudaGraph.capturing(stream).onClose(() -> RUN.add("second"));
                CudaGraph.capturing(stream).keep(() -> RUN.add("kept"));
            });
            isTrue(seen[0] == graph && seen[1] == graph && seen[2] == graph, "the graph, of each stream in it");
            isTrue(CudaGraph.capturing(stream) == null && !CudaGraph.isThreadCapturing(), "captured no more");
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
                CudaGraph.capturing(stream).onClose(() -> RUN.add("closed"));
                CudaGraph.capturing(stream).onClose(() -> {
                    throw new IllegalStateException("logged, and the others run all the same");
                });
                CudaGraph.capturing(stream).keep(() -> RUN.add("kept"));
                throw new IOException("given up");
            });
            throw new AssertionError("nothing was thrown");
        } catch (IOException expected) {
            ran("closed", "kept");
        }
    }

    /** A graph within a graph lives as long as that. */
    private static void nested(CudaStream stream, CudaStream apart) {
        CudaGraph inner =
                CudaGraph.capture(stream, () -> CudaGraph.capturing(stream).onClose(() -> RUN.add("inner")));
        CudaGraph[] seen = new CudaGraph[2];
        CudaGraph outer = CudaGraph.capture(stream, () -> {
            inner.launch(stream);
            try (CudaGraph other = CudaGraph.capture(apart, () -> seen[0] = CudaGraph.capturing(apart))) {
                isTrue(seen[0] == other, "the graph of the stream, not of the thread");
            }
            seen[1] = CudaGraph.capturing(stream);
            isTrue(CudaGraph.ofThread() == seen[1], "the thread captures the outer graph again");
            CudaGraph.capturing(stream).onClose(() -> RUN.add("outer"));
        });
        isTrue(seen[1] == outer, "the outer graph again");
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
            Cuda.eventIsDone(device.context(), event);
        } catch (CudaException destroyed) {
            found = false;
        }
        isTrue(found == expected, "the event " + (found ? "exists" : "was destroyed"));
    }
}
