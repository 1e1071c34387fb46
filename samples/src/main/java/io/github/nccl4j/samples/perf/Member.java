package io.github.nccl4j.samples.perf;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element;
import io.github.nccl4j.highlevel.Element.Float64;
import io.github.nccl4j.highlevel.Element.Uint8;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.WindowFlag;

/** One rank: its communicator, stream and two buffers. */
final class Member implements AutoCloseable {
    final Communicator communicator;
    final CudaStream stream;
    final DeviceBuffer<Uint8> send;
    final DeviceBuffer<Uint8> recv;
    /** For numbers that ranks tell each other; null until then. */
    private DeviceBuffer<Float64> number;

    Member(Communicator communicator, long bytes, boolean defaultStream) {
        this.communicator = communicator;
        Device device = communicator.device();
        stream = defaultStream ? CudaStream.defaultOf(device) : CudaStream.nonBlocking(device);
        send = device.allocateForWindow(ElementType.UINT8, bytes);
        recv = device.allocateForWindow(ElementType.UINT8, bytes);
    }

    /** Memory for a number that ranks tell each other, allocated when it is first needed. */
    DeviceBuffer<Float64> number() {
        if (number == null) {
            number = communicator.device().allocate(ElementType.FLOAT64, 1);
        }
        return number;
    }

    int rank() {
        return communicator.rank();
    }

    int size() {
        return communicator.size();
    }

    /** -R 1; the communicator owns the registrations. */
    void register() {
        communicator.register(send);
        communicator.register(recv);
    }

    /** -R 2; collective, and the communicator owns the windows. */
    void registerWindows() {
        communicator.registerWindow(send, WindowFlag.COLL_SYMMETRIC);
        communicator.registerWindow(recv, WindowFlag.COLL_SYMMETRIC);
    }

    /** Elements that begin at a byte of a buffer. */
    static <T extends Element> DeviceBuffer<T> view(
            DeviceBuffer<Uint8> buffer, ElementType<T> type, long byteOffset, long length) {
        return DeviceBuffer.wrap(buffer.device(), type, buffer.address() + byteOffset, length);
    }

    @Override
    public void close() {
        if (number != null) {
            number.close();
        }
        recv.close();
        send.close();
        stream.close();
    }
}
