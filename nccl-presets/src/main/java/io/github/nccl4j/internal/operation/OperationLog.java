package io.github.nccl4j.internal.operation;

import io.github.nccl4j.internal.threads.Gate;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.function.LongConsumer;

/**
 * Log of the last operations of a communicator, in an array that is allocated once. The thread that holds the
 * communicator's gate records an operation with a few stores and counts it in the gate. Other threads read a copy of
 * the array and skip slots that may have been overwritten meanwhile.
 */
public final class OperationLog {
    /** Log2 of the words per slot: two slots fill one cache line. NCCL leaves little of the cache. */
    private static final int SHIFT = 2;

    /*
     * Offsets of the words of a slot. They are written in this order, with which the compiler removes most bounds
     * checks.
     */
    private static final int COUNT = 0;
    private static final int STREAM = 1;
    private static final int HEAD = 2;
    private static final int PEER_AND_GROUP = 3;

    /*
     * Layout of the head, which is written last: the low 32 bits of the number of earlier operations, the MORE bit, 7
     * bits of the operation, 8 of the type, 16 of the operator.
     */

    /** Set if the slot uses its fourth word. */
    private static final int MORE = 1 << 31;

    private static final int OPERATION = 24;
    private static final int TYPE = 16;
    /** Larger operator codes are recorded as this one: NCCL gives created operators random codes. */
    private static final int MAX_OP = 0xffff;

    private static final int MAX_ATTEMPTS = 100;

    private static final VarHandle WORDS = MethodHandles.arrayElementVarHandle(long[].class);

    private final Gate gate;
    private final long[] words;
    private final int mask;
    private int groups;

    /**
     * Numbers of operations that are not collectives, before and after they were recorded: equal unless one is being recorded.
     * Written by the holder of the pass.
     */
    private long transfersBegun;

    private long transfersRecorded;

    /** Number of calls with elements by the code of the operation, as NCCL counts them. Written by the holder of the pass. */
    private final long[] calls = new long[OperationKind.CONFIGURED];

    /**
     * Wall-clock time in milliseconds since 1970 by the number of operations recorded until then, as far back as the
     * log reaches. Guarded by this.
     */
    private final NavigableMap<Long, Long> times = new TreeMap<>();

    /** By slot: the sequence number of the operation that was observed as completed, and the time. Guarded by this. */
    private final long[] doneSequence;

    private final long[] doneTime;

    /** All operations up to this one are known to be done: those of a communicator end in their order. */
    private volatile long doneUpTo;

    /**
     * Creates an empty log.
     *
     * @param kept the number of operations that can be read at any time
     * @param gate the gate that counts the operations
     */
    public OperationLog(int kept, Gate gate) {
        this.gate = gate;
        // One slot more: the slot being written cannot be read.
        int slots = Integer.highestOneBit(kept) << 1;
        words = new long[slots << SHIFT];
        mask = words.length - 1;
        // Marks the first slot as not written: 0 would mark operation 1.
        words[HEAD] = -1;
        doneSequence = new long[slots];
        doneTime = new long[slots];
    }

    /** An operation as recorded, without addresses. Times are in milliseconds since 1970, or 0 if unknown. */
    public record Entry(long sequence, int group, Operation operation, long enqueued, long done) {
        public OperationKind kind() {
            return OperationKind.of(operation.code());
        }

        /** The name of the C function. */
        public String function() {
            return operation.function();
        }

        /** As {@link OperationKind#describe}. */
        public String call() {
            return operation.describe();
        }

        /** {@return a description for messages: "ncclAllReduce of 1024 float32 (operation 17)"} */
        public String describe() {
            return call() + " (operation " + sequence + ")";
        }
    }

    /** Returns the number of operations, including the current one if it is recorded. May be called from any thread. */
    public long recorded() {
        long next = gate.operations() + 1;
        return isWritten(next) ? next : next - 1;
    }

    private boolean isWritten(long sequence) {
        return (int) ((long) WORDS.getAcquire(words, at(sequence) + HEAD) >>> 32) == (int) (sequence - 1);
    }

    private int at(long sequence) {
        return (int) (sequence - 1) << SHIFT & mask;
    }

    /** Returns the number of a new group, for operations that are launched together. */
    public int beginGroup() {
        return ++groups;
    }

    /** Records and counts the next operation. The caller holds the pass. */
    public void record(Operation operation, Gate.Pass pass, int group) {
        Operation.Elements elements = operation.elements();
        record(
                pass.next(),
                operation.code(),
                elements.count(),
                elements.type(),
                operation.peer(),
                operation.op(),
                group,
                operation.stream());
        pass.count();
    }

    /** Records the next operation. The caller holds the gate and counts the operation afterwards. */
    public void record(long sequence, int code, long count, int type, int peer, int op, int group, long stream) {
        long[] target = words;
        int at = at(sequence);
        long before = sequence - 1;
        boolean collective = OperationKind.isCollective(code);
        if (!collective) {
            transfersBegun++;
        }
        if (count != 0) {
            calls[code & OperationKind.CONFIGURED - 1]++;
        }
        int details = code << OPERATION | type << TYPE | Math.min(op, MAX_OP);
        // Orders these stores after those of the previous operation.
        VarHandle.storeStoreFence();
        target[at + COUNT] = count;
        target[at + STREAM] = stream;
        if ((peer | group) == 0) {
            WORDS.setRelease(target, at + HEAD, before << 32 | details);
        } else {
            target[at + PEER_AND_GROUP] = (long) peer << 32 | group & 0xffffffffL;
            WORDS.setRelease(target, at + HEAD, before << 32 | (details | MORE) & 0xffffffffL);
        }
        if (!collective) {
            VarHandle.storeStoreFence();
            transfersRecorded++;
        }
    }

    /**
     * Returns the last operation. May be called from any thread; may return garbled data if the log wraps meanwhile,
     * but never throws.
     */
    public Entry last() {
        return numbered(recorded());
    }

    /** As {@link #last}, the operation before it. */
    public Entry lastButOne() {
        return numbered(Math.max(0, recorded() - 1));
    }

    /** Returns an operation by its number, or the last one if the log does not have it any more. */
    public Entry numberedOrLast(long sequence) {
        long last = recorded();
        return numbered(sequence < oldest(last) || sequence > last ? last : sequence);
    }

    /** The oldest operation that the log has. */
    private long oldest(long last) {
        return Math.max(1, last - doneSequence.length + 2);
    }

    private Entry numbered(long sequence) {
        return sequence == 0
                ? new Entry(0, 0, Operation.of(OperationKind.NONE, Operation.Elements.NONE, null, 0, 0), 0, 0)
                : entry(words, sequence, enqueuedTime(sequence), doneTime(sequence));
    }

    private Entry entry(long[] from, long sequence, long enqueued, long done) {
        int at = at(sequence);
        int details = (int) from[at + HEAD];
        boolean extended = (details & MORE) != 0;
        long peerAndGroup = extended ? from[at + PEER_AND_GROUP] : 0;
        Operation operation = new Operation(
                details >>> OPERATION & 0x7f,
                new Operation.Elements(0, 0, from[at + COUNT], details >>> TYPE & 0xff),
                details & MAX_OP,
                (int) (peerAndGroup >>> 32),
                0,
                from[at + STREAM]);
        return new Entry(sequence, (int) peerAndGroup, operation, enqueued, done);
    }

    /** Sets the time that operations recorded from now on get, until the next call. */
    public synchronized void tick(long time) {
        long now = recorded();
        times.put(now, time);
        Long oldest = times.floorKey(now - doneSequence.length);
        if (oldest != null) {
            times.headMap(oldest).clear();
        }
    }

    private synchronized long enqueuedTime(long sequence) {
        Map.Entry<Long, Long> before = times.lowerEntry(sequence);
        return before == null ? 0 : before.getValue();
    }

    private int slot(long sequence) {
        return (int) sequence & mask >> SHIFT;
    }

    private synchronized long doneTime(long sequence) {
        int slot = slot(sequence);
        return doneSequence[slot] == sequence ? doneTime[slot] : 0;
    }

    /** Returns true if all operations up to a number are known to be done. */
    public boolean isDone(long sequence) {
        return sequence <= doneUpTo;
    }

    /** Returns the number of the last operation, 0 if it is known to be done. May be called from any thread. */
    public long lastPending() {
        long last = recorded();
        return last > doneUpTo ? last : 0;
    }

    /**
     * Returns the number of the last operation of a stream, 0 if it is known to be done. An operation that the log does not
     * have any more counts as one of the stream. May be called from any thread.
     */
    public long lastPending(long stream) {
        long done = doneUpTo;
        long last = recorded();
        long oldest = oldest(last);
        for (long sequence = last; sequence > done; sequence--) {
            if (sequence < oldest || words[at(sequence) + STREAM] == stream) {
                return sequence;
            }
        }
        return 0;
    }

    /** Passes the streams of the operations in the log that are not known to be done. */
    public void pending(LongConsumer streams) {
        long last = recorded();
        for (long sequence = Math.max(doneUpTo + 1, oldest(last)); sequence <= last; sequence++) {
            streams.accept(words[at(sequence) + STREAM]);
        }
    }

    /** Marks an operation and all operations of its stream before it as completed. May be called from any thread. */
    public void markDone(long sequence, long time) {
        if (sequence >= oldest(recorded())) {
            markDone(words[at(sequence) + STREAM], sequence, time);
        } else {
            raiseDone(sequence);
        }
    }

    private synchronized void raiseDone(long sequence) {
        doneUpTo = Math.max(doneUpTo, sequence);
    }

    /** Marks all operations of a stream up to a sequence number as completed. May be called from any thread. */
    public synchronized void markDone(long stream, long sequence, long time) {
        long first = Math.max(1, recorded() - doneSequence.length + 1);
        for (long earlier = sequence; earlier >= first; earlier--) {
            if (words[at(earlier) + STREAM] != stream) {
                continue;
            }
            doneUpTo = Math.max(doneUpTo, earlier);
            int slot = slot(earlier);
            if (doneSequence[slot] == earlier) {
                // The earlier ones are marked, too.
                return;
            }
            doneSequence[slot] = earlier;
            doneTime[slot] = time;
        }
    }

    /**
     * Returns the sequence number of a call with elements. May be called from any thread.
     *
     * @param kind the operation, with or without a configuration
     * @param number the number of the call among those of the operation, from 1
     * @return the sequence number; 0 if the log does not have the call any more
     */
    public long sequenceOf(OperationKind kind, long number) {
        for (int attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
            long last = recorded();
            VarHandle.fullFence();
            long later = calls[kind.code()] - number;
            VarHandle.fullFence();
            if (recorded() == last) {
                return find(kind, last, later);
            }
        }
        return 0;
    }

    /** Searches backwards for a call with a number of later calls of the same operation. */
    private long find(OperationKind kind, long last, long later) {
        long left = later;
        long first = Math.max(1, last - doneSequence.length + 2);
        for (long sequence = last; left >= 0 && sequence >= first; sequence--) {
            int at = at(sequence);
            int code = (int) words[at + HEAD] >>> OPERATION & 0x7f & OperationKind.CONFIGURED - 1;
            if (code == kind.code() && words[at + COUNT] != 0 && left-- == 0) {
                return sequence;
            }
        }
        return 0;
    }

    /**
     * Operations of one moment.
     *
     * @param entries the operations, oldest first
     * @param collectives the number of collectives called until the last of them; -1 if operations were called meanwhile
     */
    public record Snapshot(List<Entry> entries, long collectives) {
        private static final long UNKNOWN = -1;
    }

    /** Returns the operations in the log. May be called from any thread. */
    public Snapshot snapshot() {
        Snapshot snapshot = null;
        for (int attempt = 0;
                attempt < MAX_ATTEMPTS && (snapshot == null || snapshot.collectives == Snapshot.UNKNOWN);
                attempt++) {
            long before = transfersRecorded;
            VarHandle.fullFence();
            List<Entry> entries = entries();
            VarHandle.fullFence();
            long last = entries.isEmpty() ? 0 : entries.get(entries.size() - 1).sequence();
            snapshot = new Snapshot(entries, before == transfersBegun ? last - before : Snapshot.UNKNOWN);
        }
        return snapshot;
    }

    /** Returns the operations in the log, oldest first. May be called from any thread. */
    public List<Entry> entries() {
        long last = recorded();
        long[] copy = words.clone();
        VarHandle.fullFence();
        // Another operation may be recorded at this time: its slot is omitted.
        long first = Math.max(1, recorded() - doneSequence.length + 2);
        List<Entry> entries = new ArrayList<>();
        for (long sequence = first; sequence <= last; sequence++) {
            entries.add(entry(copy, sequence, enqueuedTime(sequence), doneTime(sequence)));
        }
        return entries;
    }
}
