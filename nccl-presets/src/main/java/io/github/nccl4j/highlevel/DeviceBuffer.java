package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.cuda.MemoryAllocation;
import io.github.nccl4j.internal.cuda.MemoryCopy;
import io.github.nccl4j.internal.cuda.NativeGraph;
import io.github.nccl4j.internal.cuda.NativeStream;
import io.github.nccl4j.internal.cuda.PendingOperations;
import io.github.nccl4j.internal.cuda.PendingReleases;
import io.github.nccl4j.internal.memory.Bounds;
import io.github.nccl4j.internal.memory.ElementFormat;
import io.github.nccl4j.internal.memory.Lifetime;
import io.github.nccl4j.internal.memory.Segments;
import io.github.nccl4j.internal.memory.Transfer;
import java.lang.ref.Reference;
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
    final Device device;
    final ElementType<T> type;
    /** Valid only after {@link #checkOpen()}. */
    final long address;

    final long length;
    final long bytes;
    final int typeCode;
    /** Device and element type in one number, so that one comparison covers both. */
    final int kind;
    /** The buffer that this is a slice of, else null. */
    private final DeviceBuffer<T> parent;
    /** The buffer that holds the memory: this one, or the root of this slice. */
    private final DeviceBuffer<T> root;
    /** Frees the memory; null if the buffer does not own it. */
    private final Runnable free;
    /** A foreign object that keeps the memory alive, or null. */
    private final Object keptAlive;
    /** True if NCCL allocated the memory. */
    private final boolean windowMemory;

    private final Lifetime lifetime = new Lifetime(this);
    /** The segments of the memory; null if there are none. Used in roots only, guarded by the lifetime. */
    private Segments segments;

    /** {@link Lifetime#CLOSED} or 0. For hot paths, which save a load of the lifetime. */
    private int closed;
    /**
     * A batch that has a pin; used in roots only. Not volatile: a batch compares this with itself only, and clears it
     * before it ends its pin. A batch that was overwritten here pins once more.
     */
    private Object pinnedBy;

    private DeviceBuffer(
            Device device,
            ElementType<T> type,
            long address,
            long length,
            DeviceBuffer<T> parent,
            Runnable free,
            Object keptAlive,
            boolean windowMemory) {
        this.device = device;
        this.type = type;
        this.address = address;
        this.length = length;
        bytes = length * type.sizeInBytes();
        typeCode = type.nativeCode();
        kind = device.nativeDevice.code() | typeCode;
        this.parent = parent;
        root = parent == null ? this : parent.root;
        this.free = free;
        this.keptAlive = keptAlive;
        this.windowMemory = windowMemory;
        if (free != null) {
            lifetime.watch(this, toString());
        }
    }

    private static ElementFormat formatOf(ElementType<?> type) {
        return Objects.requireNonNull(type, "type").format;
    }

    static <T extends Element> DeviceBuffer<T> allocate(Device device, ElementType<T> type, long length) {
        return owner(
                device,
                type,
                length,
                MemoryAllocation.allocate(device.nativeDevice, MemoryAllocation.allocatedBytes(formatOf(type), length)),
                false);
    }

    static <T extends Element> DeviceBuffer<T> allocatePinned(Device device, ElementType<T> type, long length) {
        return owner(
                Device.host(),
                type,
                length,
                MemoryAllocation.allocatePinned(
                        device.nativeDevice, MemoryAllocation.allocatedBytes(formatOf(type), length)),
                false);
    }

    static <T extends Element> DeviceBuffer<T> allocateForWindow(Device device, ElementType<T> type, long length) {
        return owner(
                device,
                type,
                length,
                MemoryAllocation.allocateForWindow(
                        device.nativeDevice, MemoryAllocation.allocatedBytes(formatOf(type), length)),
                true);
    }

    private static <T extends Element> DeviceBuffer<T> owner(
            Device device, ElementType<T> type, long length, MemoryAllocation memory, boolean windowMemory) {
        return new DeviceBuffer<>(device, type, memory.address(), length, null, memory.free(), null, windowMemory);
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
        return wrap(device, type, address, length, null);
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
        return wrap(device, type, MemoryAllocation.addressOf(formatOf(type), pointer, length), length, pointer);
    }

    private static <T extends Element> DeviceBuffer<T> wrap(
            Device device, ElementType<T> type, long address, long length, Object keptAlive) {
        Objects.requireNonNull(device, "device");
        MemoryAllocation.checkWrapped(formatOf(type), address, length);
        return new DeviceBuffer<>(device, type, address, length, null, null, keptAlive, false);
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
        long address = MemoryAllocation.addressOf(formatOf(type), memory);
        DeviceBuffer<T> whole =
                wrap(Device.host(), type, address, memory.remaining() / type.sizeInBytes(), memory.slice());
        // A slice, since slices alone check the memory that they are in: plain buffers pay nothing for it.
        DeviceBuffer<T> buffer = whole.slice(0, whole.length);
        buffer.checkOpen();
        return buffer;
    }

    /** Wraps memory that other code frees when this buffer is closed. */
    static <T extends Element> DeviceBuffer<T> take(
            Device device, ElementType<T> type, long address, long length, Runnable free) {
        Bounds.checkAddress("address", address, MemoryAllocation.bytes(formatOf(type), length));
        return owner(device, type, length, MemoryAllocation.of(device.nativeDevice, address, free), false);
    }

    /**
     * Returns the memory as a {@code java.lang.foreign.MemorySegment}, without copying it: {@code
     * buffer.asSegment(MemorySegment.class)}. A segment of host memory has the buffer's size. A segment of a CUDA
     * device, which Java can't read, has size 0 and serves as an address for native functions.
     *
     * <p>The scope of the segment ends when the buffer is closed; that of a slice's segment, when the buffer is closed
     * that has the memory. The segment of a wrapped NIO buffer has the scope of that buffer's memory.
     *
     * @param <S> the class for the compiler
     * @param type {@code MemorySegment.class}; this package is compiled for Java 17, which lacks the class
     * @return the segment, for all threads, except that of a wrapped NIO buffer that belongs to a thread
     * @throws UnsupportedOperationException before Java 22
     * @throws IllegalArgumentException if the type is another class
     * @throws IllegalStateException if the buffer is closed
     */
    public <S> S asSegment(Class<S> type) {
        Segments.requireClass(Objects.requireNonNull(type, "type"));
        synchronized (root.lifetime) {
            checkOpen();
            if (root.keptAlive instanceof ByteBuffer memory) {
                return Segments.of(type, memory.slice((int) (address - root.address), (int) bytes));
            } else if (root.closed != 0) {
                throw new IllegalStateException(root + " is closed");
            } else if (root.segments == null) {
                root.segments = new Segments();
            }
            return root.segments.of(type, address, device.isHost() ? bytes : 0);
        }
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
        checkOpen();
        Bounds.check("offset", offset, length, "length()", this.length);
        return new DeviceBuffer<>(device, type, address + offset * type.sizeInBytes(), length, this, null, null, false);
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
        return length;
    }

    /** {@return the size in bytes} */
    public long sizeInBytes() {
        return bytes;
    }

    /** {@return true if closing this buffer frees its memory} */
    public boolean isOwner() {
        return free != null;
    }

    /**
     * Returns true if the memory may be registered as a window: NCCL's own memory, or wrapped memory, whose allocator
     * is unknown here.
     */
    boolean canBeWindow() {
        return root.windowMemory || root.free == null;
    }

    /**
     * {@return true if neither this buffer nor, for a slice, a buffer that contains it is closed, and this thread can access
     * the memory of a wrapped NIO buffer}
     */
    public boolean isOpen() {
        for (DeviceBuffer<T> buffer = this; buffer != null; buffer = buffer.parent) {
            if (!buffer.lifetime.isOpen()) {
                return false;
            }
        }
        return root.problemOfMemory() == null;
    }

    /**
     * Returns the address of the memory, for native code. It is valid while the buffer is open.
     *
     * @return the address of the first element
     * @throws IllegalStateException if the buffer is closed
     */
    public long address() {
        checkOpen();
        return address;
    }

    /** Returns the address of an element, unchecked. */
    long addressOf(long offset) {
        return address + offset * type.sizeInBytes();
    }

    /**
     * Returns a negative number if the buffer is closed; for callers that combine several checks. A close in another
     * thread is seen by the next operation, which begins with a volatile read.
     */
    int state() {
        return parent == null ? closed : closed | parent.stateForSlice();
    }

    private int stateForSlice() {
        return problemOfMemory() == null ? state() : Lifetime.CLOSED;
    }

    /** Returns true if both are known to be in one allocation: parts of one buffer. */
    boolean sharesMemory(DeviceBuffer<?> other) {
        return other.root == root;
    }

    /** Returns the number of pins of the memory. */
    int pins() {
        return root.lifetime.pins();
    }

    /** Throws if the buffer is closed. Takes no lock and allocates nothing; the caller must keep the buffer open. */
    void checkOpen() {
        lifetime.check();
        // Not a loop: hot paths check buffers, and few are slices.
        if (parent != null) {
            parent.checkOpen();
            parent.checkMemory();
        }
    }

    /** Throws if the memory is that of a NIO buffer that can't be accessed any more. */
    void checkMemory() {
        RuntimeException problem = root.problemOfMemory();
        if (problem != null) {
            throw new IllegalStateException(
                    "the memory of " + this + " can't be accessed: " + problem.getMessage(), problem);
        }
    }

    /**
     * Returns why the memory of a NIO buffer can't be accessed: its arena was closed, or belongs to another thread.
     * Returns null for all other memory.
     */
    private RuntimeException problemOfMemory() {
        if (keptAlive instanceof ByteBuffer memory && memory.hasRemaining()) {
            try {
                memory.get(0);
            } catch (RuntimeException inaccessible) {
                return inaccessible;
            }
        }
        return null;
    }

    /** Begins a use of the memory, which prevents it from being freed. */
    private DeviceBuffer<T> acquire() {
        if (device.isHost()) {
            PendingOperations.awaitDefaultOfHost();
        }
        root.lifetime.acquire();
        try {
            checkOpen();
        } catch (IllegalStateException closed) {
            root.lifetime.release();
            throw closed;
        }
        return root;
    }

    /**
     * Prevents {@link #close()} from freeing the memory until {@link #unpin()}, for work that continues after the call.
     * The caller also keeps a reference to this buffer. Takes no lock and allocates nothing.
     *
     * @throws IllegalStateException if this buffer or a buffer that it is a slice of is closed
     */
    void pin() {
        root.lifetime.pin();
        try {
            checkOpen();
        } catch (IllegalStateException closed) {
            root.lifetime.unpin();
            throw closed;
        }
    }

    /** Pins this buffer and another one, which may be in the same memory; {@link #unpinBoth} ends the pins. */
    void pinBoth(DeviceBuffer<?> other) {
        pin();
        try {
            if (other.root == root) {
                other.checkOpen();
            } else {
                other.pin();
            }
        } catch (IllegalStateException closed) {
            unpin();
            throw closed;
        }
    }

    void unpinBoth(DeviceBuffer<?> other) {
        if (other.root != root) {
            other.unpin();
        }
        unpin();
    }

    /** Returns true if a batch has a pin of {@link #pinFor}. May return false although it has one. */
    boolean isPinnedFor(Object batch) {
        return root.pinnedBy == batch;
    }

    /** As {@link #pin}, but records the batch, which need not pin again for each of its operations. */
    void pinFor(Object batch) {
        pin();
        root.pinnedBy = batch;
    }

    /** Ends a pin of {@link #pinFor}. */
    void unpinFromBatch() {
        root.pinnedBy = null;
        unpin();
    }

    /** Keeps the memory while a graph may use it. */
    void keepFor(NativeGraph graph) {
        pin();
        graph.keep(this::unpin);
    }

    /** Ends a pin, in any thread. Frees the memory if the owner is closed and this was the last pin. */
    void unpin() {
        root.lifetime.unpin();
        Reference.reachabilityFence(root.keptAlive);
    }

    private static void release(DeviceBuffer<?> root) {
        root.lifetime.release();
        Reference.reachabilityFence(root.keptAlive);
    }

    /**
     * Sets every element. All elements are set when this returns.
     *
     * @param value the value: in range for an integer type (as the unsigned bits for {@link ElementType#UINT64}),
     *     rounded to nearest for a float type
     * @throws IllegalArgumentException if the value is out of the range of the integer type
     */
    public void fill(long value) {
        fillBits(type.format.bitsOf(value));
    }

    /**
     * Sets every element. All elements are set when this returns.
     *
     * @param value the value, rounded to nearest, ties to even
     * @throws IllegalArgumentException if the elements are integers
     */
    public void fill(double value) {
        fillBits(type.format.bitsOf(value));
    }

    private void fillBits(long bits) {
        DeviceBuffer<T> root = acquire();
        try {
            MemoryCopy.fill(device.nativeDevice, address, length, type.sizeInBytes(), bits);
        } finally {
            release(root);
        }
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
        requireLike(source);
        // One lock order for all pairs of buffers, so that two copies and the closing of both buffers cannot deadlock.
        boolean thisFirst = root.lifetime.isBefore(source.root.lifetime);
        DeviceBuffer<T> first = (thisFirst ? this : source).acquire();
        try {
            DeviceBuffer<T> second = (thisFirst ? source : this).acquire();
            try {
                copyOpen(source);
            } finally {
                release(second);
            }
        } finally {
            release(first);
        }
    }

    private void requireLike(DeviceBuffer<T> source) {
        Objects.requireNonNull(source, "source");
        if (source.length != length) {
            throw new IllegalArgumentException("source.length() must be length(): " + source.length + " != " + length);
        }
        if (source.type != type) {
            // Possible with raw types; a larger element type would be accessed beyond its memory.
            throw new IllegalArgumentException(
                    "source and this buffer must have the same element type: " + source.type + ", " + type);
        }
    }

    private void requireNoOverlap(DeviceBuffer<T> source) {
        if (device.equals(source.device)
                && address != source.address
                && Math.abs(address - source.address) < sizeInBytes()) {
            throw new IllegalArgumentException("buffers overlap without being the same: "
                    + Bounds.range(source.address, bytes) + " and " + Bounds.range(address, bytes));
        }
    }

    private void copyOpen(DeviceBuffer<T> source) {
        long bytes = sizeInBytes();
        requireNoOverlap(source);
        if (bytes == 0 || address == source.address) {
            return;
        }
        if (device.isHost() && source.device.isCuda()) {
            MemoryCopy.copy(source.device.nativeDevice, address, source.address, bytes);
        } else {
            MemoryCopy.copy(device.nativeDevice, address, source.address, bytes);
        }
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
     * @throws IllegalArgumentException if the NIO buffer has another type, its bytes are not whole elements, or they are
     *     in another byte order
     * @throws IndexOutOfBoundsException if the elements go beyond this buffer
     */
    public void copyFrom(Buffer source, long offset) {
        Objects.requireNonNull(source, "source");
        transfer(source, offset, true);
        source.position(source.limit());
    }

    /**
     * Copies the beginning of this buffer to the remaining elements of a NIO buffer, and sets the NIO buffer's position
     * to its limit. The copy is done when this returns.
     *
     * @param target a buffer as for {@link #copyFrom(Buffer)}
     * @throws IllegalArgumentException if the NIO buffer has another type, its bytes are not whole elements, or they are
     *     in another byte order
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
     * @throws IllegalArgumentException if the NIO buffer has another type, its bytes are not whole elements, or they are
     *     in another byte order
     * @throws IndexOutOfBoundsException if the elements go beyond this buffer
     * @throws ReadOnlyBufferException if the NIO buffer is read-only
     */
    public void copyTo(Buffer target, long offset) {
        Objects.requireNonNull(target, "target");
        if (target.isReadOnly()) {
            throw new ReadOnlyBufferException();
        }
        transfer(target, offset, false);
        target.position(target.limit());
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
        Objects.requireNonNull(source, "source");
        transfer(FloatBuffer.wrap(source), 0, true);
    }

    /**
     * As {@link #copyFrom(float[])} with the values of an 8-bit integer type, or the bits of an 8-bit float type.
     *
     * @param source the array
     */
    public void copyFrom(byte[] source) {
        Objects.requireNonNull(source, "source");
        checkOpen();
        Transfer.requireByteElements(type.format);
        transfer(ByteBuffer.wrap(source), 0, true);
    }

    /**
     * As {@link #copyFrom(float[])} with the bits of a 16-bit float type.
     *
     * @param source the array
     */
    public void copyFrom(short[] source) {
        Objects.requireNonNull(source, "source");
        transfer(ShortBuffer.wrap(source), 0, true);
    }

    /**
     * As {@link #copyFrom(float[])} with the values of a 32-bit integer type.
     *
     * @param source the array
     */
    public void copyFrom(int[] source) {
        Objects.requireNonNull(source, "source");
        transfer(IntBuffer.wrap(source), 0, true);
    }

    /**
     * As {@link #copyFrom(float[])} with the values of a 64-bit integer type.
     *
     * @param source the array
     */
    public void copyFrom(long[] source) {
        Objects.requireNonNull(source, "source");
        transfer(LongBuffer.wrap(source), 0, true);
    }

    /**
     * As {@link #copyFrom(float[])} with the values of {@link ElementType#FLOAT64}.
     *
     * @param source the array
     */
    public void copyFrom(double[] source) {
        Objects.requireNonNull(source, "source");
        transfer(DoubleBuffer.wrap(source), 0, true);
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
        Objects.requireNonNull(target, "target");
        transfer(FloatBuffer.wrap(target), 0, false);
    }

    /**
     * As {@link #copyTo(float[])} with the values of an 8-bit integer type, or the bits of an 8-bit float type.
     *
     * @param target the array
     */
    public void copyTo(byte[] target) {
        Objects.requireNonNull(target, "target");
        checkOpen();
        Transfer.requireByteElements(type.format);
        transfer(ByteBuffer.wrap(target), 0, false);
    }

    /**
     * As {@link #copyTo(float[])} with the bits of a 16-bit float type.
     *
     * @param target the array
     */
    public void copyTo(short[] target) {
        Objects.requireNonNull(target, "target");
        transfer(ShortBuffer.wrap(target), 0, false);
    }

    /**
     * As {@link #copyTo(float[])} with the values of a 32-bit integer type.
     *
     * @param target the array
     */
    public void copyTo(int[] target) {
        Objects.requireNonNull(target, "target");
        transfer(IntBuffer.wrap(target), 0, false);
    }

    /**
     * As {@link #copyTo(float[])} with the values of a 64-bit integer type.
     *
     * @param target the array
     */
    public void copyTo(long[] target) {
        Objects.requireNonNull(target, "target");
        transfer(LongBuffer.wrap(target), 0, false);
    }

    /**
     * As {@link #copyTo(float[])} with the values of {@link ElementType#FLOAT64}.
     *
     * @param target the array
     */
    public void copyTo(double[] target) {
        Objects.requireNonNull(target, "target");
        transfer(DoubleBuffer.wrap(target), 0, false);
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

    private int arrayLength() {
        if (length > Integer.MAX_VALUE) {
            throw new IllegalStateException("an array can't have the elements of " + this + ": copy slices");
        }
        return (int) length;
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
        requireLike(source);
        NativeStream queue = requireStream(stream, source.device, device);
        checkOpen();
        source.checkOpen();
        requireNoOverlap(source);
        if (isForeign() && source.isForeign()) {
            MemoryCopy.enqueue(queue, address, source.address, sizeInBytes(), null);
            return;
        }
        pin();
        try {
            source.pin();
        } catch (IllegalStateException closed) {
            unpin();
            throw closed;
        }
        MemoryCopy.enqueue(queue, address, source.address, sizeInBytes(), () -> {
            source.unpin();
            unpin();
        });
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
        Objects.requireNonNull(source, "source");
        transferAsync(source, stream, true);
        source.position(source.limit());
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
        Objects.requireNonNull(target, "target");
        if (target.isReadOnly()) {
            throw new ReadOnlyBufferException();
        }
        transferAsync(target, stream, false);
        target.position(target.limit());
    }

    private static NativeStream requireStream(CudaStream stream, Device source, Device target) {
        NativeStream queue = Objects.requireNonNull(stream, "stream").nativeStream;
        MemoryCopy.requireStream(queue, source.nativeDevice, target.nativeDevice);
        return queue;
    }

    private void transferAsync(Buffer buffer, CudaStream stream, boolean write) {
        NativeStream queue = requireStream(stream, write ? Device.host() : device, write ? device : Device.host());
        checkOpen();
        int count = Transfer.elements(type.format, buffer);
        Bounds.check("offset", 0, count, "length()", length);
        MemoryCopy.requireAsynchronous(type.format, buffer);
        long memory = MemoryCopy.addressOf(type.format, buffer);
        pin();
        MemoryCopy.enqueue(
                queue, write ? address : memory, write ? memory : address, (long) count * type.sizeInBytes(), () -> {
                    Reference.reachabilityFence(buffer);
                    unpin();
                });
    }

    /** Returns true if other code controls the lifetime of the memory: a copy needs no pin and no event for it. */
    private boolean isForeign() {
        return root.free == null && root.keptAlive == null;
    }

    private void transfer(Buffer buffer, long offset, boolean write) {
        checkOpen();
        int count = Transfer.elements(type.format, buffer);
        Bounds.check("offset", offset, count, "length()", length);
        DeviceBuffer<T> root = acquire();
        try {
            MemoryCopy.transfer(device.nativeDevice, type.format, addressOf(offset), buffer, count, write);
        } finally {
            release(root);
        }
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
        synchronized (lifetime) {
            if (segments != null) {
                endSegments();
            }
            closed = Lifetime.CLOSED;
        }
        lifetime.close(free == null ? () -> {} : free);
        PendingReleases.poll();
    }

    private void endSegments() {
        try {
            segments.close();
        } catch (IllegalStateException used) {
            throw new IllegalStateException(this + " can't be closed while its segment is used", used);
        }
        segments = null;
    }

    /** {@return a description: "DeviceBuffer of 1024 float32 on CUDA device 0"} */
    @Override
    public String toString() {
        return "DeviceBuffer of " + length + " " + type + " on " + device;
    }
}
