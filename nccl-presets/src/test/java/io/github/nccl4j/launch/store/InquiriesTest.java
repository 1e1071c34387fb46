package io.github.nccl4j.launch.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.Inquiry;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.launch.wire.Arguments;
import io.github.nccl4j.launch.wire.Wire;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeoutException;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/**
 * Tests of {@link Inquiries} in one thread, at a time that the test sets: ranks whose requests a store without connections
 * handles at once. A rank that waits sets the time to that of the next timer.
 */
class InquiriesTest {
    private static final long SECOND = TestTime.SECOND;
    private static final Duration TWO_SECONDS = Duration.ofSeconds(2);

    private final TestTime time = new TestTime();
    private final StoreState state = new StoreState(130, "node0:29500", new Refusals(time.timers()), time.timers());
    private final List<String> log = new ArrayList<>();

    /** The requests of one rank, with their status before the content of the response. */
    private class Rank implements StoreRequests {
        private final int rank;
        private final Inquiries inquiries =
                new Inquiries(this, Runnable::run, () -> time.timers().now());
        private boolean closed;
        /** True if the store does not respond. */
        boolean cut;
        /** The limit of the last wait for a response. */
        private long lastLimit;

        private long lastGoneLimit;

        Rank(int rank) {
            this.rank = rank;
            state.markJoined(rank, "process " + rank);
        }

        @Override
        public int rank() {
            return rank;
        }

        @Override
        public void requireOpen() {
            if (closed) {
                throw new IllegalStateException("the store is closed");
            }
        }

        @Override
        public List<Integer> gone(long timeoutNanos) {
            lastGoneLimit = timeoutNanos;
            return state.gone();
        }

        @Override
        public CompletableFuture<ByteBuffer> requestAsync(Wire.Operation operation, Wire.Frame request) {
            requireOpen();
            CompletableFuture<ByteBuffer> response = new CompletableFuture<>();
            if (cut) {
                return response;
            }
            try {
                handle(operation, ByteBuffer.wrap(request.toBytes()), new Responder() {
                    @Override
                    public void succeed(byte[] content) {
                        response.complete(ByteBuffer.wrap(
                                new Wire.Frame().number8(Wire.OK).raw(content).toBytes()));
                    }

                    @Override
                    public void fail(String reason) {
                        response.complete(ByteBuffer.wrap(new Wire.Frame()
                                .number8(Wire.FAILED)
                                .text(reason)
                                .toBytes()));
                    }

                    @Override
                    public void timeOut(String reason, List<Integer> missing) {
                        response.complete(ByteBuffer.wrap(new Wire.Frame()
                                .number8(Wire.TIMED_OUT)
                                .text(reason)
                                .numbers(missing)
                                .toBytes()));
                    }
                });
            } catch (IOException invalid) {
                throw new AssertionError(invalid);
            }
            return response;
        }

        private void handle(Wire.Operation operation, ByteBuffer frame, Responder responder) throws IOException {
            switch (operation) {
                case SET -> state.set(logged("set", frame), Wire.bytes(frame), responder);
                case GET -> {
                    long timeout = frame.getLong();
                    assertTrue(timeout >= 0, () -> "timeout " + timeout);
                    state.await(List.of(logged("get " + timeout, frame)), true, timeout, responder);
                }
                case ADD -> state.add(logged("add", frame), frame.getLong(), responder);
                case DELETE -> state.delete(logged("delete", frame), responder);
                default -> throw new AssertionError(operation);
            }
        }

        private String logged(String what, ByteBuffer frame) throws IOException {
            String key = Wire.text(frame);
            log.add(rank + " " + what + " " + key);
            return key;
        }

        @Override
        public byte[] awaitResponse(CompletableFuture<ByteBuffer> response, String subject, long timeoutNanos) {
            lastLimit = timeoutNanos;
            long deadline = time.timers().now() + timeoutNanos;
            while (!response.isDone()) {
                long left = deadline - time.timers().now();
                if (left <= 0) {
                    RendezvousTimeoutException late = new RendezvousTimeoutException("no response", List.of(1));
                    late.initCause(new TimeoutException());
                    throw late;
                }
                time.advance(
                        time.timers().isEmpty()
                                ? left
                                : Math.min(left, time.timers().nanosLeft()));
            }
            return ResponseReader.content(response.join(), rank);
        }

        Inquiry open(int size, String answer) {
            return open(size, rank, one -> one, answer);
        }

        Inquiry open(int size, int scopeRank, IntUnaryOperator toScope, String answer) {
            return inquiries.open("topic", new Inquiries.Ranks(scopeRank, size, toScope), () -> (answer + " of " + rank)
                    .getBytes(StandardCharsets.UTF_8));
        }
    }

    private static Map<Integer, String> ask(Inquiry inquiry) {
        Map<Integer, String> answers = new TreeMap<>();
        inquiry.ask(TWO_SECONDS)
                .forEach((rank, answer) -> answers.put(rank, new String(answer, StandardCharsets.UTF_8)));
        return answers;
    }

    private List<String> takeLog(String part) {
        List<String> some = log.stream().filter(line -> line.contains(part)).toList();
        log.clear();
        return some;
    }

    /** A rank that asked and one that only answered may use the answers again for two seconds. */
    @Test
    void answersAreFreshForTwoSeconds() {
        Rank one = new Rank(0);
        Rank other = new Rank(1);
        Inquiry asking = one.open(2, "answer");
        Inquiry second = other.open(2, "answer");
        Map<Integer, String> expected = Map.of(0, "answer of 0", 1, "answer of 1");
        assertEquals(expected, ask(asking));
        assertEquals(
                List.of("0 add /questions", "0 set /questions/1"),
                takeLog("/questions").stream()
                        .filter(line -> line.startsWith("0 add") || line.startsWith("0 set"))
                        .toList());
        time.advance(2 * SECOND - 1);
        assertEquals(expected, ask(second));
        assertEquals(List.of("1 get 2250000000 /result/1/topic"), List.copyOf(log));
        assertEquals(2 * SECOND + SECOND / 2, other.lastLimit);
        assertEquals(expected, ask(asking));
        time.advance(1);
        log.clear();
        assertEquals(expected, ask(second));
        assertTrue(log.contains("1 add /asked/2/topic"), log::toString);
        assertTrue(log.contains("1 set /questions/2"), log::toString);
    }

    @Test
    void askerRemovesKeysOfItsRoundAndTheLast() {
        Rank one = new Rank(0);
        Inquiry asking = one.open(1, "answer");
        for (int round = 1; round <= 3; round++) {
            ask(asking);
            assertEquals(
                    List.of(
                            "0 delete /answer/0/" + round + "/topic",
                            "0 delete /result/" + (round - 1) + "/topic",
                            "0 delete /asked/" + (round - 1) + "/topic"),
                    takeLog("delete"));
            time.advance(2 * SECOND);
        }
    }

    /** Another rank has already asked: this one waits for its result, a little longer than its deadline. */
    @Test
    void rankThatAsksAtTheSameTimeWaitsForResult() {
        Rank one = new Rank(0);
        Inquiry inquiry = one.open(2, "answer");
        state.add("/asked/1/topic", 1, new TestResponse());
        state.set(
                "/result/1/topic",
                new Wire.Frame().number32(1).number32(1).text("there").toBytes(),
                new TestResponse());
        assertEquals(Map.of(1, "there"), ask(inquiry));
        assertTrue(log.contains("0 get 2250000000 /result/1/topic"), log::toString);
        assertEquals(
                0,
                takeLog("/questions").stream()
                        .filter(line -> line.contains("add"))
                        .count());
    }

    @Test
    void missingResultIsTimeout() {
        Rank one = new Rank(0);
        Inquiry inquiry = one.open(2, 1, rank -> rank == 0 ? 1 : -1, "answer");
        state.add("/asked/1/topic", 1, new TestResponse());
        long start = time.timers().now();
        RendezvousTimeoutException late = assertThrows(RendezvousTimeoutException.class, () -> ask(inquiry));
        assertEquals("'/result/1/topic' was not set within 2.25 s", late.getMessage());
        assertEquals(2 * SECOND + SECOND / 4, time.timers().now() - start);
    }

    @Test
    void invalidResultIsNamed() {
        Inquiry inquiry = new Rank(0).open(2, "answer");
        state.add("/asked/1/topic", 1, new TestResponse());
        state.set("/result/1/topic", new byte[2], new TestResponse());
        assertEquals(
                "the store has an invalid result of the inquiry 'topic'",
                assertThrows(RendezvousException.class, () -> ask(inquiry)).getMessage());
    }

    @Test
    void rankWithoutInquiryIsAwaitedUntilDeadline() {
        Inquiry inquiry = new Rank(0).open(3, "answer");
        new Rank(2).open(3, "late answer");
        long start = time.timers().now();
        assertEquals(Map.of(0, "answer of 0", 2, "late answer of 2"), ask(inquiry));
        assertEquals(2 * SECOND, time.timers().now() - start);
    }

    @Test
    void goneRankIsNotAsked() {
        Rank one = new Rank(0);
        Inquiry inquiry = one.open(3, 2, rank -> rank == 0 ? 2 : rank == 3 ? 0 : -1, "answer");
        state.markJoined(3, "p");
        state.markJoined(4, "q");
        state.markGone(3, false);
        state.markGone(4, false);
        assertEquals(Map.of(2, "answer of 0"), ask(inquiry));
        assertEquals(
                List.of("0 get 2000000000 /answer/1/1/topic", "0 get 2000000000 /answer/2/1/topic"),
                takeLog("get 2000000000 /answer/"));
        assertEquals(2 * SECOND, one.lastGoneLimit);
    }

    /** The ranks of the scope in the exception; a rank that the scope does not have is omitted. */
    @Test
    void silentStoreIsTimeoutOfRankOfScope() {
        Rank one = new Rank(0);
        Inquiry inScope = one.open(2, 0, rank -> rank == 1 ? 0 : -1, "answer");
        Rank other = new Rank(3);
        Inquiry outOfScope = other.open(2, 1, rank -> -1, "answer");
        one.cut = true;
        other.cut = true;
        RendezvousTimeoutException late = assertThrows(RendezvousTimeoutException.class, () -> ask(inScope));
        assertEquals(List.of(0), late.missing());
        assertEquals(2 * SECOND, one.lastLimit);
        late = assertThrows(RendezvousTimeoutException.class, () -> ask(outOfScope));
        assertEquals(List.of(), late.missing());
    }

    /** The store falls silent while the answers are collected. */
    @Test
    void silentStoreIsNoLateRank() {
        Rank one = new Rank(0) {
            @Override
            public List<Integer> gone(long timeoutNanos) {
                cut = true;
                return List.of();
            }
        };
        Inquiry inquiry = one.open(1, "answer");
        assertEquals(
                "no response",
                assertThrows(RendezvousTimeoutException.class, () -> ask(inquiry))
                        .getMessage());
        assertEquals(2 * SECOND + SECOND / 2, one.lastLimit);
    }

    @Test
    void manyRanksAreAskedInPortions() {
        List<Inquiry> inquiries = IntStream.range(0, 129)
                .mapToObj(rank -> new Rank(rank).open(129, "answer"))
                .toList();
        Map<Integer, String> answers = ask(inquiries.get(7));
        assertEquals(129, answers.size());
        assertEquals("answer of 128", answers.get(128));
    }

    @Test
    void longAnswerIsTruncatedToItsShare() {
        Rank one = new Rank(0);
        Inquiry inquiry = one.inquiries.open(
                "topic", new Inquiries.Ranks(0, 4, rank -> rank), () -> new byte[Arguments.LONGEST_VALUE]);
        for (int rank = 1; rank < 4; rank++) {
            state.markJoined(rank, "p");
            state.markGone(rank, false);
        }
        assertEquals(
                (Arguments.LONGEST_VALUE - 4) / 4 - 8, inquiry.ask(TWO_SECONDS).get(0).length);
    }

    /** A rank listens for the next question while a topic is open, and begins anew with the next topic. */
    @Test
    void listensWhileTopicIsOpen() {
        Rank one = new Rank(0);
        Inquiry inquiry = one.open(1, "answer");
        assertEquals(List.of("0 get 300000000000 /questions/1"), takeLog(""));
        time.advance(300 * SECOND);
        assertEquals(List.of("0 get 300000000000 /questions/1"), takeLog(""));
        inquiry.close();
        time.advance(300 * SECOND);
        assertEquals(List.of(), takeLog(""));
        assertTrue(time.timers().isEmpty());
        one.open(1, "again");
        assertEquals(List.of("0 get 300000000000 /questions/1"), takeLog(""));
        assertThrows(IllegalStateException.class, () -> ask(inquiry));
    }

    @Test
    void secondTopicUsesSameRequest() {
        Rank one = new Rank(0);
        one.open(1, "answer");
        one.inquiries.open("other", new Inquiries.Ranks(0, 1, rank -> rank), () -> new byte[0]);
        assertEquals(1, takeLog("get").size());
        assertEquals(
                "a topic must have one open inquiry at most: topic",
                assertThrows(IllegalArgumentException.class, () -> one.open(1, "again"))
                        .getMessage());
    }

    @Test
    void questionAboutClosedTopicIsNotAnswered() {
        Rank one = new Rank(0);
        one.inquiries.open("other", new Inquiries.Ranks(0, 1, rank -> rank), () -> new byte[0]);
        one.open(1, "answer").close();
        state.set("/questions/1", new Wire.Frame().text("topic").number64(1).toBytes(), new TestResponse());
        assertEquals(List.of(), takeLog("answer"));
    }

    @Test
    void abortEndsListening() {
        Rank one = new Rank(0);
        one.open(1, "answer");
        log.clear();
        state.abort("", "no device");
        assertEquals(List.of(), takeLog(""));
    }

    @Test
    void closedSessionIsNotAsked() {
        Rank one = new Rank(0);
        Inquiry inquiry = one.open(1, "answer");
        one.closed = true;
        assertThrows(IllegalStateException.class, () -> ask(inquiry));
        assertThrows(IllegalStateException.class, () -> one.open(1, "answer"));
    }

    @Test
    void answersInBackgroundByOneThread() throws Exception {
        List<CompletableFuture<Thread>> threads = List.of(new CompletableFuture<>(), new CompletableFuture<>());
        for (CompletableFuture<Thread> one : threads) {
            Inquiries.answerInBackground(() -> one.complete(Thread.currentThread()));
        }
        Thread first = threads.get(0).get();
        assertTrue(first.isDaemon());
        assertEquals("nccl4j-store-answers", first.getName());
        assertSame(first, threads.get(1).get());
    }
}
