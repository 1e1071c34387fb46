package io.github.nccl4j.launch;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/**
 * The inquiries of one rank at a store, by keys that no user can have.
 *
 * <p>Every rank waits for the next question, with one request for all topics; its answers are given by the thread of the
 * connection. Of those who ask about a topic at the same time one collects the answers for all.
 */
final class Inquiries {
    /** No scope has an empty name. */
    private static final String PREFIX = "/";

    private static final String QUESTIONS = PREFIX + "questions";

    /** How long the store keeps one that waits for a question; then it waits anew, if it is still there. */
    private static final Duration LISTENING = Duration.ofMinutes(5);

    /** For answers that were collected for somebody else. */
    private static final long GRACE = 500_000_000;

    /** So long an answer is new. */
    private static final long FRESH = 2_000_000_000;

    /** Requests at a time, of many. */
    private static final int CHUNK = 64;

    static final int MAX_RANKS = 4096;

    private final TcpStore store;
    private final Map<String, Topic> topics = new ConcurrentHashMap<>();
    private boolean listening;
    /** The question that comes next, counted from 1 since there is a store. Belongs to the listener. */
    private long next = 1;

    Inquiries(TcpStore store) {
        this.store = store;
    }

    Inquiry open(String name, StoreScope ranks, Supplier<byte[]> answer) {
        store.requireOpen();
        Topic topic = new Topic(name, ranks, answer);
        if (topics.putIfAbsent(name, topic) != null) {
            throw new IllegalArgumentException("there is an open inquiry of this topic already: " + name);
        }
        synchronized (this) {
            if (!listening) {
                listening = true;
                listen();
            }
        }
        return topic;
    }

    private void listen() {
        Wire.Frame request = new Wire.Frame().number64(LISTENING.toNanos()).text(QUESTIONS + PREFIX + next);
        store.begin(Wire.Operation.GET, request).whenComplete((reply, failure) -> {
            if (failure == null) {
                heard(reply);
            }
        });
    }

    /** In the thread of the connection. */
    private void heard(ByteBuffer reply) {
        try {
            byte[] question = ResponseReader.content(reply, store.rank());
            next++;
            answer(ByteBuffer.wrap(question));
        } catch (RendezvousTimeoutException nobodyAsked) {
            synchronized (this) {
                listening = !topics.isEmpty();
                if (!listening) {
                    return;
                }
            }
        } catch (RendezvousException over) {
            return;
        }
        listen();
    }

    private void answer(ByteBuffer question) {
        try {
            String name = Wire.read(question, Wire::text);
            long round = Wire.read(question, ByteBuffer::getLong);
            Topic topic = topics.get(name);
            if (topic != null) {
                topic.answer(round);
            }
        } catch (IOException nonsense) {
            throw new RendezvousException("the store asks nonsense", nonsense);
        }
    }

    private final class Topic implements Inquiry {
        private final String name;
        private final StoreScope ranks;
        private final int size;
        private final Supplier<byte[]> answer;
        private volatile boolean closed;
        /** The last question that this rank has answered, and when. */
        private long answered;

        private long answeredAt;

        Topic(String name, StoreScope ranks, Supplier<byte[]> answer) {
            this.name = name;
            this.ranks = ranks;
            size = ranks.size();
            this.answer = answer;
        }

        private String key(String what, long round) {
            return PREFIX + what + PREFIX + round + PREFIX + name;
        }

        private String answerKey(long round, int of) {
            return key("answer" + PREFIX + of, round);
        }

        private int longestAnswer() {
            return Math.max(0, (Rendezvous.LONGEST_VALUE - Integer.BYTES) / size - 2 * Integer.BYTES);
        }

        void answer(long round) {
            byte[] value;
            try {
                value = answer.get();
            } catch (RuntimeException failed) {
                value = failed.toString().getBytes(StandardCharsets.UTF_8);
            }
            store.begin(
                    Wire.Operation.SET,
                    new Wire.Frame()
                            .text(answerKey(round, ranks.rank()))
                            .bytes(Arrays.copyOf(value, Math.min(value.length, longestAnswer()))));
            synchronized (this) {
                answered = Math.max(answered, round);
                answeredAt = System.nanoTime();
            }
        }

        @Override
        public Map<Integer, byte[]> ask(Duration patience) {
            if (closed) {
                throw new IllegalStateException("the inquiry is closed");
            }
            long end = System.nanoTime() + Arguments.nanoseconds(patience);
            try {
                return askUntil(end);
            } catch (RendezvousTimeoutException late) {
                throw new RendezvousTimeoutException(late.getMessage(), here(late.missing()));
            }
        }

        /** Ranks of the store, as they are counted here. */
        private List<Integer> here(List<Integer> storeRanks) {
            return storeRanks.stream().map(ranks::here).filter(one -> one >= 0).toList();
        }

        private Map<Integer, byte[]> askUntil(long end) {
            long round;
            boolean fresh;
            synchronized (this) {
                fresh = answered > 0 && System.nanoTime() - answeredAt < FRESH;
                round = fresh ? answered : answered + 1;
            }
            if (fresh || count(key("asked", round), end) > 1) {
                Wire.Frame request = new Wire.Frame()
                        .number64(Math.max(0, end + GRACE / 2 - System.nanoTime()))
                        .text(key("result", round));
                return read(store.ask(Wire.Operation.GET, request, name, end + GRACE - System.nanoTime()));
            }
            return collect(round, end);
        }

        private long count(String key, long end) {
            Wire.Frame request = new Wire.Frame().text(key).number64(1);
            return Counter.decode(store.ask(Wire.Operation.ADD, request, name, end - System.nanoTime()));
        }

        private Map<Integer, byte[]> collect(long round, long end) {
            long number = count(QUESTIONS, end);
            Wire.Frame question = new Wire.Frame().text(name).number64(round);
            store.begin(
                    Wire.Operation.SET,
                    new Wire.Frame().text(QUESTIONS + PREFIX + number).bytes(question.toBytes()));
            Set<Integer> lost = new HashSet<>(here(store.gone(end - System.nanoTime())));
            List<Integer> there = IntStream.range(0, size)
                    .filter(of -> !lost.contains(of))
                    .boxed()
                    .toList();
            Map<Integer, byte[]> answers = new LinkedHashMap<>();
            for (int first = 0; first < there.size(); first += CHUNK) {
                answers.putAll(collect(round, there.subList(first, Math.min(there.size(), first + CHUNK)), end));
            }
            Wire.Frame result = new Wire.Frame().number32(answers.size());
            answers.forEach((of, value) -> {
                result.number32(of).bytes(value);
                store.begin(Wire.Operation.DELETE, new Wire.Frame().text(answerKey(round, of)));
            });
            store.begin(
                    Wire.Operation.SET,
                    new Wire.Frame().text(key("result", round)).bytes(result.toBytes()));
            store.begin(Wire.Operation.DELETE, new Wire.Frame().text(key("result", round - 1)));
            store.begin(Wire.Operation.DELETE, new Wire.Frame().text(key("asked", round - 1)));
            return answers;
        }

        private Map<Integer, byte[]> collect(long round, List<Integer> some, long end) {
            List<CompletableFuture<ByteBuffer>> replies = new ArrayList<>();
            long left = Math.max(0, end - System.nanoTime());
            for (int of : some) {
                replies.add(store.begin(
                        Wire.Operation.GET, new Wire.Frame().number64(left).text(answerKey(round, of))));
            }
            Map<Integer, byte[]> answers = new LinkedHashMap<>();
            for (int i = 0; i < some.size(); i++) {
                try {
                    byte[] answer = store.content(replies.get(i), name, end + GRACE - System.nanoTime());
                    answers.put(some.get(i), answer);
                } catch (RendezvousTimeoutException silent) {
                    if (silent.missing().contains(0)) {
                        // The store itself.
                        throw silent;
                    }
                }
            }
            return answers;
        }

        private Map<Integer, byte[]> read(byte[] result) {
            ByteBuffer frame = ByteBuffer.wrap(result);
            Map<Integer, byte[]> answers = new LinkedHashMap<>();
            try {
                int count = Wire.read(frame, ByteBuffer::getInt);
                for (int i = 0; i < count; i++) {
                    answers.put(Wire.read(frame, ByteBuffer::getInt), Wire.read(frame, Wire::bytes));
                }
            } catch (IOException nonsense) {
                throw new RendezvousException("the store has nonsense of '" + name + "'", nonsense);
            }
            return answers;
        }

        @Override
        public void close() {
            closed = true;
            topics.remove(name, this);
        }
    }
}
