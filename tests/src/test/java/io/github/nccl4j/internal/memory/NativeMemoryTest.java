package io.github.nccl4j.internal.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.library.StructInitializers;
import io.github.nccl4j.nccl.ncclCollConfig_t;
import io.github.nccl4j.nccl.ncclConfig_t;
import io.github.nccl4j.nccl.ncclEncryptionConfig_t;
import io.github.nccl4j.nccl.ncclSimInfo_t;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.function.Function;
import java.util.function.LongConsumer;
import org.bytedeco.javacpp.LongPointer;
import org.bytedeco.javacpp.Pointer;
import org.junit.jupiter.api.Test;

class NativeMemoryTest {
    @Test
    void memoryIsZeroed() {
        try (NativeMemory memory = new NativeMemory(2 * Long.BYTES)) {
            ByteBuffer buffer = memory.buffer();
            assertEquals(2 * Long.BYTES, buffer.capacity());
            assertEquals(ByteOrder.nativeOrder(), buffer.order());
            assertEquals(0, buffer.getLong(0));
            assertEquals(0, buffer.getLong(8));
            buffer.putLong(8, Long.MIN_VALUE + 3);
            assertEquals(Long.MIN_VALUE + 3, new LongPointer(new Address(memory.address())).get(1));
            assertThrows(IndexOutOfBoundsException.class, () -> buffer.getLong(9));
        }
    }

    @Test
    void closeFreesOnce() {
        long before = NativeMemory.held();
        NativeMemory memory = new NativeMemory(100);
        NativeMemory other = new NativeMemory(10);
        assertEquals(before + 110, NativeMemory.held());
        memory.close();
        memory.close();
        assertEquals(before + 10, NativeMemory.held());
        String expected = "100 bytes of native memory were freed";
        assertEquals(
                expected,
                assertThrows(IllegalStateException.class, memory::address).getMessage());
        assertEquals(
                expected,
                assertThrows(IllegalStateException.class, memory::buffer).getMessage());
        other.close();
        assertEquals(before, NativeMemory.held());
    }

    @Test
    void javaCppDoesNotTrackTheMemory() {
        long before = Pointer.totalBytes();
        try (NativeMemory memory = new NativeMemory(1 << 20)) {
            assertEquals(0, memory.buffer().get(0));
            assertEquals(before, Pointer.totalBytes(), 1 << 19);
        }
    }

    /** Field by field: what is between them is as it happens to be. */
    private static <P extends Pointer> void assertInitialized(
            LongConsumer initializer, P expected, Function<Pointer, P> cast) throws ReflectiveOperationException {
        int size = expected.sizeof();
        try (NativeMemory memory = new NativeMemory(size + 1)) {
            memory.buffer().put(size, (byte) 42);
            initializer.accept(memory.address());
            P made = cast.apply(new Address(memory.address()));
            int fields = 0;
            for (Method getter : expected.getClass().getDeclaredMethods()) {
                if (getter.getParameterCount() == 0
                        && !Modifier.isStatic(getter.getModifiers())
                        && getter.getReturnType() != void.class) {
                    assertEquals(getter.invoke(expected), getter.invoke(made), getter.getName());
                    fields++;
                }
            }
            assertTrue(fields >= 4, fields + " fields");
            assertEquals(42, memory.buffer().get(size));
        }
    }

    @Test
    void structsBeginAsTheirClassesDo() throws ReflectiveOperationException {
        try (ncclConfig_t config = new ncclConfig_t();
                ncclCollConfig_t call = new ncclCollConfig_t();
                ncclEncryptionConfig_t encryption = new ncclEncryptionConfig_t();
                ncclSimInfo_t info = new ncclSimInfo_t()) {
            assertInitialized(StructInitializers::config, config, ncclConfig_t::new);
            assertInitialized(StructInitializers::collConfig, call, ncclCollConfig_t::new);
            assertInitialized(StructInitializers::encryptionConfig, encryption, ncclEncryptionConfig_t::new);
            assertInitialized(StructInitializers::simInfo, info, ncclSimInfo_t::new);
        }
    }
}
