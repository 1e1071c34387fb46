package io.github.nccl4j.zookeeper;

import io.github.nccl4j.launch.Inquiry;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.zookeeper.Job.Process;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.data.Stat;

/**
 * The inquiries that are open at this rank. Each topic is a node, with these children:
 *
 * <pre>
 * question             its version is the number of the last question
 * open-INDEX-OPENING   an ephemeral node for each rank that answers
 * NUMBER-INDEX-OPENING an ephemeral node with the answer of a rank to a question
 * </pre>
 *
 * <p>INDEX is the rank in the scope, OPENING tells several inquiries of a process apart. Every rank watches the question, and answers in
 * the thread of the session. The last rank that closes its inquiry deletes the topic. Thread-safe.
 */
final class Inquiries {
    /** The answers of all ranks together, in bytes. */
    private static final int MAX_BYTES = 64 << 10;

    private static final int MAX_RANKS = 4096;

    /** Time in which the answers to a question are given to others that ask, in nanoseconds. */
    private static final long FRESH = 2_000_000_000;

    /** Time by which a call may exceed its timeout, in nanoseconds. */
    private static final long GRACE = 500_000_000;

    private static final byte[] NOTHING = {};
    private static final String OPEN = "open-";

    private final Session session;
    private final Job job;
    private final Map<String, Topic> topics = new ConcurrentHashMap<>();
    private final AtomicInteger openings = new AtomicInteger();

    Inquiries(Session session, Job job) {
        this.session = session;
        this.job = job;
    }

    /**
     * Opens an inquiry; see {@link io.github.nccl4j.launch.Rendezvous#inquiry}.
     *
     * @param members the processes of the scope
     * @param index the rank of this process in it
     */
    Optional<Inquiry> open(String name, List<Process> members, int index, Supplier<byte[]> answer) {
        session.requireNotClosed();
        if (members.size() > MAX_RANKS || !members.get(index).equals(job.process())) {
            return Optional.empty();
        }
        Topic topic = new Topic(name, Gathers.name(name, members), index, MAX_BYTES / members.size(), answer);
        if (topics.putIfAbsent(name, topic) != null) {
            throw new IllegalArgumentException("a topic must have one open inquiry at most: " + name);
        }
        try {
            topic.open();
        } catch (RendezvousException lost) {
            topics.remove(name);
            // Logged when the session ended: a communicator works without answers.
            if (!session.isLost()) {
                throw lost;
            }
            return Optional.empty();
        }
        return Optional.of(topic);
    }

    private final class Topic implements Inquiry {
        private final String name;
        private final String path;
        private final String question;
        /** The rank in the scope, and the opening. */
        private final String self;

        private final int limit;
        private final Supplier<byte[]> answer;
        private final Watcher changes = event -> {
            if (event.getType() != Watcher.Event.EventType.None) {
                session.inBackground(this::answer);
            }
        };

        /** The last question that this rank has answered, and when, of {@link System#nanoTime}. Guarded by this. */
        private int answered;

        private long answeredAt;

        Topic(String name, String node, int index, int limit, Supplier<byte[]> answer) {
            this.name = name;
            this.limit = limit;
            this.answer = answer;
            path = job.folder("inquiries") + "/" + node;
            question = path + "/question";
            self = index + "-" + openings.getAndIncrement();
        }

        void open() {
            do {
                session.createWithParents(question, NOTHING);
                // The last rank that had it open may delete the topic meanwhile.
            } while (!session.change(
                    path,
                    operations -> List.of(
                            operations.check().forPath(question),
                            operations
                                    .create()
                                    .withMode(CreateMode.EPHEMERAL)
                                    .forPath(path + "/" + OPEN + self, NOTHING))));
            session.inBackground(this::answer);
        }

        private boolean isOpen() {
            return topics.get(name) == this;
        }

        /** Answers the last question, unless this rank has; the next question causes this again. */
        private void answer() {
            if (!isOpen()) {
                return;
            }
            int number;
            try {
                number = session.stat(question, changes).getVersion();
            } catch (RendezvousException failure) {
                if (!session.isLost()) {
                    session.inBackground(this::answer);
                }
                throw failure;
            }
            int before = answered();
            if (number == before) {
                return;
            }
            byte[] value;
            try {
                value = answer.get();
            } catch (RuntimeException | Error failure) {
                value = Text.bytes(failure.toString());
            }
            session.create(answerTo(number), Arrays.copyOf(value, Math.min(value.length, limit)), CreateMode.EPHEMERAL);
            synchronized (this) {
                answered = number;
                answeredAt = System.nanoTime();
            }
            if (before > 0) {
                session.delete(answerTo(before));
            }
        }

        private synchronized int answered() {
            return answered;
        }

        private String answerTo(int number) {
            return path + "/" + number + "-" + self;
        }

        @Override
        public Map<Integer, byte[]> ask(Duration timeout) {
            long nanos = Text.nanoseconds(timeout);
            if (!isOpen()) {
                throw closed();
            }
            session.requireOpen();
            long deadline = System.nanoTime() + nanos;
            CompletableFuture<Map<Integer, byte[]>> answers = new CompletableFuture<>();
            // A thread of its own, because the session waits longer for an ensemble that does not respond.
            Thread asking = new Thread(
                    () -> {
                        try {
                            answers.complete(ask(deadline));
                        } catch (RuntimeException | Error failure) {
                            answers.completeExceptionally(failure);
                        }
                    },
                    "nccl4j-zookeeper-inquiry");
            asking.setDaemon(true);
            asking.start();
            try {
                return answers.get(nanos + GRACE, TimeUnit.NANOSECONDS);
            } catch (InterruptedException interrupted) {
                asking.interrupt();
                Thread.currentThread().interrupt();
                throw new RendezvousException(
                        "rank " + job.process().rank() + " was interrupted while it waited for '" + name + "'",
                        interrupted);
            } catch (TimeoutException silent) {
                asking.interrupt();
                RendezvousTimeoutException late = new RendezvousTimeoutException(
                        "'" + name + "': the ensemble did not respond within " + Text.seconds(nanos), List.of());
                late.initCause(silent);
                throw late;
            } catch (ExecutionException failure) {
                if (failure.getCause() instanceof RuntimeException known) {
                    throw known;
                }
                throw new IllegalStateException(failure.getCause());
            }
        }

        private Map<Integer, byte[]> ask(long deadline) {
            int number = number();
            while (true) {
                long seen = session.events();
                Answers answers = new Answers(session.watchChildren(path), number);
                if (answers.areAll() || !session.awaitEvent(seen, deadline, name)) {
                    return read(answers.nodes);
                }
                session.requireNotEnded();
            }
        }

        /** Asks, unless this rank has just answered the last question. */
        private int number() {
            int last = lastNumber();
            synchronized (this) {
                if (last > 0 && last == answered && System.nanoTime() - answeredAt < FRESH) {
                    return last;
                }
            }
            session.write(question, NOTHING);
            return lastNumber();
        }

        private int lastNumber() {
            Stat last = session.stat(question);
            if (last == null) {
                throw closed();
            }
            return last.getVersion();
        }

        private IllegalStateException closed() {
            return new IllegalStateException("the inquiry is closed");
        }

        private Map<Integer, byte[]> read(Map<Integer, String> nodes) {
            List<byte[]> values = session.readFound(
                    nodes.values().stream().map(node -> path + "/" + node).toList());
            Map<Integer, byte[]> found = new TreeMap<>();
            int i = 0;
            for (int index : nodes.keySet()) {
                byte[] value = values.get(i++);
                if (value != null) {
                    found.put(index, value);
                }
            }
            return found;
        }

        @Override
        public void close() {
            if (topics.remove(name, this)) {
                session.inBackground(this::leave);
            }
        }

        private void leave() {
            session.delete(path + "/" + OPEN + self);
            session.delete(answerTo(answered()));
            if (session.children(path).size() == 1) {
                // Refused if a rank has opened the inquiry meanwhile.
                session.change(
                        path,
                        operations -> List.of(
                                operations.delete().forPath(question),
                                operations.delete().forPath(path)));
            }
        }
    }

    /** The nodes of a topic. */
    private static final class Answers {
        private final Set<Integer> open = new HashSet<>();
        /** Those with answers to a question or a later one, by the rank in the scope. */
        private final Map<Integer, String> nodes = new HashMap<>();

        Answers(List<String> children, int number) {
            for (String node : children) {
                String[] parts = node.split("-");
                if (node.startsWith(OPEN)) {
                    open.add(Integer.parseInt(parts[1]));
                } else if (parts.length > 1 && Integer.parseInt(parts[0]) >= number) {
                    nodes.put(Integer.parseInt(parts[1]), node);
                }
            }
        }

        boolean areAll() {
            return nodes.keySet().containsAll(open);
        }
    }
}
