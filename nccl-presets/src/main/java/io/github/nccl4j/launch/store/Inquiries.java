package io.github.nccl4j.launch.store;

import io.github.nccl4j.internal.threads.DaemonThreads;
import io.github.nccl4j.internal.threads.ServiceLoop;
import io.github.nccl4j.launch.Inquiry;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.launch.wire.Arguments;
import io.github.nccl4j.launch.wire.Counter;
import io.github.nccl4j.launch.wire.Wire;
import java.io.IOException;
import java.lang.System.Logger.Level;
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
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.IntUnaryOperator;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/**
 * The open inquiries of one rank, implemented with keys of the store that no caller can use.
 *
 * <p>Each rank waits for the next question with one request for all topics. A thread of its own makes the answer. If
 * several ranks ask about a topic at the same time, one of them collects the answers and stores them for all.
 */
final class Inquiries {
    /** Callers can't use such keys, because the name of a scope is not empty. */
    private static final String SEPARATOR = "/";

    private static final String QUESTIONS = SEPARATOR + "questions";

    /** Timeout of a request for the next question; the rank repeats it while an inquiry is open. */
    private static final Duration LISTEN_TIMEOUT = Duration.ofMinutes(5);

    /** Extra nanoseconds for the result that another rank collects until the same deadline. */
    private static final long GRACE_NANOS = 500_000_000;

    /** Nanoseconds for which the answers of the last question are reused. */
    private static final long FRESH_NANOS = 2_000_000_000;

    /** Answers that are requested at the same time. */
    private static final int CHUNK = 64;

    /** A class of its own, because most programs are never asked. */
    private static final class Answering {
        private static final long IDLE_SECONDS = 10;

        private static final Executor THREAD = executor();

        private Answering() {}

        /** One thread, so that the answers of a rank are in the order of the questions; it ends when there are none. */
        private static Executor executor() {
            ThreadPoolExecutor one = new ThreadPoolExecutor(
                    1,
                    1,
                    IDLE_SECONDS,
                    TimeUnit.SECONDS,
                    new LinkedBlockingQueue<>(),
                    DaemonThreads.factory("nccl4j-store-answers"));
            one.allowCoreThreadTimeOut(true);
            return one;
        }
    }

    static final int MAX_RANKS = 4096;

    private final StoreRequests store;
    private final Executor answering;
    private final LongSupplier clock;
    private final Map<String, Topic> topics = new ConcurrentHashMap<>();
    private boolean listening;
    /** Number of the next question, from 1. Used by one request at a time. */
    private long nextQuestion = 1;

    Inquiries(StoreRequests store) {
        this(store, Inquiries::answerInBackground, System::nanoTime);
    }

    /** Creates the inquiries of a rank; the executor runs its answers, and the clock returns nanoseconds. */
    Inquiries(StoreRequests store, Executor answering, LongSupplier clock) {
        this.store = store;
        this.answering = answering;
        this.clock = clock;
    }

    private long now() {
        return clock.getAsLong();
    }

    /** The ranks of a scope, and its rank for a rank of the store: -1 if the scope does not have it. */
    record Ranks(int rank, int size, IntUnaryOperator scopeRank) {}

    /** Runs the supplier of an answer of this process, after the suppliers that were called before. */
    static void answerInBackground(Runnable answer) {
        try {
            Answering.THREAD.execute(answer);
        } catch (OutOfMemoryError noThread) {
            try {
                answer.run();
            } catch (RuntimeException | Error failed) {
                ServiceLoop.log(Level.WARNING, "a question of another rank was not answered", failed);
            }
        }
    }

    Inquiry open(String name, Ranks scope, Supplier<byte[]> answer) {
        store.requireOpen();
        Topic topic = new Topic(name, scope, answer);
        if (topics.putIfAbsent(name, topic) != null) {
            throw new IllegalArgumentException("a topic must have one open inquiry at most: " + name);
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
        Wire.Frame request =
                new Wire.Frame().number64(LISTEN_TIMEOUT.toNanos()).text(QUESTIONS + SEPARATOR + nextQuestion);
        store.requestAsync(Wire.Operation.GET, request).whenComplete((response, failure) -> {
            if (failure == null) {
                handleQuestion(response);
            }
        });
    }

    /** Passes a question to the thread for answers and requests the next one. In the thread of the connection. */
    private void handleQuestion(ByteBuffer response) {
        boolean listens = true;
        try {
            byte[] question = ResponseReader.content(response, store.rank());
            nextQuestion++;
            // In another thread: an answer that takes long must not hold up the heartbeats of this rank.
            answering.execute(() -> answer(ByteBuffer.wrap(question)));
        } catch (RendezvousTimeoutException noQuestion) {
            synchronized (this) {
                listening = !topics.isEmpty();
                listens = listening;
            }
        } catch (RendezvousException ended) {
            listens = false;
        } finally {
            // Also after any other failure: the next question may be answered.
            if (listens) {
                listen();
            }
        }
    }

    private void answer(ByteBuffer question) {
        try {
            String name = Wire.read(question, Wire::text);
            long round = Wire.read(question, ByteBuffer::getLong);
            Topic topic = topics.get(name);
            if (topic != null) {
                topic.answer(round);
            }
        } catch (IllegalStateException closed) {
            // The session is closed: no rank can get the answer.
        } catch (IOException invalid) {
            throw new RendezvousException("the store sent an invalid question", invalid);
        }
    }

    private final class Topic implements Inquiry {
        private final String name;
        private final Ranks scope;
        private final int size;
        private final Supplier<byte[]> answer;
        private volatile boolean closed;
        /** Round of the last question that this rank has answered; 0 if there is none. */
        private long answered;
        /** Time of {@link #answered}, of the clock. */
        private long answeredAt;

        Topic(String name, Ranks scope, Supplier<byte[]> answer) {
            this.name = name;
            this.scope = scope;
            size = scope.size();
            this.answer = answer;
        }

        private String key(String kind, long round) {
            return SEPARATOR + kind + SEPARATOR + round + SEPARATOR + name;
        }

        private String answerKey(long round, int rank) {
            return key("answer" + SEPARATOR + rank, round);
        }

        private int maxAnswerBytes() {
            return Math.max(0, (Arguments.LONGEST_VALUE - Integer.BYTES) / size - 2 * Integer.BYTES);
        }

        void answer(long round) {
            byte[] value;
            try {
                value = answer.get();
            } catch (RuntimeException | Error failed) {
                value = failed.toString().getBytes(StandardCharsets.UTF_8);
            }
            store.requestAsync(
                    Wire.Operation.SET,
                    new Wire.Frame()
                            .text(answerKey(round, scope.rank()))
                            .bytes(Arrays.copyOf(value, Math.min(value.length, maxAnswerBytes()))));
            synchronized (this) {
                answered = Math.max(answered, round);
                answeredAt = now();
            }
        }

        @Override
        public Map<Integer, byte[]> ask(Duration timeout) {
            if (closed) {
                throw new IllegalStateException("the inquiry is closed");
            }
            long deadline = now() + Arguments.nanoseconds(timeout);
            try {
                return askBefore(deadline);
            } catch (RendezvousTimeoutException late) {
                throw new RendezvousTimeoutException(late.getMessage(), toScopeRanks(late.missing()));
            }
        }

        /** Converts ranks of the store to ranks of the scope, without those that the scope does not have. */
        private List<Integer> toScopeRanks(List<Integer> storeRanks) {
            return storeRanks.stream()
                    .map(scope.scopeRank::applyAsInt)
                    .filter(rank -> rank >= 0)
                    .toList();
        }

        private Map<Integer, byte[]> askBefore(long deadline) {
            long round;
            boolean fresh;
            synchronized (this) {
                fresh = answered > 0 && now() - answeredAt < FRESH_NANOS;
                round = fresh ? answered : answered + 1;
            }
            if (fresh || count(key("asked", round), deadline) > 1) {
                Wire.Frame request = new Wire.Frame()
                        .number64(Math.max(0, deadline + GRACE_NANOS / 2 - now()))
                        .text(key("result", round));
                return read(store.request(Wire.Operation.GET, request, name, deadline + GRACE_NANOS - now()));
            }
            return collect(round, deadline);
        }

        private long count(String key, long deadline) {
            Wire.Frame request = new Wire.Frame().text(key).number64(1);
            return Counter.decode(store.request(Wire.Operation.ADD, request, name, deadline - now()));
        }

        private Map<Integer, byte[]> collect(long round, long deadline) {
            long number = count(QUESTIONS, deadline);
            Wire.Frame question = new Wire.Frame().text(name).number64(round);
            store.requestAsync(
                    Wire.Operation.SET,
                    new Wire.Frame().text(QUESTIONS + SEPARATOR + number).bytes(question.toBytes()));
            Set<Integer> lost = new HashSet<>(toScopeRanks(store.gone(deadline - now())));
            List<Integer> connected = IntStream.range(0, size)
                    .filter(rank -> !lost.contains(rank))
                    .boxed()
                    .toList();
            Map<Integer, byte[]> answers = new LinkedHashMap<>();
            for (int first = 0; first < connected.size(); first += CHUNK) {
                answers.putAll(
                        collect(round, connected.subList(first, Math.min(connected.size(), first + CHUNK)), deadline));
            }
            Wire.Frame result = new Wire.Frame().number32(answers.size());
            answers.forEach((rank, value) -> {
                result.number32(rank).bytes(value);
                store.requestAsync(Wire.Operation.DELETE, new Wire.Frame().text(answerKey(round, rank)));
            });
            store.requestAsync(
                    Wire.Operation.SET,
                    new Wire.Frame().text(key("result", round)).bytes(result.toBytes()));
            store.requestAsync(Wire.Operation.DELETE, new Wire.Frame().text(key("result", round - 1)));
            store.requestAsync(Wire.Operation.DELETE, new Wire.Frame().text(key("asked", round - 1)));
            return answers;
        }

        private Map<Integer, byte[]> collect(long round, List<Integer> some, long deadline) {
            List<CompletableFuture<ByteBuffer>> responses = new ArrayList<>();
            long nanosLeft = Math.max(0, deadline - now());
            for (int rank : some) {
                responses.add(store.requestAsync(
                        Wire.Operation.GET, new Wire.Frame().number64(nanosLeft).text(answerKey(round, rank))));
            }
            Map<Integer, byte[]> answers = new LinkedHashMap<>();
            for (int i = 0; i < some.size(); i++) {
                try {
                    byte[] answer = store.awaitResponse(responses.get(i), name, deadline + GRACE_NANOS - now());
                    answers.put(some.get(i), answer);
                } catch (RendezvousTimeoutException silent) {
                    if (silent.getCause() != null) {
                        // No rank is late: the store does not respond.
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
            } catch (IOException invalid) {
                throw new RendezvousException("the store has an invalid result of the inquiry '" + name + "'", invalid);
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
