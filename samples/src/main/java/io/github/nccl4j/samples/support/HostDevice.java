package io.github.nccl4j.samples.support;

import io.github.nccl4j.global.nccl;
import java.util.ArrayList;
import java.util.List;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;

/** Host memory that the host engine allocates; its operations are done when they return, so there is no stream. */
final class HostDevice extends Device {

    private final int rank;
    private final List<Long> allocated = new ArrayList<>();

    HostDevice(int rank) {
        this.rank = rank;
    }

    @Override
    public long allocate(long bytes) {
        try (PointerPointer<Pointer> cell = new PointerPointer<>(1)) {
            NcclError.check(nccl.ncclMemAlloc(cell, Math.max(1, bytes)), "ncclMemAlloc(" + bytes + ")", rank, 0);
            long address = cell.get().address();
            allocated.add(address);
            return address;
        }
    }

    @Override
    public void set(long address, int value, long bytes) {
        Pointer.memset(new Address(address), value, bytes);
    }

    @Override
    void toDevice(long address, FloatPointer from, long bytes) {
        Pointer.memcpy(new Address(address), from, bytes);
    }

    @Override
    void toHost(FloatPointer to, long address, long bytes) {
        Pointer.memcpy(to, new Address(address), bytes);
    }

    @Override
    public long stream() {
        return 0;
    }

    @Override
    public void synchronize() {
        // Nothing is ever under way.
    }

    @Override
    public String describe() {
        return "host memory";
    }

    @Override
    public void close() {
        super.close();
        for (long address : allocated) {
            NcclError.check(nccl.ncclMemFree(address), "ncclMemFree", rank, 0);
        }
        allocated.clear();
    }
}
