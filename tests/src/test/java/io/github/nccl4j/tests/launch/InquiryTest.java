package io.github.nccl4j.tests.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.Inquiry;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.launch.TcpStore;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests of {@link Inquiry}: ranks answer in the background. */
@Timeout(600)
class InquiryTest {
    private static final Duration SHORT = Duration.ofSeconds(1);
    /** A timeout that is long enough for all answers, even on a busy machine. */
    private static final Duration LONG = Duration.ofSeconds(60);

    /** The time for which answers are reused. */
    private static final long FRESH_NANOS = 2_000_000_000;

    private final Job job = new Job();

    @AfterEach
    void end() {
        job.close();
    }

    private static Supplier<byte[]> says(String text) {
        return () -> text.getBytes(StandardCharsets.UTF_8);
    }

    private static Map<Integer, String> ask(Inquiry inquiry, Duration timeout) {
        Map<Integer, String> answers = new TreeMap<>();
        inquiry.ask(timeout).forEach((rank, answer) -> answers.put(rank, new String(answer, StandardCharsets.UTF_8)));
        return answers;
    }

    private static List<Inquiry> open(List<? extends Rendezvous> ranks, String topic) {
        List<Inquiry> inquiries = new ArrayList<>();
        for (Rendezvous one : ranks) {
            inquiries.add(one.inquiry(topic, says("rank " + one.rank() + " of " + topic))
                    .orElseThrow());
        }
        return inquiries;
    }

    @Test
    void allRanksAnswerEachTopic() {
        List<TcpStore> stores = job.openAll(3);
        List<Inquiry> first = open(stores, "first");
        List<Inquiry> second = open(stores, "second");
        Map<Integer, String> answers = Map.of(0, "rank 0 of first", 1, "rank 1 of first", 2, "rank 2 of first");
        assertEquals(answers, ask(first.get(1), LONG));
        assertEquals(answers, ask(first.get(0), LONG));
        assertEquals("rank 2 of second", ask(second.get(2), LONG).get(2));
    }

    @Test
    void allRanksCanAskConcurrently() {
        List<Inquiry> inquiries = open(job.openAll(16), "topic");
        List<CompletableFuture<Map<Integer, String>>> all = new ArrayList<>();
        for (Inquiry one : inquiries) {
            all.add(job.start(() -> ask(one, LONG)));
        }
        for (CompletableFuture<Map<Integer, String>> answers : all) {
            assertEquals(16, answers.join().size());
        }
    }

    @Test
    void closedInquiryDoesNotAnswer() {
        List<TcpStore> stores = job.openAll(4);
        List<Inquiry> inquiries = open(stores, "topic");
        inquiries.get(2).close();
        stores.get(3).close();
        assertEquals(Map.of(0, "rank 0 of topic", 1, "rank 1 of topic"), ask(inquiries.get(1), SHORT));
        assertTrue(assertThrows(IllegalStateException.class, () -> ask(inquiries.get(2), SHORT))
                .getMessage()
                .contains("closed"));
    }

    @Test
    void answersUseRanksOfScope() {
        List<TcpStore> stores = job.openAll(3);
        List<Inquiry> inquiries = open(
                List.of(
                        stores.get(2).among("some", List.of(2, 0)),
                        stores.get(0).among("some", List.of(2, 0))),
                "topic");
        assertEquals(Map.of(0, "rank 0 of topic", 1, "rank 1 of topic"), ask(inquiries.get(1), LONG));
    }

    /** The answers of one question serve all ranks for two seconds. */
    @Test
    void answersAreReusedWhileTheyAreFresh() {
        List<TcpStore> stores = job.openAll(2);
        AtomicInteger questions = new AtomicInteger();
        Inquiry asking = stores.get(0)
                .inquiry("topic", () -> ("question " + questions.incrementAndGet()).getBytes(StandardCharsets.UTF_8))
                .orElseThrow();
        Inquiry other = stores.get(1).inquiry("topic", says("")).orElseThrow();
        long asked = System.nanoTime();
        assertEquals("question 1", ask(asking, LONG).get(0));
        String second = ask(other, LONG).get(0);
        // On a busy machine the two seconds may be over.
        assertTrue(second.equals("question 1") || System.nanoTime() - asked > FRESH_NANOS, second);
    }

    /** More ranks than are asked at the same time. */
    @Test
    void answersOfManyRanksAreComplete() {
        List<Inquiry> inquiries = open(job.openAll(130), "topic");
        Map<Integer, String> answers = ask(inquiries.get(100), LONG);
        assertEquals(130, answers.size());
        answers.forEach((rank, answer) -> assertEquals("rank " + rank + " of topic", answer));
    }

    /** A rank that is lost is known at once, also by its rank in a scope. */
    @Test
    void lostRankIsNotWaitedFor() throws Exception {
        List<TcpStore> stores = job.openAll(3);
        List<Integer> some = List.of(2, 0, 1);
        List<Inquiry> inquiries =
                open(List.of(stores.get(2).among("some", some), stores.get(0).among("some", some)), "topic");
        stores.get(1).close();
        CompletableFuture<Map<Integer, String>> answers = job.start(() -> ask(inquiries.get(1), Duration.ofHours(1)));
        assertEquals(
                Map.of(0, "rank 0 of topic", 1, "rank 1 of topic"), answers.get(LONG.toSeconds(), TimeUnit.SECONDS));
    }

    @Test
    void answersContainFailuresAndAreTruncated() {
        List<TcpStore> stores = job.openAll(2);
        Inquiry asking = stores.get(0)
                .inquiry("topic", () -> {
                    throw new IllegalStateException("no idea");
                })
                .orElseThrow();
        stores.get(1).inquiry("topic", () -> new byte[Rendezvous.LONGEST_VALUE]);
        Map<Integer, byte[]> answers = asking.ask(LONG);
        assertTrue(new String(answers.get(0), StandardCharsets.UTF_8).contains("no idea"));
        assertEquals((Rendezvous.LONGEST_VALUE - 4) / 2 - 8, answers.get(1).length);
    }

    @Test
    void rejectsSecondInquiryOfTopic() {
        TcpStore store = job.openAll(1).get(0);
        Inquiry first = open(List.of(store), "topic").get(0);
        assertThrows(IllegalArgumentException.class, () -> open(List.of(store), "topic"));
        first.close();
        assertEquals(
                Map.of(0, "rank 0 of topic"), ask(open(List.of(store), "topic").get(0), LONG));
    }

    @Test
    void timeoutNamesRankOfStore() throws Exception {
        CompletableFuture<TcpStore> first = job.openAsync(job.rank(0, 2), Job.settings());
        try (Proxy proxy = new Proxy(job.port())) {
            TcpStore second = job.open(job.rankVia(proxy, 1, 2), Job.settings());
            first.join();
            Inquiry inquiry = second.among("some", List.of(1, 0))
                    .inquiry("topic", says("never"))
                    .orElseThrow();
            proxy.hold();
            RendezvousTimeoutException silent =
                    assertThrows(RendezvousTimeoutException.class, () -> ask(inquiry, SHORT));
            assertEquals(List.of(1), silent.missing());
            assertTrue(silent.getMessage().startsWith("rank 0 at 127.0.0.1:"), silent.getMessage());
        }
    }

    /** An answer that takes long holds up neither the connection nor the answers of other processes. */
    @Test
    void slowAnswerDoesNotBlockConnection() {
        List<TcpStore> stores = job.openAll(2);
        CountDownLatch over = new CountDownLatch(1);
        Inquiry slow = stores.get(1)
                .inquiry("topic", () -> {
                    try {
                        over.await();
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                    return new byte[0];
                })
                .orElseThrow();
        try {
            assertEquals(Map.of(), ask(slow, SHORT));
            stores.get(1).set("key", new byte[0]);
        } finally {
            over.countDown();
        }
    }

    @Test
    void askFailsAfterStoreIsClosed() {
        List<TcpStore> stores = job.openAll(2);
        List<Inquiry> inquiries = open(stores, "topic");
        stores.get(0).close();
        assertThrows(RendezvousException.class, () -> ask(inquiries.get(1), SHORT));
        stores.get(1).close();
        assertThrows(IllegalStateException.class, () -> ask(inquiries.get(1), SHORT));
        assertThrows(IllegalStateException.class, () -> stores.get(1).inquiry("another", says("")));
    }
}
