package io.github.nccl4j.samples.support;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import org.bytedeco.javacpp.LongPointer;

/**
 * A send and a receive buffer, in a symmetric window where {@code ncclAlltoAllv} wants that.
 *
 * <p>VCCL takes only memory of {@code ncclMemAlloc} in a window that all ranks registered, at the same offset on each; both buffers lie
 * in one window of the same size everywhere. The host engine takes any memory. Opening and closing are collective.
 */
public final class WindowMemory implements AutoCloseable {

    /** NCCL wants windows to begin on a page; this keeps the second buffer aligned for every transport. */
    private static final long ALIGNMENT = 128;

    private final Communicator communicator;
    private final DeviceBuffer<Float32> memory;
    private final boolean registered;
    private final long window;

    private WindowMemory(Communicator communicator, DeviceBuffer<Float32> memory, boolean registered, long window) {
        this.communicator = communicator;
        this.memory = memory;
        this.registered = registered;
        this.window = window;
    }

    /**
     * Allocates the buffers.
     *
     * @param communicator the ranks
     * @param direct whether they are for {@code ncclAlltoAllv}
     * @param count the elements of each, the same on every rank
     * @return the memory
     */
    public static WindowMemory open(Communicator communicator, boolean direct, long count) {
        long length = 2 * ALIGNMENT * Math.max(1, (count + ALIGNMENT - 1) / ALIGNMENT);
        Device device = communicator.device();
        if (!direct || device.isHost()) {
            return new WindowMemory(communicator, device.allocate(ElementType.FLOAT32, length), direct, 0);
        }
        DeviceBuffer<Float32> memory = device.allocateForWindow(ElementType.FLOAT32, length);
        try (LongPointer cell = new LongPointer(1)) {
            cell.put(0);
            NcclError.check(
                    nccl.ncclCommWindowRegister(
                            communicator.nativeHandle(),
                            memory.address(),
                            memory.sizeInBytes(),
                            cell.address(),
                            nccl.NCCL_WIN_COLL_SYMMETRIC),
                    "ncclCommWindowRegister",
                    communicator.rank(),
                    communicator.nativeHandle());
            // Success without a window: this communicator has no symmetric memory. All its ranks see the same.
            return new WindowMemory(communicator, memory, cell.get() != 0, cell.get());
        }
    }

    /** {@return the send buffer} */
    public DeviceBuffer<Float32> send() {
        return memory.slice(0, memory.length() / 2);
    }

    /** {@return the receive buffer} */
    public DeviceBuffer<Float32> receive() {
        return memory.slice(memory.length() / 2, memory.length() / 2);
    }

    /** {@return whether {@code ncclAlltoAllv} takes these buffers} */
    public boolean registered() {
        return registered;
    }

    /** After a failure nothing is freed: the communicator is given up, and the process ends. */
    @Override
    public void close() {
        if (window != 0 && communicator.state() == Communicator.State.OPEN) {
            NcclError.check(
                    nccl.ncclCommWindowDeregister(communicator.nativeHandle(), window),
                    "ncclCommWindowDeregister",
                    communicator.rank(),
                    communicator.nativeHandle());
            memory.close();
        } else if (window == 0) {
            memory.close();
        }
    }
}
