package io.github.nccl4j.zookeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.launch.Inquiry;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.testing.Waiting;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Questions to the ranks of a job at ZooKeeper. */
@Timeout(value = 5, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ZooKeeperInquiryTest {
    private static final Duration LIMIT = Ensemble.LIMIT;

    @AutoClose
    private static Ensemble ensemble;

    private final List<ZooKeeperStore> stores = new ArrayList<>();

    @BeforeAll
    static void start() throws Exception {
        ensemble = new Ensemble();
    }

    @AfterEach
    void closeStores() {
        stores.forEach(ZooKeeperStore::close);
    }

    /** Opens all ranks of a job in this thread. */
    private List<ZooKeeperStore> open(int size) {
        String job = ensemble.job();
        for (int rank = 0; rank < size; rank++) {
            stores.add(ensemble.open(job, rank, size));
        }
        return stores;
    }

    private static Inquiry inquiry(Rendezvous rank, String answer) {
        return rank.inquiry("state", () -> answer.getBytes(StandardCharsets.UTF_8))
                .orElseThrow();
    }

    private static Map<Integer, String> ask(Inquiry inquiry, Duration timeout) {
        Map<Integer, String> texts = new TreeMap<>();
        inquiry.ask(timeout).forEach((rank, answer) -> texts.put(rank, new String(answer, StandardCharsets.UTF_8)));
        return texts;
    }

    @Test
    void ranksAnswer() {
        List<ZooKeeperStore> ranks = open(3);
        List<Inquiry> inquiries = new ArrayList<>();
        ranks.forEach(rank -> inquiries.add(inquiry(rank, "of " + rank.rank())));
        for (Inquiry each : inquiries) {
            assertEquals(Map.of(0, "of 0", 1, "of 1", 2, "of 2"), ask(each, LIMIT));
        }
    }

    /** Not waited for, either. */
    @Test
    void onlyRanksThatHaveItOpenAnswer() {
        List<ZooKeeperStore> ranks = open(4);
        Inquiry first = inquiry(ranks.get(0), "of 0");
        Inquiry second = inquiry(ranks.get(1), "of 1");
        Inquiry third = inquiry(ranks.get(2), "of 2");
        third.close();
        long begin = System.nanoTime();
        assertEquals(Map.of(0, "of 0", 1, "of 1"), ask(first, LIMIT));
        assertTrue(System.nanoTime() - begin < LIMIT.toNanos());
        assertThrows(IllegalStateException.class, () -> third.ask(LIMIT));
        Inquiry again = inquiry(ranks.get(2), "of 2 again");
        assertEquals(Map.of(0, "of 0", 1, "of 1", 2, "of 2 again"), ask(again, LIMIT));
        second.close();
    }

    @Test
    void answersOfTheLastTwoSecondsAreGivenAgain() throws Exception {
        List<ZooKeeperStore> ranks = open(2);
        AtomicInteger asked = new AtomicInteger();
        Inquiry first = inquiry(ranks.get(0), "of 0");
        Inquiry second = ranks.get(1)
                .inquiry(
                        "state", () -> Integer.toString(asked.incrementAndGet()).getBytes(StandardCharsets.UTF_8))
                .orElseThrow();
        String answer;
        List<String> again;
        long begin;
        do {
            // Anew if this machine has stalled.
            begin = System.nanoTime();
            answer = ask(first, LIMIT).get(1);
            again = List.of(ask(first, LIMIT).get(1), ask(second, LIMIT).get(1));
        } while (System.nanoTime() - begin > 1_900_000_000);
        assertEquals(List.of(answer, answer), again);
        String old = answer;
        assertEquals(
                "" + (Integer.parseInt(answer) + 1),
                Waiting.value(
                        "an answer to a new question", () -> ask(second, LIMIT).get(1), next -> !next.equals(old)));
        assertTrue(System.nanoTime() - begin >= 2_000_000_000, "too soon");
        // Old answers are deleted.
        Waiting.until(
                "end of the old answers",
                () -> ranks.get(0)
                                .session()
                                .children(ranks.get(0).job().folder("inquiries") + "/" + Text.node("state"))
                                .size()
                        == 5);
    }

    /** As that of a process that is stopped. */
    @Test
    void rankThatDoesNotRespondHasNoAnswer() {
        List<ZooKeeperStore> ranks = open(2);
        CountDownLatch end = new CountDownLatch(1);
        Inquiry first = inquiry(ranks.get(0), "of 0");
        ranks.get(1).inquiry("state", () -> {
            try {
                end.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            return new byte[0];
        });
        try {
            assertEquals(Map.of(0, "of 0"), ask(first, Duration.ofSeconds(1)));
        } finally {
            end.countDown();
        }
    }

    @Test
    void lostRankIsNotWaitedFor() throws Exception {
        List<ZooKeeperStore> ranks = open(2);
        Inquiry first = inquiry(ranks.get(0), "of 0");
        Inquiry second = inquiry(ranks.get(1), "of 1");
        assertEquals(2, ask(first, LIMIT).size());
        ensemble.endSession(ranks.get(1));
        long begin = System.nanoTime();
        assertEquals(Map.of(0, "of 0"), ask(first, LIMIT));
        assertTrue(System.nanoTime() - begin < LIMIT.toNanos());
        Waiting.until("loss of the session", () -> ranks.get(1).session().isLost());
        assertThrows(RendezvousException.class, () -> second.ask(LIMIT));
    }

    @Test
    void answersGoByTheRanksOfTheScope() {
        List<ZooKeeperStore> ranks = open(3);
        List<Integer> order = List.of(2, 0);
        Inquiry zero = inquiry(ranks.get(0).among("two", order, List.of(0, 0)), "of 0");
        inquiry(ranks.get(2).among("two", order, List.of(0, 0)), "of 2");
        inquiry(ranks.get(1), "of 1");
        assertEquals(Map.of(0, "of 2", 1, "of 0"), ask(zero, LIMIT));
    }

    @Test
    void topicIsDeletedWithItsLastInquiry() throws Exception {
        List<ZooKeeperStore> ranks = open(2);
        for (int i = 0; i < 3; i++) {
            List<Inquiry> inquiries = Stream.of(0, 1)
                    .map(rank -> inquiry(ranks.get(rank), "of " + rank))
                    .toList();
            assertEquals(2, ask(inquiries.get(0), LIMIT).size());
            inquiries.forEach(Inquiry::close);
            inquiries.forEach(Inquiry::close);
        }
        Waiting.until("end of the topic", () -> ranks.get(0)
                .session()
                .children(ranks.get(0).job().folder("inquiries"))
                .isEmpty());
    }

    @Test
    void failureOfTheSupplierIsTheAnswer() {
        Inquiry inquiry = open(1).get(0)
                .inquiry("state", () -> {
                    throw new IllegalArgumentException("no state");
                })
                .orElseThrow();
        assertEquals(Map.of(0, "java.lang.IllegalArgumentException: no state"), ask(inquiry, LIMIT));
    }

    @Test
    void longAnswersAreCutOff() {
        List<ZooKeeperStore> ranks = open(2);
        Inquiry inquiry = ranks.get(0).inquiry("state", () -> new byte[100_000]).orElseThrow();
        assertEquals(32 << 10, inquiry.ask(LIMIT).get(0).length);
    }

    @Test
    void wrongArgumentsAreRefused() {
        ZooKeeperStore store = open(1).get(0);
        Inquiry inquiry = inquiry(store, "of 0");
        assertEquals(
                "a topic must have one open inquiry at most: state",
                assertThrows(IllegalArgumentException.class, () -> inquiry(store, "again"))
                        .getMessage());
        assertEquals(
                "a topic must not contain a slash: a/b",
                assertThrows(IllegalArgumentException.class, () -> store.inquiry("a/b", () -> new byte[0]))
                        .getMessage());
        assertEquals(
                "timeout must be >= 0: -1 s",
                assertThrows(IllegalArgumentException.class, () -> inquiry.ask(Duration.ofSeconds(-1)))
                        .getMessage());
        store.close();
        assertThrows(IllegalStateException.class, () -> inquiry.ask(LIMIT));
        assertThrows(IllegalStateException.class, () -> inquiry(store, "late"));
        inquiry.close();
    }

    @Test
    void interruptEndsTheQuestion() {
        Inquiry inquiry = inquiry(open(1).get(0), "of 0");
        Thread.currentThread().interrupt();
        RendezvousException interrupted = assertThrows(RendezvousException.class, () -> inquiry.ask(LIMIT));
        assertTrue(Thread.interrupted());
        assertEquals("rank 0 was interrupted while it waited for 'state'", interrupted.getMessage());
    }

    /** The exception of an operation that times out tells what the other rank does. */
    @Test
    void timeoutNamesWhatTheOtherRankDoes() throws Exception {
        String job = ensemble.job();
        CountDownLatch failed = new CountDownLatch(1);
        Future<Void> other = ensemble.submit(() -> {
            try (ZooKeeperStore store = ensemble.open(job, 1, 2);
                    Communicator communicator =
                            Communicator.builder().device(Device.host()).create(store)) {
                failed.await();
                communicator.abort();
            }
            return null;
        });
        try (ZooKeeperStore store = ensemble.open(job, 0, 2);
                Communicator communicator = Communicator.builder()
                        .device(Device.host())
                        .deadline(Duration.ofSeconds(2))
                        .create(store);
                DeviceBuffer<Int32> one = Device.host().allocate(ElementType.INT32, 1)) {
            NcclTimeoutException late = assertThrows(
                    NcclTimeoutException.class,
                    () -> communicator.allReduce(one, ReduceOp.SUM, CudaStream.defaultOf(Device.host())));
            assertTrue(late.getMessage().contains(". Rank 1 ("), late.getMessage());
            communicator.abort();
        } finally {
            failed.countDown();
        }
        Ensemble.result(other);
    }
}
