package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.communicator.CommunicatorRanks;
import io.github.nccl4j.internal.communicator.RankStatusQuery;
import io.github.nccl4j.launch.Inquiry;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What a rank answers, and what it makes of the answers of others; RankStatusQueryTest asks ranks that are stuck. */
class RankStatusAnswersTest {
    private static final CudaStream STREAM = CudaStream.defaultOf(Device.host());

    /** An inquiry whose answers the test gives. */
    private static final class Answers implements Rendezvous, Inquiry {
        private final Map<Integer, byte[]> given = new TreeMap<>();
        private RuntimeException failure;
        private boolean closed;
        private Supplier<byte[]> own;
        private int asked;
        private int size = 1;

        @Override
        public int rank() {
            return 0;
        }

        @Override
        public int size() {
            return size;
        }

        @Override
        public List<byte[]> gather(String key, byte[] value, Duration timeout) {
            return List.of(value);
        }

        @Override
        public Optional<Inquiry> inquiry(String topic, Supplier<byte[]> answer) {
            if (closed) {
                throw new IllegalStateException("closed");
            }
            own = answer;
            return Optional.of(this);
        }

        @Override
        public Map<Integer, byte[]> ask(Duration timeout) {
            asked++;
            if (failure != null) {
                throw failure;
            }
            return given;
        }

        @Override
        public void close() {}

        void answer(int rank, String text) {
            given.put(rank, text.getBytes(StandardCharsets.UTF_8));
        }
    }

    private final Answers answers = new Answers();
    private Communicator communicator;

    @BeforeEach
    void create() {
        communicator = Communicator.create(UniqueId.create(), 0, 1);
    }

    @AfterEach
    void close() {
        communicator.close();
    }

    private RankStatusQuery begin() {
        CommunicatorCore core = communicator.core();
        return RankStatusQuery.begin("test", 0, 1, answers, () -> CommunicatorRanks.position(core));
    }

    private String own() {
        return new String(answers.own.get(), StandardCharsets.UTF_8);
    }

    /** An answer of another rank: its last operation, true if that is done, and its call. */
    private void answer(int rank, int sequence, boolean done, String call) {
        String operation = sequence == 0 ? "" : "ncclSend (operation " + sequence + ")";
        answers.answer(rank, String.join("\n", sequence + "", done + "", operation, call, "", "h, process " + rank));
    }

    @Test
    void aRankAnswersWithItsLastOperation() {
        begin();
        assertTrue(own().startsWith("0\nfalse\n"), own());
        try (DeviceBuffer<Int32> buffer = Device.host().allocate(ElementType.INT32, 3)) {
            communicator.allReduce(buffer, ReduceOp.SUM, STREAM);
        }
        String process = ", process " + ProcessHandle.current().pid();
        assertTrue(own().startsWith("1\nfalse\nncclAllReduce of 3 int32 (operation 1)\n\n\n"), own());
        assertTrue(own().endsWith(process), own());
        communicator.work(STREAM).await();
        assertTrue(own().startsWith("1\ntrue\n"), own());
        communicator
                .core()
                .calls()
                .waitingIn("ncclCommSplit", () -> assertTrue(own().contains("\nncclCommSplit\n\n"), own()));
        communicator.close();
        assertTrue(
                own().contains("\n\nhas closed its communicator; its program may have failed: see its log\n"), own());
    }

    private void reduce(int times) {
        try (DeviceBuffer<Int32> buffer = Device.host().allocate(ElementType.INT32, 3)) {
            for (int i = 0; i < times; i++) {
                communicator.allReduce(buffer, ReduceOp.SUM, STREAM);
            }
        }
    }

    @Test
    void ranksElsewhereAreListedUpToALimit() {
        reduce(3);
        answer(0, 7, false, "");
        answer(1, 3, false, "");
        answer(2, 0, false, "");
        answers.answer(3, "garbled");
        assertEquals(
                "Rank 2 (h, process 2) has not called operation 1",
                begin().ask().text());
        answer(4, 2, true, "");
        answer(5, 1, false, "");
        answer(6, 4, false, "");
        String four =
                "Rank 2 (h, process 2) has not called operation 1. Rank 4 (h, process 4) has finished operation 2 and has not"
                        + " called operation 3. Rank 5 (h, process 5) is at ncclSend (operation 1) and has not called operation 2. Rank 6"
                        + " (h, process 6) is at ncclSend (operation 4)";
        assertEquals(four, begin().ask().text());
        answer(7, 3, false, "ncclCommSplit");
        answers.answer(8, "3\nfalse\n\n\nhas closed its communicator\nh, process 8");
        assertEquals(four + ". 2 more ranks are elsewhere", begin().ask().text());
    }

    @Test
    void ranksThatAreNotInTheSameCallAreListed() {
        reduce(1);
        answer(1, 1, true, "ncclCommSplit");
        answer(2, 1, true, "");
        answer(3, 1, false, "ncclCommGrow");
        answer(4, 0, false, "ncclCommSplit");
        answer(5, 2, false, "");
        communicator.core().calls().waitingIn("ncclCommSplit", () -> {
            assertEquals(
                    "Rank 2 (h, process 2) has finished operation 1 and has not called ncclCommSplit. Rank 3 (h, process 3) is in"
                            + " ncclCommGrow, after operation 1. Rank 4 (h, process 4) is in ncclCommSplit, before any operation."
                            + " Rank 5 (h, process 5) is at ncclSend (operation 2)",
                    begin().ask().text());
            answers.given.keySet().removeIf(rank -> rank > 1);
            assertEquals(
                    "All ranks answered and are in the same call", begin().ask().text());
        });
    }

    @Test
    void anAnswerIsKeptForAWhile() {
        RankStatusQuery query = begin();
        answer(1, 5, false, "");
        RankStatusQuery.Result first = query.ask();
        assertEquals(List.of(), first.silent());
        assertSame(first, query.ask());
        assertEquals(1, answers.asked);
        query.end();
        assertSame(first, query.ask());
        RankStatusQuery ended = begin();
        ended.end();
        assertSame(RankStatusQuery.NOTHING, ended.ask());
        assertEquals(1, answers.asked);
    }

    @Test
    void aRankThatKeepsTheStoreIsNamed() {
        answers.failure = new RendezvousTimeoutException("late", List.of(0));
        assertEquals(
                new RankStatusQuery.Result(
                        List.of(0),
                        "No answer from rank 0, which keeps the store, so that the others could not be asked"),
                begin().ask());
        answers.failure = new RendezvousTimeoutException("late", List.of());
        assertSame(RankStatusQuery.NOTHING, begin().ask());
        answers.failure = new RendezvousException("lost");
        RankStatusQuery query = begin();
        assertSame(RankStatusQuery.NOTHING, query.ask());
        answers.failure = null;
        // No answer is not kept.
        assertEquals(
                "All ranks answered and are in the same operation", query.ask().text());
    }

    @Test
    void aStoreThatIsClosedIsNotAsked() {
        answers.closed = true;
        assertNull(begin());
    }

    @Test
    void aCommunicatorThatHasEndedDoesNotAsk() {
        answers.size = 2;
        Device host = Device.host();
        List<Communicator> ranks = Communicator.builder().createAll(UniqueId.create(), 0, 2, List.of(host, host));
        CommunicatorCore core = ranks.get(0).core();
        core.ranks().enableStatusQuery(answers);
        // No answer is not kept, so that each question reaches the store.
        answers.failure = new RendezvousException("lost");
        core.ranks().statusQuery().ask();
        assertEquals(1, answers.asked);
        ranks.forEach(Communicator::close);
        core.ranks().statusQuery().ask();
        assertEquals(1, answers.asked);
    }
}
