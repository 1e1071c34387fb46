package io.github.nccl4j.zookeeper;

import io.github.nccl4j.launch.JobStatus;
import io.github.nccl4j.launch.RankStatus;
import io.github.nccl4j.launch.RankStatus.State;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.StoreObserver;
import io.github.nccl4j.zookeeper.Job.Process;
import io.github.nccl4j.zookeeper.Session.Node;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.zookeeper.data.Stat;

/** An observer of the jobs on an ensemble. It changes the version of a node, to ask, and nothing else. */
final class ZooKeeperObserver implements StoreObserver {
    private static final Duration MAX_LOOK = Duration.ofSeconds(60);
    private static final byte[] NOTHING = {};

    private final Session session;
    private final Access access;
    private final String address;

    ZooKeeperObserver(Session session, Access access, String address) {
        this.session = session;
        this.access = access;
        this.address = address;
    }

    /** A job whose ranks were asked. */
    private record Asked(String name, int restart, int size, String ranks, String tree, int number) {
        String status() {
            return tree + "/status";
        }

        String processes() {
            return tree + "/processes";
        }
    }

    @Override
    public List<JobStatus> look(Duration timeout) {
        long nanos = Text.nanoseconds(timeout);
        if (timeout.compareTo(MAX_LOOK) > 0) {
            throw new IllegalArgumentException(
                    "timeout must be <= " + MAX_LOOK.toSeconds() + " s: " + Text.seconds(timeout));
        }
        long deadline = System.nanoTime() + nanos;
        session.sync("/");
        List<Asked> jobs = new ArrayList<>();
        RendezvousException refusal = null;
        for (String node : session.children(Job.BASE)) {
            try {
                Asked asked = ask(node);
                if (asked != null) {
                    jobs.add(asked);
                }
            } catch (RendezvousException failure) {
                if (!Access.isRefusal(failure)) {
                    throw failure;
                }
                // A job with another secret is not this one's to see.
                refusal = failure;
            }
        }
        if (jobs.isEmpty() && refusal != null) {
            throw refusal;
        }
        return jobs.stream().map(job -> await(job, deadline)).toList();
    }

    /** Asks the ranks of a job; returns null if none is connected. */
    private Asked ask(String node) {
        String path = Job.BASE + "/" + node;
        String ranks = path + "/ranks";
        Node found = session.read(ranks);
        // Another user can create nodes that look like a job.
        if (found == null || found.stat().getNumChildren() == 0 || !access.isOwner(session, path)) {
            return null;
        }
        String label = Text.ofNode(node);
        int separator = label.lastIndexOf('-');
        String tree = path + "/" + Long.toHexString(found.stat().getCzxid());
        String status = tree + "/status";
        if (!session.write(status, NOTHING)) {
            // The job has ended meanwhile.
            return null;
        }
        Stat asked = session.stat(status);
        if (asked == null) {
            return null;
        }
        return new Asked(
                label.substring(0, separator),
                Integer.parseInt(label.substring(separator + 1)),
                Job.size(Text.text(found.data())),
                ranks,
                tree,
                asked.getVersion());
    }

    /** Waits until all connected ranks have answered. */
    private JobStatus await(Asked job, long deadline) {
        while (true) {
            long seen = session.events();
            Set<Process> present = new HashSet<>();
            session.watchChildren(job.ranks).forEach(node -> present.add(Process.of(node)));
            Map<Process, String> answers = new HashMap<>();
            for (String node : session.watchChildren(job.status())) {
                int separator = node.indexOf('-');
                if (Integer.parseInt(node.substring(0, separator)) >= job.number) {
                    answers.put(Process.of(node.substring(separator + 1)), job.status() + "/" + node);
                }
            }
            if (answers.keySet().containsAll(present) || !session.awaitEvent(seen, deadline, "status")) {
                return status(job, present, answers);
            }
        }
    }

    private JobStatus status(Asked job, Set<Process> present, Map<Process, String> answers) {
        Map<Integer, Process> last = new HashMap<>();
        Set<Process> joined = new HashSet<>(present);
        session.children(job.processes()).forEach(node -> joined.add(Process.of(node)));
        joined.forEach(process ->
                last.merge(process.rank(), process, (one, other) -> one.attempt() > other.attempt() ? one : other));
        Map<Process, String> paths = new HashMap<>();
        last.values().forEach(process -> paths.put(process, job.processes() + "/" + process));
        Map<Process, byte[]> described = read(paths);
        Map<Process, byte[]> reports = read(answers);
        List<RankStatus> ranks = new ArrayList<>();
        for (int rank = 0; rank < job.size; rank++) {
            Process process = last.get(rank);
            if (process == null) {
                ranks.add(new RankStatus(rank, State.MISSING, "", Duration.ZERO, Map.of(), 0));
            } else {
                ranks.add(status(
                        process,
                        present.contains(process),
                        Text.text(described.getOrDefault(process, NOTHING)),
                        reports.get(process)));
            }
        }
        return new JobStatus(job.name, job.restart, ranks);
    }

    /** Reads the data of nodes; those that do not exist are missing. */
    private Map<Process, byte[]> read(Map<Process, String> paths) {
        List<byte[]> values = session.readFound(paths.values());
        Map<Process, byte[]> found = new HashMap<>();
        int i = 0;
        for (Process process : paths.keySet()) {
            byte[] value = values.get(i++);
            if (value != null) {
                found.put(process, value);
            }
        }
        return found;
    }

    private RankStatus status(Process process, boolean isPresent, String text, byte[] answer) {
        String host = Job.withoutEnd(text);
        StatusReport report = new StatusReport(Map.of(), 0);
        State state = isPresent ? State.NO_ANSWER : Job.hasClosed(text) ? State.LEFT : State.LOST;
        if (isPresent && answer != null) {
            state = State.ANSWERED;
            try {
                report = StatusReport.of(answer);
            } catch (IOException invalid) {
                throw new RendezvousException(
                        "rank " + process.rank() + " at " + address + " has an invalid answer: " + invalid.getMessage(),
                        invalid);
            }
        }
        return new RankStatus(process.rank(), state, host, Duration.ZERO, report.texts(), report.omitted());
    }

    /** {@return the address, such as "zookeeper://zk1:2181,zk2:2181"} */
    @Override
    public String address() {
        return address;
    }

    @Override
    public void close() {
        session.close();
    }

    /** {@return a description, such as "observer of the store at zookeeper://zk1:2181,zk2:2181"} */
    @Override
    public String toString() {
        return "observer of the store at " + address;
    }
}
