package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;

import io.github.nccl4j.highlevel.Element.Int32;
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
        return RankStatusQuery.begin("test", 0, 1, answers, () -> CommunicatorCore.position(core));
    }

    private String own() {
        return new String(answers.own.get(), StandardCharsets.UTF_8);
    }

    @Test
    void aRankAnswersWithItsLastOperation() {
        begin();
        assertEquals("0\nhas called no operation", own());
        try (DeviceBuffer<Int32> buffer = Device.host().allocate(ElementType.INT32, 3)) {
            communicator.allReduce(buffer, ReduceOp.SUM, STREAM);
        }
        assertEquals("1\nis at ncclAllReduce of 3 int32 (operation 1)", own());
        communicator.close();
        assertEquals("1\nhas closed its communicator", own());
    }

    @Test
    void ranksElsewhereAreListedUpToALimit() {
        answers.answer(0, "7\nis at itself");
        answers.answer(1, "0\nis at the same");
        answers.answer(2, "0\nhas called no operation");
        answers.answer(3, "garbled");
        assertEquals(
                "All ranks answered; rank 2 has called no operation",
                begin().ask().text());
        for (int rank = 4; rank < 7; rank++) {
            answers.answer(rank, "3\nis at ncclSend");
        }
        String four =
                "All ranks answered; rank 2 has called no operation; rank 4 is at ncclSend; rank 5 is at ncclSend;"
                        + " rank 6 is at ncclSend";
        assertEquals(four, begin().ask().text());
        answers.answer(7, "4\nis at ncclSend");
        answers.answer(8, "4\nis at ncclSend");
        assertEquals(
                four + "; 2 more ranks are at other operations", begin().ask().text());
    }

    @Test
    void anAnswerIsKeptForAWhile() {
        RankStatusQuery query = begin();
        answers.answer(1, "5\nis at ncclSend");
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
        assertEquals("All ranks answered", query.ask().text());
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
        core.enableStatusQuery(answers);
        // No answer is not kept, so that each question reaches the store.
        answers.failure = new RendezvousException("lost");
        core.statusQuery().ask();
        assertEquals(1, answers.asked);
        ranks.forEach(Communicator::close);
        core.statusQuery().ask();
        assertEquals(1, answers.asked);
    }
}
