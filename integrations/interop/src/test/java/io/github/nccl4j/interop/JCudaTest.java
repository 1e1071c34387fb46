package io.github.nccl4j.interop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.PreMulSum;
import io.github.nccl4j.highlevel.UniqueId;
import java.lang.reflect.Field;
import jcuda.NativePointerObject;
import jcuda.Pointer;
import jcuda.driver.CUstream;
import jcuda.runtime.cudaStream_t;
import org.junit.jupiter.api.Test;

/** Pointers and streams of JCuda, without a copy. Here they are those of the host engine: JCuda's own need a GPU. */
class JCudaTest {
    /** JCuda hands out an address to subclasses alone; a subclass can also be made from one. */
    private static final class Address extends Pointer {
        Address(Pointer pointer) {
            super(pointer);
        }

        Address(long address) {
            super(address);
        }

        long value() {
            return getNativePointer() + getByteOffset();
        }
    }

    /** The handle of a JCuda stream is visible to subclasses alone. */
    private static final class Handle extends cudaStream_t {
        Handle(cudaStream_t stream) {
            super(new CUstream(stream));
        }

        long value() {
            return getNativePointer();
        }
    }

    @Test
    void aStreamIsShared() throws ReflectiveOperationException {
        try (Communicator communicator = Communicator.create(UniqueId.create(), 0, 1);
                CudaStream own = CudaStream.nonBlocking(communicator.device());
                DeviceBuffer<Float32> buffer = communicator.device().allocate(ElementType.FLOAT32, 2);
                PreMulSum<Float32> triple = communicator.preMulSum(ElementType.FLOAT32, 3.0)) {
            buffer.copyFrom(new float[] {1, 2});
            // In a program with a GPU, cudaStreamCreate writes the field.
            cudaStream_t stream = new cudaStream_t();
            Field pointer = NativePointerObject.class.getDeclaredField("nativePointer");
            pointer.setAccessible(true);
            pointer.setLong(stream, own.nativeHandle());
            try (CudaStream shared = CudaStream.wrap(communicator.device(), new Handle(stream).value())) {
                assertEquals(own.nativeHandle(), shared.nativeHandle());
                communicator.allReduce(buffer, triple, shared);
                own.synchronize();
            }
            float[] values = new float[2];
            buffer.copyTo(values);
            assertArrayEquals(new float[] {3, 6}, values);
        }
    }

    @Test
    void aPointerIsUsedInPlace() {
        try (Communicator communicator = Communicator.create(UniqueId.create(), 0, 1);
                CudaStream stream = CudaStream.nonBlocking(communicator.device());
                DeviceBuffer<Float32> memory = communicator.device().allocate(ElementType.FLOAT32, 4);
                PreMulSum<Float32> triple = communicator.preMulSum(ElementType.FLOAT32, 3.0)) {
            memory.copyFrom(new float[] {1, 2, 3, 4});
            // In a program with a GPU: new Pointer() and JCuda.cudaMalloc.
            Pointer pointer = new Address(memory.address());
            Pointer third = pointer.withByteOffset(2 * Float.BYTES);
            try (DeviceBuffer<Float32> buffer =
                    DeviceBuffer.wrap(communicator.device(), ElementType.FLOAT32, new Address(third).value(), 2)) {
                communicator.allReduce(buffer, triple, stream);
                communicator.work(stream).await();
            }
            float[] values = new float[4];
            memory.copyTo(values);
            assertArrayEquals(new float[] {1, 2, 9, 12}, values);
        }
    }

    @Test
    void addressesAreThoseOfJCuda() {
        try (DeviceBuffer<Float32> memory = Device.host().allocate(ElementType.FLOAT32, 4)) {
            Pointer pointer = new Address(memory.address());
            assertEquals(memory.address(), new Address(pointer).value());
            assertEquals(memory.address() + 8, new Address(pointer.withByteOffset(8)).value());
        }
    }
}
