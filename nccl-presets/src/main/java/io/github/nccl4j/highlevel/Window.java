package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.global.nccl_device;
import io.github.nccl4j.highlevel.Communicator.State;
import io.github.nccl4j.library.NcclLibraryException;
import java.util.Collections;
import java.util.EnumSet;
import java.util.OptionalLong;
import java.util.Set;

/**
 * Memory that the ranks of a communicator know from each other: each registers a buffer of the same size, and can then put
 * elements into those of the others, without a call of theirs. Collectives on it can be faster, too.
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
 * <p><b>Places.</b> In a window with {@link WindowFlag#COLL_SYMMETRIC}, each rank's buffer for a collective begins at the same
 * offset. NCCL does not compare them: GPUs read memory that is not there if they differ. Between 2.27.3 and 2.30.3 its
 * kernels for such windows get elements of 1 and 2 bytes wrong that begin at no multiple of 4 bytes, and before 2.28.7 blocks
 * of ranks that have no multiple of 8 bytes; from 2.30.3 on it has no kernels for all-reduce with {@link ReduceOp#AVG} of
 * floats of up to 4 bytes. {@link Communicator} refuses such calls with these releases. Before 2.29.2 memory
 * from which a rank sent, or into which it received, can't be used in large collectives afterwards; a warning is logged.
 *
 * <p>A window that is made in an open {@link Group} is pending until the group is launched: only what it was made of can be
 * asked before.
 *
 * <p><b>Ownership.</b> Closed by who made it, else with the communicator. It keeps the memory of its buffer: closing the
 * buffer first is allowed, and frees the memory when the window is closed.
 *
 * <p><b>Threads.</b> As the communicator: one at a time. What a window is can be asked in any thread.
 *
 * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/bufferreg.html">NCCL: windows</a>
 */
public final class Window implements AutoCloseable {
    private static final String REGISTER = "ncclCommWindowRegister";

    private final Communicator communicator;
    private final DeviceBuffer<?> buffer;
    private final Set<WindowFlag> flags;
    private final boolean symmetric;
    private final Resource resource;
    /** 0 while it is pending. */
    private volatile long handle;

    private Window(Communicator communicator, DeviceBuffer<?> buffer, Set<WindowFlag> flags) {
        this.communicator = communicator;
        this.buffer = buffer;
        this.flags = Collections.unmodifiableSet(flags);
        symmetric = flags.contains(WindowFlag.COLL_SYMMETRIC);
        buffer.pin();
        resource = new Resource(communicator.core(), this, this::deregister, buffer::unpin);
    }

    /** Registers a buffer, now or with the group that is open. */
    static Window register(Communicator communicator, DeviceBuffer<?> buffer, WindowFlag... flags) {
        NcclLibrary library = communicator.core().library();
        library.require(REGISTER);
        EnumSet<WindowFlag> all = EnumSet.noneOf(WindowFlag.class);
        for (WindowFlag flag : flags) {
            if (!library.version().isAtLeast(flag.since())) {
                throw new NcclLibraryException(flag + " needs NCCL " + flag.since() + ", loaded is " + library);
            }
            all.add(flag);
        }
        communicator.check(buffer);
        if (buffer.length == 0) {
            throw new IllegalArgumentException("buffer must have at least 1 element: " + buffer);
        }
        if (!buffer.canBeWindow()) {
            throw new IllegalArgumentException(
                    "buffer must have memory of ncclMemAlloc: allocate it by Device.allocateForWindow: " + buffer);
        }
        if (buffer.address % WindowFlag.REQUIRED_ALIGNMENT != 0) {
            throw new IllegalArgumentException("address of the buffer must be a multiple of "
                    + WindowFlag.REQUIRED_ALIGNMENT + ": 0x" + Long.toHexString(buffer.address) + " % "
                    + WindowFlag.REQUIRED_ALIGNMENT + " = " + buffer.address % WindowFlag.REQUIRED_ALIGNMENT);
        }
        Window window = new Window(communicator, buffer, all);
        communicator.core().callWithResults(window.new Registering(), EnumSet.of(State.OPEN));
        return window;
    }

    /** The C call, whose result NCCL may write later. */
    private final class Registering implements Deferred {
        private final NativeMemory cell = new NativeMemory(Long.BYTES);

        Registering() {
            // Closing what is pending waits for the call.
            resource.pin();
        }

        @Override
        public int call() {
            CommunicatorCore core = communicator.core();
            int code = 0;
            for (WindowFlag flag : flags) {
                code |= flag.code();
            }
            int bits = code;
            return core.onDevice(() -> nccl.ncclCommWindowRegister(
                    core.handle(), buffer.address, buffer.sizeInBytes(), cell.address(), bits));
        }

        @Override
        public void completed() {
            long made = cell.buffer().getLong(0);
            cell.close();
            if (made == 0) {
                resource.cancel();
                throw NoWindowException.of(communicator.core(), System.getenv());
            }
            handle = made;
            communicator.add(Window.this);
            resource.unpin();
        }

        @Override
        public void discarded() {
            if (communicator.core().isStuckNow()) {
                // The call goes on: it uses the memory, and will write the handle.
                resource.giveUp();
            } else {
                cell.close();
                resource.cancel();
            }
        }

        @Override
        public String toString() {
            return REGISTER;
        }
    }

    /** {@return the buffer whose memory it has} */
    public DeviceBuffer<?> buffer() {
        return buffer;
    }

    /** {@return the number of elements of its buffer} */
    public long length() {
        return buffer.length();
    }

    /** {@return its size in bytes} */
    public long sizeInBytes() {
        return buffer.sizeInBytes();
    }

    /** {@return the flags that it was made with} */
    public Set<WindowFlag> flags() {
        return flags;
    }

    /** {@return whether it can be used: it is not pending, and it was not closed} */
    public boolean isOpen() {
        return handle != 0 && resource.isOpen();
    }

    /**
     * Whether a buffer lies in it.
     *
     * @param part any buffer
     * @return whether all of its memory is in this window, also if that is pending or closed
     */
    public boolean contains(DeviceBuffer<?> part) {
        return part.device.equals(buffer.device) && covers(part.address, part.sizeInBytes());
    }

    /** Whether memory of its device lies in it. */
    boolean covers(long address, long bytes) {
        long offset = address - buffer.address;
        return offset >= 0 && offset <= sizeInBytes() && bytes <= sizeInBytes() - offset;
    }

    boolean isSymmetric() {
        return symmetric;
    }

    /**
     * The address of this rank's memory, as NCCL knows it.
     *
     * <p>C function: {@code ncclWinGetUserPtr}, since NCCL 2.29.2.
     *
     * @return the address
     * @throws IllegalStateException if the window is not open
     * @throws NcclLibraryException if the library lacks the function
     */
    public long userAddress() {
        CommunicatorCore core = communicator.core();
        core.require("ncclWinGetUserPtr");
        try (NativeMemory cell = new NativeMemory(Long.BYTES)) {
            core.alone(() -> {
                check();
                core.callAlone("ncclWinGetUserPtr", comm -> nccl.ncclWinGetUserPtr(comm, handle, cell.address()));
            });
            return cell.buffer().getLong(0);
        }
    }

    /**
     * The address by which this rank's device reaches the memory that another rank has registered: for kernels, and for
     * copies of CUDA. Not collective, and in no stream.
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
     * <p>It begins where the other rank's buffer does, and is valid as long as both ranks have the window. Nothing orders what
     * is read or written there with the work of the other rank: the ranks have to, for example by {@link
     * Communicator#signal}.
     *
     * <p>GPUs reach the ranks of one team of {@link CommunicatorProperties#lsaTeams}: mostly those of a machine, or of all
     * machines that NVLink connects. The host engine reaches those of the same process, if these have consecutive ranks and
     * each process as many.
     *
     * <p>C function: {@code ncclGetPeerDevicePointer}, since NCCL 2.29.2.
     *
     * @param peer the other rank, possibly this one
     * @return the address; empty if loads and stores do not reach that rank's memory, but a network may
     * @throws IllegalArgumentException if there is no such rank
     * @throws IllegalStateException if the window is pending or closed
     * @throws NcclLibraryException if the library lacks the function
     */
    public OptionalLong peerAddress(int peer) {
        String function = "ncclGetPeerDevicePointer";
        CommunicatorCore core = communicator.core();
        core.require(function);
        communicator.requirePeer("peer", peer);
        try (NativeMemory cell = new NativeMemory(Long.BYTES)) {
            core.alone(() -> {
                check();
                core.callAlone(function, comm -> nccl_device.ncclGetPeerDevicePointer(handle, 0, peer, cell.address()));
            });
            return presentUnlessNull(cell.buffer().getLong(0));
        }
    }

    /**
     * The address by which this rank's device reaches the memory of all ranks of its team at once: kernels write to all by a
     * store, and read a sum by a load, with the instructions {@code multimem} of PTX. No other access is allowed. Collective
     * over the ranks of the team when it is called first, in no stream.
     *
     * <p>C function: {@code ncclGetLsaMultimemDevicePointer}, since NCCL 2.29.2.
     *
     * @return the address, where the buffers begin; empty if {@link CommunicatorProperties#supportsMultimem} is false, as it
     *     is without NVLink switches and with the host engine
     * @throws IllegalStateException if the window is pending or closed
     * @throws NcclLibraryException if the library lacks the function
     * @throws NcclTimeoutException if not all ranks of the team call it before the communicator's deadline
     */
    public OptionalLong multimemAddress() {
        String function = "ncclGetLsaMultimemDevicePointer";
        CommunicatorCore core = communicator.core();
        core.require(function);
        NativeMemory cell = new NativeMemory(Long.BYTES);
        boolean returned = false;
        try {
            core.alone(() -> {
                check();
                core.hostCall(
                        function,
                        () -> nccl_device.ncclGetLsaMultimemDevicePointer(handle, 0, cell.address()),
                        () -> {});
            });
            returned = true;
            return presentUnlessNull(cell.buffer().getLong(0));
        } finally {
            // A call that was given up goes on, and will write there.
            if (returned || !core.isStuckNow()) {
                cell.close();
            }
        }
    }

    private static OptionalLong presentUnlessNull(long address) {
        return address == 0 ? OptionalLong.empty() : OptionalLong.of(address);
    }

    /**
     * The handle for native code, valid as long as the window is open; that is the caller's concern.
     *
     * @return its {@code ncclWindow_t}
     * @throws IllegalStateException if it is not open
     */
    public long nativeHandle() {
        check();
        return handle;
    }

    /** Without a check. */
    long handle() {
        return handle;
    }

    Resource resource() {
        return resource;
    }

    void check() {
        resource.check();
        if (handle == 0) {
            throw new IllegalStateException(this + " is pending: it can be used when its group has been launched");
        }
    }

    void check(Communicator user) {
        check();
        if (user != communicator) {
            throw new IllegalArgumentException(
                    "window must be one of the communicator: of " + communicator + ", not of " + user);
        }
    }

    private void deregister() {
        communicator.remove(this);
        communicator.core().deregister("ncclCommWindowDeregister", comm -> nccl.ncclCommWindowDeregister(comm, handle));
    }

    /**
     * Gives up the window, and with it the memory of its buffer if that is closed. Does nothing if it is closed. Within a
     * group that uses it, it is given up when the group has ended.
     *
     * <p>NCCL does not wait for other ranks here, but the window must be of no use to them any more: they must not put into
     * it. As CUDA waits until all work of the device is done, the operations before this must be ones that the other ranks
     * take part in.
     *
     * <p>C function: {@code ncclCommWindowDeregister}, since NCCL 2.27.3.
     *
     * @throws IllegalStateException if another thread is in the communicator, or that is suspended; it is not closed then
     * @throws NcclTimeoutException if the device was not done before the communicator's deadline
     * @throws NcclResultException if NCCL fails; it is closed all the same, and keeps its memory as long as the communicator
     */
    @Override
    public void close() {
        resource.close();
    }

    /** {@return what it is: "window of 1024 float32"} */
    @Override
    public String toString() {
        return "window of " + buffer.length() + " " + buffer.type();
    }
}
