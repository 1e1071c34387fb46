package io.github.nccl4j.launch;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

/**
 * One use of a key by a number of ranks: a gathering, a barrier or a broadcast. It is over when every rank has come or is gone,
 * also after it failed: a rank that comes late must hear of it.
 */
final class PendingCollective {
    /** What the ranks get when they have met; the order is that of the codes on the wire. */
    enum Kind {
        GATHER,
        BARRIER,
        BROADCAST
    }

    /** What a meeting is about. Ranks that differ in it can't meet. */
    record Signature(Kind kind, List<Integer> ranks, int root) {}

    private final String key;
    private final Signature subject;
    private final StoreState state;
    private final byte[][] values;
    private final Responder[] waiting;
    private final BitSet came = new BitSet();
    private Failure failure;
    private EventLoop.Timer timer;
    private long deadline;

    private record Failure(String reason, List<Integer> missing) {
        void tell(Responder reply) {
            if (missing == null) {
                reply.failed(reason);
            } else {
                reply.timedOut(reason, missing);
            }
        }
    }

    PendingCollective(String key, Signature subject, StoreState state) {
        this.key = key;
        this.subject = subject;
        this.state = state;
        values = new byte[subject.ranks.size()][];
        waiting = new Responder[values.length];
    }

    Signature subject() {
        return subject;
    }

    String key() {
        return key;
    }

    /** A rank, the given of those that meet, comes. */
    void come(int index, byte[] value, long timeout, Responder reply) {
        if (failure != null) {
            came.set(index);
            failure.tell(reply);
            return;
        }
        if (came.get(index)) {
            reply.failed("rank " + rank(index) + " came to '" + key
                    + "' again before all others had come; a key can be used again when they have returned from it");
            return;
        }
        if (!state.reserve(value.length)) {
            reply.failed("'" + key + "': " + state.full());
            return;
        }
        came.set(index);
        values[index] = value;
        waiting[index] = reply;
        if (isReady()) {
            answer();
            return;
        }
        String gone = goneText();
        if (gone != null) {
            fail(new Failure(gone, null));
            return;
        }
        waitUntil(System.nanoTime() + timeout, timeout);
    }

    private boolean isReady() {
        return subject.kind == Kind.BROADCAST ? came.get(subject.root) : came.cardinality() == values.length;
    }

    private void answer() {
        stopWaiting();
        byte[] all = content();
        // Rank 0 last: its process may end when it has its answer, and the store with it.
        for (int i = waiting.length - 1; i >= 0; i--) {
            if (waiting[i] != null) {
                waiting[i].ok(all);
                waiting[i] = null;
            }
        }
    }

    private byte[] content() {
        return switch (subject.kind) {
            case BARRIER -> new byte[0];
            case BROADCAST -> values[subject.root];
            case GATHER -> {
                Wire.Frame frame = new Wire.Frame();
                for (byte[] value : values) {
                    frame.bytes(value);
                }
                yield frame.toBytes();
            }
        };
    }

    /** The first rank whose time is over ends it for all. */
    private void waitUntil(long until, long timeout) {
        if (timer == null || until - deadline < 0) {
            stopWaiting();
            deadline = until;
            timer = state.loop().schedule(until, () -> {
                timer = null;
                fail(timeoutFailure(timeout));
                state.endIfOver(this);
            });
        }
    }

    private Failure timeoutFailure(long timeout) {
        List<Integer> missing = missing();
        String unknown = state.describeNeverConnected(missing);
        return new Failure(
                subject.kind == Kind.BROADCAST
                        ? "rank " + rank(subject.root) + " did not come to '" + key + "' within "
                                + MessageText.seconds(timeout) + unknown
                        : came.cardinality() + " of " + values.length + " ranks came to '" + key + "' within "
                                + MessageText.seconds(timeout) + "; missing: " + MessageText.ranks(missing) + unknown,
                missing);
    }

    /** Those without whom there is no meeting. */
    private List<Integer> missing() {
        List<Integer> missing = new ArrayList<>();
        for (int i = 0; i < values.length; i++) {
            if (!came.get(i) && (subject.kind != Kind.BROADCAST || i == subject.root)) {
                missing.add(rank(i));
            }
        }
        return missing;
    }

    private String goneText() {
        if (!state.isAnyGone()) {
            return null;
        }
        for (int rank : missing()) {
            if (state.isGone(rank)) {
                return "'" + key + "': " + state.describeGone(rank);
            }
        }
        return null;
    }

    /** A rank is gone: if it is needed, there is nothing to wait for. */
    void rankIsGone() {
        if (failure == null && !isReady()) {
            String text = goneText();
            if (text != null) {
                fail(new Failure(text, null));
            }
        }
    }

    void fail(String reason) {
        if (failure == null && !isReady()) {
            fail(new Failure(reason, null));
        }
    }

    private void fail(Failure because) {
        stopWaiting();
        failure = because;
        for (int i = 0; i < waiting.length; i++) {
            if (waiting[i] != null) {
                because.tell(waiting[i]);
                waiting[i] = null;
            }
        }
    }

    private void stopWaiting() {
        state.loop().cancel(timer);
        timer = null;
    }

    /** Whether nobody will come any more. */
    boolean isOver() {
        for (int i = came.nextClearBit(0); i < values.length; i = came.nextClearBit(i + 1)) {
            if (!state.isGone(rank(i))) {
                return false;
            }
        }
        return true;
    }

    /** Whether ranks that are there have yet to get what others gave. */
    boolean isUndelivered() {
        return failure == null && isReady() && !isOver();
    }

    /** Its bytes, to be given back. */
    long bytes() {
        long sum = 0;
        for (byte[] value : values) {
            sum += value == null ? 0 : value.length;
        }
        return sum;
    }

    private int rank(int index) {
        return subject.ranks.get(index);
    }
}
