package io.github.nccl4j.zookeeper;

import io.github.nccl4j.launch.LostRank;
import io.github.nccl4j.launch.Membership;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.zookeeper.Job.Process;
import io.github.nccl4j.zookeeper.Session.Node;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.Watcher;

/**
 * The processes that have joined, those of them that are connected, and the scopes that were aborted, as the ensemble has told
 * this rank; and the groups that this rank has entered, which it tells of lost members. Thread-safe.
 */
final class Roster {
    private static final byte[] NOTHING = {};

    private final Session session;
    private final Job job;
    private final int size;
    private final Watcher changes = event -> {
        if (event.getType() != Watcher.Event.EventType.None) {
            refreshSoon();
        }
    };
    private final AtomicBoolean scheduled = new AtomicBoolean();
    private final Map<String, Group> groups = new ConcurrentHashMap<>();
    /** Reasons by the prefix of the aborted keys. */
    private final Map<String, String> aborts = new ConcurrentHashMap<>();

    private volatile State state = new State(Set.of(), Set.of());

    Roster(Session session, Job job, int size) {
        this.session = session;
        this.job = job;
        this.size = size;
        session.onLoss(() -> groups.values().forEach(Group::report));
        session.inUse(() -> !groups.isEmpty());
    }

    /** The processes that have joined, and those that are connected. */
    record State(Set<Process> joined, Set<Process> present) {
        boolean isGone(Process one) {
            return joined.contains(one) && !present.contains(one);
        }

        /** The process that has taken the place of another one; null if there is none. */
        Process next(Process one) {
            return present.stream()
                    .filter(other -> other.rank() == one.rank() && other.attempt() > one.attempt())
                    .findFirst()
                    .orElse(null);
        }

        boolean hasJoined(int rank) {
            return joined.stream().anyMatch(process -> process.rank() == rank);
        }

        /** The attempts by rank; -1 for a rank whose last process is gone, 0 for one that has never joined. */
        List<Integer> attempts(int size) {
            Integer[] attempts = new Integer[size];
            Arrays.fill(attempts, 0);
            joined.forEach(process -> attempts[process.rank()] = -1);
            present.forEach(process -> attempts[process.rank()] = process.attempt());
            return List.of(attempts);
        }
    }

    State state() {
        return state;
    }

    /** Reads the state, with all changes that were made before this call. */
    State current() {
        session.sync(job.ranks());
        return read(session.children(job.folder("processes")), session.children(job.ranks()));
    }

    /** The present processes must be those of a later time. */
    private static State read(List<String> joined, List<String> present) {
        Set<Process> connected = new HashSet<>();
        present.forEach(node -> connected.add(Process.of(node)));
        Set<Process> all = new HashSet<>(connected);
        joined.forEach(node -> all.add(Process.of(node)));
        return new State(Set.copyOf(all), Set.copyOf(connected));
    }

    private void refreshSoon() {
        if (!scheduled.getAndSet(true)) {
            session.inBackground(() -> {
                scheduled.set(false);
                refresh();
            });
        }
    }

    /** Reads what has changed and tells the groups; the next change causes this again. */
    void refresh() {
        try {
            List<String> joined = session.children(job.folder("processes"));
            state = read(joined, session.children(job.ranks(), changes));
            for (String prefix : session.children(job.folder("aborts"), changes)) {
                if (!aborts.containsKey(prefix)) {
                    Node reason = session.read(job.folder("aborts") + "/" + prefix);
                    aborts.put(prefix, reason == null ? "" : Text.text(reason.data()));
                }
            }
        } catch (RendezvousException failure) {
            if (!session.isLost()) {
                refreshSoon();
            }
            throw failure;
        }
        session.signal();
        groups.values().forEach(Group::report);
    }

    /* Aborts. */

    void abort(String prefix, String reason) {
        session.requireNotClosed();
        String node = Text.node(prefix);
        aborts.putIfAbsent(node, reason);
        session.create(job.folder("aborts") + "/" + node, Text.bytes(reason), CreateMode.PERSISTENT);
    }

    /** Throws if the scope of a key was aborted. */
    void requireNotAborted(String key) {
        for (Map.Entry<String, String> abort : aborts.entrySet()) {
            if (Text.node(key).startsWith(abort.getKey())) {
                throw new RendezvousException(abort.getValue());
            }
        }
    }

    /** True if this rank is the last one that is connected, and a rank that has yet to join should learn of an abort. */
    boolean isAnyUnnotified() {
        State now = state;
        return !aborts.isEmpty()
                && now.present.size() <= 1
                && IntStream.range(0, size).anyMatch(rank -> !now.hasJoined(rank));
    }

    /* Groups. */

    Membership enter(String name, int number, Consumer<LostRank> onLoss) {
        session.requireNotClosed();
        if (number < 0) {
            throw new IllegalArgumentException("number must be >= 0: " + number);
        }
        Group group = new Group(name, number, onLoss);
        if (groups.putIfAbsent(name, group) != null) {
            throw new IllegalArgumentException("a rank must be a member of a group once: " + name);
        }
        try {
            group.enter();
        } catch (RendezvousException lost) {
            // Logged when the session ended: a communicator works without the reports.
            if (!session.isLost()) {
                groups.remove(name);
                throw lost;
            }
        }
        session.inBackground(group::report);
        return group;
    }

    /** Leaves all groups. */
    void leave() {
        groups.values().forEach(Group::close);
    }

    /** A group of which this rank is a member. Its nodes are NUMBER-RANK-ATTEMPT, and are deleted by members that leave. */
    private final class Group implements Membership {
        private final String name;
        private final int number;
        private final String path;
        private final String node;
        private final Consumer<LostRank> onLoss;
        /** Used in the background. */
        private final Set<Process> lost = new HashSet<>();

        Group(String name, int number, Consumer<LostRank> onLoss) {
            this.name = name;
            this.number = number;
            this.onLoss = onLoss;
            path = job.folder("groups") + "/" + Text.node(name);
            node = path + "/" + number + "-" + job.process();
        }

        void enter() {
            session.createWithParents(node, NOTHING);
        }

        /** Tells of members whose process has ended before they left, and of this one if it has lost its session. */
        void report() {
            if (session.isLost()) {
                if (lost.add(job.process())) {
                    report(new LostRank(
                            number,
                            "this process",
                            "its session at ZooKeeper has ended, and the other ranks count it as lost"));
                }
                return;
            }
            State now = state;
            if (now.present().size() == now.joined().size()) {
                return;
            }
            for (String member : session.children(path)) {
                int separator = member.indexOf('-');
                Process process = Process.of(member.substring(separator + 1));
                if (now.isGone(process) && groups.containsKey(name) && lost.add(process)) {
                    report(new LostRank(
                            Integer.parseInt(member.substring(0, separator)),
                            job.describe(process),
                            "its session at ZooKeeper has ended"));
                }
            }
        }

        private void report(LostRank rank) {
            try {
                onLoss.accept(rank);
            } catch (RuntimeException failed) {
                System.getLogger("io.github.nccl4j")
                        .log(Level.WARNING, "the loss of " + rank + " was not handled", failed);
            }
        }

        /** A silent process loses its session. */
        @Override
        public Map<Integer, Duration> silent() {
            return Map.of();
        }

        @Override
        public void close() {
            if (!groups.remove(name, this)) {
                return;
            }
            try {
                session.delete(node);
                session.delete(path);
            } catch (RendezvousException ended) {
                // Without a session this rank is no member.
            }
            session.signal();
        }
    }
}
