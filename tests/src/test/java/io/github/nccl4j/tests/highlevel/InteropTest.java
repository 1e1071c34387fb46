package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Dlpack;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.Element.Int8;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.StubLibraries;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.ReadOnlyBufferException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Memory that other libraries of the JVM have, and memory for them, without a copy. */
class InteropTest {
    @TempDir
    static Path folder;

    @Test
    void tensorsGoToAnotherLibraryAndComeFromIt() throws IOException {
        ChildJvm.Outcome outcome = new ChildJvm()
                .property("nccl4j.library", StubLibraries.tensors(folder))
                .run(DlpackScenario.class);
        assertEquals("done\n", outcome.output());
    }

    static List<ElementType<?>> types() {
        return ElementType.values();
    }

    /** Each type comes back as itself, and as no other. */
    @ParameterizedTest
    @MethodSource("types")
    void everyTypeHasItsOwnCode(ElementType<?> type) {
        try (DeviceBuffer<?> buffer = Device.host().allocate(type, 2)) {
            for (ElementType<?> other : types()) {
                long tensor = Dlpack.VERSIONED.export(buffer);
                if (other.equals(type)) {
                    Dlpack.VERSIONED.take(tensor, other).close();
                } else {
                    assertThrows(IllegalArgumentException.class, () -> Dlpack.VERSIONED.take(tensor, other));
                    Dlpack.VERSIONED.delete(tensor);
                }
            }
        }
    }

    @Test
    void aClosedBufferIsNotExported() {
        DeviceBuffer<Float32> buffer = Device.host().allocate(ElementType.FLOAT32, 2);
        buffer.close();
        assertThrows(IllegalStateException.class, () -> Dlpack.VERSIONED.export(buffer));
        assertThrows(NullPointerException.class, () -> Dlpack.VERSIONED.export(null));
    }

    @Test
    void aDirectBufferIsWrappedFromItsPosition() {
        ByteBuffer memory = ByteBuffer.allocateDirect(64).order(ByteOrder.nativeOrder());
        memory.putFloat(8, 5).position(8).limit(24);
        try (DeviceBuffer<Float32> buffer = DeviceBuffer.wrap(ElementType.FLOAT32, memory)) {
            assertEquals(4, buffer.length());
            float[] numbers = new float[4];
            buffer.copyTo(numbers);
            assertEquals(5, numbers[0]);
            buffer.fill(3);
            assertEquals(3, memory.getFloat(20));
            assertEquals(0, memory.getFloat(4));
        }
    }

    @Test
    void memoryThatCannotBeWrappedIsRefused() {
        ByteBuffer heap = ByteBuffer.allocate(8);
        assertThrows(IllegalArgumentException.class, () -> DeviceBuffer.wrap(ElementType.FLOAT32, heap));
        ByteBuffer direct = ByteBuffer.allocateDirect(10);
        IllegalArgumentException odd =
                assertThrows(IllegalArgumentException.class, () -> DeviceBuffer.wrap(ElementType.FLOAT32, direct));
        assertEquals(
                "the buffer's remaining bytes must be a multiple of the size of float32: 10 % 4 != 0",
                odd.getMessage());
        assertThrows(
                ReadOnlyBufferException.class,
                () -> DeviceBuffer.wrap(
                        ElementType.FLOAT32, ByteBuffer.allocateDirect(8).asReadOnlyBuffer()));
        assertThrows(
                IllegalArgumentException.class,
                () -> DeviceBuffer.wrap(
                        ElementType.FLOAT32,
                        ByteBuffer.allocateDirect(16)
                                .position(2)
                                .limit(10)
                                .slice()
                                .order(ByteOrder.nativeOrder())));
    }

    @Test
    void memoryInAnotherByteOrderIsRefused() {
        ByteBuffer memory = ByteBuffer.allocateDirect(8).order(BufferSuite.foreignOrder());
        IllegalArgumentException refusal =
                assertThrows(IllegalArgumentException.class, () -> DeviceBuffer.wrap(ElementType.FLOAT32, memory));
        assertEquals(
                "a ByteBuffer of float32 must have the byte order " + ByteOrder.nativeOrder() + ": " + memory.order()
                        + "; call order(ByteOrder.nativeOrder()) before filling or reading it",
                refusal.getMessage());
        try (DeviceBuffer<Int8> bytes = DeviceBuffer.wrap(ElementType.INT8, memory)) {
            bytes.copyFrom(memory);
            assertEquals(8, bytes.length());
        }
    }

    /** Compiled when it runs, as this class is for a Java that has no segments. */
    @Test
    void aSegmentIsTheSameMemory() throws IOException {
        if (Runtime.version().feature() < 22) {
            try (DeviceBuffer<Float32> buffer = Device.host().allocate(ElementType.FLOAT32, 2)) {
                IllegalArgumentException wrong =
                        assertThrows(IllegalArgumentException.class, () -> buffer.asSegment(String.class));
                assertEquals(
                        "type must be java.lang.foreign.MemorySegment.class: java.lang.String.class",
                        wrong.getMessage());
                assertThrows(
                        IllegalArgumentException.class,
                        () -> DeviceBuffer.wrap(ElementType.FLOAT32, String.class, "segment"));
            }
            return;
        }
        Path source = Files.writeString(folder.resolve("Segment.java"), """
                import io.github.nccl4j.highlevel.*;
                import java.lang.foreign.*;
                public class Segment {
                    public static void main(String[] args) {
                        try (DeviceBuffer<Element.Float32> buffer = Device.host().allocate(ElementType.FLOAT32, 1000);
                                Arena arena = Arena.ofConfined()) {
                            buffer.fill(2.5);
                            MemorySegment segment = buffer.asSegment(MemorySegment.class);
                            segment.setAtIndex(ValueLayout.JAVA_FLOAT, 999, 7);
                            float[] numbers = new float[1000];
                            buffer.copyTo(numbers);
                            System.out.println(segment.byteSize() + " " + segment.getAtIndex(ValueLayout.JAVA_FLOAT, 0)
                                    + " " + numbers[999]);
                            MemorySegment own = arena.allocate(ValueLayout.JAVA_FLOAT, 10);
                            DeviceBuffer.wrap(Device.host(), ElementType.FLOAT32, own.address(), 10).fill(4);
                            System.out.println(own.getAtIndex(ValueLayout.JAVA_FLOAT, 9));
                            DeviceBuffer<Element.Float32> wrapped = wrap(own.asSlice(4, 12));
                            wrapped.fill(5);
                            MemorySegment part = wrapped.slice(1, 2).asSegment(MemorySegment.class);
                            System.out.println(own.getAtIndex(ValueLayout.JAVA_FLOAT, 0)
                                    + " " + own.getAtIndex(ValueLayout.JAVA_FLOAT, 3)
                                    + " " + own.getAtIndex(ValueLayout.JAVA_FLOAT, 4)
                                    + " " + part.byteSize() + " " + (part.address() - own.address()));
                            System.out.println(wrap(own.asSlice(0, 0)).length());
                            for (MemorySegment wrong : new MemorySegment[] {
                                    MemorySegment.ofArray(new float[2]), own.asReadOnly(), own.asSlice(0, 6), own.asSlice(2, 4)}) {
                                try {
                                    wrap(wrong);
                                } catch (IllegalArgumentException e) {
                                    System.out.println(e.getMessage().replaceAll("MemorySegment.*|0x.*", ""));
                                }
                            }
                        }
                    }
                    static DeviceBuffer<Element.Float32> wrap(MemorySegment segment) {
                        return DeviceBuffer.wrap(ElementType.FLOAT32, MemorySegment.class, segment);
                    }
                }
                """);
        ChildJvm.Outcome outcome = new ChildJvm()
                .property("nccl4j.engine", "host")
                .start(source.toString())
                .await();
        assertEquals(
                "4000 2.5 7.0\n4.0\n4.0 5.0 4.0 8 8\n0\nsegment must be of native memory: \n"
                        + "segment must not be read-only: \n"
                        + "the size of segment must be a multiple of the size of float32: 6 % 4 != 0\n"
                        + "address must be a multiple of the size of float32: \n",
                outcome.output());
        assertTrue(outcome.exitCode() == 0);
    }

    /** Java checks its own accesses only: native code would use memory that was freed. */
    @Test
    @EnabledForJreRange(minVersion = 22)
    void memoryIsNotUsedAfterItsEnd() throws IOException {
        Path source = Files.writeString(folder.resolve("Ended.java"), """
                import io.github.nccl4j.highlevel.*;
                import io.github.nccl4j.highlevel.Element.Float32;
                import java.lang.foreign.*;
                import java.net.*;
                import java.nio.*;
                import java.nio.channels.*;
                import java.util.concurrent.Future;
                public class Ended {
                    static final Device HOST = Device.host();
                    static void refused(String use, Runnable code) {
                        try {
                            code.run();
                            System.out.println(use + ": nothing was thrown");
                        } catch (IllegalStateException e) {
                            System.out.println(use + ": " + e.getMessage());
                        }
                    }
                    static ByteBuffer allocate(Arena arena) {
                        return arena.allocate(40, 64).asByteBuffer().order(ByteOrder.nativeOrder());
                    }
                    static MemorySegment segment(DeviceBuffer<Float32> buffer) {
                        return buffer.asSegment(MemorySegment.class);
                    }
                    public static void main(String[] args) throws Exception {
                        try (DeviceBuffer<Float32> own = HOST.allocate(ElementType.FLOAT32, 10)) {
                            arenas(own);
                        }
                        segments(HOST.allocate(ElementType.FLOAT32, 10));
                    }
                    static void arenas(DeviceBuffer<Float32> own) throws Exception {
                        Arena arena = Arena.ofShared();
                        ByteBuffer memory = allocate(arena);
                        DeviceBuffer<Float32> wrapped = DeviceBuffer.wrap(ElementType.FLOAT32, memory);
                        DeviceBuffer<Float32> slice = wrapped.slice(1, 9);
                        MemorySegment part = segment(slice);
                        CudaStream stream = CudaStream.defaultOf(HOST);
                        try (Communicator c = Communicator.create(UniqueId.create(), 0, 1)) {
                            wrapped.fill(2);
                            c.allReduce(wrapped, own, ReduceOp.SUM, stream);
                            System.out.println(part.byteSize() + " " + part.getAtIndex(ValueLayout.JAVA_FLOAT, 8));
                            Group group = Group.open();
                            c.allReduce(own, wrapped, ReduceOp.SUM, stream);
                            arena.close();
                            refused("launch", group::launch);
                            refused("call", () -> c.allReduce(own, wrapped, ReduceOp.SUM, stream));
                        }
                        refused("fill", () -> wrapped.fill(1));
                        refused("slice", () -> slice.copyTo(new float[9]));
                        refused("stream", () -> wrapped.copyFromAsync(own, stream));
                        refused("segment", () -> segment(wrapped));
                        refused("wrap", () -> DeviceBuffer.wrap(ElementType.FLOAT32, memory));
                        refused("from", () -> own.copyFrom(memory));
                        refused("to", () -> own.copyTo(memory.asFloatBuffer()));
                        refused("later", () -> own.copyToAsync(memory, stream));
                        System.out.println(wrapped.isOpen() + " " + part.scope().isAlive());
                        Arena another = Arena.ofShared();
                        MemorySegment whole = another.allocate(40, 64);
                        DeviceBuffer<Float32> all = DeviceBuffer.wrap(ElementType.FLOAT32, MemorySegment.class, whole);
                        all.fill(3);
                        another.close();
                        refused("fill all", () -> all.fill(1));
                        refused("wrap all", () -> DeviceBuffer.wrap(ElementType.FLOAT32, MemorySegment.class, whole));
                        try (Arena confined = Arena.ofConfined()) {
                            DeviceBuffer<Float32> mine = DeviceBuffer.wrap(ElementType.FLOAT32, allocate(confined));
                            mine.fill(1);
                            Thread thread = new Thread(() -> refused("thread", () -> mine.fill(1)));
                            thread.start();
                            thread.join();
                        }
                    }
                    static void segments(DeviceBuffer<Float32> buffer) throws Exception {
                        MemorySegment whole = segment(buffer);
                        MemorySegment part = segment(buffer.slice(1, 2));
                        try (AsynchronousServerSocketChannel server = AsynchronousServerSocketChannel.open()
                                        .bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
                                AsynchronousSocketChannel client = AsynchronousSocketChannel.open()) {
                            client.connect(server.getLocalAddress()).get();
                            Future<Integer> read = client.read(whole.asByteBuffer());
                            refused("close", buffer::close);
                            System.out.println(buffer.isOpen() + " " + part.scope().isAlive());
                            server.accept().get().write(ByteBuffer.wrap(new byte[1])).get();
                            read.get();
                        }
                        buffer.close();
                        buffer.close();
                        System.out.println(whole.scope().isAlive() + " " + part.scope().isAlive());
                        refused("closed", () -> segment(buffer));
                    }
                }
                """);
        ChildJvm.Outcome outcome = new ChildJvm()
                .property("nccl4j.engine", "host")
                .start(source.toString())
                .await();
        String gone = "the memory of DeviceBuffer of 10 float32 on host memory can't be accessed: Already closed\n";
        assertEquals(
                "36 2.0\nlaunch: " + gone + "call: " + gone + "fill: " + gone + "slice: " + gone + "stream: " + gone
                        + "segment: " + gone + "wrap: " + gone
                        + "from: Already closed\nto: Already closed\nlater: Already closed\nfalse false\n"
                        + "fill all: " + gone + "wrap all: " + gone
                        + "thread: the memory of DeviceBuffer of 10 float32 on host memory can't be accessed:"
                        + " Attempted access outside owning thread\n"
                        + "close: DeviceBuffer of 10 float32 on host memory can't be closed while its segment is used\n"
                        + "true true\nfalse false\nclosed: DeviceBuffer of 10 float32 on host memory is closed\n",
                outcome.output());
        assertEquals(0, outcome.exitCode());
    }
}
