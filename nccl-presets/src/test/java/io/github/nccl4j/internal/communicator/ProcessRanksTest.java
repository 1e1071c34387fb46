package io.github.nccl4j.internal.communicator;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.internal.threads.ExitWait;
import io.github.nccl4j.testing.TestLog;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Ranks of one process, of whose native communicators NCCL frees all with the last. */
class ProcessRanksTest {
    private static final Duration LIMIT = Duration.ofSeconds(30);

    private final List<String> events = Collections.synchronizedList(new ArrayList<>());

    /** How a rank leaves. */
    private interface Leaving {
        void leave(ProcessRanks processRanks, Rank member) throws InterruptedException;
    }

    /** A rank that belongs to the thread that has created it. */
    private static final class Rank implements ProcessRanks.Member {
        private final Thread creator = Thread.currentThread();

        @Override
        public Duration deadline() {
            return LIMIT;
        }

        @Override
        public Thread user() {
            return creator;
        }
    }

    private static Rank member() {
        return new Rank();
    }

    private static CommunicatorKey key() {
        return new CommunicatorKey(new Object(), "a");
    }

    /** All get the answer of the first one: those that come later, too. */
    @Test
    void ranksFinalizeWhereTheFirstOneIsAlone() {
        CommunicatorKey alone = key();
        ProcessRanks one = ProcessRanks.join(alone, member());
        assertTrue(one.isFinalizedAlone());
        assertTrue(ProcessRanks.join(alone, member()).isFinalizedAlone());
        CommunicatorKey together = key();
        ProcessRanks.join(together, member());
        ProcessRanks two = ProcessRanks.join(together, member());
        assertFalse(two.isFinalizedAlone());
        two.setFinalized();
        assertTrue(two.isFinalizedAlone(), "the program has finalized one of them");
    }

    /** Two ranks in threads, which leave when both are there. */
    private static void inThreads(Leaving first, Leaving second) throws Exception {
        CommunicatorKey key = key();
        CountDownLatch joined = new CountDownLatch(2);
        List<Callable<Boolean>> ranks = new ArrayList<>();
        for (Leaving leaving : List.of(first, second)) {
            ranks.add(() -> {
                Rank member = member();
                ProcessRanks processRanks = ProcessRanks.join(key, member);
                joined.countDown();
                joined.await();
                leaving.leave(processRanks, member);
                return true;
            });
        }
        ExecutorService pool = Executors.newFixedThreadPool(ranks.size());
        try {
            for (Future<Boolean> left : pool.invokeAll(ranks, LIMIT.toMillis(), TimeUnit.MILLISECONDS)) {
                left.get();
            }
        } finally {
            pool.shutdownNow();
        }
    }

    /** Longer than the limit of a second, too, which is for ranks that may not close at all. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1300})
    void threadsThatCloseTogetherWaitForEachOther(int millis) throws Exception {
        CountDownLatch firstIsFree = new CountDownLatch(1);
        inThreads(
                (processRanks, member) -> {
                    processRanks.leave(member, true, firstIsFree::countDown);
                    events.add("first goes on");
                },
                (processRanks, member) -> {
                    firstIsFree.await();
                    processRanks.leave(member, true, () -> {
                        pause(Duration.ofMillis(millis));
                        events.add("second is free");
                    });
                });
        assertEquals(List.of("second is free", "first goes on"), events);
    }

    @Test
    void lastRankWaitsForSlowerRank() throws Exception {
        CountDownLatch firstHasBegun = new CountDownLatch(1);
        CountDownLatch secondIsFree = new CountDownLatch(1);
        inThreads(
                (processRanks, member) -> processRanks.leave(member, true, () -> {
                    firstHasBegun.countDown();
                    await(secondIsFree);
                    events.add("first is free");
                }),
                (processRanks, member) -> {
                    firstHasBegun.await();
                    processRanks.leave(member, true, secondIsFree::countDown);
                    events.add("second goes on");
                });
        assertEquals(List.of("first is free", "second goes on"), events);
    }

    private static void pause(Duration time) {
        try {
            Thread.sleep(time.toMillis());
        } catch (InterruptedException e) {
            throw new IllegalStateException("the test was interrupted", e);
        }
    }

    @Test
    void oneThreadClosesItsRanksInTurn() {
        CommunicatorKey key = key();
        Rank first = member();
        Rank second = member();
        ProcessRanks processRanks = ProcessRanks.join(key, first);
        assertSame(processRanks, ProcessRanks.join(key, second));
        leaveWithoutAWait(processRanks, first, second);
    }

    /** Two ranks leave, of which the first must not wait: after a wait that timed out, another thread would free the last one. */
    private static void leaveWithoutAWait(ProcessRanks processRanks, Rank first, Rank last) {
        List<Thread> freeing = new ArrayList<>();
        processRanks.leave(first, true, () -> freeing.add(Thread.currentThread()));
        processRanks.leave(last, true, () -> freeing.add(Thread.currentThread()));
        assertEquals(List.of(Thread.currentThread(), Thread.currentThread()), freeing);
    }

    @Test
    void rankThatLeavesTooLateIsFreedInTheBackground() throws Exception {
        CompletableFuture<Thread> freeing = new CompletableFuture<>();
        CountDownLatch firstHasGoneOn = new CountDownLatch(1);
        inThreads(
                (processRanks, member) -> {
                    processRanks.leave(member, true, () -> {});
                    firstHasGoneOn.countDown();
                },
                (processRanks, member) -> {
                    firstHasGoneOn.await();
                    processRanks.leave(member, true, () -> freeing.complete(Thread.currentThread()));
                });
        assertEquals(
                "nccl4j end", freeing.get(LIMIT.toSeconds(), TimeUnit.SECONDS).getName());
    }

    @Test
    void keyOfAChildNamesTheCallAndTheColor() {
        CommunicatorKey key = key();
        CommunicatorKey child = key.child(3, 1);
        assertEquals("a.3.1", child.text());
        assertEquals("a.3.1.0.2", child.child(0, 2).text());
        assertEquals(key.child(3, 1), child);
        assertNotEquals(key().child(3, 1), child, "of another unique id");
        assertSame(CommunicatorKey.UNKNOWN, CommunicatorKey.UNKNOWN.child(3, 1));
        assertEquals("unknown", CommunicatorKey.UNKNOWN.text());
    }

    @Test
    void keyIsReusableAfterAllRanksLeft() {
        CommunicatorKey key = key();
        Rank first = member();
        Rank second = member();
        ProcessRanks processRanks = ProcessRanks.join(key, first);
        assertSame(processRanks, ProcessRanks.join(key, second));
        processRanks.leave(first, true, () -> {});
        assertSame(processRanks, ProcessRanks.join(key, first), "one is still there");
        processRanks.leave(first, true, () -> {});
        processRanks.leave(second, true, () -> {});
        assertNotSame(processRanks, ProcessRanks.join(key, first));
    }

    @Test
    void ranksOfUnknownOriginAreFreedInTheBackground() throws Exception {
        Rank member = member();
        ProcessRanks processRanks = ProcessRanks.join(CommunicatorKey.UNKNOWN, member);
        assertNotSame(processRanks, ProcessRanks.join(CommunicatorKey.UNKNOWN, member()));
        CompletableFuture<Thread> freeing = new CompletableFuture<>();
        processRanks.leave(member, true, () -> freeing.complete(Thread.currentThread()));
        Thread thread = freeing.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        assertEquals("nccl4j end", thread.getName());
        assertTrue(thread.isDaemon());
    }

    @Test
    void aRankThatDoesNotWaitIsFreedInTheBackground() throws Exception {
        CompletableFuture<Thread> freeing = new CompletableFuture<>();
        CountDownLatch secondIsFree = new CountDownLatch(1);
        inThreads(
                (processRanks, member) -> {
                    processRanks.leave(member, false, () -> freeing.complete(Thread.currentThread()));
                    secondIsFree.await();
                },
                (processRanks, member) -> {
                    freeing.join();
                    processRanks.leave(member, true, secondIsFree::countDown);
                });
        assertEquals("nccl4j end", freeing.join().getName());
        // A single rank waits for no other rank.
        Rank alone = member();
        List<Thread> here = new ArrayList<>();
        ProcessRanks.join(key(), alone).leave(alone, false, () -> here.add(Thread.currentThread()));
        assertEquals(List.of(Thread.currentThread()), here);
    }

    @Test
    void interruptStatusIsKept() throws Exception {
        CountDownLatch firstLeaves = new CountDownLatch(1);
        CompletableFuture<Boolean> interrupted = new CompletableFuture<>();
        inThreads(
                (processRanks, member) -> {
                    Thread.currentThread().interrupt();
                    processRanks.leave(member, true, firstLeaves::countDown);
                    interrupted.complete(Thread.interrupted());
                },
                (processRanks, member) -> {
                    firstLeaves.await();
                    processRanks.leave(member, true, () -> {});
                });
        assertTrue(interrupted.join());
    }

    /** Makes a rank that belongs to a thread that has ended. */
    private static Rank memberOfAnEndedThread() throws Exception {
        CompletableFuture<Rank> member = new CompletableFuture<>();
        Thread thread = new Thread(() -> member.complete(member()));
        thread.start();
        thread.join();
        return member.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
    }

    @Test
    void doesNotWaitForEndedThread() throws Exception {
        CommunicatorKey key = key();
        Rank orphan = memberOfAnEndedThread();
        Rank member = member();
        ProcessRanks processRanks = ProcessRanks.join(key, orphan);
        ProcessRanks.join(key, member);
        leaveWithoutAWait(processRanks, member, orphan);
    }

    /** A rank that its thread does not close delays one of the others, not each of them. */
    @Test
    void afterAWaitThatTimedOutNoRankWaitsForOthers() throws Exception {
        CommunicatorKey key = key();
        Rank first = memberOfAnEndedThread();
        Rank second = memberOfAnEndedThread();
        ProcessRanks ranks = ProcessRanks.join(key, first);
        ProcessRanks.join(key, second);
        ProcessRanks.join(key, member());
        assertTrue(waits(() -> ranks.leave(first, true, () -> {})), "the first rank did not wait");
        assertFalse(waits(() -> ranks.leave(second, true, () -> {})), "the second rank waited, too");
    }

    /** Runs an action in a thread; returns true if the thread waited for a limited time. */
    private static boolean waits(Runnable action) throws InterruptedException {
        Thread thread = new Thread(action);
        thread.start();
        boolean waited = false;
        while (thread.isAlive()) {
            waited |= thread.getState() == Thread.State.TIMED_WAITING;
            Thread.onSpinWait();
        }
        thread.join();
        return waited;
    }

    @Test
    void doesNotWaitForRankThatHasLeft() throws Exception {
        CommunicatorKey key = key();
        CountDownLatch end = new CountDownLatch(1);
        CountDownLatch firstIsFree = new CountDownLatch(1);
        CompletableFuture<Rank> made = new CompletableFuture<>();
        Thread living = new Thread(() -> {
            made.complete(member());
            await(end);
        });
        living.start();
        try {
            Rank first = made.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
            Rank second = member();
            Rank third = memberOfAnEndedThread();
            ProcessRanks processRanks = ProcessRanks.join(key, first);
            ProcessRanks.join(key, second);
            ProcessRanks.join(key, third);
            processRanks.leave(first, false, firstIsFree::countDown);
            firstIsFree.await();
            leaveWithoutAWait(processRanks, second, third);
        } finally {
            end.countDown();
            living.join();
        }
    }

    @Test
    void exitWaitsForRanksBeingFreed() throws Exception {
        Rank member = member();
        CountDownLatch goOn = new CountDownLatch(1);
        CountDownLatch freeing = new CountDownLatch(1);
        ProcessRanks.join(CommunicatorKey.UNKNOWN, member).leave(member, true, () -> {
            freeing.countDown();
            await(goOn);
            events.add("free");
        });
        freeing.await();
        Thread exit = new Thread(() -> {
            ExitWait.awaitAll();
            events.add("ended");
        });
        exit.start();
        exit.join(200);
        assertTrue(exit.isAlive(), "the end did not wait");
        goOn.countDown();
        exit.join();
        assertEquals(List.of("free", "ended"), events);
    }

    @Test
    void interruptEndsWaitAtExit() throws Exception {
        Rank member = member();
        CountDownLatch goOn = new CountDownLatch(1);
        ProcessRanks.join(CommunicatorKey.UNKNOWN, member).leave(member, true, () -> await(goOn));
        Thread.currentThread().interrupt();
        ExitWait.awaitAll();
        assertTrue(Thread.interrupted(), "the interrupt was lost");
        goOn.countDown();
        ExitWait.awaitAll();
    }

    @Test
    void logsBackgroundFailureAndEndsWait() throws Exception {
        RuntimeException failure = new RuntimeException("planted");
        Rank member = member();
        try (TestLog log = new TestLog()) {
            ProcessRanks.join(CommunicatorKey.UNKNOWN, member).leave(member, true, () -> {
                throw failure;
            });
            ExitWait.awaitAll();
            assertEquals(List.of("WARNING: " + member + " could not be freed"), log.lines());
            assertSame(failure, log.records().get(0).getThrown());
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
