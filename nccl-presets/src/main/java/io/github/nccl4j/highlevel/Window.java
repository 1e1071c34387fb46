package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.cuda.NativeBuffer;
import io.github.nccl4j.internal.submission.CommunicatorWindows;
import io.github.nccl4j.internal.submission.NativeWindow;
import java.util.Collections;
import java.util.EnumSet;
import java.util.OptionalLong;
import java.util.Set;

/**
 * Memory of all ranks of a communicator, registered for access by the other ranks: each rank registers a buffer of the
 * same size, and can then put elements into the buffers of other ranks, which make no call. Collectives on a window can
 * be faster, too.
 *
 * <pre>{@code
 * try (DeviceBuffer<Float32> buffer = device.allocateForWindow(ElementType.FLOAT32, 2048);
 *         Window window = communicator.registerWindow(buffer, WindowFlag.COLL_SYMMETRIC)) {
 *     communicator.putSignal(buffer.slice(0, 1024), window, 1024, next, stream);
 *     communicator.waitSignal(previous, stream);
 *     communicator.work(stream).await();
 * }
 * }</pre>
 *
 * <p><b>Offsets.</b> In a window with {@link WindowFlag#COLL_SYMMETRIC}, the buffers of all ranks for a collective must
 * begin at the same offset. NCCL does not compare the offsets: if they differ, GPUs read memory that does not exist.
 * Between 2.27.3 and 2.30.3, NCCL's kernels for such windows return wrong results for elements of 1 and 2 bytes at
 * addresses that are not a multiple of 4 bytes, and before 2.28.7 for each rank's blocks if their size is not a
 * multiple of 8 bytes. From 2.30.3 on, NCCL has no kernels for all-reduce with {@link ReduceOp#AVG} of floats of up to
 * 4 bytes. {@link Communicator} rejects such calls with these releases. Before 2.29.2, memory that a rank has used to
 * send or receive can't be used in large collectives afterwards; a warning is logged.
 *
 * <p>A window that is registered in an open {@link Group} is pending until the launch of the group. A pending window
 * provides only its buffer, length, size and flags.
 *
 * <p><b>Ownership.</b> The creator closes the window, or it is closed with the communicator. A window keeps the memory
 * of its buffer: if the buffer is closed first, closing the window frees the memory.
 *
 * <p><b>Threads.</b> As the communicator: one at a time. The properties of a window are available in any thread.
 *
 * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/bufferreg.html">NCCL: windows</a>
 * @since 0.1
 */
public final class Window implements AutoCloseable {
    final NativeWindow nativeWindow;
    private final DeviceBuffer<?> buffer;
    private final Set<WindowFlag> flags;

    private Window(DeviceBuffer<?> buffer, Set<WindowFlag> flags, NativeWindow nativeWindow) {
        this.buffer = buffer;
        this.flags = Collections.unmodifiableSet(flags);
        this.nativeWindow = nativeWindow;
    }

    /** Registers a buffer, which must have been checked: at once, or at the launch of the open group. */
    static Window register(
            CommunicatorCore core, CommunicatorWindows windows, DeviceBuffer<?> buffer, WindowFlag... flags) {
        NcclLibrary library = core.library();
        library.require(NativeWindow.REGISTER);
        EnumSet<WindowFlag> all = EnumSet.noneOf(WindowFlag.class);
        int bits = 0;
        for (WindowFlag flag : flags) {
            if (!library.version().isAtLeast(flag.since())) {
                throw new NcclLibraryException(flag + " needs NCCL " + flag.since() + ", loaded is " + library);
            }
            all.add(flag);
            bits |= flag.code();
        }
        NativeBuffer memory = buffer.nativeBuffer;
        if (memory.length == 0) {
            throw new IllegalArgumentException("buffer must have at least 1 element: " + buffer);
        }
        if (!memory.canBeWindow()) {
            throw new IllegalArgumentException(
                    "buffer must have memory of ncclMemAlloc: allocate it by Device.allocateForWindow: " + buffer);
        }
        if (memory.address % WindowFlag.REQUIRED_ALIGNMENT != 0) {
            throw new IllegalArgumentException("address of the buffer must be a multiple of "
                    + WindowFlag.REQUIRED_ALIGNMENT + ": 0x" + Long.toHexString(memory.address) + " % "
                    + WindowFlag.REQUIRED_ALIGNMENT + " = " + memory.address % WindowFlag.REQUIRED_ALIGNMENT);
        }
        NativeWindow made =
                windows.register(memory, bits, () -> NoWindowException.of(core.toString(), library, System.getenv()));
        return new Window(buffer, all, made);
    }

    /** {@return the registered buffer} */
    public DeviceBuffer<?> buffer() {
        return buffer;
    }

    /** {@return the number of elements of the buffer} */
    public long length() {
        return buffer.length();
    }

    /** {@return the size in bytes} */
    public long sizeInBytes() {
        return buffer.sizeInBytes();
    }

    /** {@return the flags of the registration} */
    public Set<WindowFlag> flags() {
        return flags;
    }

    /** {@return true if the window can be used: it is neither pending nor closed} */
    public boolean isOpen() {
        return nativeWindow.isOpen();
    }

    /**
     * Returns true if a buffer is within this window.
     *
     * @param part any buffer
     * @return true if all memory of the buffer is within this window, which may be pending or closed
     */
    public boolean contains(DeviceBuffer<?> part) {
        NativeBuffer other = part.nativeBuffer;
        return other.device.equals(buffer.nativeBuffer.device) && nativeWindow.covers(other.address, other.bytes);
    }

    /**
     * Returns the address of this rank's memory that NCCL has recorded.
     *
     * <p>C function: {@code ncclWinGetUserPtr}, since NCCL 2.29.2.
     *
     * @return the address
     * @throws IllegalStateException if the window is not open
     * @throws NcclLibraryException if the library lacks the function
     */
    public long userAddress() {
        return nativeWindow.userAddress();
    }

    /**
     * Returns the address at which this rank's device accesses the memory of another rank, for kernels and for copies
     * by CUDA. Not collective, not stream-ordered.
     *
     * <pre>{@code
     * try (DeviceBuffer<Float32> mine = device.allocateForWindow(ElementType.FLOAT32, numbers.length);
     *         Window window = communicator.registerWindow(mine, WindowFlag.COLL_SYMMETRIC)) {
     *     OptionalLong address = window.peerAddress(next);
     *     if (address.isPresent()) {
     *         DeviceBuffer.wrap(device, ElementType.FLOAT32, address.getAsLong(), numbers.length).copyTo(numbers);
     *     }
     * }
     * }</pre>
     *
     * <p>The result is the address of the first element of the other rank's buffer. The address is valid while the
     * window is open on both ranks. The ranks must order their accesses with the work of the other rank themselves, for
     * example by {@link Communicator#signal}.
     *
     * <p>GPUs access the memory of the ranks of one team of {@link CommunicatorProperties#lsaTeams}: usually the ranks
     * of one machine, or of all machines that NVLink connects. The host engine accesses the memory of the ranks of the
     * same process, if these are consecutive and each process has the same number of ranks.
     *
     * <p>C function: {@code ncclGetPeerDevicePointer}, since NCCL 2.29.2.
     *
     * @param peer the other rank, or this rank
     * @return the address; empty if loads and stores can't access that rank's memory, although a network may
     * @throws IllegalArgumentException if the peer is out of range
     * @throws IllegalStateException if the window is pending or closed
     * @throws NcclLibraryException if the library lacks the function
     */
    @Incubating
    public OptionalLong peerAddress(int peer) {
        return presentUnlessNull(nativeWindow.peerAddress(peer));
    }

    /**
     * Returns the address at which this rank's device accesses the memory of all ranks of its team at once: with the
     * instructions {@code multimem} of PTX, a store of a kernel writes to all ranks, and a load reads a sum. No other
     * access is allowed. The first call is collective over the ranks of the team. Not stream-ordered.
     *
     * <p>C function: {@code ncclGetLsaMultimemDevicePointer}, since NCCL 2.29.2.
     *
     * @return the address of the first element of the buffers; empty if {@link CommunicatorProperties#supportsMultimem}
     *     is false, for example without NVLink switches and with the host engine
     * @throws IllegalStateException if the window is pending or closed
     * @throws NcclLibraryException if the library lacks the function
     * @throws NcclTimeoutException if not all ranks of the team call it before the communicator's deadline
     */
    @Incubating
    public OptionalLong multimemAddress() {
        return presentUnlessNull(nativeWindow.multimemAddress());
    }

    private static OptionalLong presentUnlessNull(long address) {
        return address == 0 ? OptionalLong.empty() : OptionalLong.of(address);
    }

    /**
     * Returns the handle for native code. It is valid while the window is open; the caller must ensure that.
     *
     * @return the {@code ncclWindow_t}
     * @throws IllegalStateException if the window is not open
     */
    public long nativeHandle() {
        nativeWindow.check();
        return nativeWindow.handle();
    }

    /**
     * Deregisters the window, and frees the memory of its buffer if the buffer is closed. Does nothing if the window is
     * closed. In a group that uses the window, deregistration is deferred until the end of the group.
     *
     * <p>NCCL does not wait for other ranks here. Other ranks must not put into the window any more. CUDA waits until
     * all work of the device is complete, so the other ranks must take part in all earlier operations.
     *
     * <p>C function: {@code ncclCommWindowDeregister}, since NCCL 2.27.3.
     *
     * @throws IllegalStateException if another thread uses the communicator, or the communicator is suspended; the
     *     window stays open then
     * @throws NcclTimeoutException if the work of the device does not complete before the communicator's deadline
     * @throws NcclResultException if NCCL fails; the window is closed nevertheless, and its memory is kept until the
     *     communicator ends
     */
    @Override
    public void close() {
        nativeWindow.close();
    }

    /** {@return a description: "window of 1024 float32"} */
    @Override
    public String toString() {
        return nativeWindow.toString();
    }
}
