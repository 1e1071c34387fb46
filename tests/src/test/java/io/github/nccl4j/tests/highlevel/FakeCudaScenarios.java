package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.highlevel.CudaEvent;
import io.github.nccl4j.highlevel.CudaException;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import org.bytedeco.cuda.cudart.CUctx_st;
import org.bytedeco.cuda.cudart.CUevent_st;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.Pointer;

/** What runs in a JVM with the fake CUDA. */
final class FakeCudaScenarios {
    private static final Duration LIMIT = Duration.ofSeconds(20);

    private final Checks checks = new Checks();

    private FakeCudaScenarios() {}

    public static void main(String[] args) throws Exception {
        FakeCudaScenarios scenarios = new FakeCudaScenarios();
        switch (args[0]) {
            case "suite" -> scenarios.suite();
            case "devices" -> scenarios.devices();
            case "failures" -> scenarios.failures();
            case "identity" -> scenarios.identity();
            default -> throw new IllegalArgumentException(args[0]);
        }
        System.out.println(scenarios.checks.passed() + " checks passed");
    }

    private void suite() throws Exception {
        for (int index = 0; index < 2; index++) {
            Device device = Device.cuda(index);
            new BufferSuite(device, checks).all();
            System.out.println(checks.passed() + " checks passed on " + device);
        }
    }

    private void identity() {
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
        }

        @Override
        public void close() {
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
        Throwable[] failure = new Throwable[1];
        // The first thread has no device, as one that has never used CUDA.
        for (int current = -1; current < 2; current++) {
            int index = current;
            Thread thread = new Thread(() -> {
                try {
                    if (index >= 0) {
                        require(cudart.cudaSetDevice(index));
                    }
                    unchanged(index);
                } catch (Throwable thrown) {
                    failure[0] = thrown;
                }
            });
            thread.start();
            thread.join();
            if (failure[0] != null) {
                throw new AssertionError("with the current device " + current, failure[0]);
            }
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
                    checks.fails(CudaException.class, call.getValue());
                    fail("");
                    checks.equal(context, context(), "the context after a failure of " + call.getKey());
                }
                things.buffer.copyTo(ByteBuffer.allocateDirect(400));
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
}
