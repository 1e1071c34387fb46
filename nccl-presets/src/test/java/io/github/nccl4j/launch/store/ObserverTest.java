package io.github.nccl4j.launch.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.RankStatus.State;
import io.github.nccl4j.launch.wire.Wire;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** Tests of {@link Observer} without connections, at a time that the test sets. */
class ObserverTest {
    private static final long SECOND = TestTime.SECOND;

    private final TestTime time = new TestTime();
    private final List<Observer.Job> jobs = new ArrayList<>();
    private final List<byte[]> sent = new ArrayList<>();
    /** True if the observer reads what it is sent. */
    private boolean reads = true;

    private final Observer observer = new Observer(time.timers(), () -> jobs, new Observer.Output() {
        @Override
        public void send(byte[] frame) {
            sent.add(frame);
        }

        @Override
        public boolean hasSentAll() {
            return reads;
        }
    });

    /** Answers when the test says so. */
    private static final class Rank implements Observer.Rank {
        private final int number;
        private long silence;
        private int questions;
        private boolean forgotten;

        Rank(int number) {
            this.number = number;
        }

        @Override
        public int rank() {
            return number;
        }

        @Override
        public String process() {
            return "process " + number;
        }

        @Override
        public long silence() {
            return silence;
        }

        @Override
        public void ask(Observer asker) {
            questions++;
        }

        @Override
        public void forget(Observer asker) {
            forgotten = true;
        }
    }

    private void look(int number, long timeout) throws IOException {
        observer.handleRequest(ByteBuffer.wrap(
                new Wire.Frame().number32(number).number64(timeout).toBytes()));
    }

    /** The parts that were sent since the last call, in words. */
    private List<String> takeParts() throws IOException {
        List<String> parts = new ArrayList<>();
        for (byte[] one : sent) {
            ByteBuffer frame = ByteBuffer.wrap(one);
            int number = frame.getInt();
            parts.add(number + " "
                    + switch (Wire.Look.read(frame)) {
                        case JOB -> "job " + Wire.text(frame) + " " + frame.getInt() + " " + frame.getInt();
                        case RANK ->
                            "rank " + frame.getInt() + "." + frame.getInt() + " " + State.values()[frame.get()] + " "
                                    + Wire.text(frame) + " " + frame.getLong() + " " + Wire.bytes(frame).length;
                        case END -> "end";
                    });
            assertFalse(frame.hasRemaining());
        }
        sent.clear();
        return parts;
    }

    private Rank addJob(String name, Rank... ranks) {
        jobs.add(new Observer.Job(name, 2, 9, List.of(ranks), Map.of()));
        return ranks.length == 0 ? null : ranks[0];
    }

    @Test
    void lookEndsWhenAllRanksHaveAnswered() throws IOException {
        Rank first = addJob("one", new Rank(3));
        Rank second = addJob("two", new Rank(4));
        look(17, SECOND);
        assertEquals(List.of("17 job one 2 9", "17 job two 2 9"), takeParts());
        assertEquals(1, first.questions);
        observer.report(second, new byte[5]);
        assertEquals(List.of("17 rank 1.4 ANSWERED process 4 0 5"), takeParts());
        observer.report(first, new byte[6]);
        assertEquals(List.of("17 rank 0.3 ANSWERED process 3 0 6", "17 end"), takeParts());
        assertTrue(time.timers().isEmpty());
        // A late answer belongs to no look.
        observer.report(first, new byte[7]);
        assertEquals(List.of(), takeParts());
        look(18, SECOND);
        assertEquals(2, first.questions);
    }

    @Test
    void storeWithoutJobEndsLookAtOnce() throws IOException {
        look(1, 0);
        assertEquals(List.of("1 end"), takeParts());
        assertTrue(time.timers().isEmpty());
    }

    @Test
    void goneRanksAreReportedWithoutQuestion() throws IOException {
        Map<Integer, Observer.Gone> gone = new TreeMap<>();
        gone.put(1, new Observer.Gone("a", true));
        gone.put(2, new Observer.Gone("b", false));
        jobs.add(new Observer.Job("one", 0, 3, List.of(), gone));
        look(1, SECOND);
        assertEquals(List.of("1 job one 0 3", "1 rank 0.1 LEFT a 0 0", "1 rank 0.2 LOST b 0 0", "1 end"), takeParts());
    }

    @Test
    void rankThatGoesDuringLookIsReported() throws IOException {
        Rank leaves = new Rank(0);
        Rank lost = new Rank(1);
        addJob("one", leaves, lost);
        look(1, SECOND);
        takeParts();
        observer.lose(leaves, true);
        assertEquals(List.of("1 rank 0.0 LEFT process 0 0 0"), takeParts());
        observer.lose(lost, false);
        assertEquals(List.of("1 rank 0.1 LOST process 1 0 0", "1 end"), takeParts());
    }

    @Test
    void ranksThatDoNotAnswerInTimeAreNamed() throws IOException {
        Rank slow = new Rank(0);
        Rank silent = new Rank(1);
        silent.silence = 77;
        addJob("one", slow, silent);
        look(1, SECOND);
        takeParts();
        time.advance(SECOND - 1);
        assertEquals(List.of(), takeParts());
        time.advance(1);
        assertEquals(
                List.of("1 rank 0.0 NO_ANSWER process 0 0 0", "1 rank 0.1 SILENT process 1 77 0", "1 end"),
                takeParts());
        assertTrue(slow.forgotten && silent.forgotten);
        assertTrue(time.timers().isEmpty());
    }

    @Test
    void rejectsInvalidTimeoutAndSecondLook() throws IOException {
        addJob("one", new Rank(0));
        for (long timeout : new long[] {-1, 60 * SECOND + 1}) {
            assertEquals(
                    "timeout must be from 0 to 60 s: " + timeout + " ns",
                    assertThrows(IOException.class, () -> look(1, timeout)).getMessage());
        }
        look(1, 60 * SECOND);
        assertEquals(
                "an observer must wait for the end of its look",
                assertThrows(IOException.class, () -> look(2, 0)).getMessage());
    }

    @Test
    void closedObserverForgetsItsRanks() throws IOException {
        Rank rank = addJob("one", new Rank(0));
        look(1, SECOND);
        takeParts();
        observer.close();
        assertTrue(rank.forgotten);
        assertTrue(time.timers().isEmpty());
        observer.report(rank, new byte[1]);
        assertEquals(List.of(), takeParts());
    }

    @Test
    void waitsUntilObserverReads() throws IOException {
        Rank rank = addJob("one", new Rank(0));
        reads = false;
        look(1, SECOND);
        observer.report(rank, new byte[1]);
        time.advance(1_000_000);
        assertEquals(List.of(), takeParts());
        reads = true;
        time.advance(999_999);
        assertEquals(List.of(), takeParts());
        time.advance(1);
        assertEquals(List.of("1 job one 2 9", "1 rank 0.0 ANSWERED process 0 0 1", "1 end"), takeParts());
        assertTrue(time.timers().isEmpty());
    }

    @Test
    void reportsBeyondLimitAreOmittedUntilObserverReads() throws IOException {
        Rank[] ranks = {new Rank(0), new Rank(1), new Rank(2)};
        addJob("one", ranks);
        reads = false;
        look(1, SECOND);
        int header = new Wire.Frame()
                .number32(1)
                .number8(0)
                .text("one")
                .number32(2)
                .number32(9)
                .toBytes()
                .length;
        byte[] longest = new byte[(int) Observer.MAX_QUEUED_BYTES - header];
        observer.report(ranks[0], longest);
        observer.report(ranks[1], new byte[1]);
        reads = true;
        time.advance(1_000_000);
        observer.report(ranks[2], longest);
        assertEquals(
                List.of(
                        "1 job one 2 9",
                        "1 rank 0.0 ANSWERED process 0 0 " + longest.length,
                        "1 rank 0.1 ANSWERED process 1 0 0",
                        "1 rank 0.2 ANSWERED process 2 0 " + longest.length,
                        "1 end"),
                takeParts());
    }
}
