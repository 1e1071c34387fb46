package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.binding.DlpackTensors;
import io.github.nccl4j.internal.cuda.NativeBuffer;
import io.github.nccl4j.internal.cuda.NativeGraph;
import io.github.nccl4j.internal.cuda.PendingReleases;
import io.github.nccl4j.internal.memory.Address;
import io.github.nccl4j.internal.memory.DlpackTensor;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * DLPack's structs, by which tensor libraries share memory without copying it. A tensor is passed as the address of a
 * {@code DLManagedTensorVersioned} or a {@code DLManagedTensor}.
 *
 * <pre>{@code
 * long tensor = Dlpack.VERSIONED.export(buffer); // to another library, which calls its deleter in the end
 *
 * try (DeviceBuffer<Float32> theirs = Dlpack.VERSIONED.take(tensor, ElementType.FLOAT32)) {
 *     communicator.allReduce(theirs, ReduceOp.SUM, stream);
 * }
 * }</pre>
 *
 * <p><b>Ownership.</b> A struct has one owner, which calls its deleter once. {@link #export} gives the struct to the
 * caller, which passes it to a consumer or calls {@link #delete}. Until the deleter is called, the buffer's memory is
 * kept, even if the buffer is closed; a later call that allocates, closes or exports frees the memory. {@link #take}
 * takes ownership, and closing the buffer calls the deleter. If {@link #take} fails, the caller still owns the struct.
 *
 * <p><b>Order.</b> DLPack's structs name no stream: synchronize before exporting a buffer and after taking a tensor.
 *
 * <p>Instances are immutable. All methods may be called from any thread.
 *
 * @see <a href="https://dmlc.github.io/dlpack/latest/">DLPack</a>
 * @since 0.1
 */
public enum Dlpack {
    /** {@code DLManagedTensor}, in capsules named "dltensor": the only struct before DLPack 1.0. */
    UNVERSIONED(0, -1),

    /** {@code DLManagedTensorVersioned}, in capsules named "dltensor_versioned": since DLPack 1.0. */
    VERSIONED(32, 24);

    private static final int SUPPORTED_MAJOR = 1;
    private static final long READ_ONLY = 1;

    /** DLPack's type codes; types also differ by their size in bits. */
    private static final Map<DataType, Integer> CODES = Map.ofEntries(
            Map.entry(DataType.INT8, 0),
            Map.entry(DataType.UINT8, 1),
            Map.entry(DataType.INT32, 0),
            Map.entry(DataType.UINT32, 1),
            Map.entry(DataType.INT64, 0),
            Map.entry(DataType.UINT64, 1),
            Map.entry(DataType.FLOAT16, 2),
            Map.entry(DataType.FLOAT32, 2),
            Map.entry(DataType.FLOAT64, 2),
            Map.entry(DataType.BFLOAT16, 4),
            Map.entry(DataType.FLOAT8_E4M3, 10),
            Map.entry(DataType.FLOAT8_E5M2, 12));

    /** Tensors whose consumers may still use the memory of the buffers. */
    private static final List<Export> EXPORTS = new ArrayList<>();

    private static volatile boolean anyExport;

    static {
        PendingReleases.pollAlso(Dlpack::poll);
    }

    private final int tensorOffset;
    private final int flagsOffset;

    Dlpack(int tensorOffset, int flagsOffset) {
        this.tensorOffset = tensorOffset;
        this.flagsOffset = flagsOffset;
    }

    private record Export(long address, NativeBuffer buffer) {}

    /**
     * Exports a buffer as a tensor of one dimension, without copying it.
     *
     * @param buffer the buffer
     * @return the address of the struct, owned by the caller
     * @throws IllegalStateException if the buffer is closed
     */
    public long export(DeviceBuffer<?> buffer) {
        Objects.requireNonNull(buffer, "buffer");
        poll();
        NativeBuffer memory = buffer.nativeBuffer;
        memory.pin();
        DataType type = buffer.type().dataType();
        long address = DlpackTensors.export(
                memory.address,
                memory.length,
                buffer.device().isCuda() ? DlpackTensor.CUDA : DlpackTensor.CPU,
                buffer.device().isCuda() ? buffer.device().index() : 0,
                CODES.get(type),
                type.size() * Byte.SIZE,
                this == VERSIONED);
        synchronized (EXPORTS) {
            EXPORTS.add(new Export(address, memory));
            anyExport = true;
        }
        return address;
    }

    /**
     * Takes ownership of a tensor and returns a buffer of all its elements, without copying it. Closing the buffer
     * calls the deleter, on a CUDA device after all work there.
     *
     * @param <T> the type for the compiler
     * @param address the address of the struct
     * @param type the type of the elements
     * @return the buffer, to be closed by the caller
     * @throws IllegalArgumentException if the elements have another type, are not compact in row-major order, are
     *     read-only, or are on another kind of device, or if the struct has a newer major version; the caller still
     *     owns the tensor then
     */
    public <T extends Element> DeviceBuffer<T> take(long address, ElementType<T> type) {
        Objects.requireNonNull(type, "type");
        DlpackTensor tensor = read(address);
        DataType wanted = type.dataType();
        DlpackTensor.Type found = tensor.type();
        if (!found.equals(new DlpackTensor.Type(CODES.get(wanted), wanted.size() * Byte.SIZE, 1))) {
            throw new IllegalArgumentException("the tensor must be of type " + type + " (code " + CODES.get(wanted)
                    + ", " + wanted.size() * Byte.SIZE + " bits): code " + found.code() + ", " + found.bits()
                    + " bits, " + found.lanes() + " lanes");
        }
        long length = tensor.length();
        Device device = deviceOf(tensor);
        long elements = tensor.data() + tensor.byteOffset();
        Runnable delete = () -> delete(address);
        return new DeviceBuffer<>(
                device, type, NativeBuffer.take(device.nativeDevice, type.format, elements, length, delete));
    }

    /**
     * Returns the sizes of a tensor's dimensions, which a buffer does not store.
     *
     * @param address the address of the struct
     * @return the sizes; empty for a scalar
     * @throws IllegalArgumentException if the struct has a newer major version
     */
    public long[] shape(long address) {
        return read(address).shape();
    }

    /**
     * Calls the deleter of a tensor that was exported and not passed on, or of a tensor of another library.
     *
     * @param address the address of the struct; it must not be used afterwards
     */
    public void delete(long address) {
        requireAddress(address);
        DlpackTensors.delete(address, this == VERSIONED);
        poll();
    }

    private static Device deviceOf(DlpackTensor tensor) {
        return switch (tensor.deviceType()) {
            case DlpackTensor.CPU, DlpackTensor.CUDA_HOST -> Device.host();
            case DlpackTensor.CUDA, DlpackTensor.CUDA_MANAGED -> Device.cuda(tensor.deviceId());
            default ->
                throw new IllegalArgumentException("the tensor must be in host memory or on a CUDA device"
                        + " (DLPack's device types 1, 2, 3, 13): " + tensor.deviceType());
        };
    }

    private DlpackTensor read(long address) {
        requireAddress(address);
        ByteBuffer struct = Address.buffer(address, tensorOffset + DlpackTensor.BYTES);
        if (this == VERSIONED) {
            int major = struct.getInt(0);
            if (major != SUPPORTED_MAJOR) {
                throw new IllegalArgumentException(
                        "the tensor must be of DLPack " + SUPPORTED_MAJOR + ".x: " + major + "." + struct.getInt(4));
            }
            if ((struct.getLong(flagsOffset) & READ_ONLY) != 0) {
                throw new IllegalArgumentException("the tensor must not be read-only");
            }
        }
        return DlpackTensor.read(struct, tensorOffset);
    }

    private static void requireAddress(long address) {
        if (address == 0) {
            throw new IllegalArgumentException("address must not be 0");
        }
    }

    /** Unpins the buffers of tensors that their consumers have deleted. */
    static void poll() {
        // Freeing memory waits for the device, which would end a capture.
        if (!anyExport || NativeGraph.isThreadCapturing()) {
            return;
        }
        List<Export> done = new ArrayList<>();
        synchronized (EXPORTS) {
            EXPORTS.removeIf(export -> DlpackTensors.isReleased(export.address()) && done.add(export));
            anyExport = !EXPORTS.isEmpty();
        }
        done.forEach(export -> export.buffer().unpin());
    }
}
