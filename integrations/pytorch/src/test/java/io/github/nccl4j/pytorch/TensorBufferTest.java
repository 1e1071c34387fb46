package io.github.nccl4j.pytorch;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import java.util.List;
import java.util.Map;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.bytedeco.pytorch.global.torch.ScalarType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tensors as buffers. */
class TensorBufferTest {
    private static final Map<ScalarType, ElementType<?>> SUPPORTED = Map.ofEntries(
            Map.entry(ScalarType.Char, ElementType.INT8),
            Map.entry(ScalarType.Byte, ElementType.UINT8),
            Map.entry(ScalarType.Int, ElementType.INT32),
            Map.entry(ScalarType.UInt32, ElementType.UINT32),
            Map.entry(ScalarType.Long, ElementType.INT64),
            Map.entry(ScalarType.UInt64, ElementType.UINT64),
            Map.entry(ScalarType.Half, ElementType.FLOAT16),
            Map.entry(ScalarType.Float, ElementType.FLOAT32),
            Map.entry(ScalarType.Double, ElementType.FLOAT64),
            Map.entry(ScalarType.BFloat16, ElementType.BFLOAT16),
            Map.entry(ScalarType.Float8_e4m3fn, ElementType.FLOAT8E4M3),
            Map.entry(ScalarType.Float8_e5m2, ElementType.FLOAT8E5M2));

    private static Tensor floats(float... values) {
        return torch.tensor(values);
    }

    @ParameterizedTest
    @EnumSource(ScalarType.class)
    void eachTypeIsMappedOrRefused(ScalarType type) {
        ElementType<?> expected = SUPPORTED.get(type);
        if (expected == null) {
            IllegalArgumentException refused =
                    assertThrows(IllegalArgumentException.class, () -> TensorBuffer.typeOf(type));
            assertEquals(
                    "tensor must have elements of one of BFloat16, Byte, Char, Double, Float, Float8_e4m3fn, Float8_e5m2, Half,"
                            + " Int, Long, UInt32, UInt64: " + type,
                    refused.getMessage());
            return;
        }
        Tensor tensor = torch.zeros(new long[] {2, 3}).to(type);
        try (TensorBuffer<?> buffer = TensorBuffer.of(tensor)) {
            assertEquals(expected, buffer.type());
            assertEquals(6, buffer.buffer().length());
            assertEquals(6 * tensor.itemsize(), buffer.buffer().sizeInBytes());
            assertEquals(tensor.data_ptr().address(), buffer.buffer().address());
            assertEquals(Device.host(), buffer.buffer().device());
            assertFalse(buffer.buffer().isOwner());
        }
    }

    @Test
    void writesReachTheTensor() {
        Tensor tensor = floats(1, 2, 3);
        try (TensorBuffer<Float32> buffer = TensorBuffer.of(tensor, ElementType.FLOAT32)) {
            buffer.buffer().copyFrom(new float[] {4, 5, 6});
        }
        assertEquals(4, tensor.get(0).item_float());
        assertEquals(6, tensor.get(2).item_float());
    }

    @Test
    void anotherTypeIsRefusedWithBoth() {
        Tensor tensor = floats(1).to(ScalarType.Double);
        assertEquals(
                "tensor must have elements of float32: Double",
                assertThrows(IllegalArgumentException.class, () -> TensorBuffer.of(tensor, ElementType.FLOAT32))
                        .getMessage());
    }

    @Test
    void aViewWithGapsIsRefusedWithItsStrides() {
        Tensor transposed = torch.zeros(new long[] {2, 3}).t();
        assertEquals(
                "tensor must be contiguous: sizes [3, 2], strides [1, 3]; call contiguous()",
                assertThrows(IllegalArgumentException.class, () -> TensorBuffer.of(transposed))
                        .getMessage());
        try (TensorBuffer<?> copied = TensorBuffer.of(transposed.contiguous())) {
            assertEquals(6, copied.buffer().length());
        }
    }

    @Test
    void aSliceBeginsAtItsOwnFirstElement() {
        Tensor tensor = floats(1, 2, 3, 4);
        try (TensorBuffer<Float32> buffer = TensorBuffer.of(tensor.narrow(0, 2, 2), ElementType.FLOAT32)) {
            float[] values = new float[2];
            buffer.buffer().copyTo(values);
            assertArrayEquals(new float[] {3, 4}, values);
        }
    }

    @Test
    void whatHasNoMemoryIsRefused() {
        for (Executable use : List.<Executable>of(
                () -> TensorBuffer.of(new Tensor()),
                () -> TensorBuffer.of(new Tensor(), ElementType.FLOAT32),
                () -> TensorBuffer.bytesOf(new Tensor()))) {
            assertEquals(
                    "tensor must be defined",
                    assertThrows(IllegalArgumentException.class, use).getMessage());
        }
        IllegalArgumentException sparse = assertThrows(
                IllegalArgumentException.class,
                () -> TensorBuffer.of(torch.eye(3).to_sparse(2)));
        assertEquals("tensor must be dense: Sparse", sparse.getMessage());
        Tensor meta = floats(1, 2).to(new org.bytedeco.pytorch.Device("meta"), ScalarType.Float);
        IllegalArgumentException elsewhere = assertThrows(IllegalArgumentException.class, () -> TensorBuffer.of(meta));
        assertEquals("tensor must be on the CPU or a CUDA device: meta", elsewhere.getMessage());
        Tensor negated = floats(1, 2)._neg_view();
        assertThrows(IllegalArgumentException.class, () -> TensorBuffer.of(negated), "negated");
    }

    @Test
    void anEmptyTensorIsAnEmptyBuffer() {
        try (TensorBuffer<?> buffer = TensorBuffer.of(torch.zeros(new long[] {0, 4}))) {
            assertEquals(0, buffer.buffer().length());
        }
    }

    @Test
    void bytesAreOfAnyType() {
        try (TensorBuffer<?> buffer =
                TensorBuffer.bytesOf(torch.zeros(new long[] {3}).to(ScalarType.ComplexDouble))) {
            assertEquals(ElementType.UINT8, buffer.type());
            assertEquals(48, buffer.buffer().length());
        }
    }

    @Test
    void theBufferKeepsTheMemoryAndGivesItBack() {
        Tensor tensor = floats(1, 2, 3);
        assertEquals(1, tensor.use_count());
        TensorBuffer<Float32> buffer = TensorBuffer.of(tensor, ElementType.FLOAT32);
        assertEquals(2, tensor.use_count());
        Tensor second = new Tensor(tensor);
        tensor.close();
        assertEquals(2, second.use_count());
        float[] values = new float[3];
        buffer.buffer().copyTo(values);
        assertArrayEquals(new float[] {1, 2, 3}, values);
        buffer.close();
        buffer.close();
        assertEquals(1, second.use_count());
        assertEquals(2, second.get(1).item_float());
        assertThrows(IllegalStateException.class, () -> buffer.buffer().copyTo(values));
    }

    /** Only the buffer is left: its memory must survive collections. */
    @Test
    void theBufferAloneKeepsTheMemory() throws InterruptedException {
        DeviceBuffer<Float32> buffer = onlyTheBuffer();
        for (int i = 0; i < 5; i++) {
            System.gc();
            Thread.sleep(10);
            // Takes the memory, if it was freed.
            torch.ones(new long[] {1 << 20}).close();
        }
        float[] values = new float[1 << 20];
        buffer.copyTo(values);
        for (float value : values) {
            assertEquals(7, value);
        }
    }

    private static DeviceBuffer<Float32> onlyTheBuffer() {
        Tensor tensor = torch.full(new long[] {1 << 20}, new org.bytedeco.pytorch.Scalar(7f));
        return TensorBuffer.of(tensor, ElementType.FLOAT32).buffer();
    }

    @Test
    void theCurrentStreamOfTheHostIsItsDefaultStream() {
        assertEquals(0, TensorBuffer.currentStream(Device.host()).nativeHandle());
    }

    @Test
    void nativesWithoutCudaHaveNoCurrentStream() {
        IllegalStateException none = assertThrows(IllegalStateException.class, () -> TensorBuffer.cudaStream(0));
        assertTrue(none.getCause().getMessage().contains("cuda"), none.getCause()::getMessage);
    }

    @Test
    void theHostIsTheCpuOfPyTorch() {
        assertEquals("cpu", TensorBuffer.torchDevice(Device.host()).str().getString());
    }
}
