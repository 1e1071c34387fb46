package io.github.nccl4j.internal.submission;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.global.nccl_device;
import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.communicator.CommunicatorState;
import io.github.nccl4j.internal.communicator.Resource;
import io.github.nccl4j.internal.cuda.NativeBuffer;
import io.github.nccl4j.internal.memory.NativeMemory;
import io.github.nccl4j.internal.operation.Deferred;
import java.util.EnumSet;
import java.util.function.Supplier;

/** A registered buffer. For the communicator's thread; its properties are available in any thread. */
public final class NativeWindow implements AutoCloseable {
    public static final String REGISTER = "ncclCommWindowRegister";

    private final CommunicatorCore core;
    private final CommunicatorWindows windows;
    private final NativeBuffer buffer;
    private final int flags;
    private final Resource resource;
    /** 0 while the window is pending. */
    private volatile long handle;

    private NativeWindow(CommunicatorCore core, CommunicatorWindows windows, NativeBuffer buffer, int flags) {
        this.core = core;
        this.windows = windows;
        this.buffer = buffer;
        this.flags = flags;
        buffer.pin();
        resource = new Resource(core, this, this::deregister, buffer::unpin);
    }

    /**
     * Registers a buffer, which must have been checked: at once, or at the launch of the open group.
     *
     * @param noWindow the exception if NCCL creates no window
     */
    static NativeWindow register(
            CommunicatorCore core,
            CommunicatorWindows windows,
            NativeBuffer buffer,
            int flags,
            Supplier<RuntimeException> noWindow) {
        NativeWindow window = new NativeWindow(core, windows, buffer, flags);
        Batch.call(core, window.new Registering(noWindow), EnumSet.of(CommunicatorState.OPEN));
        return window;
    }

    /** The C call; NCCL may write its result later. */
    private final class Registering implements Deferred {
        private final NativeMemory cell = new NativeMemory(Long.BYTES);
        private final Supplier<RuntimeException> noWindow;

        Registering(Supplier<RuntimeException> noWindow) {
            this.noWindow = noWindow;
            // Closing a pending window waits for the call.
            resource.pin();
        }

        @Override
        public int call() {
            return core.calls()
                    .onDevice(() -> nccl.ncclCommWindowRegister(
                            core.handle(), buffer.address, buffer.bytes, cell.address(), flags));
        }

        @Override
        public void completed() {
            long made = cell.buffer().getLong(0);
            cell.close();
            if (made == 0) {
                resource.cancel();
                throw noWindow.get();
            }
            handle = made;
            windows.add(NativeWindow.this);
            resource.unpin();
        }

        @Override
        public void discarded() {
            if (core.isStuckNow()) {
                // The call is still in progress: it uses the memory, and will write the handle.
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

    public CommunicatorCore core() {
        return core;
    }

    public boolean isOpen() {
        return handle != 0 && resource.isOpen();
    }

    /** True if memory of the window's device is within the window. */
    public boolean covers(long address, long bytes) {
        long offset = address - buffer.address;
        return offset >= 0 && offset <= buffer.bytes && bytes <= buffer.bytes - offset;
    }

    long address() {
        return buffer.address;
    }

    long bytes() {
        return buffer.bytes;
    }

    /** True if both windows are in one allocation. */
    boolean sharesMemory(NativeWindow other) {
        return buffer.sharesMemory(other.buffer);
    }

    boolean isSymmetric() {
        return (flags & nccl.NCCL_WIN_COLL_SYMMETRIC) != 0;
    }

    /** The address of this rank's memory that NCCL has recorded. */
    public long userAddress() {
        return ask("ncclWinGetUserPtr", (comm, cell) -> nccl.ncclWinGetUserPtr(comm, handle, cell));
    }

    /** The address of the memory of a rank; 0 if loads and stores can't access it. */
    public long peerAddress(int peer) {
        String function = "ncclGetPeerDevicePointer";
        core.require(function);
        core.requireRank("peer", peer);
        return ask(function, (comm, cell) -> nccl_device.ncclGetPeerDevicePointer(handle, 0, peer, cell));
    }

    /** A C call that writes an address. */
    private interface AddressCall {
        int call(long communicator, long cell);
    }

    private long ask(String function, AddressCall call) {
        core.require(function);
        try (NativeMemory cell = new NativeMemory(Long.BYTES)) {
            core.calls().alone(() -> {
                check();
                core.calls().callAlone(function, comm -> call.call(comm, cell.address()));
            });
            return cell.buffer().getLong(0);
        }
    }

    /** The address of the memory of all ranks of a team; 0 if there is none. */
    public long multimemAddress() {
        String function = "ncclGetLsaMultimemDevicePointer";
        core.require(function);
        NativeMemory cell = new NativeMemory(Long.BYTES);
        boolean returned = false;
        try {
            core.calls().alone(() -> {
                check();
                core.calls()
                        .hostCall(
                                function,
                                () -> nccl_device.ncclGetLsaMultimemDevicePointer(handle, 0, cell.address()),
                                () -> {});
            });
            returned = true;
            return cell.buffer().getLong(0);
        } finally {
            // An abandoned call is still in progress, and will write to the cell.
            if (returned || !core.isStuckNow()) {
                cell.close();
            }
        }
    }

    /** Unchecked. */
    public long handle() {
        return handle;
    }

    Resource resource() {
        return resource;
    }

    public void check() {
        resource.check();
        if (handle == 0) {
            throw new IllegalStateException(this + " is pending: it can be used when its group has been launched");
        }
    }

    void check(CommunicatorCore user) {
        check();
        if (user != core) {
            throw new IllegalArgumentException("window belongs to " + core + ", not to " + user);
        }
    }

    private void deregister() {
        windows.remove(this);
        core.calls().deregister("ncclCommWindowDeregister", comm -> nccl.ncclCommWindowDeregister(comm, handle));
    }

    @Override
    public void close() {
        resource.close();
    }

    @Override
    public String toString() {
        return "window of " + buffer.length + " " + buffer.format;
    }
}
