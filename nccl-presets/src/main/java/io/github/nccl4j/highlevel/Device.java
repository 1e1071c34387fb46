package io.github.nccl4j.highlevel;

import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.Element.Float64;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.Element.Int64;
import io.github.nccl4j.highlevel.Element.Int8;
import io.github.nccl4j.internal.cuda.Cuda;
import io.github.nccl4j.internal.cuda.CudaRuntime;
import io.github.nccl4j.internal.cuda.NativeBuffer;
import io.github.nccl4j.internal.cuda.NativeDevice;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.library.NativeLibrary;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;

/**
 * A device on which buffers are allocated and streams run: a CUDA device, or host memory for the host engine.
 *
 * <pre>{@code
 * Device device = Device.ofLocalRank(localRank);
 * try (DeviceBuffer<Float32> buffer = device.copyOf(numbers);
 *         CudaStream stream = CudaStream.nonBlocking(device)) {
 *     ...
 *     stream.synchronize(Duration.ofSeconds(10));
 *     numbers = buffer.toFloatArray();
 * }
 * }</pre>
 *
 * <p>A device owns no resources and is not closed. Instances are immutable, equal if they denote the same device, and
 * may be used by any thread. Calls of this package restore the calling thread's current CUDA device. A thread that has
 * never used CUDA has no current device. It gets the device of the first communicator that it creates or uses: NCCL
 * itself would leave the thread with device 0, and the process with a context there.
 *
 * <p>CUDA is called through JavaCPP Presets CUDA. The program must add the jar of these presets for its platform. The
 * first call of {@link #cuda(int)} searches for CUDA's runtime library with the dynamic linker, then in {@code
 * CUDA_HOME}, {@code CUDA_PATH}, and the usual folders of CUDA's toolkit and of Python's packages. With host memory,
 * CUDA is not loaded.
 *
 * @since 0.1
 */
public final class Device {
    private static final Device HOST = new Device(NativeDevice.HOST);
    private static final Map<Integer, Device> CUDA = new ConcurrentHashMap<>();

    final NativeDevice nativeDevice;

    /** Returns the device of a communicator. */
    static Device of(NativeDevice device) {
        return device.isHost() ? HOST : CUDA.computeIfAbsent(device.number(), number -> new Device(device));
    }

    /** Creates a device without a check; {@link #cuda} checks that the device exists. */
    Device(NativeDevice nativeDevice) {
        this.nativeDevice = nativeDevice;
    }

    /** {@return host memory, for the host engine} */
    public static Device host() {
        return HOST;
    }

    /**
     * Returns a CUDA device, always the same object for the same index. Loads CUDA's runtime and creates the device's
     * primary context, which exists until the process ends.
     *
     * @param index the device's number among the devices that the process sees, from 0
     * @return the device
     * @throws IndexOutOfBoundsException if there is no such device
     * @throws CudaLibraryException if the device exists, but CUDA's runtime or JavaCPP Presets CUDA is missing
     * @throws CudaException if CUDA can't use the device
     */
    public static Device cuda(int index) {
        return of(NativeDevice.cuda(index));
    }

    /**
     * {@return the number of CUDA devices that the process sees; 0 without a driver, in which case CUDA is not loaded}
     */
    public static int cudaCount() {
        return NativeLibrary.gpuCount();
    }

    /**
     * Returns the default device of a program: host memory if the host engine is loaded, else the calling thread's
     * current CUDA device. Loads NCCL's library.
     *
     * @return the device
     * @throws CudaLibraryException if CUDA's runtime or JavaCPP Presets CUDA is missing
     * @throws IndexOutOfBoundsException if the process sees no CUDA device
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

    /**
     * Returns the device of a rank: host memory if the host engine is loaded, else the CUDA device whose number is the
     * local rank modulo the number of visible devices. This is correct for launchers that make all devices of the host
     * visible to each process, and for launchers that make one device visible. Loads NCCL's library.
     *
     * <p>{@link Communicator#fromEnvironment} chooses the same device.
     *
     * @param localRank the number of the rank among those of its host, from 0
     * @return the device
     * @throws IllegalArgumentException if the local rank is negative
     * @throws IndexOutOfBoundsException if the process sees no CUDA device
     * @throws CudaLibraryException if CUDA's runtime or JavaCPP Presets CUDA is missing
     * @throws CudaException if CUDA can't use the device
     */
    public static Device ofLocalRank(int localRank) {
        if (localRank < 0) {
            throw new IllegalArgumentException("localRank must be >= 0: " + localRank);
        }
        return NativeLibrary.engine() == Engine.HOST ? HOST : cuda(localRank % Math.max(1, cudaCount()));
    }

    /** {@return true if this is host memory} */
    public boolean isHost() {
        return nativeDevice.isHost();
    }

    /** {@return true if this is a CUDA device} */
    public boolean isCuda() {
        return !isHost();
    }

    /**
     * Returns the number of a CUDA device.
     *
     * @return the number, from 0
     * @throws IllegalStateException if this is host memory
     */
    public int index() {
        if (isHost()) {
            throw new IllegalStateException("host memory has no device index");
        }
        return nativeDevice.number();
    }

    /**
     * Allocates a buffer, with {@code cudaMalloc} or as aligned host memory. Its contents are undefined.
     *
     * @param <T> the element type
     * @param type the type of the elements
     * @param length the number of elements, possibly 0
     * @return the buffer, to be closed by the caller
     * @throws IllegalArgumentException if the length is negative, or its size in bytes exceeds {@link Long#MAX_VALUE}
     * @throws CudaException if the device has too little memory
     * @throws OutOfMemoryError if the host has too little memory
     */
    public <T extends Element> DeviceBuffer<T> allocate(ElementType<T> type, long length) {
        return new DeviceBuffer<>(this, type, NativeBuffer.allocate(nativeDevice, DeviceBuffer.formatOf(type), length));
    }

    /**
     * Allocates a buffer and copies an array to it. For other element types, use {@link #allocate} and
     * {@link DeviceBuffer#copyFrom(float[])}.
     *
     * @param source the array
     * @return the buffer, to be closed by the caller
     * @throws CudaException if the device has too little memory
     * @throws OutOfMemoryError if the host has too little memory
     * @see DeviceBuffer#toFloatArray
     */
    public DeviceBuffer<Float32> copyOf(float[] source) {
        return filled(ElementType.FLOAT32, source.length, buffer -> buffer.copyFrom(source));
    }

    /**
     * As {@link #copyOf(float[])} with the values of {@link ElementType#FLOAT64}.
     *
     * @param source the array
     * @return the buffer, to be closed by the caller
     */
    public DeviceBuffer<Float64> copyOf(double[] source) {
        return filled(ElementType.FLOAT64, source.length, buffer -> buffer.copyFrom(source));
    }

    /**
     * As {@link #copyOf(float[])} with the values of {@link ElementType#INT32}.
     *
     * @param source the array
     * @return the buffer, to be closed by the caller
     */
    public DeviceBuffer<Int32> copyOf(int[] source) {
        return filled(ElementType.INT32, source.length, buffer -> buffer.copyFrom(source));
    }

    /**
     * As {@link #copyOf(float[])} with the values of {@link ElementType#INT64}.
     *
     * @param source the array
     * @return the buffer, to be closed by the caller
     */
    public DeviceBuffer<Int64> copyOf(long[] source) {
        return filled(ElementType.INT64, source.length, buffer -> buffer.copyFrom(source));
    }

    /**
     * As {@link #copyOf(float[])} with the values of {@link ElementType#INT8}.
     *
     * @param source the array
     * @return the buffer, to be closed by the caller
     */
    public DeviceBuffer<Int8> copyOf(byte[] source) {
        return filled(ElementType.INT8, source.length, buffer -> buffer.copyFrom(source));
    }

    private <T extends Element> DeviceBuffer<T> filled(
            ElementType<T> type, int length, Consumer<DeviceBuffer<T>> copy) {
        DeviceBuffer<T> buffer = allocate(type, length);
        boolean done = false;
        try {
            copy.accept(buffer);
            done = true;
            return buffer;
        } finally {
            if (!done) {
                buffer.close();
            }
        }
    }

    /**
     * Allocates a buffer with {@code ncclMemAlloc}, for windows and registrations. Its contents are undefined. NCCL
     * rounds the size up to its granularity, often 2 MiB.
     *
     * @param <T> the element type
     * @param type the type of the elements
     * @param length the number of elements, possibly 0
     * @return the buffer, to be closed by the caller
     * @throws IllegalArgumentException if the length is negative, or its size in bytes exceeds {@link Long#MAX_VALUE}
     * @throws IllegalStateException if the loaded library does not fit this device: the host engine for a CUDA device,
     *     or another library for host memory
     */
    public <T extends Element> DeviceBuffer<T> allocateForWindow(ElementType<T> type, long length) {
        return new DeviceBuffer<>(
                this, type, NativeBuffer.allocateForWindow(nativeDevice, DeviceBuffer.formatOf(type), length));
    }

    /**
     * Allocates page-locked host memory. Copies between it and a CUDA device are fastest, and {@link
     * DeviceBuffer#copyFromAsync(DeviceBuffer, CudaStream)} does not wait. Its contents are undefined. The operating
     * system can't use the memory for other purposes until the buffer is closed.
     *
     * <pre>{@code
     * try (DeviceBuffer<Float32> staging = device.allocatePinned(ElementType.FLOAT32, 1024)) {
     *     staging.copyFrom(numbers);
     *     buffer.copyFromAsync(staging, stream);
     *     ...
     * }
     * }</pre>
     *
     * @param <T> the element type
     * @param type the type of the elements
     * @param length the number of elements, possibly 0
     * @return the buffer, to be closed by the caller; its {@linkplain DeviceBuffer#device() device} is host memory. If
     *     this device is host memory, the same as {@link #allocate}
     * @throws IllegalArgumentException if the length is negative, or its size in bytes exceeds {@link Long#MAX_VALUE}
     * @throws CudaException if the host has too little memory
     * @see <a href="https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__MEMORY.html">cudaHostAlloc</a>
     */
    public <T extends Element> DeviceBuffer<T> allocatePinned(ElementType<T> type, long length) {
        return new DeviceBuffer<>(
                host(), type, NativeBuffer.allocatePinned(nativeDevice, DeviceBuffer.formatOf(type), length));
    }

    @Override
    public boolean equals(Object other) {
        return other == this || other instanceof Device device && device.nativeDevice.equals(nativeDevice);
    }

    @Override
    public int hashCode() {
        return nativeDevice.hashCode();
    }

    /** {@return "CUDA device 0", or "host memory"} */
    @Override
    public String toString() {
        return nativeDevice.toString();
    }
}
