package io.github.nccl4j.samples.support;

import io.github.nccl4j.global.nccl;
import org.bytedeco.javacpp.LongPointer;

/**
 * A send and a receive buffer, in a symmetric window where {@code ncclAlltoAllv} wants that.
 *
 * <p>VCCL takes only memory of {@code ncclMemAlloc} in a window that all ranks registered, at the same offset on each; both buffers lie
 * in one window of the same size everywhere. The host engine takes any memory. Opening and closing are collective.
 */
public final class WindowMemory implements AutoCloseable {

    /** NCCL wants windows to begin on a page; 512 keeps the second buffer aligned for every transport. */
    private static final long ALIGNMENT = 512;

    private final RankSession session;
    private final long send;
    private final long bytes;
    private final boolean owned;
    private final boolean registered;
    private final long window;

    private WindowMemory(RankSession session, long send, long bytes, boolean owned, boolean registered, long window) {
        this.session = session;
        this.send = send;
        this.bytes = bytes;
        this.owned = owned;
        this.registered = registered;
        this.window = window;
    }

    /**
     * Allocates the buffers.
     *
     * @param session this rank
     * @param direct whether they are for {@code ncclAlltoAllv}
     * @param bytes the size of each, the same on every rank
     * @return the memory
     */
    public static WindowMemory open(RankSession session, boolean direct, long bytes) {
        long size = Math.max(1, (bytes + ALIGNMENT - 1) / ALIGNMENT) * ALIGNMENT;
        if (!direct || session.onHost()) {
            return new WindowMemory(session, session.device().allocate(2 * size), size, false, direct, 0);
        }
        try (LongPointer cell = new LongPointer(1)) {
            session.check(nccl.ncclMemAlloc(cell.address(), 2 * size), "ncclMemAlloc(" + 2 * size + ")");
            long address = cell.get();
            cell.put(0);
            session.check(
                    nccl.ncclCommWindowRegister(
                            session.comm(), address, 2 * size, cell.address(), nccl.NCCL_WIN_COLL_SYMMETRIC),
                    "ncclCommWindowRegister");
            // Success without a window: this communicator has no symmetric memory. All its ranks see the same.
            return new WindowMemory(session, address, size, true, cell.get() != 0, cell.get());
        }
    }

    /** {@return the address of the send buffer} */
    public long send() {
        return send;
    }

    /** {@return the address of the receive buffer} */
    public long receive() {
        return send + bytes;
    }

    /** {@return the size of each buffer} */
    public long bytes() {
        return bytes;
    }

    /** {@return whether {@code ncclAlltoAllv} takes these buffers} */
    public boolean registered() {
        return registered;
    }

    /** After a failure nothing is freed: the communicator is given up, and the process ends. */
    @Override
    public void close() {
        if (session.comm() == 0 || !owned) {
            return;
        }
        if (window != 0) {
            session.check(nccl.ncclCommWindowDeregister(session.comm(), window), "ncclCommWindowDeregister");
        }
        session.check(nccl.ncclMemFree(send), "ncclMemFree");
    }
}
