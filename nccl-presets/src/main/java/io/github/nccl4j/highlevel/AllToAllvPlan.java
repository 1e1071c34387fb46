package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.Element.Int64;

/**
 * Who sends how much to whom, agreed upon by all ranks: for {@link Communicator#allToAllv(AllToAllvPlan, CudaStream)},
 * as often as the counts and the buffers stay the same.
 *
 * <pre>{@code
 * try (AllToAllvPlan<Float32> plan = communicator.planAllToAllv(
 *         send, sendCounts, sendDisplacements, recv, recvCounts, recvDisplacements)) {
 *     communicator.allToAllv(plan, stream);
 * }
 * }</pre>
 *
 * <p>A plan keeps the memory of its buffers until it is closed.
 *
 * <p><b>Ownership.</b> Closed by who made it, else with the communicator.
 *
 * <p><b>Threads.</b> As the communicator: one at a time.
 *
 * @param <T> the type of the elements
 */
public final class AllToAllvPlan<T extends Element> implements Owned {
    /** What a rank tells the others before its rows. */
    private static final int HEADER = 2;

    private static final int PROBLEM = 0;
    private static final int TYPE = 1;

    private final Communicator communicator;
    private final int size;
    private final CudaStream stream;

    /** Null if the arguments were wrong; the ranks agree on that, too. */
    private DeviceBuffer<T> send;

    private DeviceBuffer<T> recv;
    private Blocks sends;
    private Blocks receives;
    private RuntimeException problem;

    /** The exchange, until it was evaluated. */
    private DeviceBuffer<Int64> row;

    private DeviceBuffer<Int64> rows;

    private boolean agreed;
    private final Lifetime lifetime = new Lifetime(this);

    private AllToAllvPlan(Communicator communicator, CudaStream stream) {
        this.communicator = communicator;
        this.stream = stream;
        size = communicator.size();
    }

    /** Arguments of this rank, right or wrong. */
    static <T extends Element> AllToAllvPlan<T> of(
            Communicator communicator,
            DeviceBuffer<T> send,
            long[] sendCounts,
            long[] sendDisplacements,
            DeviceBuffer<T> recv,
            long[] recvCounts,
            long[] recvDisplacements,
            CudaStream stream) {
        AllToAllvPlan<T> plan = new AllToAllvPlan<>(communicator, stream);
        try {
            communicator.checkSeparate(send, recv);
            plan.sends = Blocks.checked("send", sendCounts, sendDisplacements, plan.size, send.length, false);
            plan.receives = Blocks.checked("recv", recvCounts, recvDisplacements, plan.size, recv.length, true);
            plan.pin(send, recv);
        } catch (RuntimeException e) {
            // The others wait for this rank: it tells them, and throws afterwards.
            plan.problem = e;
        }
        return plan;
    }

    private void pin(DeviceBuffer<T> toSend, DeviceBuffer<T> toRecv) {
        toSend.pin();
        try {
            toRecv.pin();
        } catch (IllegalStateException closed) {
            toSend.unpin();
            throw closed;
        }
        send = toSend;
        recv = toRecv;
    }

    /* Agreeing. */

    /** Tells the other ranks, and learns what they tell: at once, or when the open group is launched. */
    void exchange() {
        long[] words = words();
        Device device = communicator.device();
        row = device.allocate(ElementType.INT64, words.length);
        rows = device.allocate(ElementType.INT64, (long) words.length * size);
        row.copyFrom(words);
        try (Group group = Group.open()) {
            Batch.current().add(communicator.core(), new Exchange());
            group.launch();
        }
    }

    private long[] words() {
        long[] words = new long[HEADER + 4 * size];
        if (problem != null) {
            words[PROBLEM] = 1;
            return words;
        }
        words[TYPE] = send.type.nativeCode();
        for (int matrix = 0; matrix < 4; matrix++) {
            System.arraycopy(rowOf(matrix), 0, words, HEADER + matrix * size, size);
        }
        return words;
    }

    /** The all-gather of the rows, and what follows from it. */
    private final class Exchange implements Deferred {
        @Override
        public int call() {
            return nccl.ncclAllGather(
                    row.address,
                    rows.address,
                    row.length,
                    DataType.INT64.code(),
                    communicator.core().handle(),
                    stream.handle);
        }

        @Override
        public void completed() {
            boolean done = false;
            try {
                agree();
                done = true;
            } finally {
                if (!done) {
                    close();
                }
            }
        }

        @Override
        public void discarded() {
            close();
        }

        @Override
        public String toString() {
            return "ncclAllGather of the counts of allToAllv";
        }
    }

    private long[] rowOf(int matrix) {
        return switch (matrix) {
            case 0 -> sends.counts();
            case 1 -> sends.displacements();
            case 2 -> receives.counts();
            default -> receives.displacements();
        };
    }

    /** Finds, as all ranks do, what is wrong; or that nothing is. */
    private void agree() {
        communicator.mark(stream).await();
        long[] all = new long[Math.toIntExact(rows.length)];
        rows.copyTo(all);
        requireAgreement(all);
        agreed = true;
        closeExchange();
        communicator.core().own(this);
    }

    private void closeExchange() {
        if (row != null) {
            row.close();
            rows.close();
            row = null;
            rows = null;
        }
    }

    private long word(long[] all, int rank, int index) {
        return all[rank * (HEADER + 4 * size) + index];
    }

    private long count(long[] all, int rank, int matrix, int peer) {
        return word(all, rank, HEADER + matrix * size + peer);
    }

    private void requireAgreement(long[] all) {
        if (problem != null) {
            throw problem;
        }
        for (int rank = 0; rank < size; rank++) {
            if (word(all, rank, PROBLEM) != 0) {
                throw new IllegalStateException("rank " + rank + " has wrong arguments for allToAllv; it says which");
            }
            if (word(all, rank, TYPE) != send.type.nativeCode()) {
                throw new IllegalArgumentException("all ranks must have one type of elements: " + send.type + ", rank "
                        + rank + " has " + ElementType.values().get((int) word(all, rank, TYPE)));
            }
        }
        String first = null;
        int more = -1;
        for (int from = 0; from < size; from++) {
            for (int to = 0; to < size; to++) {
                long sent = count(all, from, 0, to);
                long expected = count(all, to, 2, from);
                if (sent != expected) {
                    more++;
                    if (first == null) {
                        first = "rank " + from + " sends " + sent + " elements to rank " + to + ", which expects "
                                + expected;
                    }
                }
            }
        }
        if (first != null) {
            throw new IllegalArgumentException(
                    "ranks must agree on the counts: " + first + (more > 0 ? ", and " + more + " more differ" : ""));
        }
    }

    /* Running. */

    /** {@return whether it was not closed} */
    public boolean isOpen() {
        return lifetime.isOpen();
    }

    void check(Communicator user) {
        lifetime.check();
        if (user != communicator) {
            throw new IllegalArgumentException(
                    "plan must be one of the communicator: of " + communicator + ", not of " + user);
        }
        if (!agreed) {
            throw new IllegalStateException(this + " is pending: it can be used when its group has been launched");
        }
    }

    void run(CudaStream on) {
        communicator.exchangeBlocks(send, sends, recv, receives, on);
    }

    /* Ending. */

    /** Its communicator was aborted. */
    @Override
    public void abandon() {
        close();
    }

    /** Gives the buffers free. Does nothing if it is closed. */
    @Override
    public void close() {
        lifetime.close(() -> {
            communicator.core().disown(this);
            closeExchange();
            if (send != null) {
                send.unpin();
                recv.unpin();
            }
        });
    }

    /** {@return what it is} */
    @Override
    public String toString() {
        return "plan of allToAllv of " + communicator;
    }
}
