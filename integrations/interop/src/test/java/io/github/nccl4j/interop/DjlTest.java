package io.github.nccl4j.interop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.PreMulSum;
import io.github.nccl4j.highlevel.UniqueId;
import org.junit.jupiter.api.Test;

/** Arrays of DJL's PyTorch engine as buffers, without a copy. */
class DjlTest {

    /** On the CPU, "try direct" gives PyTorch's own memory, which stays as long as the array is open. */
    @Test
    void anArrayIsUsedInPlace() {
        try (NDManager manager = NDManager.newBaseManager("PyTorch");
                Communicator communicator = Communicator.create(UniqueId.create(), 0, 1);
                PreMulSum<Float32> twice = communicator.preMulSum(ElementType.FLOAT32, 2)) {
            NDArray array = manager.create(new float[] {1, 2, 3, 4, 5, 6}, new Shape(2, 3));
            CudaStream stream = CudaStream.defaultOf(communicator.device());
            try (DeviceBuffer<Float32> buffer = DeviceBuffer.wrap(ElementType.FLOAT32, array.toByteBuffer(true))) {
                communicator.allReduce(buffer, twice, stream);
                communicator.work(stream).await();
            }
            assertArrayEquals(new float[] {2, 4, 6, 8, 10, 12}, array.toFloatArray());
        }
    }
}
