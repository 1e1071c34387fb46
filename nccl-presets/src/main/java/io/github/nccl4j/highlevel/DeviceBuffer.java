package io.github.nccl4j.highlevel;

import io.github.nccl4j.library.Engine;
import io.github.nccl4j.library.NativeLibrary;
import java.lang.ref.Reference;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ReadOnlyBufferException;
import java.nio.ShortBuffer;
import java.util.Objects;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.Pointer;

/**
 * Memory of a device, as elements of one type. All lengths and offsets are in elements.
 *
 * <pre>{@code
 * try (DeviceBuffer<Float16> weights = device.allocate(ElementType.FLOAT16, 1024)) {
 *     weights.fill(1.5);
 *     weights.slice(0, 3).copyFrom(new float[] {1, 2, 3});
 *     float[] numbers = new float[1024];
 *     weights.copyTo(numbers);
 * }
 * }</pre>
 *
 * <p><b>Ownership.</b> A buffer that was allocated owns its memory and frees it when closed. Wrapped memory and slices
 * are not owned. Closing a buffer makes all slices of it unusable; closing a slice closes nothing else. A buffer is not
 * freed by the garbage collector; with {@code -Dnccl4j.leaks=true} one that was dropped is logged, with the stack that
 * allocated it. Every use of a closed buffer is an {@link IllegalStateException}.
 *
 * <p>While a communicator on the same CUDA device has work that was not done in time, or has failed, memory is freed only
 * when that communicator was closed or aborted: CUDA would wait for the work.
 *
 * <p><b>Order.</b> Copies and fills are done when they return, and see what was launched on the default stream and on
 * streams that wait for it. Work on other streams, such as {@link CudaStream#nonBlocking}, is not waited for:
 * synchronize with the stream before reading what it writes or writing what it reads. Copies whose name ends in
 * {@code Async} are work in a stream themselves. Closing waits for all work on the CUDA device.
 *
 * <p><b>Threads.</b> A buffer may be used in any thread. Closing waits for copies and fills in other threads, and may be
 * tried by several. What threads write to the same elements at once is undefined.
 *
 * @param <T> the type of the elements
 */
public final class DeviceBuffer<T extends Element> implements AutoCloseable {
    /** Vector loads of any engine are content with it. */
    private static final int HOST_ALIGNMENT = 64;

    /** The part of a copy that is moved at once where elements are converted or staged. */
    private static final int CHUNK_BYTES = 1 << 20;

    private static final int FILL_BYTES = 1 << 16;

    final Device device;
    final ElementType<T> type;
    /** For those who call {@link #checkOpen()}. */
    final long address;

    final long length;
    final long bytes;
    final int typeCode;
    /** Where it is and the type of its elements in one number, so that both are compared at once. */
    final int kind;
    /** The buffer that this is a slice of, else null. */
    private final DeviceBuffer<T> parent;
    /** The buffer that has the memory: this one unless it is a slice. */
    private final DeviceBuffer<T> root;
    /** What frees the memory; null if it is not owned. */
    private final Runnable free;
    /** A foreign object that must not be collected before. */
    private final Object keptAlive;
    /** True if NCCL has allocated the memory. */
    private final boolean windowMemory;

    private final Lifetime lifetime = new Lifetime(this);
    /** {@link Lifetime#CLOSED} or 0, for hot paths, which have this object at hand and not its lifetime. */
    private int closed;
    /**
     * Of the root: a batch that has a pin. Plain, since a batch asks for itself only, and takes away what stands here before it
     * ends its pin; another that stood here pins once more.
     */
    private Batch pinnedBy;

    private DeviceBuffer(
            Device device,
            ElementType<T> type,
            long address,
            long length,
            DeviceBuffer<T> parent,
            Runnable free,
            Object keptAlive) {
        this(device, type, address, length, parent, free, keptAlive, false);
    }

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
        kind = device.deviceCode() | typeCode;
        this.parent = parent;
        root = parent == null ? this : parent.root;
        this.free = free;
        this.keptAlive = keptAlive;
        this.windowMemory = windowMemory;
        if (free != null) {
            lifetime.watch(this, toString());
        }
    }

    static <T extends Element> DeviceBuffer<T> allocate(Device device, ElementType<T> type, long length) {
        long bytes = allocatedBytes(type, length);
        InFlight.poll();
        if (device.isCuda()) {
            long address = Cuda.allocate(device, bytes);
            return new DeviceBuffer<>(
                    device,
                    type,
                    address,
                    length,
                    null,
                    () -> StalledDevices.free(device, () -> Cuda.free(device, address)),
                    null);
        }
        if (bytes > Long.MAX_VALUE - HOST_ALIGNMENT) {
            throw new OutOfMemoryError("cannot allocate " + bytes + " bytes of host memory");
        }
        NativeMemory.requireJavaCpp();
        Pointer memory = Pointer.malloc(bytes + HOST_ALIGNMENT);
        if (memory == null || memory.isNull()) {
            throw new OutOfMemoryError("cannot allocate " + bytes + " bytes of host memory");
        }
        long address = (memory.address() + HOST_ALIGNMENT - 1) & -HOST_ALIGNMENT;
        return new DeviceBuffer<>(device, type, address, length, null, () -> HostStreams.free(memory), null);
    }

    static <T extends Element> DeviceBuffer<T> allocatePinned(Device device, ElementType<T> type, long length) {
        if (device.isHost()) {
            return allocate(device, type, length);
        }
        long bytes = allocatedBytes(type, length);
        InFlight.poll();
        long address = Cuda.allocateHost(device, bytes);
        Runnable free = () -> StalledDevices.free(device, () -> {
            // Unlike cudaFree, cudaFreeHost takes memory away from work that still uses it.
            Cuda.synchronizeDevice(device);
            Cuda.freeHost(device, address);
        });
        return new DeviceBuffer<>(Device.host(), type, address, length, null, free, null);
    }

    static <T extends Element> DeviceBuffer<T> allocateForWindow(Device device, ElementType<T> type, long length) {
        long bytes = allocatedBytes(type, length);
        if ((NativeLibrary.engine() == Engine.HOST) != device.isHost()) {
            throw new IllegalStateException("memory for windows on " + device + " can't come from the loaded library, "
                    + NativeLibrary.path() + (device.isHost() ? ", which is not" : ", which is") + " the host engine");
        }
        if (device.isHost()) {
            long address = NcclMemory.allocate(bytes);
            return new DeviceBuffer<>(device, type, address, length, null, () -> NcclMemory.free(address), null, true);
        }
        long address = Cuda.on(device, () -> NcclMemory.allocate(bytes));
        Runnable free = () -> StalledDevices.free(device, () -> {
            // Unlike cudaFree, ncclMemFree takes memory away from work that still uses it.
            Cuda.synchronizeDevice(device);
            Cuda.on(device, () -> {
                NcclMemory.free(address);
                return null;
            });
        });
        return new DeviceBuffer<>(device, type, address, length, null, free, null, true);
    }

    /** No buffer is without memory, so that each has an address. */
    private static long allocatedBytes(ElementType<?> type, long length) {
        return Math.max(1, bytes(type, length));
    }

    private static long bytes(ElementType<?> type, long length) {
        Objects.requireNonNull(type, "type");
        if (length < 0) {
            throw new IllegalArgumentException("length must be >= 0: " + length);
        }
        if (length > Long.MAX_VALUE / type.sizeInBytes()) {
            throw new IllegalArgumentException("length * size of " + type + " must be <= " + Long.MAX_VALUE + ": "
                    + length + " * " + type.sizeInBytes());
        }
        return length * type.sizeInBytes();
    }

    /**
     * Memory of someone else, who keeps it valid until this buffer is closed and frees it.
     *
     * @param <T> the type for the compiler
     * @param device where the memory is
     * @param type the type of the elements
     * @param address its address
     * @param length the number of elements
     * @return the buffer
     * @throws IllegalArgumentException if the length is negative or too large, or the address is 0, not aligned to the
     *     size of an element, or one that no process has
     */
    public static <T extends Element> DeviceBuffer<T> wrap(
            Device device, ElementType<T> type, long address, long length) {
        return wrap(device, type, address, length, null);
    }

    /**
     * Memory of a JavaCPP pointer, from its position on. The buffer keeps the pointer from being collected, but does not
     * free it.
     *
     * @param <T> the type for the compiler
     * @param device where the memory is
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
        long bytes = bytes(type, length);
        if (pointer.isNull()) {
            throw new IllegalArgumentException("pointer must not be NULL");
        }
        long size = pointer.sizeof();
        if (pointer.limit() > 0 && bytes > (pointer.limit() - pointer.position()) * size) {
            throw new IndexOutOfBoundsException("length * size of " + type + " must be <= the bytes of the pointer: "
                    + length + " * " + type.sizeInBytes() + " > "
                    + (pointer.limit() - pointer.position()) * size);
        }
        return wrap(device, type, pointer.address() + pointer.position() * size, length, pointer);
    }

    private static <T extends Element> DeviceBuffer<T> wrap(
            Device device, ElementType<T> type, long address, long length, Object keptAlive) {
        Objects.requireNonNull(device, "device");
        long bytes = bytes(type, length);
        if (address == 0) {
            throw new IllegalArgumentException("address must not be 0");
        }
        if (address % type.sizeInBytes() != 0) {
            throw new IllegalArgumentException("address must be a multiple of the size of " + type + ": 0x"
                    + Long.toHexString(address) + " % " + type.sizeInBytes() + " != 0");
        }
        Bounds.checkAddress("address", address, bytes);
        return new DeviceBuffer<>(device, type, address, length, null, null, keptAlive);
    }

    /**
     * Memory of a direct buffer, from its position to its limit. The buffer keeps it from being collected.
     *
     * @param <T> the type for the compiler
     * @param type the type of the elements
     * @param memory the buffer, in the byte order of the machine if others than bytes are in it
     * @return the buffer, in host memory
     * @throws IllegalArgumentException if the memory is not direct, its bytes are not a multiple of the size of an element,
     *     or its address is not
     * @throws ReadOnlyBufferException if it can only be read
     */
    public static <T extends Element> DeviceBuffer<T> wrap(ElementType<T> type, ByteBuffer memory) {
        Objects.requireNonNull(type, "type");
        if (!memory.isDirect()) {
            throw new IllegalArgumentException("memory must be direct: " + memory);
        }
        if (memory.isReadOnly()) {
            throw new ReadOnlyBufferException();
        }
        if (memory.remaining() % type.sizeInBytes() != 0) {
            throw new IllegalArgumentException("memory must have a multiple of the size of " + type + ": "
                    + memory.remaining() + " % " + type.sizeInBytes() + " != 0");
        }
        long address = new BytePointer(memory.slice()).address();
        return wrap(Device.host(), type, address, memory.remaining() / type.sizeInBytes(), memory);
    }

    /** Memory that someone else frees, when this buffer is closed. */
    static <T extends Element> DeviceBuffer<T> take(
            Device device, ElementType<T> type, long address, long length, Runnable free) {
        Bounds.checkAddress("address", address, bytes(type, length));
        Runnable freeNow = device.isHost()
                ? free
                : () -> StalledDevices.free(device, () -> {
                    Cuda.synchronizeDevice(device);
                    free.run();
                });
        return new DeviceBuffer<>(device, type, address, length, null, freeNow, null);
    }

    /**
     * The memory as a {@code java.lang.foreign.MemorySegment}, without copying it: {@code
     * buffer.asSegment(MemorySegment.class)}. A segment of host memory has the buffer's size; one of a CUDA device's, which
     * Java can't read, has size 0, and is an address for native functions.
     *
     * <p>The segment is valid as long as the buffer is open, which is the caller's concern: it does not know.
     *
     * @param <S> the class for the compiler
     * @param type {@code MemorySegment.class}; this class is compiled for a Java that does not have it
     * @return the segment, of the global scope
     * @throws UnsupportedOperationException if this is a Java before 22
     * @throws IllegalArgumentException if it is another class
     * @throws IllegalStateException if the buffer is closed
     */
    public <S> S asSegment(Class<S> type) {
        checkOpen();
        return Segments.of(type, address, device.isHost() ? bytes : 0);
    }

    /**
     * A part of this buffer, which shares its memory and can be used as long as this buffer is open.
     *
     * @param offset its first element
     * @param length the number of its elements
     * @return the part
     * @throws IndexOutOfBoundsException if it is not all within this buffer
     */
    public DeviceBuffer<T> slice(long offset, long length) {
        checkOpen();
        Bounds.check("offset", offset, length, "length()", this.length);
        return new DeviceBuffer<>(device, type, address + offset * type.sizeInBytes(), length, this, null, null);
    }

    /** {@return where the memory is} */
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

    /** Returns true if its memory may be in a window: NCCL's own, or that of someone else, who knows. */
    boolean canBeWindow() {
        return root.windowMemory || root.free == null;
    }

    /** {@return true if it can be used: neither it nor a buffer that it is a slice of was closed} */
    public boolean isOpen() {
        for (DeviceBuffer<T> buffer = this; buffer != null; buffer = buffer.parent) {
            if (!buffer.lifetime.isOpen()) {
                return false;
            }
        }
        return true;
    }

    /**
     * The memory's address, for native code. It is valid as long as the buffer is open; that is the caller's concern.
     *
     * @return the address of the first element
     * @throws IllegalStateException if the buffer is closed
     */
    public long address() {
        checkOpen();
        return address;
    }

    /** The address of an element, without a check. */
    long addressOf(long offset) {
        return address + offset * type.sizeInBytes();
    }

    /**
     * Negative if it can't be used; for who looks at several things at once. What another thread closes is seen at the next
     * operation, which begins with a volatile read.
     */
    int state() {
        return parent == null ? closed : closed | parent.state();
    }

    /** How many keep the memory from being freed. */
    int pins() {
        return root.lifetime.pins();
    }

    /** Throws if it can't be used. Takes no lock and allocates nothing; that it stays open is the caller's concern. */
    void checkOpen() {
        lifetime.check();
        // Not a loop over all: hot paths look at buffers, and few are slices.
        if (parent != null) {
            parent.checkOpen();
        }
    }

    /** Begins a use of the memory, which keeps it from being freed. */
    private DeviceBuffer<T> acquire() {
        if (device.isHost()) {
            HostStreams.synchronizeDefault();
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
     * Keeps the memory from being freed by {@link #close()}, until {@link #unpin()}; for work that goes on when the call
     * has returned. Who pins keeps a reference to this buffer, too. Takes no lock and allocates nothing.
     *
     * @throws IllegalStateException if the buffer, or one that it is a slice of, is closed
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

    /** Returns true if a batch has a pin of {@link #pinFor}. It may have one although this says no. */
    boolean isPinnedFor(Batch batch) {
        return root.pinnedBy == batch;
    }

    /** As {@link #pin}, remembered, so that a batch need not pin for each of its operations. */
    void pinFor(Batch batch) {
        pin();
        root.pinnedBy = batch;
    }

    /** Ends a pin of {@link #pinFor}. */
    void unpinFromBatch() {
        root.pinnedBy = null;
        unpin();
    }

    /** Ends a pin, in any thread, and frees the memory if its owner was closed meanwhile and no other pin is left. */
    void unpin() {
        root.lifetime.unpin();
        Reference.reachabilityFence(root.keptAlive);
    }

    private static void release(DeviceBuffer<?> root) {
        root.lifetime.release();
        Reference.reachabilityFence(root.keptAlive);
    }

    /**
     * Sets every element. Done when this returns.
     *
     * @param value the value: in range for an integer type (as unsigned bits for {@link ElementType#UINT64}), rounded to
     *     nearest for a float type
     * @throws IllegalArgumentException if an integer type has not this value
     */
    public void fill(long value) {
        fillBits(type.bitsOf(value));
    }

    /**
     * Sets every element. Done when this returns.
     *
     * @param value the value, rounded to nearest, ties to even
     * @throws IllegalArgumentException if the elements are integers
     */
    public void fill(double value) {
        fillBits(type.bitsOf(value));
    }

    private void fillBits(long bits) {
        DeviceBuffer<T> root = acquire();
        try {
            int size = type.sizeInBytes();
            if (length == 0) {
                return;
            }
            if (sameBytes(bits, size)) {
                set((int) bits & 0xff);
                return;
            }
            int first = (int) Math.min(length, FILL_BYTES / size);
            ByteBuffer pattern = ByteBuffer.allocateDirect(first * size).order(ByteOrder.nativeOrder());
            for (int i = 0; i < first; i++) {
                switch (size) {
                    case Short.BYTES -> pattern.putShort((short) bits);
                    case Integer.BYTES -> pattern.putInt((int) bits);
                    default -> pattern.putLong(bits);
                }
            }
            copyMemory(address, new Pointer(pattern.rewind()).address(), pattern.capacity());
            Reference.reachabilityFence(pattern);
            long total = sizeInBytes();
            for (long done = pattern.capacity(); done < total; done *= 2) {
                copyMemory(address + done, address, Math.min(done, total - done));
            }
        } finally {
            release(root);
        }
    }

    private static boolean sameBytes(long bits, int size) {
        for (int i = 1; i < size; i++) {
            if ((bits >>> 8 * i & 0xff) != (bits & 0xff)) {
                return false;
            }
        }
        return true;
    }

    private void set(int value) {
        if (device.isCuda()) {
            Cuda.set(device, address, value, sizeInBytes());
        } else {
            Pointer.memset(new Address(address), value, sizeInBytes());
        }
    }

    private void copyMemory(long target, long source, long bytes) {
        if (device.isCuda()) {
            Cuda.copy(device, target, source, bytes);
        } else {
            Pointer.memcpy(new Address(target), new Address(source), bytes);
        }
    }

    /**
     * Copies a whole buffer over this one; both have the same length. For a part, slice. Done when this returns.
     *
     * @param source what to copy, on any device
     * @throws IllegalArgumentException if the lengths or types are different, or the buffers overlap without being the same
     * @throws IllegalStateException if one of the buffers is closed
     */
    public void copyFrom(DeviceBuffer<T> source) {
        requireLike(source);
        // One order everywhere, so that two copies and the closing of both buffers cannot wait for each other in a
        // ring.
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
            // Code with raw types; a larger type would be read or written beyond its memory.
            throw new IllegalArgumentException(
                    "source and this buffer must have one type of elements: " + source.type + ", " + type);
        }
    }

    private void requireNoOverlap(DeviceBuffer<T> source) {
        if (device.equals(source.device)
                && address != source.address
                && Math.abs(address - source.address) < sizeInBytes()) {
            throw new IllegalArgumentException("source must not overlap this buffer: " + source + ", " + this);
        }
    }

    private void copyOpen(DeviceBuffer<T> source) {
        long bytes = sizeInBytes();
        requireNoOverlap(source);
        if (bytes == 0 || address == source.address) {
            return;
        }
        if (device.isHost() && source.device.isCuda()) {
            Cuda.copy(source.device, address, source.address, bytes);
        } else {
            copyMemory(address, source.address, bytes);
        }
    }

    /**
     * Copies the rest of a NIO buffer to the beginning of this buffer, and moves its position to its limit. Done when
     * this returns.
     *
     * @param source a buffer of the type that arrays have, in any byte order, or a {@link ByteBuffer} of whole elements as
     *     the device has them, whatever its byte order
     * @throws IllegalArgumentException if the buffer's type is another, or its bytes are not whole elements
     * @throws IndexOutOfBoundsException if its rest is longer than this buffer
     */
    public void copyFrom(Buffer source) {
        copyFrom(source, 0);
    }

    /**
     * Copies the rest of a NIO buffer, as {@link #copyFrom(Buffer)}.
     *
     * @param source the buffer
     * @param offset where it goes in this buffer, in elements
     * @throws IllegalArgumentException if the buffer's type is another, or its bytes are not whole elements
     * @throws IndexOutOfBoundsException if it goes beyond this buffer
     */
    public void copyFrom(Buffer source, long offset) {
        Objects.requireNonNull(source, "source");
        write(source, offset);
        source.position(source.limit());
    }

    /**
     * Fills the rest of a NIO buffer from the beginning of this buffer, and moves its position to its limit. Done when this
     * returns.
     *
     * @param target a buffer as for {@link #copyFrom(Buffer)}
     * @throws IllegalArgumentException if the buffer's type is another, or its bytes are not whole elements
     * @throws IndexOutOfBoundsException if its rest is longer than this buffer
     * @throws ReadOnlyBufferException if it can't be written
     */
    public void copyTo(Buffer target) {
        copyTo(target, 0);
    }

    /**
     * Fills the rest of a NIO buffer, as {@link #copyTo(Buffer)}.
     *
     * @param target the buffer
     * @param offset where the elements are in this buffer, in elements
     * @throws IllegalArgumentException if the buffer's type is another, or its bytes are not whole elements
     * @throws IndexOutOfBoundsException if the elements go beyond this buffer
     * @throws ReadOnlyBufferException if it can't be written
     */
    public void copyTo(Buffer target, long offset) {
        Objects.requireNonNull(target, "target");
        if (target.isReadOnly()) {
            throw new ReadOnlyBufferException();
        }
        read(target, offset);
        target.position(target.limit());
    }

    /**
     * Copies a whole array to the beginning of this buffer: the values of an 8 bit integer type, or the bits of an 8 bit float type. Done when this returns.
     *
     * @param source the array
     * @throws IllegalArgumentException if elements of this type are not {@code byte} in Java
     * @throws IndexOutOfBoundsException if the array is longer than this buffer
     */
    public void copyFrom(byte[] source) {
        Objects.requireNonNull(source, "source");
        requireByteElements();
        write(ByteBuffer.wrap(source), 0);
    }

    /**
     * Copies a part of an array, as {@link #copyFrom(byte[])}.
     *
     * @param source the array
     * @param sourceOffset the first element of the array
     * @param offset where it goes in this buffer, in elements
     * @param length the number of elements
     * @throws IllegalArgumentException if elements of this type are not {@code byte} in Java
     * @throws IndexOutOfBoundsException if the elements are not all within the array and within this buffer
     */
    public void copyFrom(byte[] source, int sourceOffset, long offset, int length) {
        Objects.requireNonNull(source, "source");
        Bounds.check("sourceOffset", sourceOffset, length, "source.length", source.length);
        requireByteElements();
        write(ByteBuffer.wrap(source, sourceOffset, length), offset);
    }

    /**
     * Copies a whole array to the beginning of this buffer: the bits of a 16 bit float type. Done when this returns.
     *
     * @param source the array
     * @throws IllegalArgumentException if elements of this type are not {@code short} in Java
     * @throws IndexOutOfBoundsException if the array is longer than this buffer
     */
    public void copyFrom(short[] source) {
        Objects.requireNonNull(source, "source");
        write(ShortBuffer.wrap(source), 0);
    }

    /**
     * Copies a part of an array, as {@link #copyFrom(short[])}.
     *
     * @param source the array
     * @param sourceOffset the first element of the array
     * @param offset where it goes in this buffer, in elements
     * @param length the number of elements
     * @throws IllegalArgumentException if elements of this type are not {@code short} in Java
     * @throws IndexOutOfBoundsException if the elements are not all within the array and within this buffer
     */
    public void copyFrom(short[] source, int sourceOffset, long offset, int length) {
        Objects.requireNonNull(source, "source");
        Bounds.check("sourceOffset", sourceOffset, length, "source.length", source.length);
        write(ShortBuffer.wrap(source, sourceOffset, length), offset);
    }

    /**
     * Copies a whole array to the beginning of this buffer: the values of a 32 bit integer type. Done when this returns.
     *
     * @param source the array
     * @throws IllegalArgumentException if elements of this type are not {@code int} in Java
     * @throws IndexOutOfBoundsException if the array is longer than this buffer
     */
    public void copyFrom(int[] source) {
        Objects.requireNonNull(source, "source");
        write(IntBuffer.wrap(source), 0);
    }

    /**
     * Copies a part of an array, as {@link #copyFrom(int[])}.
     *
     * @param source the array
     * @param sourceOffset the first element of the array
     * @param offset where it goes in this buffer, in elements
     * @param length the number of elements
     * @throws IllegalArgumentException if elements of this type are not {@code int} in Java
     * @throws IndexOutOfBoundsException if the elements are not all within the array and within this buffer
     */
    public void copyFrom(int[] source, int sourceOffset, long offset, int length) {
        Objects.requireNonNull(source, "source");
        Bounds.check("sourceOffset", sourceOffset, length, "source.length", source.length);
        write(IntBuffer.wrap(source, sourceOffset, length), offset);
    }

    /**
     * Copies a whole array to the beginning of this buffer: the values of a 64 bit integer type. Done when this returns.
     *
     * @param source the array
     * @throws IllegalArgumentException if elements of this type are not {@code long} in Java
     * @throws IndexOutOfBoundsException if the array is longer than this buffer
     */
    public void copyFrom(long[] source) {
        Objects.requireNonNull(source, "source");
        write(LongBuffer.wrap(source), 0);
    }

    /**
     * Copies a part of an array, as {@link #copyFrom(long[])}.
     *
     * @param source the array
     * @param sourceOffset the first element of the array
     * @param offset where it goes in this buffer, in elements
     * @param length the number of elements
     * @throws IllegalArgumentException if elements of this type are not {@code long} in Java
     * @throws IndexOutOfBoundsException if the elements are not all within the array and within this buffer
     */
    public void copyFrom(long[] source, int sourceOffset, long offset, int length) {
        Objects.requireNonNull(source, "source");
        Bounds.check("sourceOffset", sourceOffset, length, "source.length", source.length);
        write(LongBuffer.wrap(source, sourceOffset, length), offset);
    }

    /**
     * Copies a whole array to the beginning of this buffer: the values of a float type of 8, 16 or 32 bits; those of 8 and 16 are rounded to nearest, ties to even. Done when this returns.
     *
     * @param source the array
     * @throws IllegalArgumentException if elements of this type are not {@code float} in Java
     * @throws IndexOutOfBoundsException if the array is longer than this buffer
     */
    public void copyFrom(float[] source) {
        Objects.requireNonNull(source, "source");
        write(FloatBuffer.wrap(source), 0);
    }

    /**
     * Copies a part of an array, as {@link #copyFrom(float[])}.
     *
     * @param source the array
     * @param sourceOffset the first element of the array
     * @param offset where it goes in this buffer, in elements
     * @param length the number of elements
     * @throws IllegalArgumentException if elements of this type are not {@code float} in Java
     * @throws IndexOutOfBoundsException if the elements are not all within the array and within this buffer
     */
    public void copyFrom(float[] source, int sourceOffset, long offset, int length) {
        Objects.requireNonNull(source, "source");
        Bounds.check("sourceOffset", sourceOffset, length, "source.length", source.length);
        write(FloatBuffer.wrap(source, sourceOffset, length), offset);
    }

    /**
     * Copies a whole array to the beginning of this buffer: values of {@link ElementType#FLOAT64}. Done when this returns.
     *
     * @param source the array
     * @throws IllegalArgumentException if elements of this type are not {@code double} in Java
     * @throws IndexOutOfBoundsException if the array is longer than this buffer
     */
    public void copyFrom(double[] source) {
        Objects.requireNonNull(source, "source");
        write(DoubleBuffer.wrap(source), 0);
    }

    /**
     * Copies a part of an array, as {@link #copyFrom(double[])}.
     *
     * @param source the array
     * @param sourceOffset the first element of the array
     * @param offset where it goes in this buffer, in elements
     * @param length the number of elements
     * @throws IllegalArgumentException if elements of this type are not {@code double} in Java
     * @throws IndexOutOfBoundsException if the elements are not all within the array and within this buffer
     */
    public void copyFrom(double[] source, int sourceOffset, long offset, int length) {
        Objects.requireNonNull(source, "source");
        Bounds.check("sourceOffset", sourceOffset, length, "source.length", source.length);
        write(DoubleBuffer.wrap(source, sourceOffset, length), offset);
    }

    /**
     * Fills a whole array from the beginning of this buffer: the values of an 8 bit integer type, or the bits of an 8 bit float type. Done when this returns.
     *
     * @param target the array
     * @throws IllegalArgumentException if elements of this type are not {@code byte} in Java
     * @throws IndexOutOfBoundsException if the array is longer than this buffer
     */
    public void copyTo(byte[] target) {
        Objects.requireNonNull(target, "target");
        requireByteElements();
        read(ByteBuffer.wrap(target), 0);
    }

    /**
     * Fills a part of an array, as {@link #copyTo(byte[])}.
     *
     * @param target the array
     * @param targetOffset the first element of the array
     * @param offset where the elements are in this buffer, in elements
     * @param length the number of elements
     * @throws IllegalArgumentException if elements of this type are not {@code byte} in Java
     * @throws IndexOutOfBoundsException if the elements are not all within the array and within this buffer
     */
    public void copyTo(byte[] target, int targetOffset, long offset, int length) {
        Objects.requireNonNull(target, "target");
        Bounds.check("targetOffset", targetOffset, length, "target.length", target.length);
        requireByteElements();
        read(ByteBuffer.wrap(target, targetOffset, length), offset);
    }

    /**
     * Fills a whole array from the beginning of this buffer: the bits of a 16 bit float type. Done when this returns.
     *
     * @param target the array
     * @throws IllegalArgumentException if elements of this type are not {@code short} in Java
     * @throws IndexOutOfBoundsException if the array is longer than this buffer
     */
    public void copyTo(short[] target) {
        Objects.requireNonNull(target, "target");
        read(ShortBuffer.wrap(target), 0);
    }

    /**
     * Fills a part of an array, as {@link #copyTo(short[])}.
     *
     * @param target the array
     * @param targetOffset the first element of the array
     * @param offset where the elements are in this buffer, in elements
     * @param length the number of elements
     * @throws IllegalArgumentException if elements of this type are not {@code short} in Java
     * @throws IndexOutOfBoundsException if the elements are not all within the array and within this buffer
     */
    public void copyTo(short[] target, int targetOffset, long offset, int length) {
        Objects.requireNonNull(target, "target");
        Bounds.check("targetOffset", targetOffset, length, "target.length", target.length);
        read(ShortBuffer.wrap(target, targetOffset, length), offset);
    }

    /**
     * Fills a whole array from the beginning of this buffer: the values of a 32 bit integer type. Done when this returns.
     *
     * @param target the array
     * @throws IllegalArgumentException if elements of this type are not {@code int} in Java
     * @throws IndexOutOfBoundsException if the array is longer than this buffer
     */
    public void copyTo(int[] target) {
        Objects.requireNonNull(target, "target");
        read(IntBuffer.wrap(target), 0);
    }

    /**
     * Fills a part of an array, as {@link #copyTo(int[])}.
     *
     * @param target the array
     * @param targetOffset the first element of the array
     * @param offset where the elements are in this buffer, in elements
     * @param length the number of elements
     * @throws IllegalArgumentException if elements of this type are not {@code int} in Java
     * @throws IndexOutOfBoundsException if the elements are not all within the array and within this buffer
     */
    public void copyTo(int[] target, int targetOffset, long offset, int length) {
        Objects.requireNonNull(target, "target");
        Bounds.check("targetOffset", targetOffset, length, "target.length", target.length);
        read(IntBuffer.wrap(target, targetOffset, length), offset);
    }

    /**
     * Fills a whole array from the beginning of this buffer: the values of a 64 bit integer type. Done when this returns.
     *
     * @param target the array
     * @throws IllegalArgumentException if elements of this type are not {@code long} in Java
     * @throws IndexOutOfBoundsException if the array is longer than this buffer
     */
    public void copyTo(long[] target) {
        Objects.requireNonNull(target, "target");
        read(LongBuffer.wrap(target), 0);
    }

    /**
     * Fills a part of an array, as {@link #copyTo(long[])}.
     *
     * @param target the array
     * @param targetOffset the first element of the array
     * @param offset where the elements are in this buffer, in elements
     * @param length the number of elements
     * @throws IllegalArgumentException if elements of this type are not {@code long} in Java
     * @throws IndexOutOfBoundsException if the elements are not all within the array and within this buffer
     */
    public void copyTo(long[] target, int targetOffset, long offset, int length) {
        Objects.requireNonNull(target, "target");
        Bounds.check("targetOffset", targetOffset, length, "target.length", target.length);
        read(LongBuffer.wrap(target, targetOffset, length), offset);
    }

    /**
     * Fills a whole array from the beginning of this buffer: the values of a float type of 8, 16 or 32 bits. Done when this returns.
     *
     * @param target the array
     * @throws IllegalArgumentException if elements of this type are not {@code float} in Java
     * @throws IndexOutOfBoundsException if the array is longer than this buffer
     */
    public void copyTo(float[] target) {
        Objects.requireNonNull(target, "target");
        read(FloatBuffer.wrap(target), 0);
    }

    /**
     * Fills a part of an array, as {@link #copyTo(float[])}.
     *
     * @param target the array
     * @param targetOffset the first element of the array
     * @param offset where the elements are in this buffer, in elements
     * @param length the number of elements
     * @throws IllegalArgumentException if elements of this type are not {@code float} in Java
     * @throws IndexOutOfBoundsException if the elements are not all within the array and within this buffer
     */
    public void copyTo(float[] target, int targetOffset, long offset, int length) {
        Objects.requireNonNull(target, "target");
        Bounds.check("targetOffset", targetOffset, length, "target.length", target.length);
        read(FloatBuffer.wrap(target, targetOffset, length), offset);
    }

    /**
     * Fills a whole array from the beginning of this buffer: values of {@link ElementType#FLOAT64}. Done when this returns.
     *
     * @param target the array
     * @throws IllegalArgumentException if elements of this type are not {@code double} in Java
     * @throws IndexOutOfBoundsException if the array is longer than this buffer
     */
    public void copyTo(double[] target) {
        Objects.requireNonNull(target, "target");
        read(DoubleBuffer.wrap(target), 0);
    }

    /**
     * Fills a part of an array, as {@link #copyTo(double[])}.
     *
     * @param target the array
     * @param targetOffset the first element of the array
     * @param offset where the elements are in this buffer, in elements
     * @param length the number of elements
     * @throws IllegalArgumentException if elements of this type are not {@code double} in Java
     * @throws IndexOutOfBoundsException if the elements are not all within the array and within this buffer
     */
    public void copyTo(double[] target, int targetOffset, long offset, int length) {
        Objects.requireNonNull(target, "target");
        Bounds.check("targetOffset", targetOffset, length, "target.length", target.length);
        read(DoubleBuffer.wrap(target, targetOffset, length), offset);
    }

    /**
     * Puts a copy of a whole buffer over this one into a stream, and returns. Both have the same length; for a part, slice.
     *
     * <p>What is copied is what the source holds when the work before in the stream is done; neither buffer may be written,
     * nor this one read, until the copy is done. Closing them before is allowed: their memory is then freed later. From and
     * to host memory, CUDA may wait, unless the memory is {@linkplain Device#allocatePinned page-locked}.
     *
     * @param source what to copy, on any device
     * @param stream a stream of this buffer's device or the source's; of a CUDA device, if one of them is there
     * @throws IllegalArgumentException if the lengths are different, the buffers overlap without being the same, or the
     *     stream is of another device
     * @throws IllegalStateException if one of the buffers or the stream is closed
     * @throws CudaException if CUDA can't take the copy; an error of the copy itself comes when the stream is waited for
     * @see <a href="https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__MEMORY.html">cudaMemcpyAsync</a>
     */
    public void copyFromAsync(DeviceBuffer<T> source, CudaStream stream) {
        requireLike(source);
        requireStream(stream, source.device, device);
        checkOpen();
        source.checkOpen();
        requireNoOverlap(source);
        if (isForeign() && source.isForeign()) {
            enqueue(stream, address, source.address, sizeInBytes(), null);
            return;
        }
        pin();
        try {
            source.pin();
        } catch (IllegalStateException closed) {
            unpin();
            throw closed;
        }
        enqueue(stream, address, source.address, sizeInBytes(), () -> {
            source.unpin();
            unpin();
        });
    }

    /**
     * Puts a copy of the rest of a direct NIO buffer to the beginning of this buffer into a stream, moves its position to
     * its limit, and returns.
     *
     * <p>The source may not be written until the copy is done; it is kept from being collected until then. Its memory is
     * not page-locked, so CUDA may wait; {@link Device#allocatePinned} makes memory from which it does not.
     *
     * @param source a direct buffer of the type that arrays have, in the byte order of the machine, or a direct
     *     {@link ByteBuffer} of whole elements as the device has them, whatever its byte order
     * @param stream a stream of this buffer's device
     * @throws IllegalArgumentException if the buffer is not direct, has another type or byte order, or has numbers that
     *     must be converted, or its bytes are not whole elements, or if the stream is of another device
     * @throws IndexOutOfBoundsException if its rest is longer than this buffer
     * @throws IllegalStateException if this buffer or the stream is closed
     * @throws CudaException if CUDA can't take the copy; an error of the copy itself comes when the stream is waited for
     */
    public void copyFromAsync(Buffer source, CudaStream stream) {
        Objects.requireNonNull(source, "source");
        transferAsync(source, stream, true);
        source.position(source.limit());
    }

    /**
     * Puts a copy of the beginning of this buffer into the rest of a direct NIO buffer into a stream, moves its position to
     * its limit, and returns. What it holds is undefined until the copy is done; else as
     * {@link #copyFromAsync(Buffer, CudaStream)}.
     *
     * @param target a direct buffer
     * @param stream a stream of this buffer's device
     * @throws IllegalArgumentException if the buffer is not direct, has another type or byte order, or has numbers that
     *     must be converted, or its bytes are not whole elements, or if the stream is of another device
     * @throws IndexOutOfBoundsException if its rest is longer than this buffer
     * @throws ReadOnlyBufferException if it can't be written
     * @throws IllegalStateException if this buffer or the stream is closed
     * @throws CudaException if CUDA can't take the copy; an error of the copy itself comes when the stream is waited for
     */
    public void copyToAsync(Buffer target, CudaStream stream) {
        Objects.requireNonNull(target, "target");
        if (target.isReadOnly()) {
            throw new ReadOnlyBufferException();
        }
        transferAsync(target, stream, false);
        target.position(target.limit());
    }

    private void transferAsync(Buffer buffer, CudaStream stream, boolean write) {
        requireStream(stream, write ? Device.host() : device, write ? device : Device.host());
        checkOpen();
        int count = Transfer.elements(type, buffer);
        Bounds.check("offset", 0, count, "length()", length);
        if (!buffer.isDirect()) {
            throw new IllegalArgumentException(
                    "an asynchronous copy needs a direct buffer, because the garbage collector"
                            + " moves arrays and the buffers around them while the device copies: use ByteBuffer.allocateDirect,"
                            + " Device.allocatePinned, or a copy that is done when it returns: " + buffer);
        }
        if (!Transfer.isNative(type, buffer)) {
            throw new IllegalArgumentException(
                    "an asynchronous copy converts nothing: the buffer must have elements of " + type
                            + " as the device has them, in the byte order " + ByteOrder.nativeOrder() + ": " + buffer);
        }
        long memory = nativeAddress(buffer);
        pin();
        enqueue(stream, write ? address : memory, write ? memory : address, (long) count * type.sizeInBytes(), () -> {
            Reference.reachabilityFence(buffer);
            unpin();
        });
    }

    private static void requireStream(CudaStream stream, Device source, Device target) {
        Objects.requireNonNull(stream, "stream");
        Device device = stream.device;
        boolean takesPart = device.equals(source) || device.equals(target);
        if (!takesPart || device.isHost() && (source.isCuda() || target.isCuda())) {
            throw new IllegalArgumentException(
                    "stream must be of a device of the copy, and of a CUDA device if there is one: a stream of "
                            + device + ", a copy from " + source + " to " + target);
        }
        stream.checkOpen();
    }

    /** Returns true if the memory lives as long as others have it live: nothing is to be kept, and no event to be asked for it. */
    private boolean isForeign() {
        return root.free == null && root.keptAlive == null;
    }

    /** Puts a copy into a stream. Releases in any case, if there is something, when the copy is done or could not be made. */
    private static void enqueue(CudaStream stream, long target, long source, long bytes, Runnable release) {
        boolean kept = false;
        try {
            stream.pin();
            try {
                if (bytes == 0 || target == source) {
                    return;
                }
                if (stream.device.isCuda()) {
                    Cuda.copyAsync(stream.device, target, source, bytes, stream.handle);
                } else if (stream.handle != 0) {
                    HostStreams.copyAsync(target, source, bytes, stream.handle);
                } else {
                    HostStreams.synchronizeDefault();
                    Pointer.memcpy(new Address(target), new Address(source), bytes);
                    return;
                }
                if (release != null) {
                    kept = true;
                    InFlight.keep(stream, bytes, release);
                }
            } finally {
                stream.unpin();
            }
        } finally {
            if (!kept && release != null) {
                release.run();
            }
        }
    }

    /** Offsets and lengths of an array are in elements, so bytes of larger ones come in a ByteBuffer. */
    private void requireByteElements() {
        checkOpen();
        if (type.sizeInBytes() != 1) {
            throw new IllegalArgumentException("elements of " + type + " are " + type.carrier()
                    + " in Java: byte; their bytes can be copied by a ByteBuffer");
        }
    }

    private void write(Buffer source, long offset) {
        transfer(source, offset, true);
    }

    private void read(Buffer target, long offset) {
        transfer(target, offset, false);
    }

    private void transfer(Buffer buffer, long offset, boolean write) {
        checkOpen();
        int count = Transfer.elements(type, buffer);
        Bounds.check("offset", offset, count, "length()", length);
        DeviceBuffer<T> root = acquire();
        try {
            long start = address + offset * type.sizeInBytes();
            if (count == 0) {
                return;
            } else if (Transfer.isNative(type, buffer)) {
                direct(buffer, start, count, write);
            } else if (device.isHost()) {
                onHost(buffer, start, count, write);
            } else {
                staged(buffer, start, count, write);
            }
        } finally {
            release(root);
        }
    }

    private void direct(Buffer buffer, long start, int count, boolean write) {
        long bytes = (long) count * type.sizeInBytes();
        long memory = nativeAddress(buffer);
        if (write) {
            copyMemory(start, memory, bytes);
        } else {
            copyMemory(memory, start, bytes);
        }
        Reference.reachabilityFence(buffer);
    }

    private long nativeAddress(Buffer buffer) {
        return new Pointer(buffer).address() + (long) buffer.position() * Transfer.step(type, buffer);
    }

    private void onHost(Buffer buffer, long start, int count, boolean write) {
        int size = type.sizeInBytes();
        int most = CHUNK_BYTES / size;
        for (int at = 0; at < count; ) {
            int n = Math.min(most, count - at);
            ByteBuffer memory = Address.buffer(start + (long) at * size, n * size);
            if (write) {
                Transfer.put(type, memory, buffer, at, n);
            } else {
                Transfer.get(type, memory, buffer, at, n);
            }
            at += n;
        }
    }

    private void staged(Buffer buffer, long start, int count, boolean write) {
        int size = type.sizeInBytes();
        int most = CHUNK_BYTES / size;
        Pointer staging = Pointer.malloc((long) Math.min(most, count) * size);
        if (staging == null || staging.isNull()) {
            throw new OutOfMemoryError("cannot allocate " + (long) Math.min(most, count) * size + " bytes for a copy");
        }
        try {
            for (int at = 0; at < count; ) {
                int n = Math.min(most, count - at);
                ByteBuffer memory = Address.buffer(staging.address(), n * size);
                long there = start + (long) at * size;
                if (write) {
                    Transfer.put(type, memory, buffer, at, n);
                    copyMemory(there, staging.address(), (long) n * size);
                } else {
                    copyMemory(staging.address(), there, (long) n * size);
                    Transfer.get(type, memory, buffer, at, n);
                }
                at += n;
            }
        } finally {
            Pointer.free(staging);
        }
    }

    /**
     * Makes this buffer and its slices unusable, and frees the memory if this buffer owns it: now, after all work on the
     * CUDA device, or later, if an asynchronous operation of this package still uses it. Waits for copies in other threads.
     * Does nothing if the buffer is closed already.
     *
     * @throws CudaException if CUDA reports an error, which may be one of earlier work; the buffer is closed all the same
     */
    @Override
    public void close() {
        closed = Lifetime.CLOSED;
        lifetime.close(free == null ? () -> {} : free);
        InFlight.poll();
    }

    /** {@return what it is: "DeviceBuffer of 1024 float32 on CUDA device 0"} */
    @Override
    public String toString() {
        return "DeviceBuffer of " + length + " " + type + " on " + device;
    }
}
