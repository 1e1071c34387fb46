package io.github.nccl4j.tools.perf;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element;
import io.github.nccl4j.highlevel.Element.Float64;
import io.github.nccl4j.highlevel.Element.Uint8;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.WindowFlag;

/** A rank of this process: its communicator, stream and buffers. Used by one thread at a time. */
final class Member implements AutoCloseable {
    final Communicator communicator;
    final CudaStream stream;
    final DeviceBuffer<Uint8> send;
    final DeviceBuffer<Uint8> recv;

    /** See {@link #number()}; null before its first call. */
    private DeviceBuffer<Float64> number;

    Member(Communicator communicator, long bytes, boolean defaultStream) {
        this.communicator = communicator;
        Device device = communicator.device();
        stream = defaultStream ? CudaStream.defaultOf(device) : CudaStream.nonBlocking(device);
        send = device.allocateForWindow(ElementType.UINT8, bytes);
        recv = device.allocateForWindow(ElementType.UINT8, bytes);
    }

    /** Memory for a number that {@link Exchange} reduces; allocated on first use. */
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

    /** Registers the buffers (-R 1); the communicator owns the registrations. */
    void register() {
        communicator.register(send);
        communicator.register(recv);
    }

    /** Registers the buffers as windows (-R 2), which the communicator owns. Collective. */
    void registerWindows() {
        communicator.registerWindow(send, WindowFlag.COLL_SYMMETRIC);
        communicator.registerWindow(recv, WindowFlag.COLL_SYMMETRIC);
    }

    /** A view of a buffer as elements, from a byte offset on. */
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
