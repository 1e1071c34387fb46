package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tools.support.Threads;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Futures of work, and the threads that complete them. */
@Timeout(value = 2, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class WorkFutureTest {
    private static final int RANKS = 3;

    private final List<Throwable> failures = Collections.synchronizedList(new ArrayList<>());

    /** Ranks of this process. */
    private final List<Communicator> ranks = Communicator.builder()
            .deadline(Duration.ofSeconds(30))
            .onFailure((communicator, failure) -> failures.add(failure))
            .createAll(Collections.nCopies(RANKS, Device.host()));

    private final List<DeviceBuffer<Int32>> numbers = ranks.stream()
            .map(rank -> Device.host().allocate(ElementType.INT32, 1))
            .toList();

    @AfterEach
    void end() {
        ranks.forEach(Communicator::abort);
        numbers.forEach(DeviceBuffer::close);
    }

    private Work begin(int rank) {
        Communicator communicator = ranks.get(rank);
        return communicator.submit(own -> communicator.allReduce(numbers.get(rank), ReduceOp.SUM, own));
    }

    @Test
    void submittedOperationsAreInTheStreamOfTheCommunicator() {
        numbers.forEach(number -> number.fill(2));
        Work first = ranks.get(0).submit(own -> {
            assertEquals(ranks.get(0).stream(), own);
            ranks.get(0).allReduce(numbers.get(0), ReduceOp.SUM, own);
        });
        assertFalse(first.isDone());
        begin(1).toFuture();
        begin(2).toFuture();
        first.await();
        assertEquals(2 * RANKS, numbers.get(0).toIntArray()[0]);
    }

    @Test
    void nothingIsSubmittedWithinAGroup() {
        Group.run(() -> assertThrows(IllegalStateException.class, () -> ranks.get(0)
                .submit(own -> failures.add(new AssertionError("called")))));
        assertEquals(List.of(), failures);
    }

    /** The continuations of all ranks wait for each other. */
    @Test
    void actionsMayWaitForOtherRanks() {
        List<CompletableFuture<String>> second = new ArrayList<>();
        for (int rank = 0; rank < RANKS; rank++) {
            int self = rank;
            CompletableFuture<Void> first = begin(rank).toFuture();
            second.add(first.thenApplyAsync(
                    nothing -> {
                        begin(self).await();
                        return Thread.currentThread().getName();
                    },
                    rank == RANKS - 1 ? Threads.EACH : Runnable::run));
        }
        second.forEach(CompletableFuture::join);
        assertEquals(List.of(), failures);
    }

    @Test
    void theGivenExecutorCompletesTheFuture() {
        CompletableFuture<Thread> seen = begin(0).toFuture(body -> new Thread(body, "of the program").start())
                .thenApply(nothing -> Thread.currentThread());
        assertFalse(seen.isDone());
        begin(1);
        begin(2);
        assertEquals("of the program", seen.join().getName());
    }

    @Test
    void actionsInTheThreadThatPollsMustNotWait() {
        Work work = begin(0);
        CompletableFuture<Void> waiting = work.toFuture(Runnable::run).thenRun(() -> begin(0).await());
        begin(1);
        begin(2);
        Throwable refused =
                assertThrows(CompletionException.class, waiting::join).getCause();
        assertInstanceOf(IllegalStateException.class, refused);
        assertTrue(refused.getMessage().contains("must not wait"), refused.getMessage());
    }

    @Test
    void anExecutorThatRejectsFailsTheFuture() {
        RejectedExecutionException planted = new RejectedExecutionException("planted");
        CompletableFuture<Thread> thread = new CompletableFuture<>();
        CompletableFuture<Void> future = begin(0).toFuture(body -> {
            thread.complete(Thread.currentThread());
            throw planted;
        });
        CompletableFuture<Thread> failed =
                future.handle((nothing, failure) -> failure == planted ? Thread.currentThread() : null);
        begin(1);
        begin(2);
        assertNotEquals(thread.join(), failed.join());
    }

    /** The policy may wait, too. */
    @Test
    void theExecutorCallsThePolicy() {
        CompletableFuture<String> policy = new CompletableFuture<>();
        List<Communicator> pair = Communicator.builder()
                .deadline(Duration.ofMillis(100))
                .watchdog(false)
                .onFailure((communicator, failure) ->
                        policy.complete(Thread.currentThread().getName()))
                .createAll(List.of(Device.host(), Device.host()));
        try {
            Communicator first = pair.get(0);
            first.allReduce(numbers.get(0), ReduceOp.SUM, first.stream());
            CompletableFuture<Void> future =
                    first.work(first.stream()).toFuture(body -> new Thread(body, "of the program").start());
            assertInstanceOf(
                    NcclTimeoutException.class,
                    assertThrows(CompletionException.class, future::join).getCause());
            assertEquals("of the program", policy.join());
        } finally {
            pair.forEach(Communicator::abort);
        }
    }

    /** While a future is pending, its thread finds the failures; afterwards the watchdog does, as before. */
    @Test
    void afterAFutureTheWatchdogReportsLateWork() {
        CompletableFuture<NcclException> policy = new CompletableFuture<>();
        List<Communicator> pair = Communicator.builder()
                .deadline(Duration.ofMillis(300))
                .onFailure((communicator, failure) -> policy.complete(failure))
                .createAll(List.of(Device.host(), Device.host()));
        try {
            Communicator first = pair.get(0);
            first.allReduce(numbers.get(0), ReduceOp.SUM, first.stream());
            first.work(first.stream()).toFuture().cancel(false);
            Waiting.until("report of the late work", policy::isDone, Duration.ofSeconds(30));
            assertInstanceOf(NcclTimeoutException.class, policy.join());
        } finally {
            pair.forEach(Communicator::abort);
        }
    }
}
