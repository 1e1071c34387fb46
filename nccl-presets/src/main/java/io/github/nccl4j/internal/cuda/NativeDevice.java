package io.github.nccl4j.internal.cuda;

import io.github.nccl4j.library.NativeLibrary;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * A CUDA device, or host memory.
 *
 * @param number the number of a CUDA device, or {@link #HOST_NUMBER}
 * @param context the primary context of a CUDA device; 0 for host memory
 */
public record NativeDevice(int number, long context) {
    /** Number of bits that suffice for the code of every element type. */
    private static final int TYPE_BITS = 5;

    public static final int HOST_NUMBER = -1;
    public static final NativeDevice HOST = new NativeDevice(HOST_NUMBER, 0);

    private static final Map<Integer, NativeDevice> CUDA = new ConcurrentHashMap<>();

    /** Returns a CUDA device, always the same object for the same number, after loading CUDA's runtime. */
    public static NativeDevice cuda(int number) {
        int count = NativeLibrary.gpuCount();
        if (number < 0 || number >= count) {
            throw new IndexOutOfBoundsException(
                    "index must be >= 0 and < the number of CUDA devices that this process sees: " + number
                            + (number < 0 ? " < 0" : " >= " + count));
        }
        CudaRuntime.require();
        return CUDA.computeIfAbsent(number, device -> new NativeDevice(device, Cuda.retainContext(device)));
    }

    public boolean isHost() {
        return number == HOST_NUMBER;
    }

    public boolean isCuda() {
        return !isHost();
    }

    /**
     * Returns a code that is unique to the device and leaves the low {@value #TYPE_BITS} bits free for an element
     * type.
     */
    public int code() {
        return number - HOST_NUMBER << TYPE_BITS;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof NativeDevice device && device.number == number;
    }

    @Override
    public int hashCode() {
        return number;
    }

    @Override
    public String toString() {
        return isHost() ? "host memory" : nameOf(number);
    }

    public static String nameOf(int number) {
        return "CUDA device " + number;
    }
}
