package io.github.nccl4j.internal.cuda;

import io.github.nccl4j.internal.memory.Bounds;
import io.github.nccl4j.internal.memory.ElementFormat;
import io.github.nccl4j.internal.memory.Segments;
import io.github.nccl4j.internal.memory.StalledDevices;
import io.github.nccl4j.internal.memory.Transfer;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.library.NativeLibrary;
import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.Pointer;

/**
 * Memory that a {@code DeviceBuffer} owns, and the checks of memory that it wraps. Immutable.
 *
 * @param address the address
 * @param free frees the memory
 */
public record MemoryAllocation(long address, Runnable free) {
    /** Suffices for the vector loads of every engine. */
    private static final int HOST_ALIGNMENT = 64;

    /** Allocates memory of a device. */
    public static MemoryAllocation allocate(NativeDevice device, long bytes) {
        PendingReleases.poll();
        if (device.isCuda()) {
            long address = Cuda.allocate(device.context(), bytes);
            return new MemoryAllocation(
                    address, () -> free(device, "cudaFree", () -> Cuda.free(device.context(), address)));
        }
        NativeGraph.refuseOnHost("an allocation");
        if (bytes > Long.MAX_VALUE - HOST_ALIGNMENT) {
            throw new OutOfMemoryError("cannot allocate " + bytes + " bytes of host memory");
        }
        // Throws the reason if native code could not be loaded; JavaCPP's methods only report that they are missing.
        NativeLibrary.isLoaded();
        Pointer memory = Pointer.malloc(bytes + HOST_ALIGNMENT);
        if (memory == null || memory.isNull()) {
            throw new OutOfMemoryError("cannot allocate " + bytes + " bytes of host memory");
        }
        long address = (memory.address() + HOST_ALIGNMENT - 1) & -HOST_ALIGNMENT;
        return new MemoryAllocation(address, () -> HostStreams.free(memory));
    }

    /** Allocates host memory that is page-locked for a CUDA device. */
    public static MemoryAllocation allocatePinned(NativeDevice device, long bytes) {
        if (device.isHost()) {
            return allocate(device, bytes);
        }
        PendingReleases.poll();
        long address = Cuda.allocateHost(device.context(), bytes);
        // Unlike cudaFree, cudaFreeHost does not wait for work that uses the memory.
        return freedAfterWork(device, address, () -> Cuda.freeHost(device.context(), address));
    }

    /** Allocates memory of a device by NCCL. */
    public static MemoryAllocation allocateForWindow(NativeDevice device, long bytes) {
        if ((NativeLibrary.engine() == Engine.HOST) != device.isHost()) {
            throw new IllegalStateException("memory for windows on " + device + " can't come from the loaded library, "
                    + NativeLibrary.path() + (device.isHost() ? ", which is not" : ", which is") + " the host engine");
        }
        if (device.isHost()) {
            NativeGraph.refuseOnHost("an allocation");
            long address = NcclMemory.allocate(bytes);
            return new MemoryAllocation(address, () -> NcclMemory.free(address));
        }
        long address = Cuda.on(device.context(), () -> NcclMemory.allocate(bytes));
        // Unlike cudaFree, ncclMemFree does not wait for work that uses the memory.
        return freedAfterWork(
                device,
                address,
                () -> Cuda.on(device.context(), () -> {
                    NcclMemory.free(address);
                    return null;
                }));
    }

    /** Takes over memory that other code allocated. */
    public static MemoryAllocation of(NativeDevice device, long address, Runnable free) {
        return device.isHost() ? new MemoryAllocation(address, free) : freedAfterWork(device, address, free);
    }

    private static MemoryAllocation freedAfterWork(NativeDevice device, long address, Runnable free) {
        return new MemoryAllocation(
                address,
                () -> free(device, "cudaDeviceSynchronize", () -> {
                    Cuda.synchronizeDevice(device.context());
                    free.run();
                }));
    }

    /** Makes a call that frees memory and waits for the device. CUDA refuses it to a thread that captures. */
    private static void free(NativeDevice device, String call, Runnable free) {
        StalledDevices.free(device, () -> {
            if (NativeGraph.isThreadCapturing()) {
                free.run();
            } else {
                OperationWait.run(device.context(), call, free);
            }
        });
    }

    /** Returns the size of memory to allocate: at least 1 byte, so that every buffer has an address. */
    public static long allocatedBytes(ElementFormat type, long length) {
        return Math.max(1, bytes(type, length));
    }

    public static long bytes(ElementFormat type, long length) {
        if (length < 0) {
            throw new IllegalArgumentException("length must be >= 0: " + length);
        }
        if (length > Long.MAX_VALUE / type.size()) {
            throw new IllegalArgumentException(
                    "length * size of " + type + " must be <= " + Long.MAX_VALUE + ": " + length + " * " + type.size());
        }
        return length * type.size();
    }

    /** Checks memory to wrap. */
    public static void checkWrapped(ElementFormat type, long address, long length) {
        long bytes = bytes(type, length);
        if (address == 0) {
            throw new IllegalArgumentException("address must not be 0");
        }
        if (address % type.size() != 0) {
            throw new IllegalArgumentException("address must be a multiple of the size of " + type + ": 0x"
                    + Long.toHexString(address) + " % " + type.size() + " != 0");
        }
        Bounds.checkAddress("address", address, bytes);
    }

    /** Returns the address of a pointer's position, from which on it must have the elements. */
    public static long addressOf(ElementFormat type, Pointer pointer, long length) {
        long bytes = bytes(type, length);
        if (pointer.isNull()) {
            throw new IllegalArgumentException("pointer must not be NULL");
        }
        long size = pointer.sizeof();
        if (pointer.limit() > 0 && bytes > (pointer.limit() - pointer.position()) * size) {
            throw new IndexOutOfBoundsException("length * size of " + type + " must be <= the bytes of the pointer: "
                    + length + " * " + type.size() + " > "
                    + (pointer.limit() - pointer.position()) * size);
        }
        return pointer.address() + pointer.position() * size;
    }

    /** Returns the address of the position of a direct buffer, which must have whole elements. */
    public static long addressOf(ElementFormat type, ByteBuffer memory) {
        if (!memory.isDirect()) {
            throw new IllegalArgumentException("memory must be direct: " + memory);
        }
        if (memory.isReadOnly()) {
            throw new ReadOnlyBufferException();
        }
        Transfer.elements(type, memory);
        return new BytePointer(memory.slice()).address();
    }

    /** Returns the address of a {@code MemorySegment}, which must have whole elements. */
    public static long addressOfSegment(ElementFormat type, Object segment) {
        long address = Segments.addressOf(segment);
        if (Segments.size(segment) % type.size() != 0) {
            throw new IllegalArgumentException("the size of segment must be a multiple of the size of " + type + ": "
                    + Segments.size(segment) + " % " + type.size() + " != 0");
        }
        return address;
    }
}
