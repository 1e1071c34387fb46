package io.github.nccl4j.tools.conformance;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.Element.Uint8;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.highlevel.Window;
import io.github.nccl4j.highlevel.WindowFlag;

/**
 * One rank: its communicator, a stream, and memory that cases share one after the other, since freeing memory of a GPU
 * waits for all of it.
 */
final class Member implements AutoCloseable {
    private static final long MEMORY = 160 << 20;
    private static final long ALIGNMENT = 256;

    final Communicator communicator;
    final CudaStream stream;
    private DeviceBuffer<Uint8> memory;
    private long used;

    Member(Communicator communicator) {
        this.communicator = communicator;
        stream = CudaStream.nonBlocking(communicator.device());
        memory = communicator.device().allocate(ElementType.UINT8, MEMORY);
    }

    /** Takes its memory from a window from now on. In a group the window can be used when that was launched. */
    Window useWindow() {
        memory.close();
        memory = communicator.device().allocateForWindow(ElementType.UINT8, MEMORY);
        return communicator.registerWindow(memory, WindowFlag.COLL_SYMMETRIC);
    }

    /** The offset of a part of its memory, in elements of the part. */
    long placeOf(DeviceBuffer<?> taken) {
        return (taken.address() - memory.address()) / taken.type().sizeInBytes();
    }

    int rank() {
        return communicator.rank();
    }

    int size() {
        return communicator.size();
    }

    Device device() {
        return communicator.device();
    }

    boolean isOnHost() {
        return device().isHost();
    }

    /** Reserves memory until {@link #reuseMemory}. */
    <T extends Element> DeviceBuffer<T> take(ElementType<T> type, long length) {
        return at(reserve(length * type.sizeInBytes()), type, length);
    }

    /**
     * The offset of a buffer, until {@link #reuseMemory}. If all ranks have reserved the same lengths, the offset is
     * the same on all ranks, which NCCL requires in windows.
     */
    long reserve(long bytes) {
        if (used + bytes > MEMORY) {
            throw new IllegalStateException("a case needs more than " + MEMORY + " bytes");
        }
        long place = used;
        used += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        return place;
    }

    /** A buffer at a place that was reserved. */
    <T extends Element> DeviceBuffer<T> at(long place, ElementType<T> type, long length) {
        return DeviceBuffer.wrap(device(), type, memory.address() + place, length);
    }

    void reuseMemory() {
        used = 0;
    }

    /** An element on the device. */
    DeviceBuffer<Int32> number(int value) {
        DeviceBuffer<Int32> buffer = take(ElementType.INT32, 1);
        buffer.fill((long) value);
        return buffer;
    }

    static int valueOf(DeviceBuffer<Int32> number) {
        int[] value = new int[1];
        number.copyTo(value);
        return value[0];
    }

    /** The sum of a number of each rank of a communicator, which may be another than this member's. */
    int sum(Communicator of, int value) {
        DeviceBuffer<Int32> number = number(value);
        of.allReduce(number, ReduceOp.SUM, stream);
        of.work(stream).await();
        return valueOf(number);
    }

    /** The bytes of rank 0, on all ranks. */
    byte[] fromRank0(byte[] bytes) {
        DeviceBuffer<Uint8> buffer = take(ElementType.UINT8, bytes.length);
        buffer.copyFrom(bytes);
        communicator.broadcast(buffer, 0, stream);
        await();
        byte[] received = new byte[bytes.length];
        buffer.copyTo(received);
        return received;
    }

    /** An id that this communicator's ranks have all got. */
    UniqueId newId() {
        return UniqueId.of(fromRank0(rank() == 0 ? UniqueId.create().toBytes() : new byte[UniqueId.BYTES]));
    }

    /** Waits for what is in the stream. */
    void await() {
        communicator.work(stream).await();
    }

    /** Frees the resources; call after the communicator was closed. */
    @Override
    public void close() {
        stream.close();
        memory.close();
    }
}
