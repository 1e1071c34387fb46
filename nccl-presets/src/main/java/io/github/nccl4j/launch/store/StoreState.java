package io.github.nccl4j.launch.store;

import io.github.nccl4j.launch.store.PendingCollective.Signature;
import io.github.nccl4j.launch.wire.Counter;
import io.github.nccl4j.launch.wire.MessageText;
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

/**
 * Contents of the store: keys with values, requests that wait for keys, pending collectives, and the state of each rank.
 * Independent of connections. Confined to the thread of the loop.
 */
final class StoreState {
    /** Limit for keys and values together, so that no rank exhausts the memory of rank 0. */
    static final long MAX_BYTES = 64L << 20;

    /** Estimated overhead of an entry beside its bytes. */
    private static final long ENTRY_BYTES = 128;

    private static final int MAX_ABORTS = 1024;

    private final TimerQueue timers;
    private final String address;
    private final Refusals refusals;
    private final List<Integer> allRanks;
    private final Map<String, byte[]> values = new HashMap<>();
    private final Map<String, Set<Wait>> waits = new HashMap<>();
    private final Map<String, PendingCollective> collectives = new LinkedHashMap<>();
    /** Reasons by the prefix of the aborted keys. */
    private final Map<String, String> aborts = new LinkedHashMap<>();

    private final String[] processes;
    /** By rank, the number of processes that have taken its place. */
    private final int[] attempts;

    private final BitSet gone = new BitSet();
    private final BitSet closed = new BitSet();
    private boolean anyGone;
    private long bytes;

    /** A request that waits for keys. Registered in {@link #waits} under the first key without a value. */
    private final class Wait {
        private final List<String> keys;
        private final boolean withValue;
        private final Responder responder;
        private TimerQueue.Timer timer;
        private int next;

        Wait(List<String> keys, boolean withValue, Responder responder) {
            this.keys = keys;
            this.withValue = withValue;
            this.responder = responder;
        }

        /** Advances to the first key without a value; returns true if all keys have values. */
        boolean advance() {
            while (next < keys.size() && values.containsKey(keys.get(next))) {
                next++;
            }
            return next == keys.size();
        }

        String key() {
            return keys.get(next);
        }

        void succeed() {
            timers.cancel(timer);
            responder.succeed(withValue ? values.get(keys.get(0)) : new byte[0]);
        }

        void timeOut(long timeout) {
            remove(this);
            responder.timeOut("'" + key() + "' was not set within " + MessageText.seconds(timeout), List.of());
        }

        void fail(String reason) {
            timers.cancel(timer);
            responder.fail(reason);
        }
    }

    /**
     * Creates the state of a job.
     *
     * @param address the address at which the ranks meet, for messages
     */
    StoreState(int size, String address, Refusals refusals, TimerQueue timers) {
        this.timers = timers;
        this.address = address;
        this.refusals = refusals;
        allRanks = IntStream.range(0, size).boxed().toList();
        processes = new String[size];
        attempts = new int[size];
    }

    TimerQueue timers() {
        return timers;
    }

    /** All ranks in ascending order. */
    List<Integer> allRanks() {
        return allRanks;
    }

    /* Bytes. */

    /** Reserves bytes; returns false if the store is full. A negative count releases bytes. */
    boolean reserve(long count) {
        if (bytes + count > MAX_BYTES) {
            return false;
        }
        bytes += count;
        return true;
    }

    String describeFull(long count) {
        return "the store must hold <= " + MAX_BYTES + " bytes: " + bytes + " are in use, " + count
                + " are to be added";
    }

    /* Ranks. */

    /** Records the process of a rank that has joined, which may take the place of one that is gone; returns its attempt. */
    int markJoined(int rank, String process) {
        if (processes[rank] != null) {
            attempts[rank]++;
            gone.clear(rank);
            closed.clear(rank);
        }
        processes[rank] = process;
        return attempts[rank];
    }

    /** The attempt of the last process of a rank, from 0. */
    int attempt(int rank) {
        return attempts[rank];
    }

    /** The ranks whose last process is not their first, each followed by its attempt. */
    List<Integer> laterAttempts() {
        List<Integer> pairs = new ArrayList<>();
        for (int rank = 0; rank < attempts.length; rank++) {
            if (attempts[rank] > 0) {
                pairs.add(rank);
                pairs.add(attempts[rank]);
            }
        }
        return pairs;
    }

    /** The address and process of a rank, also after it is gone; null if the rank has never joined. */
    String process(int rank) {
        return processes[rank];
    }

    boolean isGone(int rank) {
        return gone.get(rank);
    }

    /** True if a rank that is gone has closed its store. */
    boolean hasClosed(int rank) {
        return closed.get(rank);
    }

    /** True if the process of any rank has ended, whether or not another process has taken its place. */
    boolean isAnyGone() {
        return anyGone;
    }

    /** True if a process of a rank has ended, whether or not another process has taken its place. */
    boolean isGone(int rank, int attempt) {
        return gone.get(rank) || attempts[rank] != attempt;
    }

    List<Integer> gone() {
        return gone.stream().boxed().toList();
    }

    /** Records that the process of a rank is gone, by closing its store or by losing its connection. */
    void markGone(int rank, boolean byClosing) {
        gone.set(rank);
        anyGone = true;
        closed.set(rank, byClosing);
        for (PendingCollective collective : new ArrayList<>(collectives.values())) {
            collective.failIfRankGone();
            removeIfOver(collective);
        }
    }

    /** Describes what became of a process for which {@link #isGone(int, int)} is true. */
    String describeGone(int rank, int attempt) {
        return attempts[rank] == attempt
                ? describeGone(rank)
                : "rank " + rank + " was lost, and " + processes[rank] + " has taken its place";
    }

    String describeGone(int rank) {
        return "rank " + rank + " (" + processes[rank] + ") " + (closed.get(rank) ? "has closed its store" : "is lost");
    }

    /** The ranks that have never connected, of some. */
    List<Integer> neverConnected(List<Integer> ranks) {
        return ranks.stream().filter(rank -> processes[rank] == null).toList();
    }

    /** Describes ranks that have never connected, after a time. */
    String describeNeverConnected(List<Integer> ranks, long nanos) {
        String all = MessageText.ranks(ranks);
        String refused = refusals.describe(ranks);
        return "R" + all.substring(1) + " of " + processes.length + " never connected to " + address + " ("
                + MessageText.seconds(nanos) + "). "
                + (!refused.isEmpty() ? refused : ranks.size() == 1 ? "Was it started?" : "Were they started?");
    }

    /* Keys. */

    void set(String key, byte[] value, Responder responder) {
        if (failIfAborted(key, responder)) {
            return;
        }
        byte[] old = values.get(key);
        long more = value.length - (old == null ? -key.length() - ENTRY_BYTES : old.length);
        if (!reserve(more)) {
            responder.fail("'" + key + "': " + describeFull(more));
            return;
        }
        values.put(key, value);
        responder.succeed(new byte[0]);
        if (old == null) {
            wake(key);
        }
    }

    private void wake(String key) {
        Set<Wait> woken = waits.remove(key);
        if (woken != null) {
            for (Wait wait : woken) {
                if (wait.advance()) {
                    wait.succeed();
                } else {
                    add(wait);
                }
            }
        }
    }

    void add(String key, long delta, Responder responder) {
        if (failIfAborted(key, responder)) {
            return;
        }
        long sum;
        try {
            sum = Counter.sum(values.get(key), delta);
        } catch (IllegalStateException wrong) {
            responder.fail("'" + key + "': " + wrong.getMessage());
            return;
        }
        set(key, Counter.encode(sum), new Responder() {
            @Override
            public void succeed(byte[] nothing) {
                responder.succeed(Counter.encode(sum));
            }

            @Override
            public void fail(String reason) {
                responder.fail(reason);
            }

            @Override
            public void timeOut(String reason, List<Integer> missing) {
                responder.timeOut(reason, missing);
            }
        });
    }

    void delete(String key, Responder responder) {
        byte[] old = values.remove(key);
        if (old != null) {
            bytes -= old.length + key.length() + ENTRY_BYTES;
        }
        responder.succeed(new byte[] {(byte) (old == null ? 0 : 1)});
    }

    /**
     * Responds when all keys have values: with the value of the first key, or without content. The timeout is in
     * nanoseconds.
     */
    void await(List<String> keys, boolean withValue, long timeout, Responder responder) {
        for (String key : keys) {
            if (failIfAborted(key, responder)) {
                return;
            }
        }
        Wait wait = new Wait(keys, withValue, responder);
        if (wait.advance()) {
            wait.succeed();
            return;
        }
        add(wait);
        wait.timer = timers.schedule(timers.now() + timeout, () -> wait.timeOut(timeout));
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

    /* Collectives. */

    /** Adds a rank to the collective under a key, which the first rank creates. */
    void arrive(String key, Signature signature, int index, byte[] value, long timeout, Responder responder) {
        if (failIfAborted(key, responder)) {
            return;
        }
        PendingCollective collective =
                collectives.computeIfAbsent(key, name -> new PendingCollective(name, signature, this));
        if (!collective.signature().equals(signature)) {
            responder.fail("ranks must make the same call with key '" + key + "': rank "
                    + signature.ranks().get(index) + " calls " + describe(signature) + ", others "
                    + describe(collective.signature()));
            return;
        }
        collective.arrive(index, value, timeout, responder);
        removeIfOver(collective);
    }

    private static String describe(Signature signature) {
        return signature.kind().name().toLowerCase(Locale.ROOT)
                + (signature.kind() == PendingCollective.Kind.BROADCAST
                        ? " from rank " + signature.ranks().get(signature.root())
                        : "")
                + " with " + signature.ranks().size() + " ranks";
    }

    private void removeIfOver(PendingCollective collective) {
        if (collective.isOver() && collectives.remove(collective.key(), collective)) {
            bytes -= collective.bytes();
        }
    }

    /** True if a rank has yet to fetch the value of a completed broadcast. */
    boolean hasUndelivered() {
        return collectives.values().stream().anyMatch(PendingCollective::isUndelivered);
    }

    /** True if a rank has aborted and another rank, which should get the reason, has not joined yet. */
    boolean hasUnnotifiedRank() {
        return !aborts.isEmpty() && Arrays.asList(processes).contains(null);
    }

    /** The reason that the remaining ranks get when the store closes. */
    String closeReason(String keeper) {
        String text = keeper.equals("rank 0") ? "rank 0 has closed its store" : keeper + " has been closed";
        return aborts.isEmpty()
                ? text
                : text + "; earlier: " + aborts.values().iterator().next();
    }

    /* Aborts. */

    /** Fails all current and future requests for keys with a prefix. */
    void abort(String prefix, String reason) {
        aborts.putIfAbsent(prefix, reason);
        if (aborts.size() > MAX_ABORTS) {
            aborts.remove(aborts.keySet().iterator().next());
        }
        for (PendingCollective collective : new ArrayList<>(collectives.values())) {
            if (collective.key().startsWith(prefix)) {
                collective.failIfPending(reason);
            }
        }
        for (Set<Wait> some : new ArrayList<>(waits.values())) {
            for (Wait wait : new ArrayList<>(some)) {
                if (wait.keys.stream().anyMatch(key -> key.startsWith(prefix))) {
                    remove(wait);
                    wait.fail(reason);
                }
            }
        }
    }

    /** Fails the request and returns true if the key has an aborted prefix. */
    private boolean failIfAborted(String key, Responder responder) {
        for (Map.Entry<String, String> abort : aborts.entrySet()) {
            if (key.startsWith(abort.getKey())) {
                responder.fail(abort.getValue());
                return true;
            }
        }
        return false;
    }
}
