package io.github.nccl4j.highlevel;

import io.github.nccl4j.highlevel.Element.Int64;
import io.github.nccl4j.highlevel.Element.Int8;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/**
 * Small device memory for a communicator's own exchanges. It is kept until the communicator is closed, because
 * allocating and freeing wait for the device. With several ranks in a process, these waits could depend on each other.
 */
final class ExchangeBuffers {
    private final Device device;
    private final Deque<Rows> free = new ArrayDeque<>();
    private final List<Rows> all = new ArrayList<>();
    private DeviceBuffer<Int8> barrier;

    ExchangeBuffers(Device device) {
        this.device = device;
    }

    /** Rows of an exchange: this rank's row, and the rows of all ranks. */
    record Rows(DeviceBuffer<Int64> own, DeviceBuffer<Int64> ofAll) {}

    /** Returns memory for rows until {@link #giveBack}. The length is constant for a communicator. */
    synchronized Rows take(int length, int ranks) {
        if (!free.isEmpty()) {
            return free.pop();
        }
        DeviceBuffer<Int64> own = device.allocate(ElementType.INT64, length);
        boolean done = false;
        try {
            Rows rows = new Rows(own, device.allocate(ElementType.INT64, (long) length * ranks));
            all.add(rows);
            done = true;
            return rows;
        } finally {
            if (!done) {
                own.close();
            }
        }
    }

    synchronized void giveBack(Rows rows) {
        free.push(rows);
    }

    /** Returns one element, for an operation that only waits for all ranks. */
    synchronized DeviceBuffer<Int8> barrier() {
        if (barrier == null) {
            barrier = device.allocate(ElementType.INT8, 1);
            barrier.fill(0);
        }
        return barrier;
    }

    synchronized void close() {
        for (Rows rows : all) {
            rows.own().close();
            rows.ofAll().close();
        }
        all.clear();
        free.clear();
        if (barrier != null) {
            barrier.close();
        }
    }
}
