package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tests.Threads;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

/** The record of operations: what is kept, what is known to be done, and what another thread may read. */
class RingTest {
    private static final Duration LIMIT = Duration.ofSeconds(30);

    private final Gate gate = new Gate(other -> new IllegalStateException("in use by " + other), () -> {});

    private void record(Ring ring, long number, long stream) {
        Gate.Pass pass = gate.enter();
        ring.record(pass.next(), Operations.REDUCE, number, 7, (int) number, 3, (int) (number % 5), stream);
        pass.countAndLeave();
    }

    private Ring filled(int kept, int operations) {
        Ring ring = new Ring(kept, gate);
        for (int i = 1; i <= operations; i++) {
            record(ring, i, i % 2);
        }
        return ring;
    }

    private static List<Long> sequences(Ring ring) {
        return ring.entries().stream().map(Ring.Entry::sequence).toList();
    }

    @Test
    void theLastOnesAreKept() {
        Ring three = new Ring(3, gate);
        assertEquals(List.of(), sequences(three));
        assertEquals(Operations.NONE, three.last().operation());
        record(three, 1, 1);
        record(three, 2, 0);
        assertEquals(List.of(1L, 2L), sequences(three));
        for (int i = 3; i <= 10; i++) {
            record(three, i, i);
        }
        assertEquals(List.of(8L, 9L, 10L), sequences(three));
    }

    @Test
    void oneIsKeptAtLeast() {
        assertEquals(List.of(10L), sequences(filled(1, 10)));
    }

    @Test
    void howManyAreKeptIsRoundedUp() {
        assertEquals(7, sequences(filled(4, 1000)).size());
    }

    @Test
    void whatIsUnderWayIsTheLast() {
        Ring ring = filled(3, 5);
        Gate.Pass pass = gate.enter();
        assertEquals(5, ring.recorded());
        ring.record(pass.next(), Operations.SEND, 6, 7, 1, 0, 0, 0);
        assertEquals(6, ring.recorded());
        assertEquals(Operations.SEND, ring.last().operation());
        assertEquals(List.of(4L, 5L, 6L), sequences(ring));
        pass.countAndLeave();
        assertEquals(6, ring.recorded());
    }

    @Test
    void operationsHaveTheTimeThatWasSetBefore() {
        Ring ring = filled(3, 1);
        ring.tick(100);
        ring.tick(200);
        record(ring, 2, 0);
        record(ring, 3, 0);
        ring.tick(300);
        record(ring, 4, 0);
        assertEquals(List.of(200L, 200L, 300L), enqueued(ring));
        for (int i = 5; i <= 1000; i++) {
            record(ring, i, 0);
        }
        assertEquals(List.of(300L, 300L, 300L), enqueued(ring));
        ring.tick(400);
        assertEquals(List.of(300L, 300L, 300L), enqueued(ring));
        record(ring, 1001, 0);
        assertEquals(List.of(300L, 300L, 400L), enqueued(ring));
        assertEquals(0, filled(1, 1).last().enqueued(), "nobody has set a time");
    }

    private static List<Long> enqueued(Ring ring) {
        return ring.entries().stream().map(Ring.Entry::enqueued).toList();
    }

    @Test
    void everyFieldIsKept() {
        Ring ring = new Ring(1, gate);
        ring.record(1, Operations.WAIT_SIGNAL, Long.MAX_VALUE, 0xff, -1, 0xffff, Integer.MAX_VALUE, -1);
        Ring.Entry entry = ring.last();
        assertEquals(Operations.WAIT_SIGNAL, entry.operation());
        assertEquals(Long.MAX_VALUE, entry.count());
        assertEquals(0xff, entry.type());
        assertEquals(-1, entry.peer());
        assertEquals(0xffff, entry.op());
        assertEquals(Integer.MAX_VALUE, entry.group());
        assertEquals(-1, entry.stream());
    }

    @Test
    void anOperatorOfALargeNumberChangesNothingElse() {
        Ring ring = new Ring(1, gate);
        ring.record(1, Operations.REDUCE, 2, 3, 4, Integer.MAX_VALUE, Integer.MIN_VALUE, 5);
        assertEquals(new Ring.Entry(1, Integer.MIN_VALUE, Operations.REDUCE, 2, 3, 0xffff, 4, 5, 0, 0), ring.last());
        Ring other = new Ring(1, gate);
        other.record(1, Operations.ALL_REDUCE, 2, 3, 0, Integer.MAX_VALUE, 0, 5);
        assertEquals(new Ring.Entry(1, 0, Operations.ALL_REDUCE, 2, 3, 0xffff, 0, 5, 0, 0), other.last());
    }

    @Test
    void everyFieldOfAShortOneIsKept() {
        Ring ring = new Ring(1, gate);
        ring.record(1, Operations.ALL_REDUCE, -1, 11, 0, 0xffff, 0, Long.MIN_VALUE);
        assertEquals(new Ring.Entry(1, 0, Operations.ALL_REDUCE, -1, 11, 0xffff, 0, Long.MIN_VALUE, 0, 0), ring.last());
    }

    /** Peer and group of the long form stay in the memory of its place. */
    @Test
    void aShortOneInThePlaceOfALongOneHasNoneOfIt() {
        Ring ring = new Ring(1, gate);
        record(ring, 4, 1);
        assertEquals(4, ring.last().peer());
        operate(ring);
        operate(ring);
        Ring.Entry entry = ring.last();
        assertEquals(List.of(3L, 0L, 0L), List.of(entry.sequence(), (long) entry.peer(), (long) entry.group()));
    }

    private void operate(Ring ring) {
        Gate.Pass pass = gate.enter();
        ring.record(pass.next(), Operations.ALL_REDUCE, 1, 7, 0, 0, 0, 0);
        pass.countAndLeave();
    }

    @Test
    void aShortOneUnderWayIsTheLast() {
        Ring ring = new Ring(3, gate);
        operate(ring);
        Gate.Pass pass = gate.enter();
        assertEquals(1, ring.recorded());
        ring.record(pass.next(), Operations.BROADCAST, 1, 7, 0, 0, 0, 0);
        assertEquals(2, ring.recorded());
        assertEquals(Operations.BROADCAST, ring.last().operation());
        pass.countAndLeave();
        assertEquals(2, ring.recorded());
    }

    @Test
    void whatIsBeforeInTheStreamIsDone() {
        Ring ring = filled(7, 6);
        ring.seenDone(1, 4, 1000);
        assertEquals(
                List.of(1000L, 0L, 1000L, 0L, 0L, 0L),
                ring.entries().stream().map(Ring.Entry::done).toList());
        ring.seenDone(1, 6, 2000);
        ring.seenDone(0, 2, 3000);
        assertEquals(
                List.of(1000L, 3000L, 1000L, 0L, 2000L, 0L),
                ring.entries().stream().map(Ring.Entry::done).toList());
        // The place is another one's now.
        record(ring, 7, 1);
        record(ring, 8, 1);
        record(ring, 9, 1);
        assertEquals(List.of(3L, 4L, 5L, 6L, 7L, 8L, 9L), sequences(ring));
        assertEquals(0, ring.last().done());
        // Of long ago.
        ring.seenDone(1, 1, 4000);
        assertEquals(1000, ring.entries().get(0).done());
    }

    @Test
    void anotherThreadReadsNoHalfOperations() throws Exception {
        Ring ring = new Ring(7, gate);
        AtomicBoolean over = new AtomicBoolean();
        Callable<Long> writer = () -> {
            for (long i = 1; i <= 2_000_000; i++) {
                record(ring, i, i);
            }
            over.set(true);
            return 0L;
        };
        Callable<Long> reader = () -> {
            long read = 0;
            while (!over.get()) {
                for (Ring.Entry entry : ring.entries()) {
                    assertEquals(entry.sequence(), entry.count());
                    assertEquals(entry.sequence(), entry.stream());
                    assertEquals((int) entry.sequence(), entry.peer());
                    read++;
                }
            }
            return read;
        };
        assertTrue(Threads.together(List.of(writer, reader), LIMIT).get(1) > 0);
        assertEquals(2_000_000, ring.recorded());
    }
}
