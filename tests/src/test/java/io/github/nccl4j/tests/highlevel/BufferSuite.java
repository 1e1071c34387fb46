package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.highlevel.CudaEvent;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.tools.support.Checks;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ReadOnlyBufferException;
import java.nio.ShortBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicReference;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.Pointer;

/** What buffers, streams and events promise, on any device. */
final class BufferSuite {
    private static final Duration LIMIT = Duration.ofSeconds(120);

    /** More than two chunks of any copy, and not a multiple of one. */
    private static final int LARGE = 2 * (1 << 20) + 3;

    private final Device device;
    private final Checks checks;

    BufferSuite(Device device, Checks checks) {
        this.device = device;
        this.checks = checks;
    }

    void all() throws Exception {
        types();
        bytesOfEveryType();
        carriers();
        arrays();
        smallFloats();
        buffers();
        fills();
        slices();
        betweenBuffers();
        wrapping();
        windowMemory();
        closing();
        streams();
        events();
        wrongBuffers();
        wrongCopies();
        wrongStreams();
    }

    private void types() {
        checks.equal(12, ElementType.values().size(), "types");
        int[] sizes = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
        for (int code = 0; code < sizes.length; code++) {
            ElementType<?> type = ElementType.values().get(code);
            checks.equal(code, type.nativeCode(), type + " code");
            checks.equal(DataType.of(code), type.dataType(), type + " data type");
            checks.equal(sizes[code], type.sizeInBytes(), type + " size");
        }
    }

    private void bytesOfEveryType() {
        for (ElementType<?> type : ElementType.values()) {
            for (int length : new int[] {0, 1, 1000, LARGE}) {
                bytes(type, length);
            }
        }
    }

    /** The byte order that is not this machine's. */
    static ByteOrder foreignOrder() {
        return ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN ? ByteOrder.LITTLE_ENDIAN : ByteOrder.BIG_ENDIAN;
    }

    /** Through heap and direct buffers, so that both ways of copying are taken. */
    private void bytes(ElementType<?> type, int length) {
        byte[] random = new byte[length * type.sizeInBytes()];
        new Random(length).nextBytes(random);
        try (DeviceBuffer<?> buffer = device.allocate(type, length)) {
            checks.equal((long) length, buffer.length(), "length");
            checks.equal((long) random.length, buffer.sizeInBytes(), "size");
            checks.isTrue(buffer.address() % 64 == 0, "alignment of 0x" + Long.toHexString(buffer.address()));
            ByteBuffer heap = ByteBuffer.wrap(random).order(ByteOrder.nativeOrder());
            buffer.copyFrom(heap);
            checks.equal(0, heap.remaining(), "what is left of the source");
            ByteBuffer direct = ByteBuffer.allocateDirect(random.length).order(ByteOrder.nativeOrder());
            buffer.copyTo(direct);
            checks.equal(0, direct.remaining(), "what is left of the target");
            checks.equal(ByteBuffer.wrap(random), direct.flip(), type + " to a direct buffer, " + length);
            buffer.fill(0);
            buffer.copyFrom(direct);
            byte[] back = new byte[random.length];
            buffer.copyTo(ByteBuffer.wrap(back).order(ByteOrder.nativeOrder()));
            checks.equal(random, back, type + " to an array, " + length);
        }
    }

    private void carriers() {
        for (ElementType<?> type : ElementType.values()) {
            try (DeviceBuffer<?> buffer = device.allocate(type, 10)) {
                switch (type.sizeInBytes()) {
                    case 1 -> {
                        byte[] values = {1, -2, 3, Byte.MIN_VALUE, Byte.MAX_VALUE};
                        buffer.copyFrom(values);
                        buffer.copyFrom(ByteBuffer.wrap(values, 1, 3), 5);
                        byte[] back = new byte[10];
                        buffer.copyTo(ByteBuffer.wrap(back, 1, 8));
                        checks.equal(new byte[] {0, 1, -2, 3, -128, 127, -2, 3, -128, 0}, back, type + " bytes");
                        byte[] whole = new byte[5];
                        buffer.copyTo(whole);
                        checks.equal(values, whole, type + " all bytes");
                    }
                    case 2 -> {
                        short[] values = {1, -2, 3, Short.MIN_VALUE, Short.MAX_VALUE};
                        buffer.copyFrom(values);
                        buffer.copyFrom(ShortBuffer.wrap(values, 1, 3), 5);
                        short[] back = new short[10];
                        buffer.copyTo(ShortBuffer.wrap(back, 1, 8));
                        checks.equal(
                                new short[] {0, 1, -2, 3, -32768, 32767, -2, 3, -32768, 0}, back, type + " shorts");
                        short[] whole = new short[5];
                        buffer.copyTo(whole);
                        checks.equal(values, whole, type + " all shorts");
                        order(buffer, ShortBuffer.wrap(values), 2);
                    }
                    default -> wide(buffer);
                }
            }
        }
    }

    private void arrays() {
        float[] floats = {1.5f, Float.NaN, -0.0f};
        double[] doubles = {Double.MIN_VALUE, -1};
        int[] ints = {Integer.MIN_VALUE, 7};
        long[] longs = {Long.MAX_VALUE};
        byte[] bytes = {-128, 127, 0};
        try (DeviceBuffer<Float32> ofFloats = device.copyOf(floats);
                DeviceBuffer<Element.Float64> ofDoubles = device.copyOf(doubles);
                DeviceBuffer<Int32> ofInts = device.copyOf(ints);
                DeviceBuffer<Element.Int64> ofLongs = device.copyOf(longs);
                DeviceBuffer<Element.Int8> ofBytes = device.copyOf(bytes);
                DeviceBuffer<Int32> ofNothing = device.copyOf(new int[0]);
                DeviceBuffer<Element.Bfloat16> small = device.allocate(ElementType.BFLOAT16, 2)) {
            checks.equal(device, ofFloats.device(), "device of a copy");
            checks.equal(floats, ofFloats.toFloatArray(), "floats of a copy");
            checks.equal(doubles, ofDoubles.toDoubleArray(), "doubles of a copy");
            checks.equal(ints, ofInts.toIntArray(), "ints of a copy");
            checks.equal(longs, ofLongs.toLongArray(), "longs of a copy");
            checks.equal(bytes, ofBytes.toByteArray(), "bytes of a copy");
            checks.equal(new int[0], ofNothing.toIntArray(), "copy of nothing");
            checks.equal(new float[] {-0.0f}, ofFloats.slice(2, 1).toFloatArray(), "array of a slice");
            small.fill(2.5);
            checks.equal(new float[] {2.5f, 2.5f}, small.toFloatArray(), "floats of bfloat16");
            checks.fails(IllegalArgumentException.class, ofInts::toFloatArray, "int32");
            checks.fails(NullPointerException.class, () -> device.copyOf((float[]) null), "source");
        }
        if (device.isHost()) {
            DeviceBuffer<Element.Int8> huge = DeviceBuffer.wrap(device, ElementType.INT8, 4096, 1L << 31);
            checks.fails(IllegalStateException.class, huge::toByteArray, "copy slices");
        }
    }

    private void wide(DeviceBuffer<?> buffer) {
        ElementType<?> type = buffer.type();
        if (type == ElementType.FLOAT32) {
            float[] values = {1.5f, -0.0f, Float.NaN, Float.MIN_VALUE, Float.NEGATIVE_INFINITY};
            buffer.copyFrom(values);
            buffer.copyFrom(FloatBuffer.wrap(values, 1, 3), 5);
            float[] back = new float[8];
            buffer.slice(0, 8).copyTo(back);
            checks.equal(values, Arrays.copyOf(back, 5), "floats");
            checks.equal(Arrays.copyOfRange(values, 1, 4), Arrays.copyOfRange(back, 5, 8), "floats at 5");
            order(buffer, FloatBuffer.wrap(values), 4);
        } else if (type == ElementType.FLOAT64) {
            double[] values = {1.5, -0.0, Double.NaN, Double.MIN_VALUE, Double.NEGATIVE_INFINITY};
            buffer.copyFrom(values);
            buffer.copyFrom(DoubleBuffer.wrap(values, 1, 3), 5);
            double[] back = new double[8];
            buffer.slice(0, 8).copyTo(back);
            checks.equal(values, Arrays.copyOf(back, 5), "doubles");
            checks.equal(Arrays.copyOfRange(values, 1, 4), Arrays.copyOfRange(back, 5, 8), "doubles at 5");
            order(buffer, DoubleBuffer.wrap(values), 8);
        } else if (type.sizeInBytes() == 4) {
            int[] values = {1, -2, 3, Integer.MIN_VALUE, Integer.MAX_VALUE};
            buffer.copyFrom(values);
            buffer.copyFrom(IntBuffer.wrap(values, 1, 3), 5);
            int[] back = new int[8];
            buffer.slice(0, 8).copyTo(back);
            checks.equal(values, Arrays.copyOf(back, 5), type + " ints");
            checks.equal(Arrays.copyOfRange(values, 1, 4), Arrays.copyOfRange(back, 5, 8), type + " ints at 5");
            order(buffer, IntBuffer.wrap(values), 4);
        } else {
            long[] values = {1, -2, 3, Long.MIN_VALUE, Long.MAX_VALUE};
            buffer.copyFrom(values);
            buffer.copyFrom(LongBuffer.wrap(values, 1, 3), 5);
            long[] back = new long[8];
            buffer.slice(0, 8).copyTo(back);
            checks.equal(values, Arrays.copyOf(back, 5), type + " longs");
            checks.equal(Arrays.copyOfRange(values, 1, 4), Arrays.copyOfRange(back, 5, 8), type + " longs at 5");
            order(buffer, LongBuffer.wrap(values), 8);
        }
    }

    /** Direct buffers in both byte orders, with a position and a limit. */
    private void order(DeviceBuffer<?> buffer, Buffer values, int size) {
        for (ByteOrder order : List.of(ByteOrder.LITTLE_ENDIAN, ByteOrder.BIG_ENDIAN)) {
            Buffer direct = view(ByteBuffer.allocateDirect(7 * size).order(order), values);
            put(direct.position(1).limit(6), values.duplicate());
            buffer.fill(0);
            buffer.copyFrom(direct.position(1), 3);
            checks.equal(6, direct.position(), "position after copyFrom");
            Buffer back = view(ByteBuffer.allocateDirect(7 * size).order(order), values);
            buffer.copyTo(back.position(2), 3);
            checks.equal(values, back.position(2), buffer.type() + " in " + order);
        }
    }

    private static Buffer view(ByteBuffer bytes, Buffer like) {
        if (like instanceof ShortBuffer) {
            return bytes.asShortBuffer();
        } else if (like instanceof IntBuffer) {
            return bytes.asIntBuffer();
        } else if (like instanceof LongBuffer) {
            return bytes.asLongBuffer();
        } else if (like instanceof FloatBuffer) {
            return bytes.asFloatBuffer();
        }
        return bytes.asDoubleBuffer();
    }

    private static void put(Buffer target, Buffer source) {
        if (target instanceof ShortBuffer shorts) {
            shorts.put((ShortBuffer) source);
        } else if (target instanceof IntBuffer ints) {
            ints.put((IntBuffer) source);
        } else if (target instanceof LongBuffer longs) {
            longs.put((LongBuffer) source);
        } else if (target instanceof FloatBuffer floats) {
            floats.put((FloatBuffer) source);
        } else {
            ((DoubleBuffer) target).put((DoubleBuffer) source);
        }
    }

    private void smallFloats() {
        float[] numbers = {0, 1, -1.5f, 448, 0.25f, -0.0f};
        for (ElementType<?> type : ElementType.values()) {
            if (!type.isFloat() || type.sizeInBytes() > 2) {
                continue;
            }
            try (DeviceBuffer<?> buffer = device.allocate(type, LARGE)) {
                buffer.slice(LARGE - 6, 6).copyFrom(numbers);
                float[] back = new float[6];
                buffer.slice(LARGE - 6, 6).copyTo(back);
                checks.equal(numbers, back, type + " numbers");
                buffer.copyFrom(new float[] {Float.NaN, 1e30f, Float.NEGATIVE_INFINITY});
                buffer.copyTo(FloatBuffer.wrap(back, 0, 3));
                checks.isTrue(Float.isNaN(back[0]), type + " NaN");
                if (type == ElementType.FLOAT8E4M3) {
                    checks.equal(448f, back[1], type + " saturates");
                    checks.equal(-448f, back[2], type + " saturates infinity");
                } else if (type == ElementType.BFLOAT16) {
                    checks.isTrue(Math.abs(back[1] / 1e30f - 1) < 0.004, type + " keeps the range of float");
                } else {
                    checks.equal(Float.POSITIVE_INFINITY, back[1], type + " overflows");
                    checks.equal(Float.NEGATIVE_INFINITY, back[2], type + " infinity");
                }
                float[] large = new float[LARGE];
                for (int i = 0; i < LARGE; i++) {
                    large[i] = i % 8;
                }
                buffer.copyFrom(large);
                float[] largeBack = new float[LARGE];
                buffer.copyTo(largeBack);
                checks.equal(large, largeBack, type + " large");
            }
        }
    }

    private void buffers() {
        try (DeviceBuffer<Float32> buffer = device.allocate(ElementType.FLOAT32, 12)) {
            checks.equal(device, buffer.device(), "device");
            checks.equal(ElementType.FLOAT32, buffer.type(), "type");
            checks.isTrue(buffer.isOwner() && buffer.isOpen(), "owner and open");
            checks.equal("DeviceBuffer of 12 float32 on " + device, buffer.toString(), "text");
        }
    }

    private void fills() {
        for (ElementType<?> type : ElementType.values()) {
            for (int length : new int[] {0, 1, 5, 100_001}) {
                try (DeviceBuffer<?> buffer = device.allocate(type, length)) {
                    byte[] expected = new byte[length * type.sizeInBytes()];
                    byte[] pattern = pattern(type);
                    for (int i = 0; i < expected.length; i++) {
                        expected[i] = pattern[i % pattern.length];
                    }
                    buffer.fill(3);
                    byte[] back = new byte[expected.length];
                    buffer.copyTo(ByteBuffer.wrap(back).order(ByteOrder.nativeOrder()));
                    checks.equal(expected, back, type + " filled with 3, " + length);
                    if (type.isFloat()) {
                        buffer.fill(0);
                        buffer.fill(3.0);
                        buffer.copyTo(ByteBuffer.wrap(back).order(ByteOrder.nativeOrder()));
                        checks.equal(expected, back, type + " filled with 3.0, " + length);
                    }
                }
            }
        }
        long[] one = new long[1];
        try (DeviceBuffer<?> buffer = device.allocate(ElementType.UINT64, 1)) {
            buffer.fill(-1);
            buffer.copyTo(one);
            checks.equal(-1L, one[0], "all bits of uint64");
        }
    }

    /** The number 3 in each type, in the byte order of the machine. */
    private static byte[] pattern(ElementType<?> type) {
        ByteBuffer bytes = ByteBuffer.allocate(type.sizeInBytes()).order(ByteOrder.nativeOrder());
        switch (type.toString()) {
            case "float16" -> bytes.putShort((short) 0x4200);
            case "bfloat16" -> bytes.putShort((short) 0x4040);
            case "float8e4m3" -> bytes.put((byte) 0x44);
            case "float8e5m2" -> bytes.put((byte) 0x42);
            case "float32" -> bytes.putFloat(3);
            case "float64" -> bytes.putDouble(3);
            case "int32", "uint32" -> bytes.putInt(3);
            case "int64", "uint64" -> bytes.putLong(3);
            default -> bytes.put((byte) 3);
        }
        return bytes.array();
    }

    private void slices() {
        try (DeviceBuffer<Int32> buffer = device.allocate(ElementType.INT32, 10)) {
            buffer.fill(7);
            DeviceBuffer<Int32> slice = buffer.slice(2, 5);
            checks.equal(5L, slice.length(), "slice's length");
            checks.equal(buffer.address() + 8, slice.address(), "slice's address");
            checks.isTrue(!slice.isOwner(), "a slice owns nothing");
            slice.fill(1);
            DeviceBuffer<Int32> inner = slice.slice(1, 2);
            inner.fill(2);
            int[] back = new int[10];
            buffer.copyTo(back);
            checks.equal(new int[] {7, 7, 1, 2, 2, 1, 1, 7, 7, 7}, back, "written through slices");
            checks.equal(0L, buffer.slice(10, 0).length(), "empty slice at the end");
            checks.equal(0L, slice.slice(5, 0).length(), "empty slice at the end of a slice");
            checks.fails(IndexOutOfBoundsException.class, () -> slice.slice(4, 2), "4", "2", "5");
            slice.close();
            checks.isTrue(buffer.isOpen() && !slice.isOpen() && !inner.isOpen(), "closing a slice");
            checks.fails(IllegalStateException.class, () -> inner.fill(1), "is closed");
        }
    }

    private void betweenBuffers() {
        try (DeviceBuffer<Int32> one = device.allocate(ElementType.INT32, 6);
                DeviceBuffer<Int32> two = device.allocate(ElementType.INT32, 6);
                DeviceBuffer<Int32> host = Device.host().allocate(ElementType.INT32, 6)) {
            one.copyFrom(new int[] {1, 2, 3, 4, 5, 6});
            two.copyFrom(one);
            host.copyFrom(two);
            host.slice(0, 3).copyFrom(host.slice(3, 3));
            one.copyFrom(host);
            one.copyFrom(one);
            int[] back = new int[6];
            one.copyTo(back);
            checks.equal(new int[] {4, 5, 6, 4, 5, 6}, back, "from buffer to buffer");
            checks.fails(
                    IllegalArgumentException.class,
                    () -> one.slice(0, 4).copyFrom(one.slice(1, 4)),
                    "buffers overlap without being the same");
            checks.fails(
                    IllegalArgumentException.class, () -> one.copyFrom(two.slice(0, 5)), "source.length()", "5 != 6");
            checks.fails(NullPointerException.class, () -> one.copyFrom((DeviceBuffer<Int32>) null), "source");
        }
    }

    private void wrapping() {
        try (DeviceBuffer<Float32> owner = device.allocate(ElementType.FLOAT32, 4)) {
            owner.fill(1);
            DeviceBuffer<Float32> foreign = DeviceBuffer.wrap(device, ElementType.FLOAT32, owner.address() + 4, 2);
            foreign.fill(2);
            foreign.close();
            checks.isTrue(!foreign.isOwner() && !foreign.isOpen(), "wrapped memory is not owned");
            float[] back = new float[4];
            owner.copyTo(back);
            checks.equal(new float[] {1, 2, 2, 1}, back, "written through a wrapped address");
            checks.fails(
                    IllegalArgumentException.class,
                    () -> DeviceBuffer.wrap(device, ElementType.FLOAT32, owner.address() + 2, 1),
                    "multiple of the size of float32");
        }
        checks.fails(
                IllegalArgumentException.class,
                () -> DeviceBuffer.wrap(device, ElementType.FLOAT32, 0, 1),
                "address must not be 0");
        checks.fails(
                IllegalArgumentException.class,
                () -> DeviceBuffer.wrap(device, ElementType.FLOAT32, 64, -1),
                "length must be >= 0: -1");
        checks.fails(NullPointerException.class, () -> DeviceBuffer.wrap(null, ElementType.FLOAT32, 64, 1), "device");
        checks.fails(NullPointerException.class, () -> DeviceBuffer.wrap(device, null, 64, 1), "type");
        checks.fails(
                NullPointerException.class,
                () -> DeviceBuffer.wrap(device, ElementType.FLOAT32, (Pointer) null, 1),
                "pointer");
        checks.fails(
                IllegalArgumentException.class,
                () -> DeviceBuffer.wrap(device, ElementType.FLOAT32, new Pointer(), 1),
                "NULL");
        try (FloatPointer pointer = new FloatPointer(1, 2, 3, 4)) {
            DeviceBuffer<Float32> wrapped =
                    DeviceBuffer.wrap(Device.host(), ElementType.FLOAT32, pointer.position(1), 3);
            float[] back = new float[3];
            wrapped.copyTo(back);
            checks.equal(new float[] {2, 3, 4}, back, "a pointer's memory, from its position");
            checks.fails(
                    IndexOutOfBoundsException.class,
                    () -> DeviceBuffer.wrap(Device.host(), ElementType.FLOAT32, pointer, 4),
                    "4 * 4 > 12");
        }
    }

    private void windowMemory() {
        try (DeviceBuffer<Float32> buffer = device.allocateForWindow(ElementType.FLOAT32, 100)) {
            buffer.fill(2.5);
            float[] back = new float[100];
            buffer.copyTo(back);
            float[] expected = new float[100];
            Arrays.fill(expected, 2.5f);
            checks.equal(expected, back, "memory for windows");
            // Where the driver can't share memory between processes, NCCL takes that of cudaMalloc.
            int alignment = device.isHost() ? 4096 : 256;
            checks.isTrue(buffer.isOwner() && buffer.address() % alignment == 0, "owned and aligned");
        }
        checks.fails(
                IllegalArgumentException.class,
                () -> device.allocateForWindow(ElementType.FLOAT32, -1),
                "length must be >= 0: -1");
        Device other = device.isCuda() ? Device.host() : null;
        if (other != null) {
            checks.fails(
                    IllegalStateException.class,
                    () -> other.allocateForWindow(ElementType.FLOAT32, 1),
                    "host memory",
                    "is not the host engine");
        }
    }

    private void closing() throws Exception {
        for (int round = 0; round < 50; round++) {
            DeviceBuffer<Float32> buffer = device.allocate(ElementType.FLOAT32, 1000);
            DeviceBuffer<Float32> slice = buffer.slice(0, 10);
            AtomicReference<Throwable> failure = new AtomicReference<>();
            CyclicBarrier barrier = new CyclicBarrier(4);
            Thread[] threads = new Thread[4];
            for (int i = 0; i < threads.length; i++) {
                boolean closes = i < 2;
                threads[i] = new Thread(() -> {
                    try {
                        barrier.await();
                        if (closes) {
                            buffer.close();
                        } else {
                            for (int n = 0; n < 100; n++) {
                                slice.fill(n);
                            }
                        }
                    } catch (IllegalStateException closed) {
                        // What a use after the closing gets.
                    } catch (Throwable thrown) {
                        failure.set(thrown);
                    }
                });
                threads[i].start();
            }
            for (Thread thread : threads) {
                thread.join();
            }
            checks.equal(null, failure.get(), "closing in two threads while two others use the buffer");
            buffer.close();
            checks.isTrue(!buffer.isOpen() && !slice.isOpen(), "closed");
        }
        DeviceBuffer<Float32> closed = device.allocate(ElementType.FLOAT32, 4);
        DeviceBuffer<Float32> slice = closed.slice(1, 2);
        closed.close();
        for (DeviceBuffer<Float32> buffer : List.of(closed, slice)) {
            checks.fails(IllegalStateException.class, buffer::address, "float32", "is closed");
            checks.fails(IllegalStateException.class, () -> buffer.fill(1), "is closed");
            checks.fails(IllegalStateException.class, () -> buffer.fill(1.5), "is closed");
            checks.fails(IllegalStateException.class, () -> buffer.slice(0, 1), "is closed");
            checks.fails(IllegalStateException.class, () -> buffer.copyFrom(new float[1]), "is closed");
            checks.fails(IllegalStateException.class, () -> buffer.copyTo(new float[1]), "is closed");
            checks.fails(IllegalStateException.class, () -> buffer.copyFrom(FloatBuffer.allocate(1)), "is closed");
            checks.fails(IllegalStateException.class, () -> buffer.copyTo(FloatBuffer.allocate(1)), "is closed");
            try (DeviceBuffer<Float32> open = device.allocate(ElementType.FLOAT32, buffer.length())) {
                checks.fails(IllegalStateException.class, () -> open.copyFrom(buffer), "is closed");
                checks.fails(IllegalStateException.class, () -> buffer.copyFrom(open), "is closed");
            }
        }
    }

    private void streams() {
        CudaStream closed;
        try (CudaStream stream = CudaStream.nonBlocking(device);
                CudaStream blocking = CudaStream.blocking(device);
                CudaStream standard = CudaStream.defaultOf(device)) {
            CudaStream foreign = CudaStream.wrap(device, stream.nativeHandle());
            for (CudaStream each : List.of(stream, blocking, standard, foreign)) {
                checks.equal(device, each.device(), "stream's device");
                each.synchronize();
                each.synchronize(LIMIT);
                each.synchronize(Duration.ZERO);
                each.synchronize(Duration.ofSeconds(Long.MAX_VALUE));
                checks.isTrue(each.isDone() && each.isOpen(), "nothing is in the stream");
            }
            checks.equal(0L, standard.nativeHandle(), "default stream's handle");
            checks.isTrue(stream.nativeHandle() != 0, "stream's handle");
            foreign.close();
            stream.synchronize();
            closed = stream;
        }
        closed.close();
        checks.fails(IllegalStateException.class, closed::nativeHandle, "CudaStream", "is closed");
        checks.fails(IllegalStateException.class, closed::synchronize, "is closed");
        checks.fails(IllegalStateException.class, () -> closed.synchronize(LIMIT), "is closed");
        checks.fails(IllegalStateException.class, closed::isDone, "is closed");
    }

    private void events() {
        CudaEvent closed;
        try (CudaStream one = CudaStream.nonBlocking(device);
                CudaStream two = CudaStream.nonBlocking(device);
                CudaEvent start = CudaEvent.timing(device);
                CudaEvent end = CudaEvent.timing(device);
                CudaEvent plain = CudaEvent.create(device)) {
            checks.fails(IllegalStateException.class, start::isDone, "was not recorded yet");
            checks.fails(IllegalStateException.class, start::synchronize, "was not recorded yet");
            checks.fails(IllegalStateException.class, () -> start.synchronize(LIMIT), "was not recorded yet");
            checks.fails(IllegalStateException.class, () -> end.elapsedSince(start), "was not recorded yet");
            checks.fails(IllegalStateException.class, () -> two.waitFor(start), "was not recorded yet");
            start.record(one);
            plain.record(one);
            two.waitFor(plain);
            end.record(two);
            end.synchronize(LIMIT);
            plain.synchronize();
            checks.isTrue(start.isDone() && end.isDone() && plain.isDone(), "events are done");
            Duration elapsed = end.elapsedSince(start);
            checks.isTrue(!elapsed.isNegative() && elapsed.compareTo(LIMIT) < 0, "elapsed: " + elapsed);
            checks.isTrue(start.elapsedSince(end).plus(elapsed).abs().toMillis() == 0, "elapsed, turned round");
            checks.fails(IllegalStateException.class, () -> plain.elapsedSince(start), "records no time");
            checks.fails(IllegalStateException.class, () -> end.elapsedSince(plain), "records no time");
            checks.fails(NullPointerException.class, () -> end.elapsedSince(null), "start");
            checks.isTrue(end.nativeHandle() != 0, "event's handle");
            closed = plain;
        }
        closed.close();
        checks.fails(IllegalStateException.class, closed::isDone, "CudaEvent", "is closed");
        checks.fails(IllegalStateException.class, closed::synchronize, "is closed");
        checks.fails(IllegalStateException.class, closed::nativeHandle, "is closed");
        try (CudaStream stream = CudaStream.nonBlocking(device)) {
            checks.fails(IllegalStateException.class, () -> closed.record(stream), "is closed");
            checks.fails(IllegalStateException.class, () -> stream.waitFor(closed), "is closed");
        }
    }

    private void wrongBuffers() {
        checks.fails(
                IllegalArgumentException.class, () -> device.allocate(ElementType.INT8, -1), "length must be >= 0: -1");
        checks.fails(
                IllegalArgumentException.class,
                () -> device.allocate(ElementType.FLOAT64, Long.MAX_VALUE / 8 + 1),
                Long.MAX_VALUE / 8 + 1 + " * 8");
        checks.fails(NullPointerException.class, () -> device.allocate(null, 1), "type");
        checks.fails(NullPointerException.class, () -> device.allocateForWindow(null, 1), "type");
        try (DeviceBuffer<Int32> buffer = device.allocate(ElementType.INT32, 16)) {
            checks.fails(IndexOutOfBoundsException.class, () -> buffer.slice(-1, 1), "offset must be >= 0: -1");
            checks.fails(IndexOutOfBoundsException.class, () -> buffer.slice(0, -1), "length must be >= 0: -1");
            checks.fails(
                    IndexOutOfBoundsException.class,
                    () -> buffer.slice(12, 5),
                    "offset + length must be <= length(): 12 + 5 > 16");
            checks.fails(
                    IndexOutOfBoundsException.class, () -> buffer.slice(1, Long.MAX_VALUE), "1 + " + Long.MAX_VALUE);
            checks.fails(IndexOutOfBoundsException.class, () -> buffer.slice(17, 0), "17 + 0 > 16");
            checks.fails(IllegalArgumentException.class, () -> buffer.fill(1.5), "int32 has integers only: 1.5");
            checks.fails(IllegalArgumentException.class, () -> buffer.fill(1L << 31), "-2147483648 to 2147483647");
        }
        try (DeviceBuffer<?> buffer = device.allocate(ElementType.UINT8, 1)) {
            checks.fails(IllegalArgumentException.class, () -> buffer.fill(256), "0 to 255: 256");
            checks.fails(IllegalArgumentException.class, () -> buffer.fill(-1), "0 to 255: -1");
        }
        try (DeviceBuffer<?> buffer = device.allocate(ElementType.INT8, 1)) {
            checks.fails(IllegalArgumentException.class, () -> buffer.fill(128), "-128 to 127: 128");
        }
        try (DeviceBuffer<?> buffer = device.allocate(ElementType.UINT32, 1)) {
            checks.fails(IllegalArgumentException.class, () -> buffer.fill(1L << 32), "0 to 4294967295");
        }
    }

    private void wrongCopies() {
        try (DeviceBuffer<Float32> buffer = device.allocate(ElementType.FLOAT32, 16)) {
            checks.fails(NullPointerException.class, () -> buffer.copyFrom((float[]) null), "source");
            checks.fails(NullPointerException.class, () -> buffer.copyFrom((Buffer) null), "source");
            checks.fails(NullPointerException.class, () -> buffer.copyTo((float[]) null), "target");
            checks.fails(NullPointerException.class, () -> buffer.copyTo((Buffer) null), "target");
            checks.fails(IllegalArgumentException.class, () -> buffer.copyFrom(new double[1]), "float32", "double");
            checks.fails(IllegalArgumentException.class, () -> buffer.copyFrom(new int[1]), "float32", "int");
            checks.fails(IllegalArgumentException.class, () -> buffer.copyTo(new long[1]), "float32", "long");
            checks.fails(IllegalArgumentException.class, () -> buffer.copyTo(new short[1]), "float32", "short");
            checks.fails(IllegalArgumentException.class, () -> buffer.copyTo(CharBuffer.allocate(1)), "char");
            checks.fails(IllegalArgumentException.class, () -> buffer.copyTo(IntBuffer.allocate(1)), "float32", "int");
            checks.fails(IllegalArgumentException.class, () -> buffer.copyFrom(ByteBuffer.allocate(7)), "7 % 4 != 0");
            for (ByteBuffer bytes : List.of(ByteBuffer.allocate(8), ByteBuffer.allocateDirect(8))) {
                String message = "a ByteBuffer of float32 must have the byte order " + ByteOrder.nativeOrder() + ": "
                        + foreignOrder();
                bytes.order(foreignOrder());
                checks.fails(IllegalArgumentException.class, () -> buffer.copyFrom(bytes), message);
                checks.fails(IllegalArgumentException.class, () -> buffer.copyTo(bytes), message);
            }
            checks.fails(
                    IndexOutOfBoundsException.class,
                    () -> buffer.copyFrom(new float[17]),
                    "offset + length must be <= length(): 0 + 17 > 16");
            checks.fails(IndexOutOfBoundsException.class, () -> buffer.copyTo(new float[17]), "0 + 17 > 16");
            checks.fails(
                    IndexOutOfBoundsException.class,
                    () -> buffer.slice(12, 4).copyFrom(new float[5]),
                    "offset + length must be <= length(): 0 + 5 > 4");
            checks.fails(
                    IndexOutOfBoundsException.class, () -> buffer.slice(12, 4).copyTo(new float[5]), "0 + 5 > 4");
            checks.fails(
                    IndexOutOfBoundsException.class,
                    () -> buffer.copyFrom(FloatBuffer.allocate(1), -1),
                    "offset must be >= 0: -1");
            checks.fails(
                    IndexOutOfBoundsException.class,
                    () -> buffer.copyTo(FloatBuffer.allocate(1), -1),
                    "offset must be >= 0: -1");
            checks.fails(
                    IndexOutOfBoundsException.class, () -> buffer.copyFrom(FloatBuffer.allocate(5), 12), "12 + 5 > 16");
            checks.fails(
                    IndexOutOfBoundsException.class, () -> buffer.copyTo(FloatBuffer.allocate(0), 17), "17 + 0 > 16");
            checks.fails(
                    IndexOutOfBoundsException.class, () -> buffer.copyTo(FloatBuffer.allocate(5), 12), "12 + 5 > 16");
            FloatBuffer source = FloatBuffer.allocate(20);
            checks.fails(IndexOutOfBoundsException.class, () -> buffer.copyFrom(source), "0 + 20 > 16");
            checks.equal(0, source.position(), "the position after a failure");
            checks.fails(
                    ReadOnlyBufferException.class,
                    () -> buffer.copyTo(FloatBuffer.allocate(1).asReadOnlyBuffer()));
            buffer.copyFrom(FloatBuffer.wrap(new float[16]).asReadOnlyBuffer());
        }
        try (DeviceBuffer<? extends Element> buffer = device.allocate(ElementType.FLOAT8E4M3, 1)) {
            checks.fails(IllegalArgumentException.class, () -> buffer.copyFrom(new short[1]), "float8e4m3", "short");
        }
        try (DeviceBuffer<? extends Element> buffer = device.allocate(ElementType.BFLOAT16, 1)) {
            checks.fails(IllegalArgumentException.class, () -> buffer.copyFrom(new byte[2]), "bfloat16", "byte");
        }
        try (DeviceBuffer<? extends Element> buffer = device.allocate(ElementType.INT64, 1)) {
            checks.fails(IllegalArgumentException.class, () -> buffer.copyFrom(new float[1]), "int64", "float");
        }
    }

    private void wrongStreams() {
        checks.fails(NullPointerException.class, () -> CudaStream.nonBlocking(null), "device");
        checks.fails(NullPointerException.class, () -> CudaStream.blocking(null), "device");
        checks.fails(NullPointerException.class, () -> CudaStream.defaultOf(null), "device");
        checks.fails(NullPointerException.class, () -> CudaStream.wrap(null, 0), "device");
        checks.fails(NullPointerException.class, () -> CudaEvent.create(null), "device");
        checks.fails(
                IllegalArgumentException.class,
                () -> CudaStream.wrap(Device.host(), 16),
                "handle must be 0 on host memory, or a stream of the host engine: 0x10");
        try (CudaStream stream = CudaStream.nonBlocking(device);
                CudaEvent event = CudaEvent.create(device)) {
            checks.fails(NullPointerException.class, () -> stream.synchronize(null), "timeout");
            checks.fails(NullPointerException.class, () -> stream.waitFor(null), "event");
            checks.fails(NullPointerException.class, () -> event.record(null), "stream");
            checks.fails(NullPointerException.class, () -> event.synchronize(null), "timeout");
            checks.fails(
                    IllegalArgumentException.class,
                    () -> stream.synchronize(Duration.ofMillis(-1)),
                    "timeout must be >= 0: -0.001 s");
            event.record(stream);
            checks.fails(
                    IllegalArgumentException.class,
                    () -> event.synchronize(Duration.ofMillis(-1)),
                    "timeout must be >= 0: -0.001 s");
        }
    }
}
