package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.communicator.CommunicatorStreams;
import io.github.nccl4j.internal.communicator.StreamWork;
import io.github.nccl4j.internal.cuda.NativeBuffer;
import io.github.nccl4j.internal.operation.OperationKind;
import io.github.nccl4j.internal.submission.Batch;
import io.github.nccl4j.internal.submission.ComposedOperations;
import io.github.nccl4j.internal.submission.OperationChecks;
import io.github.nccl4j.internal.submission.OperationSubmitter;
import io.github.nccl4j.internal.threads.Gate;
import io.github.nccl4j.internal.threads.Timeouts;
import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/**
 * Small data of a program that the ranks of a communicator exchange: settings, names of files, lengths, losses. It needs no
 * store and no buffers, and works on every communicator, also on those of {@code split} and {@code grow}.
 *
 * <pre>{@code
 * ControlData control = communicator.control();
 * List<String> names = control.exchange("rank " + communicator.rank(), ControlData.TEXT); // by rank
 * byte[] settings = control.broadcast(new byte[] {1, 2}, 0); // those of rank 0
 * control.barrier(Duration.ofMinutes(1));
 * }</pre>
 *
 * <p>Every method is collective: all ranks call the same method, in the same order as the operations of the communicator. The
 * methods return when the data is there. They use the communicator's own stream ({@link Communicator#stream()}), and wait for
 * the work that is in it. A call takes as long as a few small operations; {@link DeviceBuffer} is for large data.
 *
 * <p>A method can't be used in an open group. It throws what {@link Work#await(Duration)} throws: also after a lost rank, a
 * failed operation, an interrupt and the communicator's deadline. For the communicator's thread.
 *
 * @see Communicator#control()
 * @since 0.1
 */
public final class ControlData {
    /** Text, as UTF-8. */
    public static final Codec<String> TEXT = new Codec<>() {
        @Override
        public byte[] encode(String value) {
            return value.getBytes(StandardCharsets.UTF_8);
        }

        @Override
        public String decode(byte[] bytes) {
            return new String(bytes, StandardCharsets.UTF_8);
        }
    };

    private final CommunicatorCore core;
    private final CommunicatorStreams streams;
    private final OperationChecks checks;
    private final OperationSubmitter operations;
    private final ComposedOperations composed;

    /** One for each rank. Kept, as the data, because allocating and freeing wait for the device. */
    private NativeBuffer lengths;

    private NativeBuffer data;

    ControlData(
            CommunicatorCore core,
            CommunicatorStreams streams,
            OperationChecks checks,
            OperationSubmitter operations,
            ComposedOperations composed) {
        this.core = core;
        this.streams = streams;
        this.checks = checks;
        this.operations = operations;
        this.composed = composed;
    }

    /**
     * Turns values into bytes and back. What it throws is thrown by the method that it was passed to; the other ranks then wait
     * for this rank until their deadline if it threw in {@code encode}.
     *
     * @param <V> the type of the values
     */
    public interface Codec<V> {
        /**
         * Turns a value into bytes.
         *
         * @param value the value
         * @return its bytes, not null
         */
        byte[] encode(V value);

        /**
         * Turns bytes into a value.
         *
         * @param bytes the bytes that {@link #encode} returned at a rank
         * @return the value
         */
        V decode(byte[] bytes);
    }

    /**
     * Returns when all ranks have called it.
     *
     * @param limit the time to wait for the other ranks
     * @throws NcclTimeoutException if not all ranks have called it in time
     * @throws IllegalArgumentException if the limit is negative
     */
    public void barrier(Duration limit) {
        Timeouts.nanoseconds(Objects.requireNonNull(limit, "limit"));
        lengths(0, limit);
    }

    /**
     * Gathers the data of all ranks at all ranks.
     *
     * @param own the data of this rank, of any length
     * @return the data by rank, new arrays
     * @throws IllegalArgumentException at all ranks, if the data of all ranks together is longer than 2<sup>31</sup> - 1 bytes
     */
    public List<byte[]> exchange(byte[] own) {
        Objects.requireNonNull(own, "own");
        long[] sizes = lengths(own.length, core.deadline());
        // At least a byte each: a part of a buffer that is in a collective has elements.
        long[] counts = Arrays.stream(sizes).map(size -> Math.max(1, size)).toArray();
        long[] offsets = new long[counts.length];
        long total = 0;
        for (int rank = 0; rank < counts.length; rank++) {
            offsets[rank] = total;
            total += counts[rank];
        }
        NativeBuffer all = data(total);
        NativeBuffer part = all.slice(offsets[core.rank()], counts[core.rank()]);
        if (own.length > 0) {
            part.transfer(ByteBuffer.wrap(own), 0, true);
        }
        composed.allGatherv(part, all, counts, offsets, streams.ownStream());
        byte[] bytes = received(all);
        List<byte[]> result = new ArrayList<>();
        for (int rank = 0; rank < counts.length; rank++) {
            int offset = (int) offsets[rank];
            result.add(Arrays.copyOfRange(bytes, offset, offset + (int) sizes[rank]));
        }
        return result;
    }

    /**
     * Sends the data of one rank to all ranks.
     *
     * @param value the data, of any length; only the root's counts, and other ranks may pass null
     * @param root the rank whose data is sent
     * @return the data of the root, a new array
     * @throws IllegalArgumentException if root is no rank of the communicator
     */
    public byte[] broadcast(byte[] value, int root) {
        if (root < 0 || root >= core.size()) {
            throw new IllegalArgumentException("root must be from 0 to " + (core.size() - 1) + ": " + root);
        }
        boolean isRoot = core.rank() == root;
        if (isRoot) {
            Objects.requireNonNull(value, "value");
        }
        int length = (int) lengths(isRoot ? value.length : 0, core.deadline())[root];
        if (length == 0) {
            return new byte[0];
        }
        NativeBuffer sent = data(length);
        if (isRoot) {
            sent.transfer(ByteBuffer.wrap(value), 0, true);
        }
        submit(OperationKind.BROADCAST, sent, sent, root);
        return received(sent);
    }

    /**
     * As {@link #exchange(byte[])} for values.
     *
     * @param <V> the type of the values
     * @param own the value of this rank
     * @param codec the codec, the same on all ranks
     * @return the values by rank
     */
    public <V> List<V> exchange(V own, Codec<V> codec) {
        return exchange(codec.encode(own)).stream().map(codec::decode).toList();
    }

    /**
     * As {@link #broadcast(byte[], int)} for a value.
     *
     * @param <V> the type of the value
     * @param value the value; only the root's counts, and other ranks may pass null
     * @param root the rank whose value is sent
     * @param codec the codec, the same on all ranks
     * @return the value of the root
     */
    public <V> V broadcast(V value, int root, Codec<V> codec) {
        return codec.decode(broadcast(core.rank() == root ? codec.encode(value) : null, root));
    }

    /** Exchanges a length with all ranks, and waits for it. */
    private long[] lengths(long own, Duration limit) {
        if (Batch.current() != null) {
            throw new IllegalStateException(
                    "control data can't be exchanged in an open group, which launches nothing yet");
        }
        core.requireOpen();
        if (lengths == null) {
            lengths = NativeBuffer.allocate(core.device(), ElementType.INT64.format, core.size());
        }
        NativeBuffer part = lengths.slice(core.rank(), 1);
        part.transfer(LongBuffer.wrap(new long[] {own}), 0, true);
        submit(OperationKind.ALL_GATHER, part, lengths, 0);
        await(limit);
        long[] all = new long[core.size()];
        lengths.transfer(LongBuffer.wrap(all), 0, false);
        return all;
    }

    private void submit(OperationKind kind, NativeBuffer send, NativeBuffer recv, int root) {
        long count = checks.collective(kind, send, recv, null, root);
        operations.submit(kind, send, recv, count, null, root, streams.ownStream(), null);
    }

    private void await(Duration limit) {
        Gate.Pass pass = core.gate().enter();
        StreamWork work;
        try {
            work = streams.mark(streams.ownStream());
        } finally {
            pass.leave();
        }
        work.await(limit);
    }

    private byte[] received(NativeBuffer buffer) {
        await(core.deadline());
        byte[] bytes = new byte[(int) buffer.length];
        buffer.transfer(ByteBuffer.wrap(bytes), 0, false);
        return bytes;
    }

    private NativeBuffer data(long length) {
        if (length > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(
                    "the data of all ranks must be at most " + Integer.MAX_VALUE + " bytes: " + length);
        }
        if (data == null || data.length < length) {
            NativeBuffer larger = NativeBuffer.allocate(core.device(), ElementType.INT8.format, length);
            if (data != null) {
                data.close();
            }
            data = larger;
        }
        return data.slice(0, length);
    }

    /** Frees the memory. */
    void close() {
        if (lengths != null) {
            lengths.close();
        }
        if (data != null) {
            data.close();
        }
    }
}
