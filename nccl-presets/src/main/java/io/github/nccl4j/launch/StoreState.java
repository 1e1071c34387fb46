package io.github.nccl4j.launch;

import io.github.nccl4j.launch.PendingCollective.Signature;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;

/** What the ranks have told the store, and who waits for what. Belongs to the loop's thread; knows nothing of connections. */
final class StoreState {
    /** Keys and values together, so that no rank fills the memory of rank 0. */
    static final long MAX_BYTES = 64L << 20;

    /** What an entry costs beside its bytes, roughly. */
    private static final long ENTRY_BYTES = 128;

    private static final int MAX_ABORTS = 1024;

    private final EventLoop loop;
    private final List<Integer> all;
    private final Map<String, byte[]> values = new HashMap<>();
    private final Map<String, Set<Wait>> waits = new HashMap<>();
    private final Map<String, PendingCollective> meetings = new LinkedHashMap<>();
    /** Why there is nothing more to be had under a prefix. */
    private final Map<String, String> aborts = new LinkedHashMap<>();

    private final String[] places;
    private final BitSet gone = new BitSet();
    private final BitSet left = new BitSet();
    private long bytes;

    /** Someone waits for keys. */
    private final class Wait {
        private final List<String> keys;
        private final boolean value;
        private final Responder reply;
        private EventLoop.Timer timer;
        private int next;

        Wait(List<String> keys, boolean value, Responder reply) {
            this.keys = keys;
            this.value = value;
            this.reply = reply;
        }

        /** Goes on to the first key that is not there; true if all are. */
        boolean isDone() {
            while (next < keys.size() && values.containsKey(keys.get(next))) {
                next++;
            }
            return next == keys.size();
        }

        String key() {
            return keys.get(next);
        }

        void finish() {
            loop.cancel(timer);
            reply.ok(value ? values.get(keys.get(0)) : new byte[0]);
        }

        void timedOut(long timeout) {
            remove(this);
            reply.timedOut("'" + key() + "' was not set within " + MessageText.seconds(timeout), List.of());
        }

        void failed(String reason) {
            loop.cancel(timer);
            reply.failed(reason);
        }
    }

    StoreState(int size, EventLoop loop) {
        this.loop = loop;
        all = IntStream.range(0, size).boxed().toList();
        places = new String[size];
    }

    EventLoop loop() {
        return loop;
    }

    /** Every rank, in order. */
    List<Integer> all() {
        return all;
    }

    /* Bytes. */

    boolean reserve(long count) {
        if (bytes + count > MAX_BYTES) {
            return false;
        }
        bytes += count;
        return true;
    }

    String full() {
        return "the store holds no more than " + (MAX_BYTES >> 20) + " MiB";
    }

    /* MessageText. */

    /** A rank has come, from a place. */
    void markJoined(int rank, String place) {
        places[rank] = place;
    }

    /** Where a rank is or was; null if it has never come. */
    String place(int rank) {
        return places[rank];
    }

    boolean isGone(int rank) {
        return gone.get(rank);
    }

    boolean isAnyGone() {
        return !gone.isEmpty();
    }

    List<Integer> gone() {
        return gone.stream().boxed().toList();
    }

    /** A rank is gone for good. */
    void markGone(int rank, boolean closed) {
        gone.set(rank);
        left.set(rank, closed);
        for (PendingCollective meeting : new ArrayList<>(meetings.values())) {
            meeting.rankIsGone();
            endIfOver(meeting);
        }
    }

    String describeGone(int rank) {
        return "rank " + rank + " (" + places[rank] + ") " + (left.get(rank) ? "has closed its store" : "is lost");
    }

    /** For messages: which of these have not even connected. */
    String describeNeverConnected(List<Integer> ranks) {
        List<Integer> never =
                ranks.stream().filter(rank -> places[rank] == null).toList();
        return never.isEmpty()
                ? ""
                : never.size() == ranks.size()
                        ? ", never connected"
                        : ", of which never connected: " + MessageText.ranks(never);
    }

    /* Arguments. */

    void set(String key, byte[] value, Responder reply) {
        if (isAborted(key, reply)) {
            return;
        }
        byte[] old = values.get(key);
        long more = value.length - (old == null ? -key.length() - ENTRY_BYTES : old.length);
        if (!reserve(more)) {
            reply.failed("'" + key + "': " + full());
            return;
        }
        values.put(key, value);
        reply.ok(new byte[0]);
        if (old == null) {
            wake(key);
        }
    }

    private void wake(String key) {
        Set<Wait> woken = waits.remove(key);
        if (woken != null) {
            for (Wait wait : woken) {
                if (wait.isDone()) {
                    wait.finish();
                } else {
                    add(wait);
                }
            }
        }
    }

    void add(String key, long delta, Responder reply) {
        if (isAborted(key, reply)) {
            return;
        }
        byte[] old = values.get(key);
        long sum;
        try {
            sum = Math.addExact(old == null ? 0 : Counter.decode(old), delta);
        } catch (ArithmeticException | IllegalStateException wrong) {
            reply.failed("'" + key + "': " + wrong.getMessage());
            return;
        }
        set(key, Counter.encode(sum), new Responder() {
            @Override
            public void ok(byte[] nothing) {
                reply.ok(Counter.encode(sum));
            }

            @Override
            public void failed(String reason) {
                reply.failed(reason);
            }

            @Override
            public void timedOut(String reason, List<Integer> missing) {
                reply.timedOut(reason, missing);
            }
        });
    }

    void delete(String key, Responder reply) {
        byte[] old = values.remove(key);
        if (old != null) {
            bytes -= old.length + key.length() + ENTRY_BYTES;
        }
        reply.ok(new byte[] {(byte) (old == null ? 0 : 1)});
    }

    /** Answers when the keys are there: with the value of the only one, or with nothing. */
    void await(List<String> keys, boolean value, long timeout, Responder reply) {
        for (String key : keys) {
            if (isAborted(key, reply)) {
                return;
            }
        }
        Wait wait = new Wait(keys, value, reply);
        if (wait.isDone()) {
            wait.finish();
            return;
        }
        add(wait);
        wait.timer = loop.schedule(System.nanoTime() + timeout, () -> wait.timedOut(timeout));
    }

    private void add(Wait wait) {
        waits.computeIfAbsent(wait.key(), key -> new HashSet<>()).add(wait);
    }

    private void remove(Wait wait) {
        Set<Wait> others = waits.get(wait.key());
        others.remove(wait);
        if (others.isEmpty()) {
            waits.remove(wait.key());
        }
    }

    /* Meetings. */

    void meet(String key, Signature subject, int index, byte[] value, long timeout, Responder reply) {
        if (isAborted(key, reply)) {
            return;
        }
        PendingCollective meeting = meetings.computeIfAbsent(key, name -> new PendingCollective(name, subject, this));
        if (!meeting.subject().equals(subject)) {
            reply.failed("rank " + subject.ranks().get(index) + " came to '" + key + "' for a " + describe(subject)
                    + ", others for a " + describe(meeting.subject()));
            return;
        }
        meeting.come(index, value, timeout, reply);
        endIfOver(meeting);
    }

    private static String describe(Signature subject) {
        return subject.kind().name().toLowerCase(Locale.ROOT)
                + (subject.kind() == PendingCollective.Kind.BROADCAST
                        ? " of rank " + subject.ranks().get(subject.root())
                        : "")
                + " of " + subject.ranks().size() + " ranks";
    }

    void endIfOver(PendingCollective meeting) {
        if (meeting.isOver() && meetings.remove(meeting.key(), meeting)) {
            bytes -= meeting.bytes();
        }
    }

    /** Whether ranks that are there have yet to fetch what was broadcast. */
    boolean hasUndelivered() {
        return meetings.values().stream().anyMatch(PendingCollective::isUndelivered);
    }

    /** Whether a rank has given up, and another has not come yet, which would wait for a store that is gone. */
    boolean hasUnnotifiedRank() {
        return !aborts.isEmpty() && Arrays.asList(places).contains(null);
    }

    /** What those are told that the store leaves behind. */
    String closeReason() {
        String closed = "rank 0 has closed its store";
        return aborts.isEmpty()
                ? closed
                : closed + ". Before: " + aborts.values().iterator().next();
    }

    /* Giving up. */

    /** Ends all that is waited for under a prefix, now and later. */
    void abort(String prefix, String reason) {
        aborts.putIfAbsent(prefix, reason);
        if (aborts.size() > MAX_ABORTS) {
            aborts.remove(aborts.keySet().iterator().next());
        }
        for (PendingCollective meeting : new ArrayList<>(meetings.values())) {
            if (meeting.key().startsWith(prefix)) {
                meeting.fail(reason);
            }
        }
        for (Set<Wait> some : new ArrayList<>(waits.values())) {
            for (Wait wait : new ArrayList<>(some)) {
                if (wait.keys.stream().anyMatch(key -> key.startsWith(prefix))) {
                    remove(wait);
                    wait.failed(reason);
                }
            }
        }
    }

    private boolean isAborted(String key, Responder reply) {
        for (Map.Entry<String, String> abort : aborts.entrySet()) {
            if (key.startsWith(abort.getKey())) {
                reply.failed(abort.getValue());
                return true;
            }
        }
        return false;
    }
}
