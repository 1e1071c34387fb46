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
                        }
                    }
                }
                """);
        ChildJvm.Outcome outcome = new ChildJvm()
                .property("nccl4j.engine", "host")
                .start(source.toString())
                .await();
        assertEquals("4000 2.5 7.0\n4.0\n", outcome.output());
        assertTrue(outcome.exitCode() == 0);
    }
}
