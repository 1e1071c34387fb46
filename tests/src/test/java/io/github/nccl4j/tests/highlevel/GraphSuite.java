package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.highlevel.CudaEvent;
import io.github.nccl4j.highlevel.CudaException;
import io.github.nccl4j.highlevel.CudaGraph;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclUsageException;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.tools.support.Checks;
import java.io.IOException;
import java.time.Duration;
import java.util.Map;

/** What graphs promise, on any device. */
final class GraphSuite {
    private static final Duration LIMIT = Duration.ofSeconds(120);
    private static final int LENGTH = 1000;

    private final Device device;
    private final Checks checks;

    GraphSuite(Device device, Checks checks) {
        this.device = device;
        this.checks = checks;
    }

    void all() throws Exception {
        if (device.isHost() && NativeLibrary.engine() != Engine.HOST) {
            otherLibrary();
            return;
        }
        launching();
        forked();
        failingBodies();
        wrongUse();
        closing();
        severalThreads();
    }

    private void otherLibrary() {
        try (CudaStream stream = CudaStream.nonBlocking(device)) {
            checks.isTrue(!stream.isCapturing(), "no stream of host memory captures");
            checks.fails(
                    IllegalStateException.class,
                    () -> CudaGraph.capture(stream, () -> {
                        throw new AssertionError("not called");
                    }),
                    "needs the host engine");
        }
    }

    private static int[] numbers(DeviceBuffer<Int32> buffer) {
        int[] numbers = new int[(int) buffer.length()];
        buffer.copyTo(numbers);
        return numbers;
    }

    private void launching() {
        try (DeviceBuffer<Int32> source = device.allocate(ElementType.INT32, LENGTH);
                DeviceBuffer<Int32> between = device.allocate(ElementType.INT32, LENGTH);
                DeviceBuffer<Int32> target = device.allocate(ElementType.INT32, LENGTH);
                CudaStream stream = CudaStream.nonBlocking(device);
                CudaStream other = CudaStream.blocking(device)) {
            source.fill(1);
            target.fill(0);
            boolean[] capturing = new boolean[1];
            try (CudaGraph graph = CudaGraph.capture(stream, () -> {
                between.copyFromAsync(source, stream);
                target.copyFromAsync(between, stream);
                capturing[0] = stream.isCapturing() && !other.isCapturing();
            })) {
                checks.isTrue(capturing[0], "captured while the code runs");
                checks.isTrue(!stream.isCapturing() && stream.isDone(), "and not after");
                checks.equal(0, numbers(target)[0], "captured, not run");
                checks.isTrue(graph.isOpen() && graph.nativeHandle() != 0, "open");
                checks.equal(device, graph.device(), "device");
                checks.isTrue(graph.toString().matches("CudaGraph 0x[0-9a-f]+ on " + device), graph.toString());
                for (int step = 2; step < 5; step++) {
                    source.fill(step);
                    graph.launch(step == 3 ? other : stream);
                    stream.synchronize(LIMIT);
                    other.synchronize(LIMIT);
                    checks.equal(step, numbers(target)[LENGTH - 1], "launched");
                }
                source.fill(9);
                graph.launch(CudaStream.defaultOf(device));
                CudaStream.defaultOf(device).synchronize();
                checks.equal(9, numbers(target)[0], "launched in the default stream");
            }
        }
    }

    /** Other streams take part by events. */
    private void forked() {
        try (DeviceBuffer<Int32> source = device.allocate(ElementType.INT32, LENGTH);
                DeviceBuffer<Int32> target = device.allocate(ElementType.INT32, LENGTH);
                CudaStream stream = CudaStream.nonBlocking(device);
                CudaStream side = CudaStream.nonBlocking(device);
                CudaEvent fork = CudaEvent.create(device);
                CudaEvent join = CudaEvent.create(device)) {
            target.fill(0);
            try (CudaGraph graph = CudaGraph.capture(stream, () -> {
                fork.record(stream);
                side.waitFor(fork);
                target.copyFromAsync(source, side);
                join.record(side);
                stream.waitFor(join);
            })) {
                checks.isTrue(!side.isCapturing(), "the other stream is free again");
                source.fill(8);
                graph.launch(stream);
                stream.synchronize(LIMIT);
                checks.equal(8, numbers(target)[0], "copied in another stream");
            }
        }
    }

    private void failingBodies() throws Exception {
        try (DeviceBuffer<Int32> source = device.allocate(ElementType.INT32, LENGTH);
                DeviceBuffer<Int32> target = device.allocate(ElementType.INT32, LENGTH);
                CudaStream stream = CudaStream.nonBlocking(device)) {
            source.fill(4);
            target.fill(0);
            IOException thrown = checks.fails(
                    IOException.class,
                    () -> CudaGraph.capture(stream, () -> {
                        target.copyFromAsync(source, stream);
                        throw new IOException("of the code");
                    }),
                    "of the code");
            checks.equal(0, thrown.getSuppressed().length, "nothing else went wrong");
            checks.isTrue(!stream.isCapturing() && stream.isDone(), "the stream is as before");
            refusedCalls(stream, source);
            checks.fails(
                    IllegalStateException.class,
                    () -> CudaGraph.capture(stream, () -> CudaGraph.capture(stream, () -> {})),
                    "is being captured already");
            checks.equal(0, numbers(target)[0], "nothing was run");
            target.copyFromAsync(source, stream);
            stream.synchronize(LIMIT);
            checks.equal(4, numbers(target)[0], "the stream can be used");
            CudaGraph.capture(stream, () -> target.copyFromAsync(source, stream))
                    .close();
        }
    }

    /** What is refused while capturing makes the capture useless, whether or not the code goes on. */
    private void refusedCalls(CudaStream stream, DeviceBuffer<Int32> buffer) throws Exception {
        if (device.isCuda()) {
            checks.fails(CudaException.class, () -> CudaGraph.capture(stream, stream::synchronize), "900");
            checks.fails(
                    CudaException.class,
                    () -> CudaGraph.capture(stream, () -> {
                        checks.fails(CudaException.class, stream::isDone, "cudaStreamQuery");
                    }),
                    "cudaStreamEndCapture",
                    "901");
            return;
        }
        try (CudaStream other = CudaStream.nonBlocking(device);
                CudaEvent event = CudaEvent.create(device)) {
            event.record(other);
            int[] numbers = new int[LENGTH];
            Map<String, ThrowingRunnable> calls = Map.of(
                    "a wait for a stream", stream::synchronize,
                    "a query of a stream", other::isDone,
                    "a wait for an event", event::synchronize,
                    "a query of an event", event::isDone,
                    "a fill", () -> buffer.fill(0),
                    "a copy that is done when it returns", () -> buffer.copyFrom(numbers),
                    "an allocation", () -> device.allocate(ElementType.INT32, 1));
            for (Map.Entry<String, ThrowingRunnable> call : calls.entrySet()) {
                checks.fails(
                        IllegalStateException.class,
                        () -> CudaGraph.capture(stream, call.getValue()::run),
                        "a thread that captures must not make " + call.getKey());
                checks.fails(
                        IllegalStateException.class,
                        () -> CudaGraph.capture(
                                stream,
                                () -> checks.fails(IllegalStateException.class, call.getValue()::run, call.getKey())),
                        "the capture failed: ",
                        call.getKey());
            }
        }
        checks.fails(
                NcclUsageException.class,
                () -> CudaGraph.capture(stream, () -> {
                    try (CudaStream side = CudaStream.nonBlocking(device);
                            CudaEvent fork = CudaEvent.create(device)) {
                        fork.record(stream);
                        side.waitFor(fork);
                        buffer.copyFromAsync(buffer.slice(0, LENGTH), side);
                        buffer.slice(0, 1).copyFromAsync(buffer.slice(1, 1), side);
                    }
                }),
                "does not wait for it");
    }

    private interface ThrowingRunnable {
        void run() throws Exception;
    }

    private void wrongUse() {
        checks.fails(NullPointerException.class, () -> CudaGraph.capture(null, () -> {}), "stream");
        for (long legacy = 0; legacy < 2; legacy++) {
            CudaStream standard = CudaStream.wrap(device, legacy);
            checks.isTrue(!standard.isCapturing(), "the default stream never captures");
            checks.fails(
                    IllegalArgumentException.class,
                    () -> CudaGraph.capture(standard, () -> {}),
                    "must not be the default stream",
                    "CudaStream.nonBlocking");
        }
        CudaStream closed = CudaStream.nonBlocking(device);
        closed.close();
        checks.fails(IllegalStateException.class, () -> CudaGraph.capture(closed, () -> {}), "is closed");
        checks.fails(IllegalStateException.class, closed::isCapturing, "is closed");
        try (CudaStream stream = CudaStream.nonBlocking(device);
                CudaStream hostStream = CudaStream.nonBlocking(Device.host())) {
            checks.fails(NullPointerException.class, () -> CudaGraph.capture(stream, null), "body");
            CudaGraph graph = CudaGraph.capture(stream, () -> {});
            checks.fails(NullPointerException.class, () -> graph.launch(null), "stream");
            if (device.isCuda()) {
                checks.fails(
                        IllegalArgumentException.class,
                        () -> graph.launch(hostStream),
                        "a stream of host memory, a graph of " + device);
            }
            checks.fails(IllegalStateException.class, () -> graph.launch(closed), "CudaStream", "is closed");
            graph.launch(stream);
            graph.close();
            graph.close();
            checks.isTrue(!graph.isOpen(), "closed");
            checks.fails(IllegalStateException.class, () -> graph.launch(stream), "CudaGraph", "is closed");
            checks.fails(IllegalStateException.class, graph::nativeHandle, "is closed");
        }
    }

    /** Buffers may be closed before the graph, and the graph before its launches are done. */
    private void closing() {
        try (DeviceBuffer<Int32> result = device.allocate(ElementType.INT32, LENGTH);
                CudaStream stream = CudaStream.nonBlocking(device)) {
            DeviceBuffer<Int32> pinned = device.allocatePinned(ElementType.INT32, LENGTH);
            DeviceBuffer<Int32> between = device.allocate(ElementType.INT32, LENGTH);
            pinned.fill(33);
            CudaGraph graph = CudaGraph.capture(stream, () -> {
                between.copyFromAsync(pinned, stream);
                result.slice(0, LENGTH).copyFromAsync(between, stream);
            });
            pinned.close();
            between.close();
            graph.launch(stream);
            stream.synchronize(LIMIT);
            checks.equal(33, numbers(result)[0], "launched after the buffers were closed");
            result.fill(0);
            graph.launch(stream);
            graph.close();
            stream.synchronize(LIMIT);
            checks.equal(33, numbers(result)[0], "closed while a launch is under way");
        }
    }

    /** Calls in other threads do no harm to a capture. */
    private void severalThreads() throws Exception {
        try (DeviceBuffer<Int32> buffer = device.allocate(ElementType.INT32, LENGTH);
                DeviceBuffer<Int32> other = device.allocate(ElementType.INT32, LENGTH);
                CudaStream stream = CudaStream.nonBlocking(device);
                CudaStream another = CudaStream.nonBlocking(device)) {
            other.fill(2);
            // Something in flight that the capturing thread must not ask about.
            other.slice(0, 10).copyFromAsync(other.slice(10, 10), another);
            Throwable[] failure = new Throwable[1];
            try (CudaGraph graph = CudaGraph.capture(stream, () -> {
                other.slice(0, 10).copyFromAsync(other.slice(10, 10), another);
                buffer.copyFromAsync(other, stream);
                Thread thread = new Thread(() -> {
                    try (DeviceBuffer<Int32> unrelated = device.allocate(ElementType.INT32, 10)) {
                        unrelated.copyFromAsync(other.slice(0, 10), another);
                        another.synchronize(LIMIT);
                        checks.equal(2, numbers(unrelated)[9], "a copy in another thread");
                    } catch (Throwable thrown) {
                        failure[0] = thrown;
                    }
                });
                thread.start();
                thread.join();
            })) {
                checks.equal(null, failure[0], "another thread");
                graph.launch(stream);
                stream.synchronize(LIMIT);
                checks.equal(2, numbers(buffer)[0], "launched");
                another.synchronize();
            }
        }
    }
}
