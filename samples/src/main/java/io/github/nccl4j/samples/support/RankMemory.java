package io.github.nccl4j.samples.support;

import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.Element.Uint8;
import io.github.nccl4j.highlevel.ElementType;
import java.util.ArrayList;
import java.util.List;
import org.bytedeco.cuda.global.cudart;

/**
 * A rank's device, its buffers and its stream, by the plain addresses that the low-level calls take.
 *
 * <p>Everything that was allocated is freed by {@link #close()}. Not thread-safe: a rank uses its device in one thread.
 */
public final class RankMemory implements AutoCloseable {

    /** Elements that travel between Java and the device at a time. */
    private static final int CHUNK = 1 << 18;

    private final Device device;
    private final CudaStream stream;
    private final List<DeviceBuffer<Uint8>> allocated = new ArrayList<>();
    private final float[] chunk = new float[CHUNK];

    private RankMemory(Device device) {
        this.device = device;
        stream = CudaStream.blocking(device);
    }

    /** Host memory, for the host engine. */
    static RankMemory onHost() {
        return new RankMemory(Device.host());
    }

    /** The GPU of a rank, which becomes the current device of this thread: NCCL makes the communicator there. */
    static RankMemory onGpu(RankInfo self) {
        int count = Device.cudaCount();
        if (count == 0) {
            throw new NcclError("rank " + self.rank() + ": the CUDA driver shows no GPU to this process");
        }
        Device device = Device.cuda(self.localRank() % count);
        int result = cudart.cudaSetDevice(device.index());
        if (result != cudart.cudaSuccess) {
            throw new NcclError("rank " + self.rank() + ": cudaSetDevice(" + device.index() + ") failed: "
                    + cudart.cudaGetErrorString(result).getString() + " (" + result + ")");
        }
        return new RankMemory(device);
    }

    /**
     * Allocates memory.
     *
     * @param bytes its size
     * @return its address
     */
    public long allocate(long bytes) {
        DeviceBuffer<Uint8> buffer = device.allocate(ElementType.UINT8, bytes);
        allocated.add(buffer);
        return buffer.address();
    }

    /**
     * Sets every byte.
     *
     * @param address where to begin
     * @param value the value, 0 to 255
     * @param bytes how many
     */
    public void set(long address, int value, long bytes) {
        DeviceBuffer.wrap(device, ElementType.UINT8, address, bytes).fill(value);
    }

    /**
     * Writes a pattern.
     *
     * @param address the address of element 0
     * @param pattern what to write
     * @param from the pattern's index for element 0
     * @param count how many elements
     */
    public void write(long address, Pattern pattern, long from, long count) {
        DeviceBuffer<Float32> buffer = floats(address, count);
        for (long at = 0; at < count; at += CHUNK) {
            int n = (int) Math.min(CHUNK, count - at);
            pattern.fill(chunk, n, from + at);
            buffer.copyFrom(chunk, 0, at, n);
        }
    }

    /**
     * Compares memory with a pattern, element by element.
     *
     * @param address the address of element 0
     * @param pattern what is expected
     * @param from the pattern's index for element 0
     * @param count how many elements
     * @return what is wrong
     */
    public Mismatch compare(long address, Pattern pattern, long from, long count) {
        DeviceBuffer<Float32> buffer = floats(address, count);
        Mismatch result = Mismatch.NONE;
        for (long at = 0; at < count; at += CHUNK) {
            int n = (int) Math.min(CHUNK, count - at);
            buffer.copyTo(chunk, 0, at, n);
            result = result.and(pattern.compare(chunk, n, from + at, at));
        }
        return result;
    }

    private DeviceBuffer<Float32> floats(long address, long count) {
        return DeviceBuffer.wrap(device, ElementType.FLOAT32, address, count);
    }

    /** {@return the stream to launch on, 0 if there is none} */
    public long stream() {
        return stream.nativeHandle();
    }

    /** Waits until everything that was launched on the stream is done. */
    public void synchronize() {
        stream.synchronize();
    }

    /** {@return what it is, for people} */
    public String describe() {
        return device.toString();
    }

    @Override
    public void close() {
        allocated.forEach(DeviceBuffer::close);
        stream.close();
    }
}
