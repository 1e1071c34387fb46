package io.github.nccl4j.tests.host;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.nccl.ncclWaitSignalDesc_t;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.LongPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;

/** The window of one rank, and its one-sided calls. */
record OneSided(Rank self, long memory, long size, long window) implements AutoCloseable {

    /** Registers memory of its own; all ranks call it. */
    static OneSided open(Rank self, long size) {
        try (PointerPointer<Pointer> memory = new PointerPointer<>(1);
                LongPointer window = new LongPointer(1)) {
            Rank.check(nccl.ncclMemAlloc(memory, size), "ncclMemAlloc");
            long address = memory.get(Pointer.class, 0).address();
            Rank.check(
                    nccl.ncclCommWindowRegister(
                            self.comm(), address, size, window.address(), nccl.NCCL_WIN_COLL_SYMMETRIC),
                    "ncclCommWindowRegister");
            return new OneSided(self, address, size, window.get());
        }
    }

    BytePointer bytes() {
        return at(memory, size);
    }

    static BytePointer at(long address, long size) {
        return new BytePointer(new Address(address)).capacity(size);
    }

    private static final class Address extends Pointer {
        private Address(long address) {
            this.address = address;
        }
    }

    int put(long offset, long count, int peer, long to) {
        return nccl.ncclPutSignal(memory + offset, count, nccl.ncclInt8, peer, window, to, 0, 0, 0, self.comm(), 0L);
    }

    int signal(int peer) {
        return signal(self, peer);
    }

    static int signal(Rank self, int peer) {
        return nccl.ncclSignal(peer, 0, 0, 0, self.comm(), 0L);
    }

    int await(int count, int peer) {
        return await(self, count, peer);
    }

    static int await(Rank self, int count, int peer) {
        try (ncclWaitSignalDesc_t descriptor = new ncclWaitSignalDesc_t()) {
            descriptor.opCnt(count).peer(peer).sigIdx(0).ctx(0);
            return nccl.ncclWaitSignal(1, descriptor.address(), self.comm(), 0L);
        }
    }

    @Override
    public void close() {
        Rank.check(nccl.ncclCommWindowDeregister(self.comm(), window), "ncclCommWindowDeregister");
        Rank.check(nccl.ncclMemFree(memory), "ncclMemFree");
    }
}
