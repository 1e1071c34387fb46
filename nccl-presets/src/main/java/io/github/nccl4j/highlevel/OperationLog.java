package io.github.nccl4j.highlevel;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;

/**
 * The last operations of a communicator, in an array that is made once: recording one is some stores for the thread that is
 * in the communicator's gate, which counts them. Others read a copy, and leave out what may have been written meanwhile.
 */
final class OperationLog {
    /** Of the words of a place: two places are in one line of the processor's cache, of which NCCL leaves little. */
    private static final int SHIFT = 2;

    /* The words of a place: in order, since bounds of an array are checked least often then. */
    private static final int COUNT = 0;
    private static final int STREAM = 1;
    private static final int HEAD = 2;
    private static final int PEER_AND_GROUP = 3;

    /*
     * The head, which is written last: 32 bits of the number of operations before, which who records it has at hand, this bit,
     * 7 of the operation, 8 of the type, 16 of the operator.
     */

    /** Whether there is a word beyond the first three. */
    private static final int MORE = 1 << 31;

    private static final int OPERATION = 24;
    private static final int TYPE = 16;
    /** Larger numbers of operators are told as this one: those that were made, which NCCL numbers at random. */
    private static final int MOST_OP = 0xffff;

    private static final VarHandle WORDS = MethodHandles.arrayElementVarHandle(long[].class);

    private final Gate gate;
    private final long[] words;
    private final int mask;
    private int groups;

    /** When there were how many operations, in milliseconds since 1970, as far back as it matters. Guarded by this. */
    private final NavigableMap<Long, Long> times = new TreeMap<>();

    /** By place: which operation was seen to be done, and when. Guarded by this. */
    private final long[] doneSequence;

    private final long[] doneTime;

    /**
     * A log.
     *
     * @param kept how many operations can be told at any time
     * @param gate where they are counted
     */
    OperationLog(int kept, Gate gate) {
        this.gate = gate;
        // One more: that which is being written can't be told.
        int places = Integer.highestOneBit(kept) << 1;
        words = new long[places << SHIFT];
        mask = words.length - 1;
        // Nothing is written yet, not even the first, which 0 would be.
        words[HEAD] = -1;
        doneSequence = new long[places];
        doneTime = new long[places];
    }

    /** What was recorded of an operation. */
    record Entry(
            long sequence,
            int group,
            int operation,
            long count,
            int type,
            int op,
            int peer,
            long stream,
            long enqueued,
            long done) {
        /** For people: "ncclAllReduce of 1024 float32 (operation 17)". */
        String describe() {
            return Operations.describe(operation, count, type, peer) + " (operation " + sequence + ")";
        }
    }

    /** How many there were, with that which is under way. From any thread. */
    long recorded() {
        long next = gate.operations() + 1;
        return isWritten(next) ? next : next - 1;
    }

    private boolean isWritten(long sequence) {
        return (int) ((long) WORDS.getAcquire(words, at(sequence) + HEAD) >>> 32) == (int) (sequence - 1);
    }

    private int at(long sequence) {
        return (int) (sequence - 1) << SHIFT & mask;
    }

    /** The next operations, which have one number, are launched together. */
    int beginGroup() {
        return ++groups;
    }

    /** The next operation of who is in the gate, and counts it afterwards. */
    void record(long sequence, int operation, long count, int type, int peer, int op, int group, long stream) {
        long[] place = words;
        int at = at(sequence);
        long before = sequence - 1;
        int what = operation << OPERATION | type << TYPE;
        // After all of the operation before.
        VarHandle.storeStoreFence();
        place[at + COUNT] = count;
        place[at + STREAM] = stream;
        if ((peer | group) == 0 && op <= MOST_OP) {
            WORDS.setRelease(place, at + HEAD, before << 32 | (what | op));
        } else {
            place[at + PEER_AND_GROUP] = (long) peer << 32 | group & 0xffffffffL;
            int further = what | Math.min(op, MOST_OP) | MORE;
            WORDS.setRelease(place, at + HEAD, before << 32 | further & 0xffffffffL);
        }
    }

    /** The last operation; from any thread, which gets nonsense, but no failure, if a whole ring is recorded meanwhile. */
    Entry last() {
        long sequence = recorded();
        return sequence == 0
                ? new Entry(0, 0, Operations.NONE, 0, 0, 0, 0, 0, 0, 0)
                : entry(words, sequence, enqueuedTime(sequence), doneTime(sequence));
    }

    private Entry entry(long[] from, long sequence, long enqueued, long done) {
        int at = at(sequence);
        int what = (int) from[at + HEAD];
        boolean more = (what & MORE) != 0;
        return new Entry(
                sequence,
                more ? (int) from[at + PEER_AND_GROUP] : 0,
                what >>> OPERATION & 0x7f,
                from[at + COUNT],
                what >>> TYPE & 0xff,
                what & MOST_OP,
                more ? (int) (from[at + PEER_AND_GROUP] >>> 32) : 0,
                from[at + STREAM],
                enqueued,
                done);
    }

    /** Operations that come from now on are given this time, until the next. */
    synchronized void tick(long time) {
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

    private int place(long sequence) {
        return (int) sequence & mask >> SHIFT;
    }

    private synchronized long doneTime(long sequence) {
        int place = place(sequence);
        return doneSequence[place] == sequence ? doneTime[place] : 0;
    }

    /** All operations of a stream up to one were seen to be done. From any thread. */
    synchronized void seenDone(long stream, long sequence, long time) {
        long first = Math.max(1, recorded() - doneSequence.length + 1);
        for (long one = sequence; one >= first; one--) {
            if (words[at(one) + STREAM] != stream) {
                continue;
            }
            int place = place(one);
            if (doneSequence[place] == one) {
                // And so were those before it.
                return;
            }
            doneSequence[place] = one;
            doneTime[place] = time;
        }
    }

    /** The operations that are known, the oldest first. From any thread. */
    List<Entry> entries() {
        long last = recorded();
        long[] copy = words.clone();
        VarHandle.fullFence();
        // One more may be in writing.
        long first = Math.max(1, recorded() - doneSequence.length + 2);
        List<Entry> entries = new ArrayList<>();
        for (long sequence = first; sequence <= last; sequence++) {
            entries.add(entry(copy, sequence, enqueuedTime(sequence), doneTime(sequence)));
        }
        return entries;
    }
}
