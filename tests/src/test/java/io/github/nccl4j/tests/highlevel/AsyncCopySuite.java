package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.highlevel.CudaEvent;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float16;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.tools.support.Checks;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.ReadOnlyBufferException;
import java.time.Duration;
import java.util.List;

/** What asynchronous copies and page-locked memory promise, on any device. */
final class AsyncCopySuite {
    private static final Duration LIMIT = Duration.ofSeconds(120);
    private static final int LENGTH = 100_003;

    private final Device device;
    private final Checks checks;

    AsyncCopySuite(Device device, Checks checks) {
        this.device = device;
        this.checks = checks;
    }

    void all() throws Exception {
        pinned();
        betweenBuffers();
        nioBuffers();
        closingInFlight();
        wrongCopies();
        wrongStreams();
        closed();
    }

    private static int[] counting(int first) {
        int[] numbers = new int[LENGTH];
        for (int i = 0; i < LENGTH; i++) {
            numbers[i] = first + i;
        }
        return numbers;
    }

    private static int[] numbers(DeviceBuffer<Int32> buffer) {
        int[] numbers = new int[(int) buffer.length()];
        buffer.copyTo(numbers);
        return numbers;
    }

    private void pinned() {
        try (DeviceBuffer<Int32> pinned = device.allocatePinned(ElementType.INT32, LENGTH);
                DeviceBuffer<Int32> empty = device.allocatePinned(ElementType.INT32, 0)) {
            checks.equal(Device.host(), pinned.device(), "where page-locked memory is");
            checks.isTrue(pinned.isOwner() && pinned.address() % 64 == 0, "owned and aligned");
            checks.equal(0L, empty.length(), "length");
            pinned.copyFrom(counting(5));
            checks.equal(counting(5), numbers(pinned), "page-locked memory");
            pinned.slice(1, 2).fill(9);
            checks.equal(9, numbers(pinned)[2], "filled");
        }
        checks.fails(
                IllegalArgumentException.class,
                () -> device.allocatePinned(ElementType.INT32, -1),
                "length must be >= 0: -1");
        checks.fails(NullPointerException.class, () -> device.allocatePinned(null, 1), "type");
    }

    private void betweenBuffers() {
        try (DeviceBuffer<Int32> pinned = device.allocatePinned(ElementType.INT32, LENGTH);
                DeviceBuffer<Int32> pageable = Device.host().allocate(ElementType.INT32, LENGTH);
                DeviceBuffer<Int32> one = device.allocate(ElementType.INT32, LENGTH);
                DeviceBuffer<Int32> two = device.allocate(ElementType.INT32, LENGTH);
                CudaStream first = CudaStream.nonBlocking(device);
                CudaStream second = CudaStream.blocking(device);
                CudaEvent copied = CudaEvent.create(device)) {
            pinned.copyFrom(counting(1));
            one.copyFromAsync(pinned, first);
            two.copyFromAsync(one, first);
            two.slice(0, 3).copyFromAsync(two.slice(10, 3), first);
            copied.record(first);
            second.waitFor(copied);
            pageable.copyFromAsync(two, second);
            second.synchronize(LIMIT);
            int[] expected = counting(1);
            System.arraycopy(expected, 10, expected, 0, 3);
            checks.equal(expected, numbers(pageable), "copied in the order of the streams");
            one.copyFromAsync(one, first);
            one.slice(4, 0).copyFromAsync(two.slice(3, 0), first);
            pinned.copyFromAsync(two, CudaStream.defaultOf(device));
            CudaStream.defaultOf(device).synchronize();
            checks.equal(expected, numbers(pinned), "on the default stream");
            first.synchronize();
        }
    }

    private void nioBuffers() {
        try (DeviceBuffer<Float32> buffer = device.allocate(ElementType.FLOAT32, 10);
                CudaStream stream = CudaStream.nonBlocking(device)) {
            buffer.fill(0);
            FloatBuffer floats = ByteBuffer.allocateDirect(40)
                    .order(ByteOrder.nativeOrder())
                    .asFloatBuffer()
                    .put(new float[] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
            buffer.slice(1, 5).copyFromAsync(floats.position(2).limit(6).asReadOnlyBuffer(), stream);
            buffer.slice(6, 4).copyFromAsync(floats.position(0).limit(4), stream);
            checks.equal(4, floats.position(), "position after copyFromAsync");
            ByteBuffer bytes =
                    ByteBuffer.allocateDirect(44).order(ByteOrder.nativeOrder()).position(4);
            buffer.copyToAsync(bytes, stream);
            checks.equal(44, bytes.position(), "position after copyToAsync");
            stream.synchronize(LIMIT);
            float[] back = new float[10];
            bytes.position(4)
                    .slice()
                    .order(ByteOrder.nativeOrder())
                    .asFloatBuffer()
                    .get(back);
            checks.equal(new float[] {0, 3, 4, 5, 6, 0, 1, 2, 3, 4}, back, "through direct buffers");
            buffer.copyFromAsync(ByteBuffer.allocateDirect(0).order(ByteOrder.nativeOrder()), stream);
        }
    }

    private void closingInFlight() {
        DeviceBuffer<Int32> result = device.allocate(ElementType.INT32, LENGTH);
        try (CudaStream stream = CudaStream.nonBlocking(device)) {
            DeviceBuffer<Int32> pinned = device.allocatePinned(ElementType.INT32, LENGTH);
            DeviceBuffer<Int32> between = device.allocate(ElementType.INT32, LENGTH);
            pinned.copyFrom(counting(77));
            between.copyFromAsync(pinned, stream);
            pinned.close();
            result.slice(0, LENGTH).copyFromAsync(between.slice(0, LENGTH), stream);
            between.close();
            stream.synchronize(LIMIT);
            checks.isTrue(!pinned.isOpen() && !between.isOpen(), "closed at once");
        }
        checks.equal(counting(77), numbers(result), "copied from buffers that were closed");
        result.close();
    }

    private void wrongCopies() {
        try (DeviceBuffer<Float32> buffer = device.allocate(ElementType.FLOAT32, 16);
                DeviceBuffer<Float16> half = device.allocate(ElementType.FLOAT16, 16);
                CudaStream stream = CudaStream.nonBlocking(device)) {
            checks.fails(
                    NullPointerException.class,
                    () -> buffer.copyFromAsync((DeviceBuffer<Float32>) null, stream),
                    "source");
            checks.fails(NullPointerException.class, () -> buffer.copyFromAsync((Buffer) null, stream), "source");
            checks.fails(NullPointerException.class, () -> buffer.copyToAsync(null, stream), "target");
            checks.fails(NullPointerException.class, () -> buffer.copyFromAsync(buffer, null), "stream");
            checks.fails(
                    NullPointerException.class, () -> buffer.copyToAsync(ByteBuffer.allocateDirect(4), null), "stream");
            checks.fails(
                    IllegalArgumentException.class,
                    () -> buffer.copyFromAsync(buffer.slice(0, 5), stream),
                    "source.length() must be length(): 5 != 16");
            checks.fails(
                    IllegalArgumentException.class,
                    () -> buffer.slice(0, 5).copyFromAsync(buffer.slice(4, 5), stream),
                    "buffers overlap without being the same");
            for (Buffer heap :
                    List.of(FloatBuffer.allocate(4), ByteBuffer.allocate(4).order(ByteOrder.nativeOrder()))) {
                checks.fails(
                        IllegalArgumentException.class,
                        () -> buffer.copyFromAsync(heap, stream),
                        "needs a direct buffer",
                        "garbage collector");
                checks.fails(IllegalArgumentException.class, () -> buffer.copyToAsync(heap, stream), "a direct buffer");
                checks.equal(0, heap.position(), "the position after a failure");
            }
            ByteBuffer direct = ByteBuffer.allocateDirect(80);
            checks.fails(
                    IllegalArgumentException.class,
                    () -> buffer.copyFromAsync(
                            direct.order(BufferSuite.foreignOrder())
                                    .asFloatBuffer()
                                    .limit(4),
                            stream),
                    "converts nothing",
                    ByteOrder.nativeOrder().toString());
            String message = "a ByteBuffer of float32 must have the byte order " + ByteOrder.nativeOrder() + ": "
                    + BufferSuite.foreignOrder();
            checks.fails(IllegalArgumentException.class, () -> buffer.copyFromAsync(direct, stream), message);
            checks.fails(IllegalArgumentException.class, () -> buffer.copyToAsync(direct, stream), message);
            direct.order(ByteOrder.nativeOrder());
            checks.fails(
                    IllegalArgumentException.class,
                    () -> half.copyToAsync(direct.asFloatBuffer().limit(4), stream),
                    "converts nothing",
                    "float16");
            IntBuffer ints = direct.asIntBuffer();
            checks.fails(IllegalArgumentException.class, () -> buffer.copyFromAsync(ints, stream), "float32", "int");
            checks.fails(
                    IllegalArgumentException.class,
                    () -> buffer.copyToAsync(
                            direct.duplicate().order(ByteOrder.nativeOrder()).limit(7), stream),
                    "7 % 4 != 0");
            checks.fails(
                    IndexOutOfBoundsException.class,
                    () -> buffer.copyFromAsync(direct, stream),
                    "offset + length must be <= length(): 0 + 20 > 16");
            checks.fails(ReadOnlyBufferException.class, () -> buffer.copyToAsync(direct.asReadOnlyBuffer(), stream));
        }
    }

    private void wrongStreams() {
        if (device.isHost()) {
            return;
        }
        try (DeviceBuffer<Int32> buffer = device.allocate(ElementType.INT32, 4);
                DeviceBuffer<Int32> host = Device.host().allocate(ElementType.INT32, 4);
                CudaStream hostStream = CudaStream.nonBlocking(Device.host());
                CudaStream stream = CudaStream.nonBlocking(device)) {
            checks.fails(
                    IllegalArgumentException.class,
                    () -> buffer.copyFromAsync(host, hostStream),
                    "a stream of host memory, a copy from host memory to " + device);
            checks.fails(
                    IllegalArgumentException.class,
                    () -> buffer.copyToAsync(ByteBuffer.allocateDirect(16), hostStream),
                    "a stream of host memory, a copy from " + device + " to host memory");
            checks.fails(
                    IllegalArgumentException.class,
                    () -> host.copyFromAsync(host, stream),
                    "a stream of " + device + ", a copy from host memory to host memory");
        }
    }

    private void closed() {
        DeviceBuffer<Int32> closed = device.allocate(ElementType.INT32, 4);
        DeviceBuffer<Int32> slice = closed.slice(0, 4);
        closed.close();
        CudaStream closedStream = CudaStream.nonBlocking(device);
        closedStream.close();
        try (DeviceBuffer<Int32> open = device.allocate(ElementType.INT32, 4);
                CudaStream stream = CudaStream.nonBlocking(device)) {
            ByteBuffer direct = ByteBuffer.allocateDirect(16);
            for (DeviceBuffer<Int32> buffer : List.of(closed, slice)) {
                checks.fails(
                        IllegalStateException.class, () -> open.copyFromAsync(buffer, stream), "int32", "is closed");
                checks.fails(IllegalStateException.class, () -> buffer.copyFromAsync(open, stream), "is closed");
                checks.fails(IllegalStateException.class, () -> buffer.copyFromAsync(direct, stream), "is closed");
                checks.fails(IllegalStateException.class, () -> buffer.copyToAsync(direct, stream), "is closed");
            }
            checks.fails(
                    IllegalStateException.class,
                    () -> open.copyFromAsync(open, closedStream),
                    "CudaStream",
                    "is closed");
            checks.fails(IllegalStateException.class, () -> open.copyToAsync(direct, closedStream), "is closed");
            checks.equal(0, direct.position(), "the position after a failure");
        }
    }
}
