package io.github.nccl4j.zookeeper;

import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.zookeeper.Session.Node;
import java.util.List;
import java.util.stream.Stream;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.data.Stat;

/**
 * The nodes of a job, which the rank has joined.
 *
 * <pre>
 * /nccl4j/JOB-RESTART/ranks/RANK-ATTEMPT      an ephemeral node for each connected process
 * /nccl4j/JOB-RESTART/ID/processes/...        a node for each process that has ever joined, with its host and id
 * /nccl4j/JOB-RESTART/ID/keys, gathers, groups, inquiries, status, aborts, marks
 * </pre>
 *
 * <p>The ID is that of the creation of {@code ranks}. A job is over when {@code ranks} has no children and is deleted, which the
 * ensemble refuses while there is a child; then all below another ID can be deleted. The last rank that closes its store does
 * that; after a crash of all ranks, the next rank of this job does, or rank 0 of another one.
 */
final class Job {
    static final String BASE = "/nccl4j";

    private static final byte[] NOTHING = {};
    private static final String CLOSED = "\nclosed";

    private final Session session;
    private final Access access;
    private final RankInfo self;
    private final String path;
    private final String process = Text.process();
    private String tree = "";
    private int attempt;

    Job(Session session, Access access, RankInfo self) {
        this.session = session;
        this.access = access;
        this.self = self;
        path = BASE + "/" + Text.node(self.job() + "-" + self.restart());
    }

    /** A process of a rank. */
    record Process(int rank, int attempt) {
        static Process of(String node) {
            int separator = node.indexOf('-');
            return new Process(
                    Integer.parseInt(node.substring(0, separator)), Integer.parseInt(node.substring(separator + 1)));
        }

        @Override
        public String toString() {
            return rank + "-" + attempt;
        }
    }

    int attempt() {
        return attempt;
    }

    Process process() {
        return new Process(self.rank(), attempt);
    }

    String ranks() {
        return path + "/ranks";
    }

    /** A folder of the job, such as "keys". */
    String folder(String name) {
        return tree + "/" + name;
    }

    /** Joins the job as the next process of this rank. */
    void join(long deadline) {
        long wait = Math.min(deadline, System.nanoTime() + session.noticeNanos());
        Access.prepareBase(session);
        while (!tryJoin(wait)) {
            // Another process has joined or left meanwhile.
            if (System.nanoTime() > deadline) {
                throw new RendezvousTimeoutException(
                        "rank " + self.rank() + " could not join the job '" + self.job() + "' in time", List.of());
            }
        }
    }

    private boolean tryJoin(long wait) {
        Node found;
        try {
            // With parents: the job may be over, and be deleted, at any time before this rank has joined.
            session.createWithParents(ranks(), Text.bytes(describeRanks()));
            found = session.read(ranks());
        } catch (RendezvousException failure) {
            throw Access.isRefusal(failure) ? Access.refusal(session, path, failure) : failure;
        }
        if (found == null) {
            return false;
        }
        if (!access.isOwner(session, path)) {
            if (session.stat(path) == null) {
                return false;
            }
            throw Access.refusal(session, path, null);
        }
        String ofAll = Text.text(found.data());
        boolean isSame = ofAll.equals(describeRanks());
        if (found.stat().getNumChildren() == 0 && (found.stat().getCversion() > 0 || !isSame)) {
            // Ranks had joined, and all have ended.
            sweep(path);
            return false;
        }
        if (!isSame) {
            throw new RendezvousException("all ranks must expect the same: rank " + self.rank() + " (" + process
                    + ") expects " + describeRanks() + ", the job '" + self.job() + "' has " + ofAll);
        }
        tree = path + "/" + Long.toHexString(found.stat().getCzxid());
        for (String folder : List.of("processes", "keys", "gathers", "groups", "status", "aborts", "marks")) {
            session.createWithParents(folder(folder), NOTHING);
        }
        session.marks(folder("marks"));
        attempt = nextAttempt();
        if (attempt > 0) {
            awaitEnd(new Process(self.rank(), attempt - 1), wait);
        }
        String node = "/" + process();
        boolean joined = session.change(
                ranks() + node,
                operations -> List.of(
                        operations.create().forPath(folder("processes") + node, Text.bytes(process)),
                        operations.create().withMode(CreateMode.EPHEMERAL).forPath(ranks() + node, NOTHING)));
        if (!joined) {
            return false;
        }
        Stat now = session.stat(ranks());
        if (now == null || now.getCzxid() != found.stat().getCzxid()) {
            // The job was over before this rank joined.
            session.delete(ranks() + node);
            return false;
        }
        return true;
    }

    /** Returns the number of ranks of a job from the data of its node {@code ranks}. */
    static int size(String description) {
        return Integer.parseInt(description.substring(0, description.indexOf(' ')));
    }

    private String describeRanks() {
        return self.worldSize() + " ranks " + (self.hasLocalRank() ? "with" : "without") + " local ranks";
    }

    private int nextAttempt() {
        int next = 0;
        while (session.stat(folder("processes") + "/" + new Process(self.rank(), next)) != null) {
            next++;
        }
        return next;
    }

    /** Waits until the session of an earlier process of this rank has ended: it may have died a moment ago. */
    private void awaitEnd(Process earlier, long wait) {
        while (true) {
            long seen = session.events();
            if (session.watch(ranks() + "/" + earlier) == null) {
                return;
            }
            if (!session.awaitEvent(seen, wait, "the place of rank " + self.rank())) {
                throw new RendezvousException("each rank must have one process: rank " + self.rank() + " is "
                        + describe(earlier) + ", which is still connected, and this is " + process);
            }
        }
    }

    /** The host and id of a process that has joined. */
    String describe(Process one) {
        return withoutEnd(data(one));
    }

    /** True if a process whose node has this text has closed its store. */
    static boolean hasClosed(String text) {
        return text.endsWith(CLOSED);
    }

    /** The host and id in the text of the node of a process. */
    static String withoutEnd(String text) {
        return hasClosed(text) ? text.substring(0, text.length() - CLOSED.length()) : text;
    }

    private String data(Process one) {
        Node node = session.read(folder("processes") + "/" + one);
        return node == null ? "an unknown process" : Text.text(node.data());
    }

    /** Describes the end of a process. */
    String describeGone(Process one, Process next) {
        String text = data(one);
        if (next != null) {
            return "rank " + one.rank + " was lost, and " + describe(next) + " has taken its place";
        }
        return hasClosed(text)
                ? "rank " + one.rank + " (" + describe(one) + ") has closed its store"
                : "rank " + one.rank + " (" + text + ") is lost";
    }

    /** Leaves the job: this rank is not lost. */
    void leave() {
        session.write(folder("processes") + "/" + process(), Text.bytes(process + CLOSED));
        session.delete(ranks() + "/" + process());
        sweep(path);
    }

    /** Deletes the nodes of jobs whose ranks have all ended without that. */
    void sweepOthers() {
        session.children(BASE).stream()
                .map(job -> BASE + "/" + job)
                .filter(job -> !job.equals(path))
                .forEach(this::sweepIfAllowed);
    }

    private void sweepIfAllowed(String job) {
        try {
            sweep(job);
        } catch (RendezvousException ofAnotherSecret) {
            // A job with the same secret deletes it.
            if (session.isLost()) {
                throw ofAnotherSecret;
            }
        }
    }

    /** Deletes the nodes of a job if it is over. */
    private void sweep(String job) {
        Stat ranks = session.stat(job + "/ranks");
        if (ranks != null && (ranks.getNumChildren() > 0 || !session.delete(job + "/ranks"))) {
            return;
        }
        List<String> trees = session.children(job);
        Stat again = session.stat(job + "/ranks");
        String current = again == null ? "" : Long.toHexString(again.getCzxid());
        trees.stream()
                .filter(tree -> Stream.of("ranks", current).noneMatch(tree::equals))
                .forEach(tree -> session.deleteTree(job + "/" + tree));
        session.delete(job);
    }
}
