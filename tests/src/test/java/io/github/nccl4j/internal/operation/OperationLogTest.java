package io.github.nccl4j.internal.operation;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.internal.threads.Gate;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tools.support.Threads;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

/** The record of operations: what is kept, what is known to be done, and what another thread may read. */
class OperationLogTest {
    private static final Duration LIMIT = Duration.ofSeconds(30);

    private final Gate gate = new Gate(other -> new IllegalStateException("in use by " + other), () -> {});

    private void record(OperationLog log, long number, long stream) {
        Gate.Pass pass = gate.enter();
        log.record(pass.next(), OperationKind.REDUCE.code(), number, 7, (int) number, 3, (int) (number % 5), stream);
        pass.countAndLeave();
    }

    private OperationLog filled(int kept, int operations) {
        OperationLog log = new OperationLog(kept, gate);
        for (int i = 1; i <= operations; i++) {
            record(log, i, i % 2);
        }
        return log;
    }

    private static List<Long> sequences(OperationLog log) {
        return log.entries().stream().map(OperationLog.Entry::sequence).toList();
    }

    @Test
    void keepsLastOperations() {
        OperationLog three = new OperationLog(3, gate);
        assertEquals(List.of(), sequences(three));
        assertEquals(OperationKind.NONE, three.last().kind());
        record(three, 1, 1);
        record(three, 2, 0);
        assertEquals(List.of(1L, 2L), sequences(three));
        for (int i = 3; i <= 10; i++) {
            record(three, i, i);
        }
        assertEquals(List.of(8L, 9L, 10L), sequences(three));
    }

    @Test
    void keepsAtLeastOneOperation() {
        assertEquals(List.of(10L), sequences(filled(1, 10)));
    }

    @Test
    void capacityIsRoundedUp() {
        assertEquals(7, sequences(filled(4, 1000)).size());
    }

    @Test
    void lastReturnsOperationInProgress() {
        OperationLog log = filled(3, 5);
        Gate.Pass pass = gate.enter();
        assertEquals(5, log.recorded());
        log.record(pass.next(), OperationKind.SEND.code(), 6, 7, 1, 0, 0, 0);
        assertEquals(6, log.recorded());
        assertEquals(OperationKind.SEND, log.last().kind());
        assertEquals(List.of(4L, 5L, 6L), sequences(log));
        pass.countAndLeave();
        assertEquals(6, log.recorded());
    }

    @Test
    void operationsHaveTheLastTickedTime() {
        OperationLog log = filled(3, 1);
        log.tick(100);
        log.tick(200);
        record(log, 2, 0);
        record(log, 3, 0);
        log.tick(300);
        record(log, 4, 0);
        assertEquals(List.of(200L, 200L, 300L), enqueued(log));
        for (int i = 5; i <= 1000; i++) {
            record(log, i, 0);
        }
        assertEquals(List.of(300L, 300L, 300L), enqueued(log));
        log.tick(400);
        assertEquals(List.of(300L, 300L, 300L), enqueued(log));
        record(log, 1001, 0);
        assertEquals(List.of(300L, 300L, 400L), enqueued(log));
        assertEquals(0, filled(1, 1).last().enqueued(), "nobody has set a time");
    }

    private static List<Long> enqueued(OperationLog log) {
        return log.entries().stream().map(OperationLog.Entry::enqueued).toList();
    }

    @Test
    void recordsEveryField() {
        OperationLog log = new OperationLog(1, gate);
        log.record(1, OperationKind.WAIT_SIGNAL.code(), Long.MAX_VALUE, 0xff, -1, 0xffff, Integer.MAX_VALUE, -1);
        OperationLog.Entry entry = log.last();
        assertEquals(OperationKind.WAIT_SIGNAL.code(), entry.operation().code());
        assertEquals(Long.MAX_VALUE, entry.operation().elements().count());
        assertEquals(0xff, entry.operation().elements().type());
        assertEquals(-1, entry.operation().peer());
        assertEquals(0xffff, entry.operation().op());
        assertEquals(Integer.MAX_VALUE, entry.group());
        assertEquals(-1, entry.operation().stream());
    }

    @Test
    void largeOperatorCodeDoesNotAffectOtherFields() {
        OperationLog log = new OperationLog(1, gate);
        log.record(1, OperationKind.REDUCE.code(), 2, 3, 4, Integer.MAX_VALUE, Integer.MIN_VALUE, 5);
        assertEquals(
                entry(
                        1,
                        Integer.MIN_VALUE,
                        new Operation(
                                OperationKind.REDUCE.code(), new Operation.Elements(0, 0, 2, 3), 0xffff, 4, 0, 5)),
                log.last());
        OperationLog other = new OperationLog(1, gate);
        other.record(1, OperationKind.ALL_REDUCE.code(), 2, 3, 0, Integer.MAX_VALUE, 0, 5);
        assertEquals(
                entry(
                        1,
                        0,
                        new Operation(
                                OperationKind.ALL_REDUCE.code(), new Operation.Elements(0, 0, 2, 3), 0xffff, 0, 0, 5)),
                other.last());
    }

    @Test
    void recordsEveryFieldOfShortEntry() {
        OperationLog log = new OperationLog(1, gate);
        log.record(1, OperationKind.ALL_REDUCE.code(), -1, 11, 0, 0xffff, 0, Long.MIN_VALUE);
        assertEquals(
                entry(
                        1,
                        0,
                        new Operation(
                                OperationKind.ALL_REDUCE.code(),
                                new Operation.Elements(0, 0, -1, 11),
                                0xffff,
                                0,
                                0,
                                Long.MIN_VALUE)),
                log.last());
    }

    private static OperationLog.Entry entry(long sequence, int group, Operation operation) {
        return new OperationLog.Entry(sequence, group, operation, 0, 0);
    }

    /** Peer and group of the long form stay in the memory of its place. */
    @Test
    void shortEntryOverwritesLongEntryCompletely() {
        OperationLog log = new OperationLog(1, gate);
        record(log, 4, 1);
        assertEquals(4, log.last().operation().peer());
        operate(log);
        operate(log);
        OperationLog.Entry entry = log.last();
        assertEquals(
                List.of(3L, 0L, 0L),
                List.of(entry.sequence(), (long) entry.operation().peer(), (long) entry.group()));
    }

    private void operate(OperationLog log) {
        Gate.Pass pass = gate.enter();
        log.record(pass.next(), OperationKind.ALL_REDUCE.code(), 1, 7, 0, 0, 0, 0);
        pass.countAndLeave();
    }

    @Test
    void lastReturnsShortOperationInProgress() {
        OperationLog log = new OperationLog(3, gate);
        operate(log);
        Gate.Pass pass = gate.enter();
        assertEquals(1, log.recorded());
        log.record(pass.next(), OperationKind.BROADCAST.code(), 1, 7, 0, 0, 0, 0);
        assertEquals(2, log.recorded());
        assertEquals(OperationKind.BROADCAST, log.last().kind());
        pass.countAndLeave();
        assertEquals(2, log.recorded());
    }

    @Test
    void marksEarlierOperationsOfTheStreamAsDone() {
        OperationLog log = filled(7, 6);
        log.markDone(1, 4, 1000);
        assertEquals(
                List.of(1000L, 0L, 1000L, 0L, 0L, 0L),
                log.entries().stream().map(OperationLog.Entry::done).toList());
        log.markDone(1, 6, 2000);
        log.markDone(0, 2, 3000);
        assertEquals(
                List.of(1000L, 3000L, 1000L, 0L, 2000L, 0L),
                log.entries().stream().map(OperationLog.Entry::done).toList());
        // A later operation has overwritten the slot.
        record(log, 7, 1);
        record(log, 8, 1);
        record(log, 9, 1);
        assertEquals(List.of(3L, 4L, 5L, 6L, 7L, 8L, 9L), sequences(log));
        assertEquals(0, log.last().done());
        // An operation that was overwritten long ago.
        log.markDone(1, 1, 4000);
        assertEquals(1000, log.entries().get(0).done());
    }

    @Test
    void operationThatWasOverwrittenCannotBeMarked() {
        OperationLog log = filled(7, 9);
        log.markDone(1, 9, 1000);
        log.markDone(1, 1, 4000);
        assertEquals(1000, log.last().done(), "it has the place of the first one");
    }

    private void call(OperationLog log, int code, long count) {
        Gate.Pass pass = gate.enter();
        log.record(pass.next(), code, count, 7, 0, 0, 0, 0);
        pass.countAndLeave();
    }

    /** NCCL counts the calls of each function, with and without a configuration, but those without elements. */
    @Test
    void callIsFoundByItsNumberAmongThoseOfItsFunction() {
        OperationLog log = new OperationLog(7, gate);
        assertEquals(0, log.sequenceOf(OperationKind.ALL_REDUCE, 1));
        int allReduce = OperationKind.ALL_REDUCE.code();
        int broadcast = OperationKind.BROADCAST.code();
        call(log, allReduce, 4);
        call(log, broadcast, 4);
        call(log, allReduce, 0);
        call(log, allReduce + OperationKind.CONFIGURED, 4);
        call(log, OperationKind.SEND.code(), 4);
        call(log, allReduce, 4);
        call(log, broadcast, 4);
        assertEquals(1, log.sequenceOf(OperationKind.ALL_REDUCE, 1));
        assertEquals(4, log.sequenceOf(OperationKind.ALL_REDUCE, 2));
        assertEquals(6, log.sequenceOf(OperationKind.ALL_REDUCE, 3));
        assertEquals(0, log.sequenceOf(OperationKind.ALL_REDUCE, 4), "is not called yet");
        assertEquals(2, log.sequenceOf(OperationKind.BROADCAST, 1));
        assertEquals(7, log.sequenceOf(OperationKind.BROADCAST, 2));
        assertEquals(5, log.sequenceOf(OperationKind.SEND, 1));
        assertEquals(0, log.sequenceOf(OperationKind.REDUCE, 1));
        call(log, broadcast, 4);
        assertEquals(0, log.sequenceOf(OperationKind.ALL_REDUCE, 1), "is not in the log any more");
        assertEquals(2, log.sequenceOf(OperationKind.BROADCAST, 1), "is the oldest one in the log");
        call(log, broadcast, 4);
        assertEquals(0, log.sequenceOf(OperationKind.BROADCAST, 1));
        assertEquals(9, log.sequenceOf(OperationKind.BROADCAST, 4));
    }

    @Test
    void snapshotCountsCollectives() {
        OperationLog log = new OperationLog(7, gate);
        assertEquals(new OperationLog.Snapshot(List.of(), 0), log.snapshot());
        call(log, OperationKind.ALL_REDUCE.code(), 4);
        call(log, OperationKind.SEND.code(), 4);
        call(log, OperationKind.BROADCAST.code(), 0);
        assertEquals(2, log.snapshot().collectives());
        for (int i = 0; i < 20; i++) {
            call(log, OperationKind.RECV.code(), 4);
        }
        call(log, OperationKind.REDUCE.code(), 4);
        assertEquals(3, log.snapshot().collectives());
        assertEquals(7, log.snapshot().entries().size());
    }

    /** With the entries of before, a transfer that is recorded meanwhile would be taken for a collective. */
    @Test
    void snapshotIsMadeAgainAfterATransfer() throws Exception {
        OperationLog log = new OperationLog(7, gate);
        call(log, OperationKind.ALL_REDUCE.code(), 4);
        FutureTask<OperationLog.Snapshot> reader = new FutureTask<>(log::snapshot);
        Thread thread = new Thread(reader);
        // The reader waits for the times of the first operation.
        synchronized (log) {
            thread.start();
            Waiting.until("a reader that is blocked", () -> thread.getState() == Thread.State.BLOCKED);
            call(log, OperationKind.SEND.code(), 4);
        }
        OperationLog.Snapshot snapshot = reader.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        assertEquals(1, snapshot.collectives());
        assertEquals(2, snapshot.entries().size());
    }

    @Test
    void readersSeeNoPartialOperations() throws Exception {
        OperationLog log = new OperationLog(7, gate);
        AtomicBoolean over = new AtomicBoolean();
        Callable<Long> writer = () -> {
            for (long i = 1; i <= 2_000_000; i++) {
                record(log, i, i);
            }
            over.set(true);
            return 0L;
        };
        Callable<Long> reader = () -> {
            long read = 0;
            while (!over.get()) {
                for (OperationLog.Entry entry : log.entries()) {
                    assertEquals(entry.sequence(), entry.operation().elements().count());
                    assertEquals(entry.sequence(), entry.operation().stream());
                    assertEquals((int) entry.sequence(), entry.operation().peer());
                    read++;
                }
            }
            return read;
        };
        assertTrue(Threads.together(List.of(writer, reader), LIMIT).get(1) > 0);
        assertEquals(2_000_000, log.recorded());
    }
}
