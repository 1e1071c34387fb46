package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.cuda.NativeBuffer;
import io.github.nccl4j.internal.cuda.NativeStream;
import io.github.nccl4j.internal.memory.ElementFormat;
import io.github.nccl4j.internal.memory.Segments;
import io.github.nccl4j.internal.memory.Transfer;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ReadOnlyBufferException;
import java.nio.ShortBuffer;
import java.util.Objects;
import org.bytedeco.javacpp.Pointer;

/**
 * Memory of a device, with elements of one type. All lengths and offsets are in elements.
 *
 * <pre>{@code
 * try (DeviceBuffer<Float16> weights = device.allocate(ElementType.FLOAT16, 1024)) {
 *     weights.fill(1.5);
 *     weights.slice(0, 3).copyFrom(new float[] {1, 2, 3});
 *     float[] numbers = weights.toFloatArray();
 * }
 * }</pre>
 *
 * <p><b>Ownership.</b> A buffer that was allocated owns its memory and frees it when it is closed. Wrapped buffers and
 * slices own nothing. Closing a buffer makes its slices unusable; closing a slice affects no other buffer. The garbage
 * collector does not free a buffer; with {@code -Dnccl4j.leaks=true} a buffer that is dropped without being closed is
 * logged with the stack of its allocation. Every use of a closed buffer throws {@link IllegalStateException}.
 *
 * <p>While a communicator on the same CUDA device has work that timed out or failed, memory is freed only when that
 * communicator is closed or aborted, because CUDA would wait for the work.
 *
 * <p><b>Order.</b> Copies and fills are done when they return. They wait for the work of the default stream and, on a
 * CUDA device, of blocking streams. They do not wait for work on other streams, such as {@link CudaStream#nonBlocking}:
 * synchronize with such a stream before reading elements that it writes or writing elements that it reads. Copies whose
 * name ends in {@code Async} are work in a stream. Closing waits for all work on the CUDA device.
 *
 * <p>Where a copy or a fill waits for operations of a communicator, it obeys that communicator, as {@link
 * CudaStream#synchronize()} does, and throws the same exceptions. So does closing on a CUDA device while a communicator has
 * operations there that are not known to be done, except that an interrupt does not end the wait: a buffer whose closing throws is
 * closed, and its memory is freed when the work has ended.
 *
 * <p><b>Threads.</b> A buffer may be used by any thread. Closing waits for copies and fills of other threads; several
 * threads may close a buffer. If threads write the same elements at once, the result is undefined.
 *
 * @param <T> the type of the elements
 * @since 0.1
 */
public final class DeviceBuffer<T extends Element> implements AutoCloseable {
    final NativeBuffer nativeBuffer;
    private final Device device;
    private final ElementType<T> type;

    DeviceBuffer(Device device, ElementType<T> type, NativeBuffer nativeBuffer) {
        this.device = device;
        this.type = type;
        this.nativeBuffer = nativeBuffer;
    }

    static NativeBuffer nativeOf(DeviceBuffer<?> buffer) {
        return buffer == null ? null : buffer.nativeBuffer;
    }

    static ElementFormat formatOf(ElementType<?> type) {
        return Objects.requireNonNull(type, "type").format;
    }

    /**
     * Wraps memory of other code. That code must keep the memory valid until this buffer is closed, and frees the
     * memory.
     *
     * @param <T> the element type
     * @param device the device of the memory
     * @param type the type of the elements
     * @param address the address of the memory
     * @param length the number of elements
     * @return the buffer
     * @throws IllegalArgumentException if the length is negative or too large, or if the address is 0, not aligned to
     *     the size of an element, or outside the address space of a process
     */
    public static <T extends Element> DeviceBuffer<T> wrap(
            Device device, ElementType<T> type, long address, long length) {
        Objects.requireNonNull(device, "device");
        return new DeviceBuffer<>(
                device, type, NativeBuffer.wrap(device.nativeDevice, formatOf(type), address, length));
    }

    /**
     * As {@link #wrap(Device, ElementType, long, long)} with the memory of a JavaCPP pointer, from its position on. The
     * buffer keeps the pointer from being garbage-collected, but does not free the memory.
     *
     * @param <T> the element type
     * @param device the device of the memory
     * @param type the type of the elements
     * @param pointer the pointer
     * @param length the number of elements
     * @return the buffer
     * @throws IllegalArgumentException as {@link #wrap(Device, ElementType, long, long)}
     * @throws IndexOutOfBoundsException if the pointer has a limit and the elements go beyond it
     */
    public static <T extends Element> DeviceBuffer<T> wrap(
            Device device, ElementType<T> type, Pointer pointer, long length) {
        Objects.requireNonNull(pointer, "pointer");
        Objects.requireNonNull(device, "device");
        return new DeviceBuffer<>(
                device, type, NativeBuffer.wrap(device.nativeDevice, formatOf(type), pointer, length));
    }

    /**
     * As {@link #wrap(Device, ElementType, long, long)} with the memory of a direct NIO buffer, from its position to
     * its limit. The buffer keeps the NIO buffer from being garbage-collected.
     *
     * <p>If the memory is that of a {@code java.lang.foreign.MemorySegment}, the buffer may be used only while the NIO
     * buffer may: until the segment's arena is closed, and in the arena's thread if it has one. Every other use throws
     * {@link IllegalStateException}. The arena must not be closed while a call or work in a stream uses the memory,
     * which this package can't prevent.
     *
     * @param <T> the element type
     * @param type the type of the elements
     * @param memory the NIO buffer; for elements larger than a byte, {@code order(ByteOrder.nativeOrder())}
     * @return the buffer, in host memory
     * @throws IllegalArgumentException if the NIO buffer is not direct, if its remaining bytes or its address are not a
     *     multiple of the size of an element, or if elements are larger than a byte and the NIO buffer has another
     *     byte order than the machine, as a new one has
     * @throws IllegalStateException if the memory can't be accessed, because its arena is closed
     * @throws ReadOnlyBufferException if the NIO buffer is read-only
     */
    public static <T extends Element> DeviceBuffer<T> wrap(ElementType<T> type, ByteBuffer memory) {
        return new DeviceBuffer<>(Device.host(), type, NativeBuffer.wrap(formatOf(type), memory));
    }

    /**
     * As {@link #wrap(ElementType, ByteBuffer)} with the memory of a {@code java.lang.foreign.MemorySegment} of any size,
     * on Java 22 or newer: {@code DeviceBuffer.wrap(FLOAT32, MemorySegment.class, segment)}. Its elements are in the
     * machine's byte order.
     *
     * @param <T> the element type
     * @param <S> the class for the compiler
     * @param type the type of the elements
     * @param segments {@code MemorySegment.class}; this package is compiled for Java 17, which lacks the class
     * @param segment the segment
     * @return the buffer, in host memory
     * @throws UnsupportedOperationException before Java 22
     * @throws IllegalArgumentException if the class is another one, if the segment is not native or is read-only, or if
     *     its size or address is not a multiple of the size of an element
     * @throws IllegalStateException if the memory can't be accessed, because its arena is closed
     */
    public static <T extends Element, S> DeviceBuffer<T> wrap(ElementType<T> type, Class<S> segments, S segment) {
        ElementFormat format = formatOf(type);
        Segments.requireClass(Objects.requireNonNull(segments, "segments"));
        Objects.requireNonNull(segment, "segment");
        return new DeviceBuffer<>(Device.host(), type, NativeBuffer.wrapSegment(format, segment));
    }

    /**
     * Returns the memory as a {@code java.lang.foreign.MemorySegment}, without copying it: {@code
     * buffer.asSegment(MemorySegment.class)}. A segment of host memory has the buffer's size. A segment of a CUDA
     * device, which Java can't read, has size 0 and serves as an address for native functions.
     *
     * <p>The scope of the segment ends when the buffer is closed; that of a slice's segment, when the buffer is closed
     * that has the memory. The segment of a wrapped NIO buffer or segment has the scope of that memory.
     *
     * @param <S> the class for the compiler
     * @param type {@code MemorySegment.class}; this package is compiled for Java 17, which lacks the class
     * @return the segment, for all threads, except that of wrapped memory that belongs to a thread
     * @throws UnsupportedOperationException before Java 22
     * @throws IllegalArgumentException if the type is another class
     * @throws IllegalStateException if the buffer is closed
     */
    public <S> S asSegment(Class<S> type) {
        Segments.requireClass(Objects.requireNonNull(type, "type"));
        return nativeBuffer.asSegment(type);
    }

    /**
     * Returns a part of this buffer. The slice shares the memory and is usable while this buffer is open.
     *
     * @param offset the first element of the slice
     * @param length the number of elements of the slice
     * @return the slice
     * @throws IndexOutOfBoundsException if the slice is not within this buffer
     */
    public DeviceBuffer<T> slice(long offset, long length) {
        return new DeviceBuffer<>(device, type, nativeBuffer.slice(offset, length));
    }

    /** {@return the device of the memory} */
    public Device device() {
        return device;
    }

    /** {@return the type of the elements} */
    public ElementType<T> type() {
        return type;
    }

    /** {@return the number of elements} */
    public long length() {
        return nativeBuffer.length;
    }

    /** {@return the size in bytes} */
    public long sizeInBytes() {
        return nativeBuffer.bytes;
    }

    /** {@return true if closing this buffer frees its memory} */
    public boolean isOwner() {
        return nativeBuffer.isOwner();
    }

    /**
     * {@return true if neither this buffer nor, for a slice, a buffer that contains it is closed, and this thread can access
     * the memory of a wrapped NIO buffer or segment}
     */
    public boolean isOpen() {
        return nativeBuffer.isOpen();
    }

    /**
     * Returns the address of the memory, for native code. It is valid while the buffer is open.
     *
     * @return the address of the first element
     * @throws IllegalStateException if the buffer is closed
     */
    public long address() {
        nativeBuffer.checkOpen();
        return nativeBuffer.address;
    }

    /**
     * Sets every element. All elements are set when this returns.
     *
     * @param value the value: in range for an integer type (as the unsigned bits for {@link ElementType#UINT64}),
     *     rounded to nearest for a float type
     * @throws IllegalArgumentException if the value is out of the range of the integer type
     */
    public void fill(long value) {
        nativeBuffer.fill(type.format.bitsOf(value));
    }

    /**
     * Sets every element. All elements are set when this returns.
     *
     * @param value the value, rounded to nearest, ties to even
     * @throws IllegalArgumentException if the elements are integers
     */
    public void fill(double value) {
        nativeBuffer.fill(type.format.bitsOf(value));
    }

    /**
     * Copies a whole buffer over this one; both must have the same length. To copy a part, use slices. The copy is done
     * when this returns.
     *
     * @param source the buffer to copy, on any device
     * @throws IllegalArgumentException if the lengths or types differ, or if the buffers overlap without being the same
     * @throws IllegalStateException if one of the buffers is closed
     */
    public void copyFrom(DeviceBuffer<T> source) {
        nativeBuffer.copyFrom(Objects.requireNonNull(source, "source").nativeBuffer);
    }

    /**
     * Copies the remaining elements of a NIO buffer to the beginning of this buffer, and sets the NIO buffer's position
     * to its limit. The copy is done when this returns.
     *
     * @param source a buffer of the element type's Java type, in any byte order, or a {@link ByteBuffer} of whole
     *     elements in the device's layout; for elements larger than a byte, {@code order(ByteOrder.nativeOrder())}
     * @throws IllegalArgumentException if the NIO buffer has another type, its bytes are not whole elements, or they are
     *     in another byte order
     * @throws IndexOutOfBoundsException if the NIO buffer has more remaining elements than this buffer
     */
    public void copyFrom(Buffer source) {
        copyFrom(source, 0);
    }

    /**
     * As {@link #copyFrom(Buffer)} with an offset in this buffer.
     *
     * @param source the buffer
     * @param offset the first element of this buffer to write
     * @throws IllegalArgumentException as {@link #copyFrom(Buffer)}
     * @throws IndexOutOfBoundsException if the elements go beyond this buffer
     */
    public void copyFrom(Buffer source, long offset) {
        nativeBuffer.transfer(Objects.requireNonNull(source, "source"), offset, true);
    }

    /**
     * Copies the beginning of this buffer to the remaining elements of a NIO buffer, and sets the NIO buffer's position
     * to its limit. The copy is done when this returns.
     *
     * @param target a buffer as for {@link #copyFrom(Buffer)}
     * @throws IllegalArgumentException as {@link #copyFrom(Buffer)}
     * @throws IndexOutOfBoundsException if the NIO buffer has more remaining elements than this buffer
     * @throws ReadOnlyBufferException if the NIO buffer is read-only
     */
    public void copyTo(Buffer target) {
        copyTo(target, 0);
    }

    /**
     * As {@link #copyTo(Buffer)} with an offset in this buffer.
     *
     * @param target the buffer
     * @param offset the first element of this buffer to read
     * @throws IllegalArgumentException as {@link #copyFrom(Buffer)}
     * @throws IndexOutOfBoundsException if the elements go beyond this buffer
     * @throws ReadOnlyBufferException if the NIO buffer is read-only
     */
    public void copyTo(Buffer target, long offset) {
        nativeBuffer.transfer(writable(target), offset, false);
    }

    /**
     * Copies a whole array to the beginning of this buffer: the values of a float type of 8, 16 or 32 bits, rounded to
     * nearest, ties to even, if the type has 8 or 16 bits. The copy is done when this returns. For a part of an array,
     * or another part of this buffer, use {@link #copyFrom(Buffer, long)} or {@link #slice}.
     *
     * @param source the array
     * @throws IllegalArgumentException if elements of this type are not those of the array in Java
     * @throws IndexOutOfBoundsException if the array is longer than this buffer
     */
    public void copyFrom(float[] source) {
        nativeBuffer.transfer(FloatBuffer.wrap(Objects.requireNonNull(source, "source")), 0, true);
    }

    /**
     * As {@link #copyFrom(float[])} with the values of an 8-bit integer type, or the bits of an 8-bit float type.
     *
     * @param source the array
     */
    public void copyFrom(byte[] source) {
        transferBytes(ByteBuffer.wrap(Objects.requireNonNull(source, "source")), true);
    }

    /**
     * As {@link #copyFrom(float[])} with the bits of a 16-bit float type.
     *
     * @param source the array
     */
    public void copyFrom(short[] source) {
        nativeBuffer.transfer(ShortBuffer.wrap(Objects.requireNonNull(source, "source")), 0, true);
    }

    /**
     * As {@link #copyFrom(float[])} with the values of a 32-bit integer type.
     *
     * @param source the array
     */
    public void copyFrom(int[] source) {
        nativeBuffer.transfer(IntBuffer.wrap(Objects.requireNonNull(source, "source")), 0, true);
    }

    /**
     * As {@link #copyFrom(float[])} with the values of a 64-bit integer type.
     *
     * @param source the array
     */
    public void copyFrom(long[] source) {
        nativeBuffer.transfer(LongBuffer.wrap(Objects.requireNonNull(source, "source")), 0, true);
    }

    /**
     * As {@link #copyFrom(float[])} with the values of {@link ElementType#FLOAT64}.
     *
     * @param source the array
     */
    public void copyFrom(double[] source) {
        nativeBuffer.transfer(DoubleBuffer.wrap(Objects.requireNonNull(source, "source")), 0, true);
    }

    /**
     * Copies the beginning of this buffer to a whole array: the values of a float type of 8, 16 or 32 bits. The copy is
     * done when this returns. For a part of an array, or another part of this buffer, use {@link #copyTo(Buffer, long)}
     * or {@link #slice}.
     *
     * @param target the array
     * @throws IllegalArgumentException if elements of this type are not those of the array in Java
     * @throws IndexOutOfBoundsException if the array is longer than this buffer
     */
    public void copyTo(float[] target) {
        nativeBuffer.transfer(FloatBuffer.wrap(Objects.requireNonNull(target, "target")), 0, false);
    }

    /**
     * As {@link #copyTo(float[])} with the values of an 8-bit integer type, or the bits of an 8-bit float type.
     *
     * @param target the array
     */
    public void copyTo(byte[] target) {
        transferBytes(ByteBuffer.wrap(Objects.requireNonNull(target, "target")), false);
    }

    /**
     * As {@link #copyTo(float[])} with the bits of a 16-bit float type.
     *
     * @param target the array
     */
    public void copyTo(short[] target) {
        nativeBuffer.transfer(ShortBuffer.wrap(Objects.requireNonNull(target, "target")), 0, false);
    }

    /**
     * As {@link #copyTo(float[])} with the values of a 32-bit integer type.
     *
     * @param target the array
     */
    public void copyTo(int[] target) {
        nativeBuffer.transfer(IntBuffer.wrap(Objects.requireNonNull(target, "target")), 0, false);
    }

    /**
     * As {@link #copyTo(float[])} with the values of a 64-bit integer type.
     *
     * @param target the array
     */
    public void copyTo(long[] target) {
        nativeBuffer.transfer(LongBuffer.wrap(Objects.requireNonNull(target, "target")), 0, false);
    }

    /**
     * As {@link #copyTo(float[])} with the values of {@link ElementType#FLOAT64}.
     *
     * @param target the array
     */
    public void copyTo(double[] target) {
        nativeBuffer.transfer(DoubleBuffer.wrap(Objects.requireNonNull(target, "target")), 0, false);
    }

    /**
     * Returns the elements in a new array: the values of a float type of 8, 16 or 32 bits.
     *
     * @return the elements
     * @throws IllegalArgumentException if elements of this type are not those of the array in Java
     * @throws IllegalStateException also if this buffer has more elements than an array
     */
    public float[] toFloatArray() {
        float[] elements = new float[arrayLength()];
        copyTo(elements);
        return elements;
    }

    /**
     * As {@link #toFloatArray} with the values of {@link ElementType#FLOAT64}.
     *
     * @return the elements
     */
    public double[] toDoubleArray() {
        double[] elements = new double[arrayLength()];
        copyTo(elements);
        return elements;
    }

    /**
     * As {@link #toFloatArray} with the values of a 32-bit integer type.
     *
     * @return the elements
     */
    public int[] toIntArray() {
        int[] elements = new int[arrayLength()];
        copyTo(elements);
        return elements;
    }

    /**
     * As {@link #toFloatArray} with the values of a 64-bit integer type.
     *
     * @return the elements
     */
    public long[] toLongArray() {
        long[] elements = new long[arrayLength()];
        copyTo(elements);
        return elements;
    }

    /**
     * As {@link #toFloatArray} with the values of an 8-bit integer type, or the bits of an 8-bit float type.
     *
     * @return the elements
     */
    public byte[] toByteArray() {
        byte[] elements = new byte[arrayLength()];
        copyTo(elements);
        return elements;
    }

    private void transferBytes(ByteBuffer buffer, boolean write) {
        nativeBuffer.checkOpen();
        Transfer.requireByteElements(type.format);
        nativeBuffer.transfer(buffer, 0, write);
    }

    private int arrayLength() {
        if (length() > Integer.MAX_VALUE) {
            throw new IllegalStateException("an array can't have the elements of " + this + ": copy slices");
        }
        return (int) length();
    }

    /**
     * Copies a whole buffer over this one, in stream order, and returns at once. Both must have the same length; to
     * copy a part, use slices.
     *
     * <p>The copy reads the elements that the source has when the earlier work of the stream is done. Until the copy is
     * done, neither buffer may be written, and this buffer may not be read. The buffers may be closed earlier: their
     * memory is freed later then. If one of the buffers is in host memory, CUDA may wait, unless the memory is
     * {@linkplain Device#allocatePinned page-locked}.
     *
     * @param source the buffer to copy, on any device
     * @param stream a stream of this buffer's device or of the source's; of a CUDA device, if one of the buffers is on
     *     a CUDA device
     * @throws IllegalArgumentException if the lengths differ, if the buffers overlap without being the same, or if the
     *     stream belongs to another device
     * @throws IllegalStateException if one of the buffers or the stream is closed
     * @throws CudaException if CUDA can't take the copy; waiting for the stream throws errors of the copy itself
     * @see <a href="https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__MEMORY.html">cudaMemcpyAsync</a>
     */
    public void copyFromAsync(DeviceBuffer<T> source, CudaStream stream) {
        nativeBuffer.copyFromAsync(Objects.requireNonNull(source, "source").nativeBuffer, streamOf(stream));
    }

    /**
     * Copies the remaining elements of a direct NIO buffer to the beginning of this buffer, in stream order, sets the
     * NIO buffer's position to its limit, and returns at once.
     *
     * <p>The source must not be written until the copy is done; until then, it is not garbage-collected. Its memory is
     * not page-locked, so CUDA may wait; use {@link Device#allocatePinned} to avoid that.
     *
     * @param source a direct buffer of the element type's Java type, or a direct {@link ByteBuffer} of whole elements in
     *     the device's layout; for elements larger than a byte, in the machine's byte order
     * @param stream a stream of this buffer's device
     * @throws IllegalArgumentException if the buffer is not direct, has another type or byte order, or has numbers that
     *     must be converted, or its bytes are not whole elements, or if the stream is of another device
     * @throws IndexOutOfBoundsException if the NIO buffer has more remaining elements than this buffer
     * @throws IllegalStateException if this buffer or the stream is closed
     * @throws CudaException if CUDA can't take the copy; waiting for the stream throws errors of the copy itself
     */
    public void copyFromAsync(Buffer source, CudaStream stream) {
        nativeBuffer.transferAsync(Objects.requireNonNull(source, "source"), streamOf(stream), true);
    }

    /**
     * Copies the beginning of this buffer to the remaining elements of a direct NIO buffer, in stream order. As {@link
     * #copyFromAsync(Buffer, CudaStream)} in the other direction: the target's contents are undefined until the copy is
     * done.
     *
     * @param target a direct buffer
     * @param stream a stream of this buffer's device
     * @throws IllegalArgumentException if the buffer is not direct, has another type or byte order, or has numbers that
     *     must be converted, or its bytes are not whole elements, or if the stream is of another device
     * @throws IndexOutOfBoundsException if the NIO buffer has more remaining elements than this buffer
     * @throws ReadOnlyBufferException if the NIO buffer is read-only
     * @throws IllegalStateException if this buffer or the stream is closed
     * @throws CudaException if CUDA can't take the copy; waiting for the stream throws errors of the copy itself
     */
    public void copyToAsync(Buffer target, CudaStream stream) {
        nativeBuffer.transferAsync(writable(target), streamOf(stream), false);
    }

    private static Buffer writable(Buffer target) {
        if (Objects.requireNonNull(target, "target").isReadOnly()) {
            throw new ReadOnlyBufferException();
        }
        return target;
    }

    private static NativeStream streamOf(CudaStream stream) {
        return Objects.requireNonNull(stream, "stream").nativeStream;
    }

    /**
     * Closes this buffer and its slices. If this buffer owns the memory, frees the memory: at once, after all work on
     * the CUDA device, or later, if an asynchronous operation of this package still uses the memory. Waits for copies
     * of other threads. Segments of {@link #asSegment} end with the buffer that has the memory. Does nothing if the
     * buffer is closed already.
     *
     * @throws IllegalStateException if a native function or a channel uses a segment of this buffer at the moment; the
     *     buffer stays open
     * @throws CudaException if CUDA reports an error, possibly of earlier work; the buffer is closed nevertheless
     */
    @Override
    public void close() {
        nativeBuffer.close();
    }

    /** {@return a description: "DeviceBuffer of 1024 float32 on CUDA device 0"} */
    @Override
    public String toString() {
        return nativeBuffer.toString();
    }
}
