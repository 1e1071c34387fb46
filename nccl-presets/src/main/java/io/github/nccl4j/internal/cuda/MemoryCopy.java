package io.github.nccl4j.internal.cuda;

import io.github.nccl4j.internal.memory.Address;
import io.github.nccl4j.internal.memory.ElementFormat;
import io.github.nccl4j.internal.memory.Transfer;
import java.lang.ref.Reference;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.bytedeco.javacpp.Pointer;

/** Copies and fills memory by address. The caller keeps the memory from being freed. */
public final class MemoryCopy {
    /** Size of a chunk of a copy whose elements are converted or staged. */
    private static final int CHUNK_BYTES = 1 << 20;

    private static final int FILL_BYTES = 1 << 16;

    private MemoryCopy() {}

    /** Copies within a device's memory, or, for a CUDA device, also from or to host memory. */
    public static void copy(NativeDevice device, long target, long source, long bytes) {
        if (device.isCuda()) {
            awaitDefaultOf(device);
            Cuda.copy(device.context(), target, source, bytes);
        } else {
            NativeGraph.refuseOnHost("a copy that is done when it returns");
            Pointer.memcpy(new Address(target), new Address(source), bytes);
        }
    }

    /** Waits for the default stream, as copies do. CUDA refuses copies to a thread that captures. */
    private static void awaitDefaultOf(NativeDevice device) {
        if (!NativeGraph.isThreadCapturing()) {
            PendingOperations.awaitDefaultOf(device, device.context());
        }
    }

    /** Sets all elements to one value, given by its bits. */
    public static void fill(NativeDevice device, long address, long length, int size, long bits) {
        if (length == 0) {
            return;
        }
        long total = length * size;
        if (hasEqualBytes(bits, size)) {
            set(device, address, (int) bits & 0xff, total);
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
        copy(device, address, new Pointer(pattern.rewind()).address(), pattern.capacity());
        Reference.reachabilityFence(pattern);
        for (long done = pattern.capacity(); done < total; done *= 2) {
            copy(device, address + done, address, Math.min(done, total - done));
        }
    }

    private static boolean hasEqualBytes(long bits, int size) {
        for (int i = 1; i < size; i++) {
            if ((bits >>> 8 * i & 0xff) != (bits & 0xff)) {
                return false;
            }
        }
        return true;
    }

    private static void set(NativeDevice device, long address, int value, long bytes) {
        if (device.isCuda()) {
            awaitDefaultOf(device);
            Cuda.set(device.context(), address, value, bytes);
        } else {
            NativeGraph.refuseOnHost("a fill");
            Pointer.memset(new Address(address), value, bytes);
        }
    }

    /** Copies the remaining elements of a NIO buffer to a device's memory, or the other way; converts if necessary. */
    public static void transfer(
            NativeDevice device, ElementFormat type, long address, Buffer buffer, int count, boolean write) {
        if (count == 0) {
            return;
        } else if (Transfer.isNative(type, buffer)) {
            transferDirectly(device, type, address, buffer, count, write);
        } else if (device.isHost()) {
            convertInPlace(type, address, buffer, count, write);
        } else {
            convertByStaging(device, type, address, buffer, count, write);
        }
    }

    private static void transferDirectly(
            NativeDevice device, ElementFormat type, long address, Buffer buffer, int count, boolean write) {
        long bytes = (long) count * type.size();
        long memory = addressOf(type, buffer);
        copy(device, write ? address : memory, write ? memory : address, bytes);
        Reference.reachabilityFence(buffer);
    }

    /** Returns the address of the position of a direct buffer, whose arena must be open, if its memory has one. */
    public static long addressOf(ElementFormat type, Buffer buffer) {
        Transfer.requireAccessible(type, buffer);
        return new Pointer(buffer).address() + (long) buffer.position() * Transfer.step(type, buffer);
    }

    private static void convertInPlace(ElementFormat type, long address, Buffer buffer, int count, boolean write) {
        NativeGraph.refuseOnHost("a copy that is done when it returns");
        int size = type.size();
        int most = CHUNK_BYTES / size;
        for (int at = 0; at < count; ) {
            int n = Math.min(most, count - at);
            ByteBuffer memory = Address.buffer(address + (long) at * size, n * size);
            if (write) {
                Transfer.put(type, memory, buffer, at, n);
            } else {
                Transfer.get(type, memory, buffer, at, n);
            }
            at += n;
        }
    }

    private static void convertByStaging(
            NativeDevice device, ElementFormat type, long address, Buffer buffer, int count, boolean write) {
        int size = type.size();
        int most = CHUNK_BYTES / size;
        Pointer staging = Pointer.malloc((long) Math.min(most, count) * size);
        if (staging == null || staging.isNull()) {
            throw new OutOfMemoryError("cannot allocate " + (long) Math.min(most, count) * size + " bytes for a copy");
        }
        try {
            for (int at = 0; at < count; ) {
                int n = Math.min(most, count - at);
                ByteBuffer memory = Address.buffer(staging.address(), n * size);
                long there = address + (long) at * size;
                if (write) {
                    Transfer.put(type, memory, buffer, at, n);
                    copy(device, there, staging.address(), (long) n * size);
                } else {
                    copy(device, staging.address(), there, (long) n * size);
                    Transfer.get(type, memory, buffer, at, n);
                }
                at += n;
            }
        } finally {
            Pointer.free(staging);
        }
    }

    /** Requires an open stream that can execute a copy between two devices. */
    public static void requireStream(NativeStream stream, NativeDevice source, NativeDevice target) {
        NativeDevice device = stream.device;
        boolean takesPart = device.equals(source) || device.equals(target);
        if (!takesPart || device.isHost() && (source.isCuda() || target.isCuda())) {
            throw new IllegalArgumentException(
                    "stream must be of a device of the copy, and of a CUDA device if there is one: a stream of "
                            + device + ", a copy from " + source + " to " + target);
        }
        stream.checkOpen();
    }

    /** Requires a buffer that a device can access while the caller continues. */
    public static void requireAsynchronous(ElementFormat type, Buffer buffer) {
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
    }

    /**
     * Enqueues a copy in a stream. Runs the release action, if there is one, when the copy is done or could not be
     * enqueued.
     */
    public static void enqueue(NativeStream stream, long target, long source, long bytes, Runnable release) {
        boolean kept = false;
        try {
            stream.pin();
            try {
                if (bytes == 0 || target == source) {
                    return;
                }
                if (stream.device.isCuda()) {
                    Cuda.copyAsync(stream.device.context(), target, source, bytes, stream.handle);
                } else if (stream.handle != 0) {
                    HostStreams.copyAsync(target, source, bytes, stream.handle);
                } else {
                    PendingOperations.awaitDefaultOfHost();
                    Pointer.memcpy(new Address(target), new Address(source), bytes);
                    return;
                }
                if (release != null) {
                    kept = true;
                    PendingReleases.add(stream, bytes, release);
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
}
