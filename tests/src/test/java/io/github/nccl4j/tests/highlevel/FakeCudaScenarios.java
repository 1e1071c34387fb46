package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.highlevel.CollectiveConfig;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaEvent;
import io.github.nccl4j.highlevel.CudaException;
import io.github.nccl4j.highlevel.CudaGraph;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.NcclInterruptedException;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.highlevel.Window;
import io.github.nccl4j.testing.TestLog;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tools.support.Checks;
import io.github.nccl4j.tools.support.CudaContexts;
import java.io.IOException;
import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.bytedeco.cuda.cudart.CUctx_st;
import org.bytedeco.cuda.cudart.CUevent_st;
import org.bytedeco.cuda.cudart.CUgraphExec_st;
import org.bytedeco.cuda.cudart.CUgraph_st;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.SizeTPointer;

/** What runs in a JVM with the fake CUDA. */
final class FakeCudaScenarios {
    private static final Duration LIMIT = Duration.ofSeconds(120);

    private final Checks checks = new Checks();

    private FakeCudaScenarios() {}

    public static void main(String[] args) throws Exception {
        FakeCudaScenarios scenarios = new FakeCudaScenarios();
        switch (args[0]) {
            case "suite" -> scenarios.suite();
            case "devices" -> scenarios.devices();
            case "failures" -> scenarios.failures();
            case "async" -> scenarios.async();
            case "graphs" -> scenarios.graphs();
            case "threads" -> scenarios.threads();
            case "identity" -> scenarios.identity();
            case "dropped" -> scenarios.dropped();
            case "operations" -> scenarios.operations();
            case "windows" -> scenarios.windows();
            case "waits" -> scenarios.waits(Path.of(args[1]));
            case "exit" -> scenarios.exit(Path.of(args[1]));
            default -> throw new IllegalArgumentException(args[0]);
        }
        System.out.println(scenarios.checks.passed() + " checks passed");
    }

    private void suite() throws Exception {
        for (int index = 0; index < 2; index++) {
            Device device = Device.cuda(index);
            new BufferSuite(device, checks).all();
            new AsyncCopySuite(device, checks).all();
            new GraphSuite(device, checks).all();
            System.out.println(checks.passed() + " checks passed on " + device);
        }
    }

    private void identity() {
        System.out.println(cudart.class.getProtectionDomain().getCodeSource().getLocation());
        checks.isTrue(Device.cuda(1) == Device.cuda(1), "one object for an index");
        checks.isTrue(Device.cuda(0) == Device.current(), "the current device is that object");
        checks.isTrue(!Device.cuda(0).equals(Device.cuda(1)), "devices differ");
    }

    /** What is alive while the calls below are made. */
    private final class Things implements AutoCloseable {
        final Device device;
        final DeviceBuffer<Int32> buffer;
        final DeviceBuffer<Int32> other;
        final CudaStream stream;
        final CudaEvent start;
        final CudaEvent end;
        final CudaGraph graph;
        final int[] numbers = new int[100];

        Things(Device device) {
            this.device = device;
            buffer = device.allocate(ElementType.INT32, numbers.length);
            other = device.allocate(ElementType.INT32, numbers.length);
            stream = CudaStream.nonBlocking(device);
            start = CudaEvent.timing(device);
            end = CudaEvent.timing(device);
            start.record(stream);
            end.record(stream);
            stream.synchronize();
            graph = CudaGraph.capture(stream, () -> buffer.copyFromAsync(other, stream));
        }

        @Override
        public void close() {
            graph.close();
            end.close();
            start.close();
            stream.close();
            other.close();
            buffer.close();
        }

        /** Each call of CUDA by its name, and something that makes it. */
        Map<String, Checks.Code> calls() {
            Map<String, Checks.Code> calls = new LinkedHashMap<>();
            calls.put("cuCtxPushCurrent", stream::synchronize);
            calls.put("cudaMalloc", () -> device.allocate(ElementType.INT32, 5).close());
            calls.put("cudaMemcpy", () -> buffer.copyFrom(numbers));
            calls.put("cudaMemcpyAsync", () -> buffer.copyFromAsync(other, stream));
            calls.put("cudaHostAlloc", () -> device.allocatePinned(ElementType.INT32, 5)
                    .close());
            calls.put("cudaMemset", () -> buffer.fill(0));
            calls.put("cudaStreamCreateWithFlags", () -> CudaStream.blocking(device)
                    .close());
            calls.put("cudaStreamSynchronize", stream::synchronize);
            calls.put("cudaStreamQuery", stream::isDone);
            calls.put("cudaStreamWaitEvent", () -> stream.waitFor(end));
            calls.put("cudaEventCreateWithFlags", () -> CudaEvent.create(device).close());
            calls.put("cudaEventRecord", () -> end.record(stream));
            calls.put("cudaEventSynchronize", end::synchronize);
            calls.put("cudaEventQuery", end::isDone);
            calls.put("cudaStreamIsCapturing", stream::isCapturing);
            calls.put("cudaStreamBeginCapture", () -> CudaGraph.capture(stream, () -> {})
                    .close());
            calls.put("cudaGraphInstantiateWithFlags", () -> CudaGraph.capture(stream, () -> {})
                    .close());
            calls.put("cudaGraphLaunch", () -> graph.launch(stream));
            calls.put("cudaEventElapsedTime", () -> {
                end.synchronize(LIMIT);
                end.elapsedSince(start);
            });
            return calls;
        }
    }

    private static long context() {
        CUctx_st context = new CUctx_st();
        require(cudart.cuCtxGetCurrent(context));
        return context.address();
    }

    private static int current() {
        int[] device = new int[1];
        require(cudart.cudaGetDevice(device));
        return device[0];
    }

    private static void require(int result) {
        if (result != 0) {
            throw new AssertionError("CUDA: " + result);
        }
    }

    private void devices() throws Exception {
        Device.cuda(0);
        // The first thread has no device, as one that has never used CUDA.
        for (int current = -1; current < 2; current++) {
            int index = current;
            inNewThread(() -> {
                if (index >= 0) {
                    require(cudart.cudaSetDevice(index));
                }
                unchanged(index);
            });
        }
    }

    private void unchanged(int current) throws Exception {
        long context = context();
        checks.equal(current < 0, context == 0, "a context before");
        for (int index = 0; index < 2; index++) {
            try (Things things = new Things(Device.cuda(index))) {
                checks.equal(context, context(), "the context after creating");
                for (Map.Entry<String, Checks.Code> call : things.calls().entrySet()) {
                    call.getValue().run();
                    checks.equal(context, context(), "the context after " + call.getKey());
                    fail(call.getKey() + "=719");
                    if (index == current && call.getKey().equals("cuCtxPushCurrent")) {
                        // Nothing is pushed over what is there.
                        call.getValue().run();
                    } else {
                        checks.fails(CudaException.class, call.getValue());
                    }
                    fail("");
                    checks.equal(context, context(), "the context after a failure of " + call.getKey());
                }
                things.buffer.copyTo(ByteBuffer.allocateDirect(400).order(ByteOrder.nativeOrder()));
                things.device.allocateForWindow(ElementType.INT32, 10).close();
                checks.equal(context, context(), "the context after memory for windows");
            }
            checks.equal(context, context(), "the context after closing");
            checks.equal(Math.max(0, current), current(), "the device");
        }
    }

    private static Pointer at(long where) {
        return new Pointer() {
            {
                address = where;
            }
        };
    }

    private static void fail(String rules) throws IOException {
        Files.writeString(Path.of(System.getProperty("fake.failures")), rules);
    }

    private void failures() throws Exception {
        try (Things things = new Things(Device.cuda(1))) {
            for (Map.Entry<String, Checks.Code> call : things.calls().entrySet()) {
                String name = call.getKey();
                fail(name + "=700");
                CudaException failure = checks.fails(CudaException.class, call.getValue(), name, "700");
                fail("");
                checks.equal(700, failure.code(), "code of " + name);
                checks.isTrue(failure.call().startsWith(name), failure.call());
                checks.equal(0, cudart.cudaPeekAtLastError(), "the error of " + name + " is not left for others");
                if (!name.startsWith("cu") || name.startsWith("cuda")) {
                    checks.isTrue(
                            failure.getMessage().contains("an illegal memory access was encountered"),
                            failure.getMessage());
                }
                call.getValue().run();
            }
            // Not now is no failure.
            things.end.record(things.stream);
            checks.isTrue(!things.stream.isDone(), "one operation was left");
            checks.equal(0, cudart.cudaPeekAtLastError(), "asking leaves no error for others");
            closing(things.device);
        }
        fail("cuDevicePrimaryCtxRetain=2");
        checks.fails(CudaException.class, () -> Device.cuda(0), "cuDevicePrimaryCtxRetain(0)");
        fail("");
        checks.equal(0, Device.cuda(0).index(), "a device that could not be used once");
    }

    /** What can't be freed is closed all the same, and is not freed twice. */
    private void closing(Device device) throws IOException {
        DeviceBuffer<Int32> buffer = device.allocate(ElementType.INT32, 1);
        CudaStream stream = CudaStream.nonBlocking(device);
        CudaEvent event = CudaEvent.create(device);
        long address = buffer.address();
        long streamHandle = stream.nativeHandle();
        long eventHandle = event.nativeHandle();
        fail("cudaFree=719,cudaStreamDestroy=719,cudaEventDestroy=719");
        checks.fails(CudaException.class, buffer::close, "cudaFree", "719");
        checks.fails(CudaException.class, stream::close, "cudaStreamDestroy", "719");
        checks.fails(CudaException.class, event::close, "cudaEventDestroy", "719");
        checks.isTrue(!buffer.isOpen() && !stream.isOpen() && !event.isOpen(), "closed");
        buffer.close();
        stream.close();
        event.close();
        // While the process ends, the driver has freed everything.
        fail("cudaFree=4");
        DeviceBuffer<Int32> last = device.allocate(ElementType.INT32, 1);
        long lastAddress = last.address();
        last.close();
        fail("");
        require(cudart.cudaSetDevice(device.index()));
        require(cudart.cudaFree(at(address)));
        require(cudart.cudaFree(at(lastAddress)));
        require(cudart.cudaStreamDestroy(new CUstream_st(at(streamHandle))));
        require(cudart.cudaEventDestroy(new CUevent_st(at(eventHandle))));
    }

    private void async() throws Exception {
        Device device = Device.cuda(1);
        int[] numbers = new int[1000];
        Arrays.fill(numbers, 7);
        int[] back = new int[1000];
        try (DeviceBuffer<Int32> target = device.allocate(ElementType.INT32, 1000);
                DeviceBuffer<Int32> host = Device.host().allocate(ElementType.INT32, 1000);
                CudaStream stream = CudaStream.nonBlocking(device);
                CudaStream other = CudaStream.nonBlocking(device)) {
            target.fill(1);
            DeviceBuffer<Int32> source = device.allocatePinned(ElementType.INT32, 1000);
            source.copyFrom(numbers);
            target.copyFromAsync(source, stream);
            target.copyTo(back);
            checks.equal(1, back[999], "the call only asks for the copy");
            host.copyFromAsync(target, stream);
            // Its memory is still wanted, and filled with something else when it is freed.
            source.close();
            checks.fails(IllegalStateException.class, () -> target.copyFromAsync(source, stream), "is closed");
            checks.isTrue(!stream.isDone(), "the copies are not done");
            other.synchronize();
            device.allocate(ElementType.INT32, 1).close();
            stream.synchronize(LIMIT);
            host.copyTo(back);
            checks.equal(numbers, back, "copied after the source was closed");
            outlives(target, stream);
            crossing(stream);
            // The stream is closed before its work is done, and the buffers, too.
            DeviceBuffer<Int32> last = Device.host().allocate(ElementType.INT32, 1000);
            CudaStream closed = CudaStream.nonBlocking(device);
            last.copyFromAsync(target, closed);
            closed.close();
            last.close();
        }
        fewEvents(device);
        failingCopies(device);
    }

    /** However many copies are under way in a stream, it needs two events, and what is done is released. */
    private void fewEvents(Device device) throws Exception {
        try (CudaStream stream = CudaStream.nonBlocking(device);
                DeviceBuffer<Int32> target = device.allocate(ElementType.INT32, 10)) {
            fail("cudaEventCreateWithFlags=719:3");
            copiesRelease(target, stream, () -> stream);
            fail("");
            copiesRelease(target, stream, () -> CudaStream.wrap(device, stream.nativeHandle()));
        }
    }

    private void copiesRelease(DeviceBuffer<Int32> target, CudaStream stream, Supplier<CudaStream> streams)
            throws Exception {
        WeakReference<ByteBuffer> first = null;
        for (int i = 0; i < 100; i++) {
            ByteBuffer source = ByteBuffer.allocateDirect(40).order(ByteOrder.nativeOrder());
            target.copyFromAsync(source, streams.get());
            if (i == 0) {
                first = new WeakReference<>(source);
            }
            // Each call that asks has the fake do one operation.
            stream.isDone();
            stream.isDone();
        }
        awaitCollected(first);
        checks.isTrue(first.get() == null, "the first copy's buffer is not kept");
        stream.synchronize();
    }

    private static void awaitCollected(WeakReference<?> reference) {
        Waiting.until("collection of an object", () -> {
            System.gc();
            return reference.get() == null;
        });
    }

    /** What only the copy refers to is not collected before it is done, but then. */
    private void outlives(DeviceBuffer<Int32> target, CudaStream stream) throws Exception {
        WeakReference<ByteBuffer> dropped = dropped(target, stream);
        for (int i = 0; i < 5; i++) {
            System.gc();
            Thread.sleep(20);
        }
        checks.isTrue(dropped.get() != null, "the buffer is kept");
        stream.synchronize();
        awaitCollected(dropped);
        checks.isTrue(dropped.get() == null, "the buffer is not kept any longer");
        int[] back = new int[1000];
        target.copyTo(back);
        checks.equal(11, back[999], "copied from a buffer that was dropped");
    }

    private static WeakReference<ByteBuffer> dropped(DeviceBuffer<Int32> target, CudaStream stream) {
        ByteBuffer source = ByteBuffer.allocateDirect(4000).order(ByteOrder.nativeOrder());
        for (int i = 0; i < 1000; i++) {
            source.putInt(4 * i, 11);
        }
        target.copyFromAsync(source, stream);
        return new WeakReference<>(source);
    }

    /** From device to device, in a stream of either. */
    private void crossing(CudaStream stream) throws Exception {
        try (DeviceBuffer<Int32> zero = Device.cuda(0).allocate(ElementType.INT32, 10);
                DeviceBuffer<Int32> one = Device.cuda(1).allocate(ElementType.INT32, 10);
                CudaStream onZero = CudaStream.nonBlocking(Device.cuda(0))) {
            int[] back = new int[10];
            zero.fill(5);
            one.copyFromAsync(zero, stream);
            stream.synchronize();
            one.fill(6);
            zero.copyFromAsync(one, onZero);
            onZero.synchronize();
            zero.copyTo(back);
            checks.equal(6, back[9], "from device to device");
            one.slice(0, 5).copyFromAsync(zero.slice(5, 5), stream);
            checks.fails(
                    IllegalArgumentException.class,
                    () -> zero.copyFromAsync(zero, stream),
                    "a stream of CUDA device 1, a copy from CUDA device 0 to CUDA device 0");
            checks.fails(
                    IllegalArgumentException.class,
                    () -> zero.copyFromAsync(ByteBuffer.allocateDirect(40), stream),
                    "a copy from host memory to CUDA device 0");
        }
    }

    /** A call that fails leaves no pin: what is closed is freed. */
    private void failingCopies(Device device) throws Exception {
        for (String call : new String[] {"cudaMemcpyAsync", "cudaEventCreateWithFlags", "cudaEventRecord"}) {
            try (CudaStream stream = CudaStream.nonBlocking(device);
                    DeviceBuffer<Int32> target = device.allocate(ElementType.INT32, 10);
                    DeviceBuffer<Int32> source = device.allocate(ElementType.INT32, 10)) {
                fail(call + "=719");
                checks.fails(CudaException.class, () -> target.copyFromAsync(source, stream), call);
                fail("");
            }
        }
    }

    /** NCCL itself does not wait for work that uses a window. */
    /** Ends the process while another thread creates a communicator. */
    private void exit(Path begun) {
        new Thread(() -> Communicator.builder().device(Device.cuda(0)).create(UniqueId.create(), 0, 1)).start();
        Waiting.until("the creation has begun", () -> Files.exists(begun));
        System.exit(0);
    }

    private void windows() {
        Device device = Device.cuda(1);
        int[] number = new int[1];
        try (Communicator communicator = Communicator.builder().device(device).create(UniqueId.create(), 0, 1);
                DeviceBuffer<Int32> memory = device.allocateForWindow(ElementType.INT32, 2048);
                DeviceBuffer<Int32> copy = device.allocatePinned(ElementType.INT32, 1);
                CudaStream stream = CudaStream.nonBlocking(device)) {
            // A window begins at a page.
            DeviceBuffer<Int32> buffer = memory.slice((-memory.address() & 4095) / 4, 1024);
            buffer.fill(21);
            copy.fill(0);
            Window window = communicator.registerWindow(buffer);
            // Each call that asks has the fake do one operation.
            for (int i = 0; i < 10; i++) {
                buffer.slice(1, 1).copyFromAsync(buffer.slice(0, 1), stream);
            }
            copy.copyFromAsync(buffer.slice(1, 1), stream);
            copy.copyTo(number);
            checks.equal(0, number[0], "the work is not done");
            window.close();
            copy.copyTo(number);
            checks.equal(21, number[0], "the work was done when the window was closed");
        }
    }

    private void graphs() throws Exception {
        Device device = Device.cuda(1);
        int[] numbers = new int[1000];
        try (DeviceBuffer<Int32> target = device.allocate(ElementType.INT32, 1000);
                CudaStream stream = CudaStream.nonBlocking(device)) {
            // Closed while a launch is not done: what the graph keeps is still wanted.
            DeviceBuffer<Int32> source = device.allocatePinned(ElementType.INT32, 1000);
            source.fill(21);
            target.fill(0);
            CudaGraph graph = CudaGraph.capture(stream, () -> target.copyFromAsync(source, stream));
            source.close();
            // Each call that asks has the fake do one operation.
            for (int i = 0; i < 10; i++) {
                target.slice(0, 1).copyFromAsync(target.slice(1, 1), stream);
            }
            graph.launch(stream);
            graph.launch(stream);
            graph.close();
            target.copyTo(numbers);
            checks.equal(0, numbers[999], "the launches are not done");
            stream.synchronize();
            target.copyTo(numbers);
            checks.equal(21, numbers[999], "the launches are done");
            checks.fails(
                    IllegalArgumentException.class,
                    () -> {
                        try (CudaGraph empty = CudaGraph.capture(stream, () -> {});
                                CudaStream zero = CudaStream.nonBlocking(Device.cuda(0))) {
                            empty.launch(zero);
                        }
                    },
                    "a stream of CUDA device 0, a graph of CUDA device 1");
            failingCaptures(device, stream);
        }
    }

    private void failingCaptures(Device device, CudaStream stream) throws Exception {
        CUgraph_st discarded = new CUgraph_st();
        require(cudart.cudaSetDevice(device.index()));
        CUstream_st handle = new CUstream_st(at(stream.nativeHandle()));
        fail("cudaStreamEndCapture=719");
        checks.fails(
                CudaException.class, () -> CudaGraph.capture(stream, () -> {}), "cudaStreamEndCapture failed", "719");
        fail("");
        require(cudart.cudaStreamEndCapture(handle, discarded));
        require(cudart.cudaGraphDestroy(discarded));
        CudaGraph graph = CudaGraph.capture(stream, () -> {});
        long executable = graph.nativeHandle();
        fail("cudaGraphExecDestroy=719");
        checks.fails(CudaException.class, graph::close, "cudaGraphExecDestroy", "719");
        checks.isTrue(!graph.isOpen(), "closed");
        graph.close();
        fail("");
        require(cudart.cudaGraphExecDestroy(new CUgraphExec_st(at(executable))));
        // A capture by other code.
        require(cudart.cudaStreamBeginCapture(handle, cudart.cudaStreamCaptureModeThreadLocal));
        checks.isTrue(stream.isCapturing(), "captured by other code");
        checks.fails(
                CudaException.class, () -> CudaGraph.capture(stream, () -> {}), "cudaStreamBeginCapture failed", "401");
        DeviceBuffer<Int32> buffer = DeviceBuffer.wrap(device, ElementType.INT32, 64, 0);
        buffer.copyFromAsync(buffer, stream);
        require(cudart.cudaStreamEndCapture(handle, discarded));
        require(cudart.cudaGraphDestroy(discarded));
        checks.isTrue(!stream.isCapturing(), "captured no more");
    }

    /** Copies, graphs, waiting and closing side by side; what is left at the end is counted. */
    private void threads() throws Exception {
        try (DeviceBuffer<Int32> shared = Device.cuda(0).allocate(ElementType.INT32, 100);
                CudaStream sharedStream = CudaStream.nonBlocking(Device.cuda(0))) {
            shared.fill(3);
            Throwable[] failures = new Throwable[4];
            Thread[] threads = new Thread[failures.length];
            for (int i = 0; i < threads.length; i++) {
                int index = i;
                threads[i] = new Thread(() -> {
                    try {
                        for (int n = 0; n < 100; n++) {
                            once(shared, index % 2 == 0 ? sharedStream : null);
                        }
                    } catch (Throwable thrown) {
                        failures[index] = thrown;
                    }
                });
                threads[i].start();
            }
            for (int i = 0; i < threads.length; i++) {
                threads[i].join();
                if (failures[i] != null) {
                    throw new AssertionError("in thread " + i, failures[i]);
                }
            }
            sharedStream.synchronize();
        }
    }

    private static void once(DeviceBuffer<Int32> shared, CudaStream sharedStream) {
        Device device = shared.device();
        CudaStream stream = sharedStream != null ? sharedStream : CudaStream.nonBlocking(device);
        DeviceBuffer<Int32> pinned = device.allocatePinned(ElementType.INT32, 100);
        DeviceBuffer<Int32> buffer = device.allocate(ElementType.INT32, 100);
        ByteBuffer direct = ByteBuffer.allocateDirect(400).order(ByteOrder.nativeOrder());
        pinned.fill(1);
        buffer.copyFromAsync(pinned, stream);
        pinned.close();
        buffer.copyFromAsync(shared, stream);
        buffer.copyToAsync(direct, stream);
        CudaGraph graph = null;
        if (sharedStream == null) {
            graph = CudaGraph.capture(stream, () -> buffer.copyFromAsync(shared, stream));
            graph.launch(stream);
        }
        buffer.close();
        stream.synchronize(LIMIT);
        if (direct.getInt(396) != 3) {
            throw new AssertionError("expected 3, was " + direct.getInt(396));
        }
        if (graph != null) {
            graph.launch(stream);
            graph.close();
            stream.close();
        }
    }

    /** Communicators of the second device: the first gets a context only if a thread of the user has set it. */
    private void operations() throws Exception {
        Device device = Device.cuda(1);
        inNewThread(() -> {
            checks.equal(0L, context(), "the context of a new thread");
            try (Communicator communicator =
                    Communicator.builder().device(device).create(UniqueId.create(), 0, 1)) {
                checks.equal(device.index(), current(), "the device after making a communicator");
                checks.isTrue(!CudaContexts.isOn(0), "the other device has no context");
                inNewThread(() -> {
                    reduce(communicator, false);
                    checks.equal(device.index(), current(), "the device of a thread that had none");
                });
                inNewThread(() -> {
                    reduce(communicator, true);
                    checks.equal(device.index(), current(), "the device of a thread that had none, after a group");
                });
                inNewThread(() -> {
                    Communicator.createAll(List.of(device)).get(0).close();
                    checks.equal(device.index(), current(), "the device of a thread that made communicators");
                });
                checks.isTrue(!CudaContexts.isOn(0), "the other device still has no context");
                inNewThread(() -> {
                    require(cudart.cudaSetDevice(0));
                    long before = context();
                    reduce(communicator, false);
                    reduce(communicator, true);
                    checks.equal(before, context(), "what the user has set");
                });
            }
        });
    }

    /** An operation on the device is not done while there is a file. */
    private void waits(Path hang) throws Exception {
        Device device = Device.cuda(0);
        Communicator communicator = Communicator.builder()
                .device(device)
                .deadline(Duration.ofMillis(50))
                .watchdog(false)
                .create(UniqueId.create(), 0, 1);
        DeviceBuffer<Int32> buffer = device.allocate(ElementType.INT32, 1);
        CudaStream nonBlocking = CudaStream.nonBlocking(device);
        CudaStream blocking = CudaStream.blocking(device);
        CudaStream defaults = CudaStream.defaultOf(device);
        CudaEvent event = CudaEvent.create(device);
        CudaGraph graph =
                CudaGraph.capture(nonBlocking, () -> communicator.allReduce(buffer, ReduceOp.SUM, nonBlocking));
        // The captured operation is in the log, although it was not run.
        nonBlocking.synchronize();

        Checks.Code onNonBlocking = () -> communicator.allReduce(buffer, ReduceOp.SUM, nonBlocking);
        Checks.Code onBlocking = () -> communicator.allReduce(buffer, ReduceOp.SUM, blocking);
        waits(hang, onNonBlocking, nonBlocking::synchronize);
        waits(hang, onBlocking, blocking::synchronize);
        waits(hang, onBlocking, defaults::synchronize);
        waits(hang, onBlocking, () -> buffer.copyTo(new int[1]));
        waits(hang, onBlocking, () -> buffer.copyFrom(new int[1]));
        waits(hang, onBlocking, () -> buffer.fill(1));
        waits(hang, onBlocking, () -> buffer.fill(0x01020304));
        waits(hang, () -> graph.launch(nonBlocking), nonBlocking::synchronize);
        Checks.Code recorded = () -> {
            onNonBlocking.run();
            event.record(nonBlocking);
        };
        waits(hang, recorded, event::synchronize);
        waits(
                hang,
                () -> {
                    recorded.run();
                    defaults.waitFor(event);
                },
                () -> buffer.copyTo(new int[1]));
        waits(
                hang,
                () -> {
                    communicator.allReduce(buffer, ReduceOp.SUM, communicator.stream());
                    communicator.letDefaultStreamWait();
                },
                () -> buffer.copyTo(new int[1]));

        try {
            communicator.close();
        } catch (NcclTimeoutException late) {
            // The deadline of the waits is that of ncclCommDestroy, too, and short for a loaded machine. The call
            // continues.
            String thread = "nccl4j ncclCommDestroy";
            Waiting.until("the end of the call", () -> Thread.getAllStackTraces().keySet().stream()
                    .noneMatch(one -> one.getName().equals(thread)));
        }
        for (AutoCloseable one : List.of(graph, event, blocking, nonBlocking, buffer)) {
            one.close();
        }
        interrupted(hang);
        closing(hang);
    }

    /** The deadline does not end the wait before, also on a machine that stalls. */
    private void interrupted(Path hang) throws Exception {
        Device device = Device.cuda(0);
        Communicator communicator = Communicator.builder()
                .device(device)
                .deadline(Waiting.LONG)
                .watchdog(false)
                .create(UniqueId.create(), 0, 1);
        try (DeviceBuffer<Int32> buffer = device.allocate(ElementType.INT32, 1);
                CudaStream stream = CudaStream.nonBlocking(device)) {
            Files.createFile(hang);
            communicator.allReduce(buffer, ReduceOp.SUM, stream);
            Thread.currentThread().interrupt();
            checks.fails(NcclInterruptedException.class, stream::synchronize, "was interrupted");
            checks.isTrue(Thread.interrupted(), "the interrupt status is kept");
            checks.equal(Communicator.State.ABORTED, communicator.state(), "state");
            checks.isTrue(!Files.exists(hang), "aborted");
        }
    }

    private void waits(Path hang, Checks.Code begin, Checks.Code wait) throws Exception {
        Files.createFile(hang);
        begin.run();
        checks.fails(NcclTimeoutException.class, wait, "ncclAllReduce of 1 int32");
        Files.delete(hang);
        wait.run();
    }

    /** CUDA frees memory when the device is idle. */
    private void closing(Path hang) throws Exception {
        Device device = Device.cuda(0);
        long before = freeMemory();
        try (Communicator communicator = Communicator.builder()
                .device(device)
                .deadline(Duration.ofSeconds(3))
                .watchdog(false)
                .create(UniqueId.create(), 0, 1)) {
            DeviceBuffer<Int32> buffer = device.allocate(ElementType.INT32, 1);
            DeviceBuffer<Int32> another = device.allocate(ElementType.INT32, 1);
            CudaStream stream = CudaStream.nonBlocking(device);
            Files.createFile(hang);
            communicator.allReduce(buffer, ReduceOp.SUM, stream);
            checks.fails(NcclTimeoutException.class, buffer::close, "ncclAllReduce of 1 int32");
            checks.isTrue(!buffer.isOpen(), "closed");
            // The device is known to be stalled.
            another.close();
            stream.close();
        }
        checks.isTrue(!Files.exists(hang), "closing a communicator with late work aborts it");
        // The thread that waits for the device frees the first buffer; this one may be ahead.
        Waiting.value("all memory free again", FakeCudaScenarios::freeMemory, now -> now == before);
    }

    private static long freeMemory() {
        try (SizeTPointer free = new SizeTPointer(1);
                SizeTPointer total = new SizeTPointer(1)) {
            if (cudart.cudaMemGetInfo(free, total) != 0) {
                throw new IllegalStateException("the amount of free memory is unknown");
            }
            return free.get();
        }
    }

    private static void reduce(Communicator communicator, boolean inGroup) {
        Device device = communicator.device();
        try (DeviceBuffer<Int32> buffer = device.allocate(ElementType.INT32, 1);
                CudaStream stream = CudaStream.nonBlocking(device);
                CudaEvent event = CudaEvent.create(device);
                Group group = inGroup ? Group.open() : null) {
            communicator.allReduce(buffer, ReduceOp.SUM, stream);
            CollectiveConfig ring = CollectiveConfig.algorithm("ring");
            communicator.allReduce(buffer, buffer, ReduceOp.SUM, stream, ring);
            CollectiveConfig withEvent =
                    ring.toBuilder().launchCompletionEvent(event).build();
            communicator.allReduce(buffer, buffer, ReduceOp.SUM, stream, withEvent);
            if (inGroup) {
                group.launch();
            }
        }
    }

    private static void inNewThread(Checks.Code body) throws Exception {
        Throwable[] failure = new Throwable[1];
        Thread thread = new Thread(() -> {
            try {
                body.run();
            } catch (Throwable thrown) {
                failure[0] = thrown;
            }
        });
        thread.start();
        thread.join();
        if (failure[0] != null) {
            throw new AssertionError("in a new thread", failure[0]);
        }
    }

    /** A communicator that nobody can reach any more. */
    private void dropped() throws InterruptedException {
        try (TestLog log = new TestLog()) {
            dropOne();
            Waiting.until("a line of the log", () -> {
                System.gc();
                return !log.records().isEmpty();
            });
            log.lines().forEach(System.out::println);
        }
    }

    private static void dropOne() {
        Communicator.builder().device(Device.cuda(0)).create(UniqueId.create(), 0, 1);
    }
}
