package io.github.nccl4j.internal.cuda;

import io.github.nccl4j.internal.memory.Bounds;
import io.github.nccl4j.internal.memory.ElementFormat;
import io.github.nccl4j.internal.memory.ForeignMemory;
import io.github.nccl4j.internal.memory.Lifetime;
import io.github.nccl4j.internal.memory.Segments;
import io.github.nccl4j.internal.memory.Transfer;
import java.lang.ref.Reference;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import org.bytedeco.javacpp.Pointer;

/** Memory of a device, with elements of one type. Used by any number of threads at once. */
public final class NativeBuffer implements AutoCloseable {
    public final NativeDevice device;
    public final ElementFormat format;
    /** Valid only after {@link #checkOpen()}. */
    public final long address;

    public final long length;
    public final long bytes;
    public final int typeCode;
    /** Device and element type in one number, so that one comparison covers both. */
    public final int kind;
    /** The buffer that this is a slice of, else null. */
    private final NativeBuffer parent;
    /** The buffer that holds the memory: this one, or the root of this slice. */
    private final NativeBuffer root;
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

    private NativeBuffer(
            NativeDevice device,
            ElementFormat format,
            MemoryAllocation memory,
            long length,
            NativeBuffer parent,
            Object keptAlive,
            boolean windowMemory) {
        this.device = device;
        this.format = format;
        this.length = length;
        this.parent = parent;
        this.keptAlive = keptAlive;
        this.windowMemory = windowMemory;
        address = memory.address();
        free = memory.free();
        bytes = length * format.size();
        typeCode = format.type().code();
        kind = device.code() | typeCode;
        root = parent == null ? this : parent.root;
        if (free != null) {
            lifetime.watch(this, toString());
        }
    }

    public static NativeBuffer allocate(NativeDevice device, ElementFormat format, long length) {
        long bytes = MemoryAllocation.allocatedBytes(format, length);
        return new NativeBuffer(device, format, MemoryAllocation.allocate(device, bytes), length, null, null, false);
    }

    /** Allocates host memory that is page-locked for a CUDA device. */
    public static NativeBuffer allocatePinned(NativeDevice device, ElementFormat format, long length) {
        long bytes = MemoryAllocation.allocatedBytes(format, length);
        return new NativeBuffer(
                NativeDevice.HOST, format, MemoryAllocation.allocatePinned(device, bytes), length, null, null, false);
    }

    /** Allocates memory of a device by NCCL. */
    public static NativeBuffer allocateForWindow(NativeDevice device, ElementFormat format, long length) {
        long bytes = MemoryAllocation.allocatedBytes(format, length);
        return new NativeBuffer(
                device, format, MemoryAllocation.allocateForWindow(device, bytes), length, null, null, true);
    }

    /** Wraps memory of other code, which frees it. */
    public static NativeBuffer wrap(NativeDevice device, ElementFormat format, long address, long length) {
        return wrap(device, format, address, length, null);
    }

    /** As above with the memory of a pointer, from its position on. */
    public static NativeBuffer wrap(NativeDevice device, ElementFormat format, Pointer pointer, long length) {
        return wrap(device, format, MemoryAllocation.addressOf(format, pointer, length), length, pointer);
    }

    private static NativeBuffer wrap(
            NativeDevice device, ElementFormat format, long address, long length, Object keptAlive) {
        MemoryAllocation.checkWrapped(format, address, length);
        return new NativeBuffer(device, format, new MemoryAllocation(address, null), length, null, keptAlive, false);
    }

    /** As above with the memory of a direct NIO buffer, from its position to its limit. */
    public static NativeBuffer wrap(ElementFormat format, ByteBuffer memory) {
        long address = MemoryAllocation.addressOf(format, memory);
        return wrap(format, address, memory.remaining(), ForeignMemory.of(memory));
    }

    /** As above with the memory of a {@code MemorySegment}. */
    public static NativeBuffer wrapSegment(ElementFormat format, Object segment) {
        long address = MemoryAllocation.addressOfSegment(format, segment);
        return wrap(format, address, Segments.size(segment), ForeignMemory.ofSegment(segment));
    }

    private static NativeBuffer wrap(ElementFormat format, long address, long bytes, ForeignMemory memory) {
        NativeBuffer whole = wrap(NativeDevice.HOST, format, address, bytes / format.size(), memory);
        // A slice, since slices alone check the memory that they are in: plain buffers pay nothing for it.
        NativeBuffer buffer = whole.slice(0, whole.length);
        buffer.checkOpen();
        return buffer;
    }

    /** Wraps memory that other code frees when this buffer is closed. */
    public static NativeBuffer take(
            NativeDevice device, ElementFormat format, long address, long length, Runnable free) {
        Bounds.checkAddress("address", address, MemoryAllocation.bytes(format, length));
        return new NativeBuffer(device, format, MemoryAllocation.of(device, address, free), length, null, null, false);
    }

    public NativeBuffer slice(long offset, long length) {
        checkOpen();
        Bounds.check("offset", offset, length, "length()", this.length);
        return new NativeBuffer(
                device, format, new MemoryAllocation(addressOf(offset), null), length, this, null, false);
    }

    /** Returns the memory as a {@code MemorySegment}. */
    public <S> S asSegment(Class<S> type) {
        synchronized (root.lifetime) {
            checkOpen();
            if (root.keptAlive instanceof ForeignMemory memory) {
                return memory.asSegment(type, address - root.address, bytes);
            } else if (root.closed != 0) {
                throw new IllegalStateException(root + " is closed");
            } else if (root.segments == null) {
                root.segments = new Segments();
            }
            return root.segments.of(type, address, device.isHost() ? bytes : 0);
        }
    }

    /** Returns true if closing this buffer frees its memory. */
    public boolean isOwner() {
        return free != null;
    }

    /**
     * Returns true if the memory may be registered as a window: NCCL's own memory, or wrapped memory, whose allocator
     * is unknown here.
     */
    public boolean canBeWindow() {
        return root.windowMemory || root.free == null;
    }

    public boolean isOpen() {
        for (NativeBuffer buffer = this; buffer != null; buffer = buffer.parent) {
            if (!buffer.lifetime.isOpen()) {
                return false;
            }
        }
        return root.problemOfMemory() == null;
    }

    /** Returns the address of an element, unchecked. */
    public long addressOf(long offset) {
        return address + offset * format.size();
    }

    /**
     * Returns a negative number if the buffer is closed; for callers that combine several checks. A close in another
     * thread is seen by the next operation, which begins with a volatile read.
     */
    public int state() {
        return parent == null ? closed : closed | parent.stateForSlice();
    }

    private int stateForSlice() {
        return problemOfMemory() == null ? state() : Lifetime.CLOSED;
    }

    /** Returns true if both are known to be in one allocation: parts of one buffer. */
    public boolean sharesMemory(NativeBuffer other) {
        return other.root == root;
    }

    /** Returns the number of pins of the memory. */
    public int pins() {
        return root.lifetime.pins();
    }

    /** Throws if the buffer is closed. Takes no lock and allocates nothing; the caller must keep the buffer open. */
    public void checkOpen() {
        lifetime.check();
        // Not a loop: hot paths check buffers, and few are slices.
        if (parent != null) {
            parent.checkOpen();
            parent.checkMemory();
        }
    }

    /** Throws if the memory is that of a NIO buffer or a segment and can't be accessed any more. */
    public void checkMemory() {
        RuntimeException problem = root.problemOfMemory();
        if (problem != null) {
            throw new IllegalStateException(
                    "the memory of " + this + " can't be accessed: " + problem.getMessage(), problem);
        }
    }

    private RuntimeException problemOfMemory() {
        return keptAlive instanceof ForeignMemory memory ? memory.problem() : null;
    }

    /** Begins a use of the memory, which prevents it from being freed. */
    private NativeBuffer acquire() {
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
    public void pin() {
        root.lifetime.pin();
        try {
            checkOpen();
        } catch (IllegalStateException closed) {
            root.lifetime.unpin();
            throw closed;
        }
    }

    /** Pins this buffer and another one, which may be in the same memory; {@link #unpinBoth} ends the pins. */
    public void pinBoth(NativeBuffer other) {
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

    public void unpinBoth(NativeBuffer other) {
        if (other.root != root) {
            other.unpin();
        }
        unpin();
    }

    /** Returns true if a batch has a pin of {@link #pinFor}. May return false although it has one. */
    public boolean isPinnedFor(Object batch) {
        return root.pinnedBy == batch;
    }

    /** As {@link #pin}, but records the batch, which need not pin again for each of its operations. */
    public void pinFor(Object batch) {
        pin();
        root.pinnedBy = batch;
    }

    /** Ends a pin of {@link #pinFor}. */
    public void unpinFromBatch() {
        root.pinnedBy = null;
        unpin();
    }

    /** Keeps the memory while a graph may use it. */
    public void keepFor(NativeGraph graph) {
        pin();
        graph.keep(this::unpin);
    }

    /** Ends a pin, in any thread. Frees the memory if the owner is closed and this was the last pin. */
    public void unpin() {
        root.lifetime.unpin();
        Reference.reachabilityFence(root.keptAlive);
    }

    private static void release(NativeBuffer root) {
        root.lifetime.release();
        Reference.reachabilityFence(root.keptAlive);
    }

    /** Sets every element to the bits of a value. */
    public void fill(long bits) {
        NativeBuffer root = acquire();
        try {
            MemoryCopy.fill(device, address, length, format.size(), bits);
        } finally {
            release(root);
        }
    }

    /** Copies a whole buffer over this one. */
    public void copyFrom(NativeBuffer source) {
        requireLike(source);
        // One lock order for all pairs of buffers, so that two copies and the closing of both buffers cannot deadlock.
        boolean thisFirst = root.lifetime.isBefore(source.root.lifetime);
        NativeBuffer first = (thisFirst ? this : source).acquire();
        try {
            NativeBuffer second = (thisFirst ? source : this).acquire();
            try {
                requireNoOverlap(source);
                if (bytes > 0 && address != source.address) {
                    boolean toHost = device.isHost() && source.device.isCuda();
                    MemoryCopy.copy(toHost ? source.device : device, address, source.address, bytes);
                }
            } finally {
                release(second);
            }
        } finally {
            release(first);
        }
    }

    private void requireLike(NativeBuffer source) {
        if (source.length != length) {
            throw new IllegalArgumentException("source.length() must be length(): " + source.length + " != " + length);
        }
        if (source.typeCode != typeCode) {
            // Possible with raw types; a larger element type would be accessed beyond its memory.
            throw new IllegalArgumentException(
                    "source and this buffer must have the same element type: " + source.format + ", " + format);
        }
    }

    private void requireNoOverlap(NativeBuffer source) {
        if (device.equals(source.device) && address != source.address && Math.abs(address - source.address) < bytes) {
            throw new IllegalArgumentException("buffers overlap without being the same: "
                    + Bounds.range(source.address, bytes) + " and " + Bounds.range(address, bytes));
        }
    }

    /** Copies a whole buffer over this one, in stream order. */
    public void copyFromAsync(NativeBuffer source, NativeStream stream) {
        requireLike(source);
        MemoryCopy.requireStream(stream, source.device, device);
        checkOpen();
        source.checkOpen();
        requireNoOverlap(source);
        if (isForeign() && source.isForeign()) {
            MemoryCopy.enqueue(stream, address, source.address, bytes, null);
            return;
        }
        pin();
        try {
            source.pin();
        } catch (IllegalStateException closed) {
            unpin();
            throw closed;
        }
        MemoryCopy.enqueue(stream, address, source.address, bytes, () -> {
            source.unpin();
            unpin();
        });
    }

    /** Returns true if other code controls the lifetime of the memory: a copy needs no pin and no event for it. */
    private boolean isForeign() {
        return root.free == null && root.keptAlive == null;
    }

    /**
     * Copies all remaining elements of a NIO buffer, from or to an offset, and sets its position to its limit.
     *
     * @param write true to write to this buffer
     */
    public void transfer(Buffer buffer, long offset, boolean write) {
        int count = checkTransfer(buffer, offset);
        NativeBuffer root = acquire();
        try {
            MemoryCopy.transfer(device, format, addressOf(offset), buffer, count, write);
        } finally {
            release(root);
        }
        buffer.position(buffer.limit());
    }

    /** As {@link #transfer} without an offset, in stream order. */
    public void transferAsync(Buffer buffer, NativeStream stream, boolean write) {
        MemoryCopy.requireStream(stream, write ? NativeDevice.HOST : device, write ? device : NativeDevice.HOST);
        int count = checkTransfer(buffer, 0);
        MemoryCopy.requireAsynchronous(format, buffer);
        long memory = MemoryCopy.addressOf(format, buffer);
        pin();
        MemoryCopy.enqueue(
                stream, write ? address : memory, write ? memory : address, (long) count * format.size(), () -> {
                    Reference.reachabilityFence(buffer);
                    unpin();
                });
        buffer.position(buffer.limit());
    }

    /** Returns the number of elements to copy. */
    private int checkTransfer(Buffer buffer, long offset) {
        checkOpen();
        int count = Transfer.elements(format, buffer);
        Bounds.check("offset", offset, count, "length()", length);
        return count;
    }

    /** Closes this buffer and its slices. Frees the memory if this buffer owns it: now, or with the last pin. */
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

    @Override
    public String toString() {
        return "DeviceBuffer of " + length + " " + format + " on " + device;
    }
}
