package io.github.nccl4j.internal.submission;

import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.internal.cuda.NativeBuffer;
import io.github.nccl4j.internal.cuda.NativeDevice;
import io.github.nccl4j.internal.memory.ElementFormat;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/**
 * Small device memory for a communicator's own exchanges. It is kept until the communicator is closed, because
 * allocating and freeing wait for the device. With several ranks in a process, these waits could depend on each other.
 */
public final class ExchangeBuffers {
    public static final ElementFormat INT8 = new ElementFormat("int8", DataType.INT8, byte.class, null);
    public static final ElementFormat INT64 = new ElementFormat("int64", DataType.INT64, long.class, null);

    private final NativeDevice device;
    private final Deque<Rows> free = new ArrayDeque<>();
    private final List<Rows> all = new ArrayList<>();
    private NativeBuffer barrier;

    public ExchangeBuffers(NativeDevice device) {
        this.device = device;
    }

    /** Rows of an exchange: this rank's row, and the rows of all ranks. */
    record Rows(NativeBuffer own, NativeBuffer ofAll) {}

    /** Returns memory for rows until {@link #giveBack}. The length is constant for a communicator. */
    synchronized Rows take(int length, int ranks) {
        if (!free.isEmpty()) {
            return free.pop();
        }
        NativeBuffer own = NativeBuffer.allocate(device, INT64, length);
        boolean done = false;
        try {
            Rows rows = new Rows(own, NativeBuffer.allocate(device, INT64, (long) length * ranks));
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
    synchronized NativeBuffer barrier() {
        if (barrier == null) {
            barrier = NativeBuffer.allocate(device, INT8, 1);
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
