package io.github.nccl4j.highlevel;

import io.github.nccl4j.library.Engine;
import io.github.nccl4j.library.NativeLibrary;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Where buffers lie and streams run: a CUDA device, or host memory for the host engine.
 *
 * <pre>{@code
 * Device device = Device.current();
 * try (DeviceBuffer<Float32> buffer = device.allocate(ElementType.FLOAT32, 1024);
 *         CudaStream stream = CudaStream.nonBlocking(device)) {
 *     buffer.copyFrom(numbers);
 *     ...
 *     stream.synchronize(Duration.ofSeconds(10));
 *     buffer.copyTo(numbers);
 * }
 * }</pre>
 *
 * <p>A device owns nothing and is not closed. Instances are immutable, equal when they mean the same device, and may be
 * used in any thread. A call of this package leaves the calling thread's current CUDA device as it was. A thread that has
 * none, since it has never used CUDA, gets that of the first communicator that it makes or uses, and keeps it: NCCL itself
 * would leave it with device 0, and the process with a context there.
 *
 * <p>CUDA is called through JavaCPP Presets CUDA, whose jar for the platform the program adds. CUDA's runtime library is
 * looked for by the dynamic linker, then in {@code CUDA_HOME}, {@code CUDA_PATH}, the usual folders of CUDA's toolkit
 * and Python's packages, when {@link #cuda(int)} is called first. With host memory nothing of CUDA is loaded.
 */
public final class Device {
    private static final int HOST_INDEX = -1;
    private static final Device HOST = new Device(HOST_INDEX, 0);
    private static final Map<Integer, Device> CUDA = new ConcurrentHashMap<>();

    private final int index;
    /** The primary context of a CUDA device. */
    private final long context;

    private Device(int index, long context) {
        this.index = index;
        this.context = context;
    }

    /** {@return host memory, for the host engine} */
    public static Device host() {
        return HOST;
    }

    /**
     * A CUDA device, always the same object for the same index. Loads CUDA's runtime and makes the device's primary
     * context, which the process keeps.
     *
     * @param index its number among the devices that the process sees, from 0
     * @return the device
     * @throws IndexOutOfBoundsException if there is no such device
     * @throws CudaLibraryException if there is one, but CUDA's runtime or JavaCPP Presets CUDA is missing
     * @throws CudaException if CUDA can't use the device
     */
    public static Device cuda(int index) {
        int count = cudaCount();
        if (index < 0 || index >= count) {
            throw new IndexOutOfBoundsException(
                    "index must be >= 0 and < the number of CUDA devices that this process sees: " + index
                            + (index < 0 ? " < 0" : " >= " + count));
        }
        CudaRuntime.require();
        return CUDA.computeIfAbsent(index, i -> new Device(i, Cuda.retainContext(i)));
    }

    /** {@return how many CUDA devices the process sees; 0 without a driver, and then nothing of CUDA is loaded} */
    public static int cudaCount() {
        return NativeLibrary.gpuCount();
    }

    /**
     * The device that a program uses if it does not choose one: host memory if the host engine is loaded, else the calling
     * thread's current CUDA device. Loads NCCL's library.
     *
     * @return the device
     * @throws CudaLibraryException if CUDA's runtime or JavaCPP Presets CUDA is missing
     * @throws IndexOutOfBoundsException if no CUDA device is there
     * @see <a href="https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__DEVICE.html">cudaGetDevice</a>
     */
    public static Device current() {
        if (NativeLibrary.engine() == Engine.HOST) {
            return HOST;
        }
        if (cudaCount() == 0) {
            return cuda(0);
        }
        CudaRuntime.require();
        return cuda(Cuda.currentDevice());
    }

    /** A number that no other device has, with {@value DataType#CODE_BITS} low bits free for a type. */
    int deviceCode() {
        return index - HOST_INDEX << DataType.CODE_BITS;
    }

    /** {@return whether it is host memory} */
    public boolean isHost() {
        return index == HOST_INDEX;
    }

    /** {@return whether it is a CUDA device} */
    public boolean isCuda() {
        return !isHost();
    }

    /**
     * The number of a CUDA device.
     *
     * @return its number, from 0
     * @throws IllegalStateException if it is host memory, which has none
     */
    public int index() {
        if (isHost()) {
            throw new IllegalStateException("host memory has no device index");
        }
        return index;
    }

    /**
     * Allocates a buffer, with {@code cudaMalloc} or aligned in host memory. What it holds is undefined.
     *
     * @param <T> the type for the compiler
     * @param type the type of the elements
     * @param length the number of elements, possibly 0
     * @return the buffer, to be closed by the caller
     * @throws IllegalArgumentException if the length is negative, or its bytes are more than a long can say
     * @throws CudaException if the device has not so much memory
     * @throws OutOfMemoryError if the host has not
     */
    public <T extends Element> DeviceBuffer<T> allocate(ElementType<T> type, long length) {
        return DeviceBuffer.allocate(this, type, length);
    }

    /**
     * Allocates a buffer with {@code ncclMemAlloc}, as windows and registrations of user buffers want it. What it holds is
     * undefined. NCCL rounds the memory up to its granularity, often 2 MiB.
     *
     * @param <T> the type for the compiler
     * @param type the type of the elements
     * @param length the number of elements, possibly 0
     * @return the buffer, to be closed by the caller
     * @throws IllegalArgumentException if the length is negative, or its bytes are more than a long can say
     * @throws IllegalStateException if the loaded library has other memory than this device: the host engine for a CUDA
     *     device, or another library for host memory
     */
    public <T extends Element> DeviceBuffer<T> allocateForWindow(ElementType<T> type, long length) {
        return DeviceBuffer.allocateForWindow(this, type, length);
    }

    /**
     * Allocates page-locked host memory, between which and a CUDA device copies are fastest, and
     * {@link DeviceBuffer#copyFromAsync(DeviceBuffer, CudaStream)} does not wait. What it holds is undefined. The operating
     * system can't use the memory for anything else until the buffer is closed.
     *
     * <pre>{@code
     * try (DeviceBuffer<Float32> staging = device.allocatePinned(ElementType.FLOAT32, 1024)) {
     *     staging.copyFrom(numbers);
     *     buffer.copyFromAsync(staging, stream);
     *     ...
     * }
     * }</pre>
     *
     * @param <T> the type for the compiler
     * @param type the type of the elements
     * @param length the number of elements, possibly 0
     * @return the buffer, to be closed by the caller; its {@linkplain DeviceBuffer#device() device} is host memory. Where
     *     this device is host memory, the memory is as {@link #allocate} makes it
     * @throws IllegalArgumentException if the length is negative, or its bytes are more than a long can say
     * @throws CudaException if the host has not so much memory
     * @see <a href="https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__MEMORY.html">cudaHostAlloc</a>
     */
    public <T extends Element> DeviceBuffer<T> allocatePinned(ElementType<T> type, long length) {
        return DeviceBuffer.allocatePinned(this, type, length);
    }

    /** The primary context. */
    long context() {
        return context;
    }

    @Override
    public boolean equals(Object other) {
        return other == this || other instanceof Device device && device.index == index;
    }

    @Override
    public int hashCode() {
        return Objects.hash(index);
    }

    /** {@return "CUDA device 0", or "host memory"} */
    @Override
    public String toString() {
        return isHost() ? "host memory" : cudaName(index);
    }

    static String cudaName(int index) {
        return "CUDA device " + index;
    }
}
