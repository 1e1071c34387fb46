package io.github.nccl4j.interop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.PreMulSum;
import io.github.nccl4j.highlevel.UniqueId;
import org.junit.jupiter.api.Test;
import org.nd4j.linalg.api.buffer.DataType;
import org.nd4j.linalg.api.ndarray.INDArray;
import org.nd4j.linalg.factory.Nd4j;

/** Arrays of ND4J as buffers, without a copy. */
class Nd4jTest {

    /** The elements of an array, or of a view of one, which must lie one behind the other. */
    private static DeviceBuffer<Float32> wrap(Communicator communicator, INDArray array) {
        if (array.dataType() != DataType.FLOAT || array.ordering() != 'c' || isStrided(array)) {
            throw new IllegalArgumentException("array must be compact, in row-major order, of FLOAT");
        }
        // Of the address pointer, which begins at the view, and not of the address, which is that of the whole memory.
        return DeviceBuffer.wrap(
                communicator.device(), ElementType.FLOAT32, array.data().addressPointer(), array.length());
    }

    private static boolean isStrided(INDArray array) {
        long step = 1;
        for (int i = array.rank() - 1; i >= 0; i--) {
            if (array.size(i) > 1 && array.stride(i) != step) {
                return true;
            }
            step *= array.size(i);
        }
        return false;
    }

    private static void doubleAll(Communicator communicator, INDArray array) {
        CudaStream stream = CudaStream.defaultOf(communicator.device());
        try (PreMulSum<Float32> twice = communicator.preMulSum(ElementType.FLOAT32, 2);
                DeviceBuffer<Float32> buffer = wrap(communicator, array)) {
            communicator.allReduce(buffer, twice, stream);
            communicator.work(stream).await();
        }
    }

    @Test
    void anArrayAndAViewAreUsedInPlace() {
        INDArray array = Nd4j.createFromArray(new float[][] {{1, 2, 3}, {4, 5, 6}});
        try (Communicator communicator = Communicator.create(UniqueId.create(), 0, 1)) {
            doubleAll(communicator, array);
            doubleAll(communicator, array.getRow(1));
        }
        assertArrayEquals(new float[] {2, 4, 6, 16, 20, 24}, array.ravel().toFloatVector());
    }

    @Test
    void whatDoesNotLieTogetherIsCopiedFirst() {
        INDArray column =
                Nd4j.createFromArray(new float[][] {{1, 2, 3}, {4, 5, 6}}).getColumn(1);
        INDArray copy = column.dup('c');
        assertFalse(isStrided(copy));
        try (Communicator communicator = Communicator.create(UniqueId.create(), 0, 1)) {
            doubleAll(communicator, copy);
        }
        assertArrayEquals(new float[] {4, 10}, copy.toFloatVector());
        assertArrayEquals(new float[] {2, 5}, column.toFloatVector());
    }
}
