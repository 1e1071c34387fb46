package io.github.nccl4j.pytorch;

import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element;
import io.github.nccl4j.highlevel.Element.Uint8;
import io.github.nccl4j.highlevel.ElementType;
import java.util.Arrays;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.DeviceGuardImplInterface;
import org.bytedeco.pytorch.LongArrayRef;
import org.bytedeco.pytorch.Stream;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorBase;
import org.bytedeco.pytorch.global.torch;
import org.bytedeco.pytorch.global.torch.DeviceType;
import org.bytedeco.pytorch.global.torch.ScalarType;

/**
 * The memory of a tensor as a {@link DeviceBuffer}, without a copy.
 *
 * <pre>{@code
 * try (TensorBuffer<Float32> weights = TensorBuffer.of(tensor, ElementType.FLOAT32)) {
 *     communicator.allReduce(weights.buffer(), ReduceOp.SUM, TensorBuffer.currentStream(communicator.device()));
 * }
 * }</pre>
 *
 * <p>The tensor must be dense, contiguous, and on the CPU or a CUDA device. A tensor of the CPU is host memory, which the
 * host engine accepts.
 *
 * <p><b>Ownership.</b> An open buffer, and the {@link #buffer()} of it, hold a reference to the tensor's memory, as another
 * {@code Tensor} would. {@link #close()} gives it back, and leaves the tensor as it is: call it when operations on the
 * buffer are done.
 *
 * <p><b>Order.</b> PyTorch works in its {@linkplain #currentStream current stream}. Operations in that stream see the
 * tensor's elements, and later work of PyTorch sees theirs. Autograd does not know of writes: write to no tensor that a
 * backward pass still needs.
 *
 * <p><b>Threads.</b> As {@link DeviceBuffer}.
 *
 * @param <T> the type of the elements
 * @since 0.1
 */
public final class TensorBuffer<T extends Element> implements AutoCloseable {
    private static final Map<ScalarType, ElementType<?>> TYPES = Map.ofEntries(
            Map.entry(ScalarType.Char, ElementType.INT8),
            Map.entry(ScalarType.Byte, ElementType.UINT8),
            Map.entry(ScalarType.Int, ElementType.INT32),
            Map.entry(ScalarType.UInt32, ElementType.UINT32),
            Map.entry(ScalarType.Long, ElementType.INT64),
            Map.entry(ScalarType.UInt64, ElementType.UINT64),
            Map.entry(ScalarType.Half, ElementType.FLOAT16),
            Map.entry(ScalarType.Float, ElementType.FLOAT32),
            Map.entry(ScalarType.Double, ElementType.FLOAT64),
            Map.entry(ScalarType.BFloat16, ElementType.BFLOAT16),
            Map.entry(ScalarType.Float8_e4m3fn, ElementType.FLOAT8E4M3),
            Map.entry(ScalarType.Float8_e5m2, ElementType.FLOAT8E5M2));

    /** A tensor of its own, so that the caller may close theirs. */
    private final Tensor tensor;

    private final DeviceBuffer<T> buffer;

    private TensorBuffer(Tensor tensor, DeviceBuffer<T> buffer) {
        this.tensor = tensor;
        this.buffer = buffer;
    }

    /**
     * Wraps the memory of a tensor whose type is not known at compile time.
     *
     * @param tensor the tensor
     * @return its memory
     * @throws IllegalArgumentException if NCCL has no type for the tensor's elements, or if the tensor is undefined, sparse,
     *     not contiguous, or on another device than the CPU or a GPU
     */
    public static TensorBuffer<?> of(Tensor tensor) {
        requireDefined(tensor);
        return of(tensor, typeOf(tensor.scalar_type()));
    }

    /**
     * Wraps the memory of a tensor.
     *
     * @param <T> the type of the elements
     * @param tensor the tensor
     * @param type the type that its elements must have
     * @return its memory
     * @throws IllegalArgumentException as {@link #of(Tensor)}; also if the tensor has elements of another type
     */
    public static <T extends Element> TensorBuffer<T> of(Tensor tensor, ElementType<T> type) {
        requireDefined(tensor);
        Objects.requireNonNull(type, "type");
        ElementType<?> found = TYPES.get(tensor.scalar_type().intern());
        if (found != type) {
            throw new IllegalArgumentException("tensor must have elements of " + type + ": "
                    + tensor.scalar_type().intern());
        }
        return wrap(tensor, type, tensor.numel());
    }

    /**
     * Wraps the bytes of a tensor, for operations that move elements of any type, also of those that NCCL does not have.
     *
     * @param tensor the tensor
     * @return its bytes
     * @throws IllegalArgumentException as {@link #of(Tensor)}, but for the type
     */
    public static TensorBuffer<Uint8> bytesOf(Tensor tensor) {
        requireDefined(tensor);
        return wrap(tensor, ElementType.UINT8, tensor.numel() * tensor.itemsize());
    }

    /**
     * Returns NCCL's type of the elements of a tensor.
     *
     * @param type PyTorch's type
     * @return the type
     * @throws IllegalArgumentException if NCCL has no such type
     */
    public static ElementType<?> typeOf(ScalarType type) {
        ElementType<?> found = TYPES.get(type.intern());
        if (found == null) {
            throw new IllegalArgumentException("tensor must have elements of one of "
                    + TYPES.keySet().stream().map(Enum::name).sorted().collect(Collectors.joining(", ")) + ": "
                    + type.intern());
        }
        return found;
    }

    /**
     * Returns where a tensor is.
     *
     * @param tensor the tensor
     * @return {@link Device#host()} for a tensor of the CPU
     * @throws IllegalArgumentException if the tensor is undefined, or on another device than the CPU or a GPU
     */
    public static Device deviceOf(Tensor tensor) {
        requireDefined(tensor);
        try (PointerScope scope = new PointerScope()) {
            org.bytedeco.pytorch.Device device = tensor.device();
            if (device.is_cpu()) {
                return Device.host();
            }
            if (device.is_cuda()) {
                return Device.cuda(device.index());
            }
            throw new IllegalArgumentException("tensor must be on the CPU or a CUDA device: "
                    + device.str().getString());
        }
    }

    /**
     * Returns PyTorch's name of a device, for tensors and models that are to be on the communicator's.
     *
     * @param device the device
     * @return the CPU for the host, or the GPU
     */
    public static org.bytedeco.pytorch.Device torchDevice(Device device) {
        return device.isHost()
                ? new org.bytedeco.pytorch.Device(DeviceType.CPU)
                : new org.bytedeco.pytorch.Device(DeviceType.CUDA, (byte) device.index());
    }

    /**
     * Returns the stream in which PyTorch works at present on a device, in the calling thread. A program that makes another
     * stream current asks again.
     *
     * @param device the device
     * @return the default stream of host memory for the host, PyTorch's current stream for a GPU; it need not be closed
     * @throws IllegalStateException if PyTorch's natives have no CUDA
     */
    public static CudaStream currentStream(Device device) {
        if (device.isHost()) {
            return CudaStream.defaultOf(device);
        }
        return CudaStream.wrap(device, cudaStream(device.index()));
    }

    /** Returns the handle of PyTorch's current stream; 0 is the default stream. */
    static long cudaStream(int index) {
        try (PointerScope scope = new PointerScope()) {
            DeviceGuardImplInterface guard = torch.getDeviceGuardImpl(DeviceType.CUDA);
            Stream stream = guard.getStream(new org.bytedeco.pytorch.Device(DeviceType.CUDA, (byte) index));
            Pointer handle = stream.native_handle();
            return handle == null ? 0 : handle.address();
        } catch (RuntimeException missing) {
            throw new IllegalStateException("PyTorch has no current stream of CUDA device " + index, missing);
        }
    }

    private static void requireDefined(Tensor tensor) {
        Objects.requireNonNull(tensor, "tensor");
        if (tensor.isNull() || !tensor.defined()) {
            throw new IllegalArgumentException("tensor must be defined");
        }
    }

    private static <T extends Element> TensorBuffer<T> wrap(Tensor tensor, ElementType<T> type, long length) {
        Device device = deviceOf(tensor);
        requireCompact(tensor);
        try (PointerScope scope = new PointerScope()) {
            Tensor own = new Tensor(tensor).retainReference();
            DeviceBuffer<T> buffer;
            if (length == 0) {
                // PyTorch has no memory for it; no operation reads an address of 0 elements.
                buffer = DeviceBuffer.wrap(device, type, type.sizeInBytes(), 0);
            } else {
                buffer = DeviceBuffer.wrap(device, type, new Memory(own), length);
            }
            return new TensorBuffer<>(own, buffer);
        }
    }

    private static void requireCompact(TensorBase tensor) {
        if (!tensor.has_storage() || tensor.is_sparse() || tensor.is_quantized()) {
            throw new IllegalArgumentException(
                    "tensor must be dense: " + tensor.layout().intern());
        }
        if (tensor.is_conj() || tensor.is_neg()) {
            throw new IllegalArgumentException(
                    "tensor must hold its own elements, not those of a conjugated or negated view"
                            + ": call resolve_conj() or resolve_neg()");
        }
        if (!tensor.is_contiguous()) {
            throw new IllegalArgumentException("tensor must be contiguous: sizes " + text(tensor.sizes()) + ", strides "
                    + text(tensor.strides()) + "; call contiguous()");
        }
    }

    static String text(LongArrayRef numbers) {
        long[] values = new long[(int) numbers.size()];
        for (int i = 0; i < values.length; i++) {
            values[i] = numbers.get(i);
        }
        return Arrays.toString(values);
    }

    /** {@return the memory of the tensor} */
    public DeviceBuffer<T> buffer() {
        return buffer;
    }

    /** {@return the type of the elements} */
    public ElementType<T> type() {
        return buffer.type();
    }

    /** Gives back the reference to the tensor's memory. The tensor stays as it is. */
    @Override
    public void close() {
        if (buffer.isOpen()) {
            buffer.close();
            tensor.close();
        }
    }

    @Override
    public String toString() {
        return "tensor as " + buffer;
    }

    /** The address of a tensor's elements, which keeps the tensor from being collected. */
    private static final class Memory extends Pointer {
        private final Tensor tensor;

        Memory(Tensor tensor) {
            super(tensor.data_ptr());
            this.tensor = tensor;
        }

        @Override
        public String toString() {
            return tensor.toString();
        }
    }
}
