package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.highlevel.CudaEvent;
import io.github.nccl4j.highlevel.CudaException;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.Element.Uint8;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.StreamTimeoutException;
import io.github.nccl4j.tools.support.Checks;
import java.time.Duration;
import org.bytedeco.cuda.cudart.CUctx_st;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.SizeTPointer;

/**
 * Checks buffers, streams and events on each CUDA device of the machine (two at most), without a test framework. Needs the
 * classes of the tests, the jars of nccl4j, javacpp and cuda with their natives, and a libnccl.
 */
public final class CudaBuffersCheck {
    private static final int CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9;
    private static final Duration LIMIT = Duration.ofSeconds(60);

    private final Checks checks = new Checks();

    private CudaBuffersCheck() {}

    /** Prints "N checks passed", or fails with the first that did not. */
    public static void main(String[] args) throws Exception {
        new CudaBuffersCheck().run();
    }

    private void run() throws Exception {
        int count = Device.cudaCount();
        System.out.println("CUDA devices: " + count);
        checks.isTrue(count > 0, "a CUDA device is there");
        devices(count);
        for (int index = 0; index < Math.min(2, count); index++) {
            Device device = Device.cuda(index);
            new BufferSuite(device, checks).all();
            new AsyncCopySuite(device, checks).all();
            new GraphSuite(device, checks).all();
            busyStream(device);
            wrongDevices(device);
            outOfMemory(device);
            System.out.println(device + ": " + checks.passed() + " checks so far");
        }
        if (count > 1) {
            twoDevices(Device.cuda(0), Device.cuda(1));
        } else {
            System.out.println("the checks of two devices were left out");
        }
        manyCycles(Device.cuda(0));
        System.out.println(checks.passed() + " checks passed");
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

    private void devices(int count) {
        checks.fails(IndexOutOfBoundsException.class, () -> Device.cuda(count), count + " >= " + count);
        checks.fails(IndexOutOfBoundsException.class, () -> Device.cuda(-1), "-1 < 0");
        Device device = Device.cuda(0);
        checks.isTrue(device.isCuda() && !device.isHost() && device.index() == 0, "kind and index");
        checks.equal(device, Device.cuda(0), "the same device");
        checks.equal(device.hashCode(), Device.cuda(0).hashCode(), "the same device's hash");
        checks.isTrue(!device.equals(Device.host()), "not host memory");
        checks.equal("CUDA device 0", device.toString(), "text");
        checks.equal(device, Device.current(), "the current device at the start");
    }

    /** Work that takes a while: memory set over and over. */
    private void busyStream(Device device) {
        long bytes = 4L << 30;
        try (DeviceBuffer<Uint8> buffer = device.allocate(ElementType.UINT8, bytes);
                CudaStream busy = CudaStream.nonBlocking(device);
                CudaStream waiting = CudaStream.nonBlocking(device);
                CudaEvent start = CudaEvent.timing(device);
                CudaEvent end = CudaEvent.timing(device)) {
            start.record(busy);
            launch(device, buffer.address(), bytes, busy, 300);
            end.record(busy);
            waiting.waitFor(end);
            checks.isTrue(!busy.isDone(), "the stream is busy");
            checks.equal(0, cudart.cudaPeekAtLastError(), "asking leaves no error for others");
            checks.isTrue(!end.isDone(), "the event is not done");
            checks.isTrue(!waiting.isDone(), "the stream that waits for the event is not done");
            StreamTimeoutException timeout = checks.fails(
                    StreamTimeoutException.class,
                    () -> busy.synchronize(Duration.ofMillis(20)),
                    "CudaStream",
                    "0.02 s");
            checks.equal(Duration.ofMillis(20), timeout.timeout(), "timeout");
            checks.fails(StreamTimeoutException.class, () -> busy.synchronize(Duration.ZERO), "0 s");
            checks.fails(StreamTimeoutException.class, () -> end.synchronize(Duration.ofMillis(5)), "CudaEvent");
            checks.fails(IllegalStateException.class, () -> end.elapsedSince(start), "is not done");
            Thread.currentThread().interrupt();
            end.synchronize(LIMIT);
            checks.isTrue(Thread.interrupted(), "the interrupt is kept");
            waiting.synchronize(LIMIT);
            busy.synchronize();
            checks.isTrue(busy.isDone() && waiting.isDone(), "the work is done");
            Duration elapsed = end.elapsedSince(start);
            checks.isTrue(elapsed.toMillis() > 20, "time of the work: " + elapsed);
            System.out.println(device + " was busy for " + elapsed.toMillis() + " ms");
            // Closing while the stream is busy: the buffer is freed after the work.
            launch(device, buffer.address(), bytes, busy, 20);
        }
    }

    private static void launch(Device device, long address, long bytes, CudaStream stream, int times) {
        int before = current();
        require(cudart.cudaSetDevice(device.index()));
        CUstream_st handle = new CUstream_st(at(stream.nativeHandle()));
        for (int i = 0; i < times; i++) {
            require(cudart.cudaMemsetAsync(at(address), i, bytes, handle));
        }
        require(cudart.cudaSetDevice(before));
    }

    private static Pointer at(long where) {
        return new Pointer() {
            {
                address = where;
            }
        };
    }

    private void wrongDevices(Device device) {
        try (CudaStream hostStream = CudaStream.nonBlocking(Device.host());
                CudaEvent hostEvent = CudaEvent.timing(Device.host());
                CudaStream stream = CudaStream.nonBlocking(device);
                CudaEvent event = CudaEvent.timing(device)) {
            checks.fails(IllegalArgumentException.class, () -> event.record(hostStream), "host memory", "CUDA device");
            checks.fails(IllegalArgumentException.class, () -> hostEvent.record(stream), "host memory", "CUDA device");
            checks.fails(IllegalArgumentException.class, () -> stream.waitFor(hostEvent), "host memory");
            checks.fails(IllegalArgumentException.class, () -> hostStream.waitFor(event), "host memory");
            checks.fails(IllegalArgumentException.class, () -> event.elapsedSince(hostEvent), "host memory");
        }
    }

    private void outOfMemory(Device device) {
        CudaException failure = checks.fails(
                CudaException.class,
                () -> device.allocate(ElementType.UINT8, 1L << 50),
                "cudaMalloc(" + (1L << 50) + ")",
                "cudaErrorMemoryAllocation",
                "out of memory");
        checks.equal(2, failure.code(), "code");
        checks.equal("cudaMalloc(" + (1L << 50) + ")", failure.call(), "call");
        checks.equal(0, cudart.cudaPeekAtLastError(), "the error is not left for others");
        try (DeviceBuffer<Int32> buffer = device.allocate(ElementType.INT32, 1)) {
            buffer.fill(1);
            checks.isTrue(buffer.isOpen(), "the device works after the failure");
        }
    }

    private void twoDevices(Device zero, Device one) throws Exception {
        checks.isTrue(!zero.equals(one), "devices differ");
        for (int current = 0; current < 2; current++) {
            require(cudart.cudaSetDevice(current));
            CUctx_st before = new CUctx_st();
            require(cudart.cuCtxGetCurrent(before));
            checks.equal(current, Device.current().index(), "the current device");
            for (Device device : new Device[] {zero, one}) {
                try (DeviceBuffer<Int32> buffer = device.allocate(ElementType.INT32, 100);
                        DeviceBuffer<Int32> window = device.allocateForWindow(ElementType.INT32, 100);
                        CudaStream stream = CudaStream.nonBlocking(device);
                        CudaEvent event = CudaEvent.timing(device)) {
                    buffer.fill(5);
                    window.copyFrom(buffer);
                    int[] back = new int[100];
                    window.copyTo(back);
                    event.record(stream);
                    stream.synchronize(LIMIT);
                    event.synchronize();
                    checks.equal(5, back[99], "element");
                    checks.equal(current, current(), "the current device, unchanged with " + device);
                    checks.equal(device.index(), deviceOf(buffer.address()), "where the buffer is");
                    checks.equal(device.index(), deviceOf(window.address()), "where the memory for windows is");
                }
                checks.fails(CudaException.class, () -> device.allocate(ElementType.UINT8, 1L << 50));
                checks.equal(current, current(), "the current device after closing and after a failure");
                CUctx_st after = new CUctx_st();
                require(cudart.cuCtxGetCurrent(after));
                checks.equal(before.address(), after.address(), "the current context");
            }
        }
        try (DeviceBuffer<Int32> from = zero.allocate(ElementType.INT32, 1000);
                DeviceBuffer<Int32> to = one.allocate(ElementType.INT32, 1000);
                CudaStream stream = CudaStream.nonBlocking(one);
                CudaStream foreign = CudaStream.nonBlocking(zero);
                CudaEvent event = CudaEvent.create(zero)) {
            from.fill(9);
            to.copyFrom(from);
            int[] back = new int[1000];
            to.copyTo(back);
            checks.equal(9, back[999], "copied from device to device");
            checks.fails(IllegalArgumentException.class, () -> event.record(stream), "CUDA device 1", "CUDA device 0");
            event.record(foreign);
            stream.waitFor(event);
            stream.synchronize(LIMIT);
            checks.isTrue(event.isDone(), "waited for an event of another device");
        }
        // A thread that has never used CUDA has no context before, and none after.
        Throwable[] failure = new Throwable[1];
        Thread thread = new Thread(() -> {
            try (DeviceBuffer<Int32> buffer = one.allocate(ElementType.INT32, 1)) {
                buffer.fill(1);
                CUctx_st after = new CUctx_st();
                require(cudart.cuCtxGetCurrent(after));
                checks.equal(0L, after.address(), "the context of a new thread");
                checks.equal(0, current(), "the current device of a new thread");
            } catch (Throwable thrown) {
                failure[0] = thrown;
            }
        });
        thread.start();
        thread.join();
        checks.equal(null, failure[0], "a thread that has never used CUDA");
        require(cudart.cudaSetDevice(0));
    }

    private static int deviceOf(long address) {
        try (IntPointer device = new IntPointer(1)) {
            require(cudart.cuPointerGetAttribute(device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address));
            return device.get();
        }
    }

    /** Streams, events and buffers that are closed leave nothing behind. */
    private void manyCycles(Device device) {
        long before = freeMemory(device);
        for (int i = 0; i < 2000; i++) {
            try (DeviceBuffer<Int32> buffer = device.allocate(ElementType.INT32, 1 << 20);
                    CudaStream stream = CudaStream.nonBlocking(device);
                    CudaEvent event = CudaEvent.create(device)) {
                event.record(stream);
                buffer.slice(0, 1).fill(i);
            }
        }
        long lost = before - freeMemory(device);
        checks.isTrue(lost < 64 << 20, "2000 buffers of 4 MiB were closed, and " + lost + " bytes are lost");
    }

    private static long freeMemory(Device device) {
        require(cudart.cudaSetDevice(device.index()));
        try (SizeTPointer free = new SizeTPointer(1);
                SizeTPointer total = new SizeTPointer(1)) {
            require(cudart.cudaMemGetInfo(free, total));
            return free.get();
        }
    }
}
