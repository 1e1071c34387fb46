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

    private static void record(Ring ring, long number, long stream) {
        ring.record(Operations.REDUCE, number, 7, (int) number, 3, (int) (number % 5), stream);
    }

    private static Ring filled(int kept, int operations) {
        Ring ring = new Ring(kept);
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
        assertEquals(List.of(), sequences(new Ring(3)));
        assertEquals(Operations.NONE, new Ring(3).last().operation());
        assertEquals(List.of(1L, 2L), sequences(filled(3, 2)));
        assertEquals(List.of(8L, 9L, 10L), sequences(filled(3, 10)));
        assertEquals(List.of(10L), sequences(filled(1, 10)));
        assertEquals(255, sequences(filled(255, 1000)).size());
        // Rounded up.
        assertEquals(7, sequences(filled(4, 1000)).size());
    }

    @Test
    void everyFieldIsKept() {
        Ring ring = new Ring(1);
        ring.record(Operations.WAIT_SIGNAL, Long.MAX_VALUE, 0xffff, -1, Integer.MIN_VALUE, Integer.MAX_VALUE, -1);
        Ring.Entry entry = ring.last();
        assertEquals(Operations.WAIT_SIGNAL, entry.operation());
        assertEquals(Long.MAX_VALUE, entry.count());
        assertEquals(0xffff, entry.type());
        assertEquals(-1, entry.peer());
        assertEquals(Integer.MIN_VALUE, entry.op());
        assertEquals(Integer.MAX_VALUE, entry.group());
        assertEquals(-1, entry.stream());
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
        Ring ring = new Ring(7);
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
