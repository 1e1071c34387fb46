package io.github.nccl4j.tests.highlevel;

import static io.github.nccl4j.tests.highlevel.MisuseWorld.disguised;

import io.github.nccl4j.highlevel.CudaEvent;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.FloatBuffer;
import java.nio.ReadOnlyBufferException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.bytedeco.javacpp.Pointer;

/** Buffers, streams, events and work. */
final class MemoryMisuses {
    private final List<Misuse> all = new ArrayList<>();

    private MemoryMisuses() {}

    static List<Misuse> all(boolean onHost) {
        MemoryMisuses table = new MemoryMisuses();
        table.allocating();
        table.closed();
        table.copying();
        table.streams(onHost);
        table.events(onHost);
        table.work();
        return table.all;
    }

    private void add(String name, Misuse.Body body) {
        all.add(new Misuse(name, false, body));
    }

    private void refused(String name, Class<? extends Throwable> type, Consumer<MisuseWorld> code, String... parts) {
        add(name, w -> w.refuses(type, () -> code.accept(w), parts));
    }

    private void allocating() {
        refused(
                "buffer: a negative length",
                IllegalArgumentException.class,
                w -> w.device.allocate(ElementType.FLOAT32, -1),
                "length must be >= 0: -1");
        refused(
                "buffer: a length beyond all memory",
                IllegalArgumentException.class,
                w -> w.device.allocate(ElementType.FLOAT64, Long.MAX_VALUE / 2),
                Long.MAX_VALUE / 2 + " * 8");
        refused("buffer: null as type", NullPointerException.class, w -> w.device.allocate(null, 1), "type");
        refused(
                "buffer for a window: a negative length",
                IllegalArgumentException.class,
                w -> w.device.allocateForWindow(ElementType.FLOAT32, -1),
                "length must be >= 0: -1");
        refused(
                "wrap memory: address 0",
                IllegalArgumentException.class,
                w -> DeviceBuffer.wrap(w.device, ElementType.FLOAT32, 0L, 1),
                "must not be 0");
        refused(
                "wrap memory: an address that is not aligned",
                IllegalArgumentException.class,
                w -> DeviceBuffer.wrap(w.device, ElementType.FLOAT64, 4, 1),
                "0x4 % 8 != 0");
        refused(
                "wrap memory: a negative length",
                IllegalArgumentException.class,
                w -> DeviceBuffer.wrap(w.device, ElementType.FLOAT32, 64, -5),
                "length must be >= 0: -5");
        refused(
                "wrap memory: an address that no process has",
                IllegalArgumentException.class,
                w -> DeviceBuffer.wrap(w.device, ElementType.FLOAT32, -64L, 1),
                "0xffffffffffffffc0");
        refused(
                "wrap memory: a length beyond the last address",
                IllegalArgumentException.class,
                w -> DeviceBuffer.wrap(w.device, ElementType.FLOAT32, 64, Long.MAX_VALUE / 4),
                "0x40 with " + Long.MAX_VALUE / 4 * 4);
        refused(
                "wrap memory: null as device",
                NullPointerException.class,
                w -> DeviceBuffer.wrap(null, ElementType.FLOAT32, 64, 1),
                "device");
        refused(
                "wrap memory: null as pointer",
                NullPointerException.class,
                w -> DeviceBuffer.wrap(w.device, ElementType.FLOAT32, (Pointer) null, 1),
                "pointer");
        refused(
                "slice: a negative offset",
                IndexOutOfBoundsException.class,
                w -> w.send.slice(-1, 2),
                "offset must be >= 0: -1");
        refused(
                "slice: a negative length",
                IndexOutOfBoundsException.class,
                w -> w.send.slice(1, -2),
                "length must be >= 0: -2");
        refused("slice: beyond the end", IndexOutOfBoundsException.class, w -> w.send.slice(7, 2), "7 + 2 > 8");
        refused(
                "slice: beyond every number",
                IndexOutOfBoundsException.class,
                w -> w.send.slice(Long.MAX_VALUE, Long.MAX_VALUE),
                Long.MAX_VALUE + " > 8");
    }

    private void closed(String name, Consumer<DeviceBuffer<Float32>> use) {
        refused(
                name + " of a closed buffer",
                IllegalStateException.class,
                w -> use.accept(w.closedFloats(3)),
                "DeviceBuffer of 3 float32",
                "is closed");
    }

    private void closed() {
        closed("slice", buffer -> buffer.slice(0, 1));
        closed("address", DeviceBuffer::address);
        closed("fill", buffer -> buffer.fill(1.0));
        closed("copyFrom", buffer -> buffer.copyFrom(new float[1]));
        closed("copyTo", buffer -> buffer.copyTo(new float[1]));
        add("a buffer that is closed twice, then used", w -> {
            DeviceBuffer<Float32> buffer = w.closedFloats(3);
            buffer.close();
            w.refuses(IllegalStateException.class, buffer::address, "is closed");
        });
    }

    private void copying() {
        refused("copy: null from", NullPointerException.class, w -> w.send.copyFrom((float[]) null), "source");
        refused("copy: null to", NullPointerException.class, w -> w.send.copyTo((float[]) null), "target");
        refused("copy: a longer array", IndexOutOfBoundsException.class, w -> w.send.copyFrom(new float[9]), "9 > 8");
        refused(
                "copy: into a longer array",
                IndexOutOfBoundsException.class,
                w -> w.send.copyTo(new float[9]),
                "9 > 8");
        refused(
                "copy: another type",
                IllegalArgumentException.class,
                w -> w.send.copyFrom(new double[1]),
                "float32",
                "double");
        refused(
                "copy: bytes into floats",
                IllegalArgumentException.class,
                w -> w.send.copyFrom(new byte[4]),
                "float32",
                "byte");
        refused(
                "copy: an array that is longer than a slice",
                IndexOutOfBoundsException.class,
                w -> w.send.slice(1, 2).copyFrom(new float[3]),
                "0 + 3 > 2");
        refused(
                "copy: a negative offset",
                IndexOutOfBoundsException.class,
                w -> w.send.copyTo(FloatBuffer.allocate(2), -1),
                "-1");
        refused(
                "copy: bytes that are no elements",
                IllegalArgumentException.class,
                w -> w.send.copyFrom(ByteBuffer.allocate(5)),
                "5 % 4 != 0");
        refused(
                "copy: characters",
                IllegalArgumentException.class,
                w -> w.send.copyFrom(CharBuffer.allocate(4)),
                "char");
        add("copy: into a buffer that can't be written", w -> {
            FloatBuffer target = FloatBuffer.allocate(2).asReadOnlyBuffer();
            w.refusesSilently(ReadOnlyBufferException.class, () -> w.send.copyTo(target));
        });
        refused(
                "copy: a buffer of another type",
                IllegalArgumentException.class,
                w -> w.send.copyFrom(disguised(w.later(w.device.allocate(ElementType.INT32, 8)))),
                "int32",
                "float32");
        refused(
                "copy: a buffer that overlaps",
                IllegalArgumentException.class,
                w -> w.send.slice(0, 4).copyFrom(w.send.slice(2, 4)),
                "overlap");
        refused(
                "fill: an integer type with a fraction",
                IllegalArgumentException.class,
                w -> w.later(w.device.allocate(ElementType.INT32, 2)).fill(0.5),
                "int32",
                "0.5");
        refused(
                "fill: a value out of range",
                IllegalArgumentException.class,
                w -> w.later(w.device.allocate(ElementType.UINT8, 2)).fill(256),
                "0 to 255: 256");
    }

    private void streams(boolean onHost) {
        refused("stream: null as device", NullPointerException.class, w -> CudaStream.nonBlocking(null), "device");
        refused("stream: default of null", NullPointerException.class, w -> CudaStream.defaultOf(null), "device");
        refused(
                "stream: a handle on host memory",
                IllegalArgumentException.class,
                w -> CudaStream.wrap(Device.host(), 7),
                "must be 0",
                "0x7");
        refused(
                "stream: synchronized when closed",
                IllegalStateException.class,
                w -> w.closedStream().synchronize(),
                "is closed");
        refused(
                "stream: asked when closed",
                IllegalStateException.class,
                w -> w.closedStream().isDone(),
                "is closed");
        refused(
                "stream: the handle when closed",
                IllegalStateException.class,
                w -> w.closedStream().nativeHandle(),
                "is closed");
        refused(
                "stream: a negative limit",
                IllegalArgumentException.class,
                w -> w.stream.synchronize(Duration.ofSeconds(-1)),
                ">= 0: -1 s");
        refused("stream: null as limit", NullPointerException.class, w -> w.stream.synchronize(null), "timeout");
        refused("stream: waits for null", NullPointerException.class, w -> w.stream.waitFor(null), "event");
        refused(
                "stream: waits for an event that was not recorded",
                IllegalStateException.class,
                w -> w.stream.waitFor(w.later(CudaEvent.create(w.device))),
                "was not recorded yet");
        add("the communicator's own stream is closed, then used", w -> {
            w.first.stream().close();
            w.refuses(IllegalStateException.class, () -> w.first.send(w.send, 1, w.first.stream()), "is closed");
            w.refuses(IllegalStateException.class, w.first::letDefaultStreamWait, "is closed");
        });
        if (!onHost) {
            refused(
                    "stream: waits for an event of host memory",
                    IllegalArgumentException.class,
                    w -> w.stream.waitFor(w.later(CudaEvent.create(Device.host()))),
                    "host memory",
                    "CUDA device 0");
        }
    }

    private void events(boolean onHost) {
        refused("event: null as device", NullPointerException.class, w -> CudaEvent.create(null), "device");
        refused(
                "event: recorded in null",
                NullPointerException.class,
                w -> w.later(CudaEvent.create(w.device)).record(null),
                "stream");
        refused(
                "event: recorded in a closed stream",
                IllegalStateException.class,
                w -> w.later(CudaEvent.create(w.device)).record(w.closedStream()),
                "is closed");
        refused(
                "event: asked before it was recorded",
                IllegalStateException.class,
                w -> w.later(CudaEvent.create(w.device)).isDone(),
                "was not recorded yet");
        refused(
                "event: synchronized before it was recorded",
                IllegalStateException.class,
                w -> w.later(CudaEvent.create(w.device)).synchronize(),
                "was not recorded yet");
        add("event: used when closed", w -> {
            CudaEvent event = CudaEvent.create(w.device);
            event.record(w.stream);
            event.close();
            w.refuses(IllegalStateException.class, () -> event.record(w.stream), "is closed");
            w.refuses(IllegalStateException.class, event::isDone, "is closed");
            w.refuses(IllegalStateException.class, () -> w.stream.waitFor(event), "is closed");
        });
        add("event: the time of one without", w -> {
            CudaEvent start = w.later(CudaEvent.create(w.device));
            CudaEvent end = w.later(CudaEvent.timing(w.device));
            w.refuses(IllegalStateException.class, () -> end.elapsedSince(start), "records no time");
        });
        if (!onHost) {
            refused(
                    "event: recorded in a stream of another device",
                    IllegalArgumentException.class,
                    w -> w.later(CudaEvent.create(w.device)).record(w.otherStream),
                    "CUDA device 1",
                    "CUDA device 0");
            refused(
                    "event: the time since one of another device",
                    IllegalArgumentException.class,
                    w -> w.later(CudaEvent.timing(w.device)).elapsedSince(w.later(CudaEvent.timing(w.otherDevice))),
                    "CUDA device 1",
                    "CUDA device 0");
        }
    }

    private void work() {
        refused(
                "work: a negative limit",
                IllegalArgumentException.class,
                w -> w.first.work(w.stream).await(Duration.ofNanos(-1)),
                "timeout must be >= 0");
        refused(
                "work: null as limit",
                NullPointerException.class,
                w -> w.first.work(w.stream).await(null),
                "timeout");
    }
}
