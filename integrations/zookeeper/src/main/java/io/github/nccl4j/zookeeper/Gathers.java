package io.github.nccl4j.zookeeper;

import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.zookeeper.Job.Process;
import io.github.nccl4j.zookeeper.Session.Node;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.data.Stat;

/**
 * The gathers of a store. Each use of a key is a node, below which every rank creates one with its value. The first rank of the
 * scope combines the values in a node "done", which ends the gather for all; any other one does that in its place when it sees
 * that a rank is lost or the time is over, and if a value is missing, "done" has the failure. Every rank notes that it has read
 * "done", and the last one deletes the nodes. Thread-safe.
 */
final class Gathers {
    /** Values that a node holds: the ensemble refuses more than 1 MiB. */
    private static final int PART_BYTES = 1 << 19;

    private static final byte[] NOTHING = {};

    private final Session session;
    private final Job job;
    private final Roster roster;
    /** By the name of its node without the number: how often this rank has used a key. */
    private final Map<String, Integer> uses = new HashMap<>();

    private final Set<String> running = new HashSet<>();

    Gathers(Session session, Job job, Roster roster) {
        this.session = session;
        this.job = job;
        this.roster = roster;
    }

    private enum Outcome {
        VALUES,
        FAILED,
        TIMED_OUT
    }

    Process process() {
        return job.process();
    }

    /** The limit and the key of a gather, for messages. */
    private record Call(String key, String path, List<Process> members, int index, long nanos) {
        String done() {
            return path + "/done";
        }

        String value(int member) {
            return path + "/" + member;
        }

        List<Integer> ranks(List<Integer> indexes) {
            return indexes.stream().map(one -> members.get(one).rank()).toList();
        }
    }

    List<byte[]> gather(String key, List<Process> members, int index, byte[] value, long nanos) {
        session.requireOpen();
        roster.requireNotAborted(key);
        if (!members.get(index).equals(job.process())) {
            throw new RendezvousException("'" + key + "' needs the first process of each rank: rank "
                    + job.process().rank() + " was lost, and this process has taken its place");
        }
        String name = name(key, members);
        int use;
        synchronized (this) {
            if (!running.add(name)) {
                throw new RendezvousException("rank " + job.process().rank() + " arrived at '" + key
                        + "' again before all ranks had arrived; a key can be used again when all ranks have returned"
                        + " from it");
            }
            use = uses.merge(name, 1, Integer::sum);
        }
        Call call = new Call(key, job.folder("gathers") + "/" + name + "-" + use, members, index, nanos);
        try {
            return gather(call, value);
        } finally {
            synchronized (this) {
                running.remove(name);
            }
            session.inBackground(() -> leave(call));
        }
    }

    /** The name of the node of a key. Other processes have other uses of it. */
    static String name(String key, List<Process> members) {
        String later = members.stream()
                .filter(member -> member.attempt() > 0)
                .map(Process::toString)
                .collect(Collectors.joining(","));
        return Text.node(later.isEmpty() ? key : key + "/" + Integer.toHexString(later.hashCode()));
    }

    private List<byte[]> gather(Call call, byte[] value) {
        long deadline = System.nanoTime() + call.nanos;
        WaitLog log = session.beginWait();
        byte[] ranks = Text.bytes(Text.ranks(call.ranks(all(call))));
        if (!session.create(call.path, ranks, CreateMode.PERSISTENT)) {
            requireSameRanks(call, Text.text(ranks));
        }
        session.create(call.value(call.index), value, CreateMode.PERSISTENT);
        while (true) {
            long seen = session.events();
            if (session.watch(call.done()) != null) {
                return result(call);
            }
            session.requireNotEnded();
            roster.requireNotAborted(call.key);
            Roster.State state = roster.state();
            boolean combines = call.index == 0;
            // A lost rank counts also if it has arrived: the missing ranks may have failed because of its loss.
            Process gone =
                    call.members.stream().filter(state::isGone).findFirst().orElse(null);
            if (combines || gone != null) {
                if (missing(call, combines).isEmpty()) {
                    combine(call);
                    continue;
                }
                if (gone != null) {
                    String reason = "'" + call.key + "': " + job.describeGone(gone, state.next(gone));
                    session.create(call.done(), encode(Outcome.FAILED, reason, List.of()), CreateMode.PERSISTENT);
                    continue;
                }
            }
            if (!session.awaitEvent(seen, deadline, call.key, log)) {
                timeOut(call);
            }
        }
    }

    private static List<Integer> all(Call call) {
        return IntStream.range(0, call.members.size()).boxed().toList();
    }

    private void requireSameRanks(Call call, String own) {
        Node node = session.read(call.path);
        if (node != null && !Text.text(node.data()).equals(own)) {
            throw new RendezvousException("ranks must make the same call with key '" + call.key + "': rank "
                    + job.process().rank() + " with " + own + ", others with " + Text.text(node.data()));
        }
    }

    /** The members without a value. */
    private List<Integer> missing(Call call, boolean watch) {
        Set<String> arrived = Set.copyOf(watch ? session.watchChildren(call.path) : session.children(call.path));
        return all(call).stream().filter(one -> !arrived.contains("" + one)).toList();
    }

    private void timeOut(Call call) {
        List<Integer> missing = missing(call, false);
        if (missing.isEmpty()) {
            combine(call);
            return;
        }
        List<Integer> never = call.ranks(missing).stream()
                .filter(rank -> !roster.state().hasJoined(rank))
                .toList();
        int size = call.members.size();
        String text = size - missing.size() + " of " + size + " ranks arrived at '" + call.key + "' within "
                + Text.seconds(call.nanos) + "; missing: " + Text.ranks(call.ranks(missing))
                + (never.isEmpty() ? "" : "; never connected: " + Text.ranks(never));
        session.create(call.done(), encode(Outcome.TIMED_OUT, text, call.ranks(missing)), CreateMode.PERSISTENT);
    }

    /** Combines the values in parts, and then creates the node that ends the gather. */
    private void combine(Call call) {
        List<byte[]> values =
                session.readAll(all(call).stream().map(call::value).toList());
        int parts = 0;
        ByteArrayOutputStream part = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(part);
        try {
            for (byte[] value : values) {
                if (part.size() + value.length > PART_BYTES) {
                    session.create(part(call, parts++), part.toByteArray(), CreateMode.PERSISTENT);
                    part.reset();
                }
                out.writeInt(value.length);
                out.write(value);
            }
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
        session.create(part(call, parts++), part.toByteArray(), CreateMode.PERSISTENT);
        session.create(call.done(), encode(Outcome.VALUES, "", List.of(parts)), CreateMode.PERSISTENT);
    }

    private static String part(Call call, int part) {
        return call.path + "/part-" + part;
    }

    private static byte[] encode(Outcome outcome, String text, List<Integer> numbers) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            out.writeByte(outcome.ordinal());
            out.writeUTF(text);
            out.writeInt(numbers.size());
            for (int number : numbers) {
                out.writeInt(number);
            }
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
        return bytes.toByteArray();
    }

    private List<byte[]> result(Call call) {
        Node done = session.read(call.done());
        if (done == null) {
            throw new RendezvousException("'" + call.key + "' was removed before this rank has read it");
        }
        try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(done.data()))) {
            Outcome outcome = Outcome.values()[in.readByte()];
            String text = in.readUTF();
            List<Integer> numbers = new ArrayList<>();
            for (int left = in.readInt(); left > 0; left--) {
                numbers.add(in.readInt());
            }
            return switch (outcome) {
                case VALUES -> values(call, numbers.get(0));
                case FAILED -> throw new RendezvousException(text);
                case TIMED_OUT -> throw new RendezvousTimeoutException(text, numbers);
            };
        } catch (IOException invalid) {
            throw new RendezvousException("'" + call.key + "' has an invalid result", invalid);
        }
    }

    private List<byte[]> values(Call call, int parts) throws IOException {
        List<byte[]> values = new ArrayList<>();
        for (byte[] part : session.readAll(
                IntStream.range(0, parts).mapToObj(one -> part(call, one)).toList())) {
            DataInputStream in = new DataInputStream(new ByteArrayInputStream(part));
            while (in.available() > 0) {
                values.add(in.readNBytes(in.readInt()));
            }
        }
        return List.copyOf(values);
    }

    /** Notes that this rank has returned; the last one deletes the nodes. */
    private void leave(Call call) {
        String left = call.path + "/left";
        session.createWithParents(left + "/" + call.index, NOTHING);
        Stat stat = session.stat(left);
        if (stat != null && stat.getNumChildren() == call.members.size()) {
            session.deleteTree(call.path);
        }
    }
}
