package io.github.nccl4j.highlevel;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.List;

/**
 * The last operations of a communicator, in an array that is made once: recording one is some stores for the thread that is
 * in the communicator's gate. Others read a copy, and leave out what may have been written meanwhile.
 */
final class Ring {
    /** The time in milliseconds since 1970, set by the watchdog now and then; 0 if there is none. */
    static long clock;

    /** A place has so many words, the last of which are not used: shifting is quicker than multiplying. */
    private static final int SHIFT = 3;

    private static final VarHandle RECORDED;

    static {
        try {
            RECORDED = MethodHandles.lookup().findVarHandle(Ring.class, "recorded", long.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private final long[] words;
    private final int mask;
    private long recorded;
    private int groups;

    /** By place: which operation was seen to be done, and when. Guarded by this. */
    private final long[] doneSequence;

    private final long[] doneTime;

    /**
     * A ring.
     *
     * @param kept how many operations can be told at any time
     */
    Ring(int kept) {
        // One more: that which is being written can't be told.
        int places = Integer.highestOneBit(kept) << 1;
        words = new long[places << SHIFT];
        mask = words.length - 1;
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

    /** How many there were. From any thread. */
    long recorded() {
        return (long) RECORDED.getOpaque(this);
    }

    /** The next operations, which have one number, are launched together. */
    int beginGroup() {
        return ++groups;
    }

    void record(int operation, long count, int type, int peer, int op, int group, long stream) {
        long sequence = recorded;
        long[] place = words;
        int at = (int) sequence << SHIFT & mask;
        place[at] = (long) operation << 48 | (long) type << 32 | peer & 0xffffffffL;
        place[at + 1] = count;
        place[at + 2] = (long) op << 32 | group;
        place[at + 3] = stream;
        place[at + 4] = clock;
        RECORDED.setRelease(this, sequence + 1);
    }

    /** The last operation; from any thread, which gets nonsense, but no failure, while another one records. */
    Entry last() {
        long sequence = (long) RECORDED.getAcquire(this);
        return sequence == 0
                ? new Entry(0, 0, Operations.NONE, 0, 0, 0, 0, 0, 0, 0)
                : entry(words, sequence, doneTime(sequence));
    }

    private Entry entry(long[] from, long sequence, long done) {
        int at = (int) (sequence - 1) << SHIFT & mask;
        return new Entry(
                sequence,
                (int) from[at + 2],
                (int) (from[at] >>> 48),
                from[at + 1],
                (int) (from[at] >>> 32) & 0xffff,
                (int) (from[at + 2] >>> 32),
                (int) from[at],
                from[at + 3],
                from[at + 4],
                done);
    }

    private int place(long sequence) {
        return (int) (sequence - 1) & mask >> SHIFT;
    }

    private synchronized long doneTime(long sequence) {
        int place = place(sequence);
        return doneSequence[place] == sequence ? doneTime[place] : 0;
    }

    /** All operations of a stream up to one were seen to be done. From any thread. */
    synchronized void seenDone(long stream, long sequence, long time) {
        long first = Math.max(1, recorded() - doneSequence.length + 1);
        for (long one = sequence; one >= first; one--) {
            int at = (int) (one - 1) << SHIFT & mask;
            if (words[at + 3] != stream) {
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
        long last = (long) RECORDED.getAcquire(this);
        long[] copy = words.clone();
        VarHandle.fullFence();
        // One more may be in writing.
        long first = Math.max(1, recorded() - doneSequence.length + 2);
        List<Entry> entries = new ArrayList<>();
        for (long sequence = first; sequence <= last; sequence++) {
            entries.add(entry(copy, sequence, doneTime(sequence)));
        }
        return entries;
    }
}
