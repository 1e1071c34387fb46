package io.github.nccl4j.launch.store;

import io.github.nccl4j.launch.wire.MessageText;
import io.github.nccl4j.launch.wire.Wire;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

/**
 * Server-side state of one gather, barrier or broadcast: one use of a key by a list of ranks. It stays until every rank has
 * arrived or is gone, even after a failure, because a late rank must get the same failure.
 */
final class PendingCollective {
    /** The kinds of collectives; their order is that of the codes on the wire. */
    enum Kind {
        GATHER,
        BARRIER,
        BROADCAST
    }

    /**
     * The parameters on which all ranks must agree.
     *
     * @param attempts the attempts of the ranks; empty if all are the first
     */
    record Signature(Kind kind, List<Integer> ranks, List<Integer> attempts, int root) {
        int attempt(int index) {
            return attempts.isEmpty() ? 0 : attempts.get(index);
        }
    }

    private final String key;
    private final Signature signature;
    private final StoreState state;
    private final byte[][] values;
    private final Responder[] waiting;
    private final BitSet arrived = new BitSet();
    private Failure failure;
    private TimerQueue.Timer timer;
    private long deadline;

    /** Null until a rank waits. */
    private WaitLog log;

    private TimerQueue.Timer logTimer;

    /** The missing ranks are null if the failure is not a timeout. */
    private record Failure(String reason, List<Integer> missing) {
        void sendTo(Responder responder) {
            if (missing == null) {
                responder.fail(reason);
            } else {
                responder.timeOut(reason, missing);
            }
        }
    }

    PendingCollective(String key, Signature signature, StoreState state) {
        this.key = key;
        this.signature = signature;
        this.state = state;
        values = new byte[signature.ranks.size()][];
        waiting = new Responder[values.length];
    }

    Signature signature() {
        return signature;
    }

    String key() {
        return key;
    }

    /** Adds a rank and its value. The index is that of the rank in {@link Signature#ranks}; the timeout is in nanoseconds. */
    void arrive(int index, byte[] value, long timeout, Responder responder) {
        if (failure != null) {
            arrived.set(index);
            failure.sendTo(responder);
            return;
        }
        if (arrived.get(index)) {
            responder.fail("rank " + rank(index) + " arrived at '" + key
                    + "' again before all ranks had arrived; a key can be used again when all ranks have returned"
                    + " from it");
            return;
        }
        if (!state.reserve(value.length)) {
            responder.fail("'" + key + "': " + state.describeFull(value.length));
            return;
        }
        arrived.set(index);
        values[index] = value;
        waiting[index] = responder;
        if (isReady()) {
            respond();
            return;
        }
        String gone = describeGone();
        if (gone != null) {
            fail(new Failure(gone, null));
            return;
        }
        waitUntil(state.timers().now() + timeout, timeout);
    }

    private boolean isReady() {
        return signature.kind == Kind.BROADCAST ? arrived.get(signature.root) : arrived.cardinality() == values.length;
    }

    private void respond() {
        stopTimers();
        byte[] all = content();
        // Rank 0 last: after its response its process may end, and the store with it.
        for (int i = waiting.length - 1; i >= 0; i--) {
            if (waiting[i] != null) {
                waiting[i].succeed(all);
                waiting[i] = null;
            }
        }
    }

    private byte[] content() {
        return switch (signature.kind) {
            case BARRIER -> new byte[0];
            case BROADCAST -> values[signature.root];
            case GATHER -> {
                Wire.Frame frame = new Wire.Frame();
                for (byte[] value : values) {
                    frame.bytes(value);
                }
                yield frame.toBytes();
            }
        };
    }

    /** Sets the timer; the earliest deadline of a rank ends the collective for all ranks. */
    private void waitUntil(long until, long timeout) {
        if (log == null) {
            log = new WaitLog(state.timers().now(), WaitLog.USUAL_NANOS);
            logWait();
        }
        if (timer == null || until - deadline < 0) {
            stopTimer();
            deadline = until;
            timer = state.timers().schedule(until, () -> {
                timer = null;
                // A missing rank is not gone, so that this stays until it arrives or is lost.
                fail(timeoutFailure(timeout));
            });
        }
    }

    private Failure timeoutFailure(long timeout) {
        return new Failure(describeMissing(timeout), missing());
    }

    /** Describes for which ranks this waits, after a time. */
    private String describeMissing(long nanos) {
        List<Integer> missing = missing();
        List<Integer> never = state.neverConnected(missing);
        if (never.size() == missing.size()) {
            return state.describeNeverConnected(never, nanos);
        }
        String time = MessageText.seconds(nanos);
        return (signature.kind == Kind.BROADCAST
                        ? "rank " + rank(signature.root) + " did not arrive at '" + key + "' within " + time
                        : arrived.cardinality() + " of " + values.length + " ranks arrived at '" + key + "' within "
                                + time + "; missing: " + MessageText.ranks(missing))
                + (never.isEmpty() ? "" : ", of which never connected: " + MessageText.ranks(never));
    }

    /** Logs for which ranks this waits, when that has taken long. */
    private void logWait() {
        long now = state.timers().now();
        log.logIfDue(now, this::describeMissing);
        logTimer = state.timers().schedule(now + log.left(now), this::logWait);
    }

    /** The ranks that must still arrive: all others, or the root of a broadcast. */
    private List<Integer> missing() {
        List<Integer> missing = new ArrayList<>();
        for (int i = 0; i < values.length; i++) {
            if (isMissing(i)) {
                missing.add(rank(i));
            }
        }
        return missing;
    }

    private boolean isMissing(int index) {
        return !arrived.get(index) && (signature.kind != Kind.BROADCAST || index == signature.root);
    }

    /** True if the process of a rank that this collective expects has ended. */
    private boolean isGone(int index) {
        return state.isGone(rank(index), signature.attempt(index));
    }

    /**
     * Describes the first rank that is gone; null if there is none. A rank that has arrived counts, too: the ranks that have yet
     * to arrive may have failed because of its loss, and then never arrive.
     */
    private String describeGone() {
        if (!state.isAnyGone()) {
            return null;
        }
        for (int i = 0; i < values.length; i++) {
            if (isGone(i)) {
                return "'" + key + "': " + state.describeGone(rank(i), signature.attempt(i));
            }
        }
        return null;
    }

    /** Fails if it is not complete and one of its ranks is gone. */
    void failIfRankGone() {
        if (failure == null && !isReady()) {
            String gone = describeGone();
            if (gone != null) {
                fail(new Failure(gone, null));
            }
        }
    }

    /** Fails, unless the collective is complete or has failed. */
    void failIfPending(String reason) {
        if (failure == null && !isReady()) {
            fail(new Failure(reason, null));
        }
    }

    private void fail(Failure because) {
        stopTimers();
        failure = because;
        for (int i = 0; i < waiting.length; i++) {
            if (waiting[i] != null) {
                because.sendTo(waiting[i]);
                waiting[i] = null;
            }
        }
    }

    private void stopTimer() {
        state.timers().cancel(timer);
        timer = null;
    }

    private void stopTimers() {
        stopTimer();
        state.timers().cancel(logTimer);
    }

    /** True if every rank has arrived or is gone. */
    boolean isOver() {
        for (int i = arrived.nextClearBit(0); i < values.length; i = arrived.nextClearBit(i + 1)) {
            if (!isGone(i)) {
                return false;
            }
        }
        return true;
    }

    /** True if a connected or future rank has yet to fetch the value of a completed broadcast. */
    boolean isUndelivered() {
        return failure == null && isReady() && !isOver();
    }

    /** The reserved bytes, which are released with this object. */
    long bytes() {
        long sum = 0;
        for (byte[] value : values) {
            sum += value == null ? 0 : value.length;
        }
        return sum;
    }

    private int rank(int index) {
        return signature.ranks.get(index);
    }
}
