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
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Ranks are asked, and answer without calling anything. */
@Timeout(600)
class InquiryTest {
    private static final Duration SOON = Duration.ofSeconds(1);
    /** For all answers to be there, on a busy machine. */
    private static final Duration PATIENT = Duration.ofSeconds(60);

    private final Job job = new Job();

    @AfterEach
    void end() {
        job.close();
    }

    private static Supplier<byte[]> says(String text) {
        return () -> text.getBytes(StandardCharsets.UTF_8);
    }

    private static Map<Integer, String> ask(Inquiry inquiry, Duration patience) {
        Map<Integer, String> answers = new TreeMap<>();
        inquiry.ask(patience).forEach((rank, answer) -> answers.put(rank, new String(answer, StandardCharsets.UTF_8)));
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
    void everyRankAnswersAboutEachTopic() {
        List<TcpStore> stores = job.openAll(3);
        List<Inquiry> first = open(stores, "first");
        List<Inquiry> second = open(stores, "second");
        Map<Integer, String> answers = Map.of(0, "rank 0 of first", 1, "rank 1 of first", 2, "rank 2 of first");
        assertEquals(answers, ask(first.get(1), PATIENT));
        assertEquals(answers, ask(first.get(0), PATIENT));
        assertEquals("rank 2 of second", ask(second.get(2), PATIENT).get(2));
    }

    @Test
    void allMayAskAtTheSameTime() {
        List<Inquiry> inquiries = open(job.openAll(16), "topic");
        List<CompletableFuture<Map<Integer, String>>> all = new ArrayList<>();
        for (Inquiry one : inquiries) {
            all.add(job.start(() -> ask(one, PATIENT)));
        }
        for (CompletableFuture<Map<Integer, String>> answers : all) {
            assertEquals(16, answers.join().size());
        }
    }

    @Test
    void whoHasClosedItIsSilent() {
        List<TcpStore> stores = job.openAll(4);
        List<Inquiry> inquiries = open(stores, "topic");
        inquiries.get(2).close();
        stores.get(3).close();
        assertEquals(Map.of(0, "rank 0 of topic", 1, "rank 1 of topic"), ask(inquiries.get(1), SOON));
        assertTrue(assertThrows(IllegalStateException.class, () -> ask(inquiries.get(2), SOON))
                .getMessage()
                .contains("closed"));
    }

    @Test
    void ranksOfAScopeAreCountedAsThere() {
        List<TcpStore> stores = job.openAll(3);
        List<Inquiry> inquiries = open(
                List.of(
                        stores.get(2).among("some", List.of(2, 0)),
                        stores.get(0).among("some", List.of(2, 0))),
                "topic");
        assertEquals(Map.of(0, "rank 0 of topic", 1, "rank 1 of topic"), ask(inquiries.get(1), PATIENT));
    }

    @Test
    void answersThatFailAreAnswersAndLongOnesAreCut() {
        List<TcpStore> stores = job.openAll(2);
        Inquiry asking = stores.get(0)
                .inquiry("topic", () -> {
                    throw new IllegalStateException("no idea");
                })
                .orElseThrow();
        stores.get(1).inquiry("topic", () -> new byte[Rendezvous.LONGEST_VALUE]);
        Map<Integer, byte[]> answers = asking.ask(PATIENT);
        assertTrue(new String(answers.get(0), StandardCharsets.UTF_8).contains("no idea"));
        assertEquals((Rendezvous.LONGEST_VALUE - 4) / 2 - 8, answers.get(1).length);
    }

    @Test
    void aTopicIsOpenOnce() {
        TcpStore store = job.openAll(1).get(0);
        Inquiry first = open(List.of(store), "topic").get(0);
        assertThrows(IllegalArgumentException.class, () -> open(List.of(store), "topic"));
        first.close();
        assertEquals(
                Map.of(0, "rank 0 of topic"), ask(open(List.of(store), "topic").get(0), PATIENT));
    }

    /** As if the process that keeps it were stopped. */
    @Test
    void aStoreThatIsSilentIsNamed() {
        List<TcpStore> stores = job.openAll(2);
        CountDownLatch over = new CountDownLatch(1);
        Inquiry inquiry = stores.get(1)
                .among("some", List.of(1, 0))
                .inquiry("topic", () -> {
                    // Nothing comes to this process any more, nor from it.
                    try {
                        over.await();
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                    return new byte[0];
                })
                .orElseThrow();
        try {
            RendezvousTimeoutException silent =
                    assertThrows(RendezvousTimeoutException.class, () -> ask(inquiry, SOON));
            assertEquals(List.of(1), silent.missing());
            assertTrue(silent.getMessage().startsWith("rank 0 at 127.0.0.1:"), silent.getMessage());
        } finally {
            over.countDown();
        }
    }

    @Test
    void nobodyAnswersWithoutTheStore() {
        List<TcpStore> stores = job.openAll(2);
        List<Inquiry> inquiries = open(stores, "topic");
        stores.get(0).close();
        assertThrows(RendezvousException.class, () -> ask(inquiries.get(1), SOON));
        stores.get(1).close();
        assertThrows(IllegalStateException.class, () -> ask(inquiries.get(1), SOON));
        assertThrows(IllegalStateException.class, () -> stores.get(1).inquiry("another", says("")));
    }
}
