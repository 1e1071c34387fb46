package io.github.nccl4j.zookeeper;

import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.StatusEntry;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.data.Stat;

/**
 * The texts with which this rank answers the questions of observers. The node "status" of the job has these children:
 *
 * <pre>
 * NUMBER-RANK-ATTEMPT an ephemeral node with the answer of a process to a question
 * </pre>
 *
 * <p>NUMBER is the version of the node, which each question increments. Every rank watches it, and answers in the thread of the session.
 * Thread-safe.
 */
final class StatusAnswers {
    private final Session session;
    private final Job job;
    private final Map<String, Supplier<String>> texts = new ConcurrentHashMap<>();
    private final Watcher changes = event -> {
        if (event.getType() != Watcher.Event.EventType.None) {
            answerSoon();
        }
    };

    /** The last question that this rank has answered. Used in the thread of the session. */
    private int answered;

    StatusAnswers(Session session, Job job) {
        this.session = session;
        this.job = job;
    }

    /** The node of the answer of a process. */
    static String node(int number, Job.Process process) {
        return number + "-" + process;
    }

    StatusEntry add(String topic, Supplier<String> text) {
        session.requireNotClosed();
        if (texts.putIfAbsent(topic, text) != null) {
            throw new IllegalArgumentException("a topic must have one text at most: " + topic);
        }
        return () -> texts.remove(topic, text);
    }

    /** Begins to watch for questions, after this rank has joined. */
    void answerSoon() {
        session.inBackground(this::answer);
    }

    /** Answers the last question, unless this rank has; the next question causes this again. */
    private void answer() {
        String folder = job.folder("status");
        try {
            Stat asked = session.stat(folder, changes);
            if (asked == null || asked.getVersion() == answered) {
                return;
            }
            int number = asked.getVersion();
            session.create(folder + "/" + node(number, job.process()), report().toBytes(), CreateMode.EPHEMERAL);
            if (answered > 0) {
                session.delete(folder + "/" + node(answered, job.process()));
            }
            answered = number;
        } catch (RendezvousException failure) {
            if (!session.isLost()) {
                answerSoon();
            }
            throw failure;
        }
    }

    private StatusReport report() {
        Map<String, String> all = new TreeMap<>();
        texts.forEach((topic, supplier) -> {
            String text;
            try {
                text = supplier.get();
            } catch (RuntimeException failed) {
                text = failed.toString();
            }
            all.put(topic, text);
        });
        return new StatusReport(all, 0);
    }
}
