package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Communicator.State;
import io.github.nccl4j.highlevel.CommunicatorBuilder;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.FailurePolicy;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.NcclException;
import io.github.nccl4j.highlevel.NcclRemoteException;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.NcclUsageException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.Result;
import io.github.nccl4j.highlevel.RevokeFlag;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tools.support.Threads;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a communicator does when ranks die, never come or give up, on the host engine. */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class CommunicatorFailuresTest {
    private static final Duration LIMIT = Duration.ofSeconds(50);
    private static final CudaStream STREAM = CudaStream.defaultOf(Device.host());

    /** A rank as another process: all-reduces until it is killed. */
    static final class Victim {
        private Victim() {}

        public static void main(String[] args) {
            UniqueId id = UniqueId.of(HexFormat.of().parseHex(args[0]));
            try (Communicator communicator =
                    Communicator.create(id, Integer.parseInt(args[1]), Integer.parseInt(args[2]))) {
                for (; ; ) {
                    allReduce(communicator);
                }
            }
        }

        static ChildJvm.Running start(UniqueId id, int rank, int size) {
            return new ChildJvm()
                    .property("nccl4j.engine", "host")
                    .start(Victim.class, HexFormat.of().formatHex(id.toBytes()), "" + rank, "" + size);
        }
    }

    private static void allReduce(Communicator communicator) {
        try (DeviceBuffer<Int32> number = communicator.device().allocate(ElementType.INT32, 1)) {
            number.fill(1L);
            communicator.allReduce(number, ReduceOp.SUM, STREAM);
            communicator.work(STREAM).await();
        }
    }

    private static CommunicatorBuilder builder(boolean blocking) {
        return Communicator.builder()
                .config(CommunicatorConfig.builder()
                        .blocking(blocking)
                        .commName("doomed")
                        .build());
    }

    /** What a rank does with its communicator. */
    private interface Body<T> {
        T run(Communicator communicator) throws Exception;
    }

    /** Runs ranks in threads of this JVM; each aborts its communicator at last. */
    private static <T> List<T> inThreads(CommunicatorBuilder builder, int size, Body<T> body) throws Exception {
        RankThreads.Creation creation = new RankThreads.Creation(builder, size);
        List<Callable<T>> ranks = new ArrayList<>();
        for (int r = 0; r < size; r++) {
            int rank = r;
            ranks.add(onRank(() -> creation.create(rank), body));
        }
        return Threads.together(ranks, LIMIT);
    }

    private static <T> Callable<T> onRank(Callable<Communicator> creation, Body<T> body) {
        return () -> {
            Communicator communicator = creation.call();
            try {
                return body.run(communicator);
            } finally {
                communicator.abort();
            }
        };
    }

    /** Ranks 0 and 2 work until rank 1, in another process, is killed; then they get what it does to them. */
    private static void whenRankOneIsKilled(CommunicatorBuilder builder, Body<Void> survivor) throws Exception {
        UniqueId id = UniqueId.create();
        ChildJvm.Running victim = Victim.start(id, 1, 3);
        CountDownLatch healthy = new CountDownLatch(2);
        Body<Void> body = communicator -> {
            for (int i = 0; i < 50; i++) {
                allReduce(communicator);
            }
            healthy.countDown();
            if (communicator.rank() == 0) {
                assertTrue(healthy.await(LIMIT.toSeconds(), TimeUnit.SECONDS), "the other survivor is late");
                victim.process().destroyForcibly();
            }
            return survivor.run(communicator);
        };
        Threads.together(
                List.of(onRank(() -> builder.create(id, 0, 3), body), onRank(() -> builder.create(id, 2, 3), body)),
                LIMIT);
        victim.await();
    }

    private static NcclRemoteException allReduceUntilItFails(Communicator communicator) {
        return assertThrows(NcclRemoteException.class, () -> {
            for (; ; ) {
                allReduce(communicator);
            }
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aKilledRankIsNamedAtTheOthers(boolean blocking) throws Exception {
        whenRankOneIsKilled(builder(blocking), communicator -> {
            NcclRemoteException failure = allReduceUntilItFails(communicator);
            assertEquals(Result.REMOTE_ERROR, failure.result());
            assertEquals("ncclAllReduce", failure.operation());
            assertEquals(communicator.rank(), failure.rank());
            assertEquals("doomed", failure.communicatorName());
            assertTrue(failure.getMessage().contains("rank 1"), failure.getMessage());
            assertTrue(failure.getMessage().contains("1 int32"), failure.getMessage());
            // By default the program decides: the communicator was not changed, and can only be aborted or closed.
            assertEquals(State.OPEN, communicator.state());
            assertEquals(Result.REMOTE_ERROR, communicator.asyncError());
            assertThrows(NcclRemoteException.class, () -> allReduce(communicator));
            assertThrows(NcclRemoteException.class, () -> Group.run(() -> allReduceInGroup(communicator)));
            communicator.close();
            assertEquals(State.CLOSED, communicator.state());
            return null;
        });
    }

    private static void allReduceInGroup(Communicator communicator) {
        try (DeviceBuffer<Int32> number = communicator.device().allocate(ElementType.INT32, 1)) {
            communicator.allReduce(number, ReduceOp.SUM, STREAM);
        }
    }

    @Test
    void thePolicyAborts() throws Exception {
        whenRankOneIsKilled(builder(true).onFailure(FailurePolicy.ABORT), communicator -> {
            allReduceUntilItFails(communicator);
            assertEquals(State.ABORTED, communicator.state());
            assertThrows(IllegalStateException.class, () -> allReduce(communicator));
            communicator.close();
            return null;
        });
    }

    @Test
    void policyGetsTheThrownException() throws Exception {
        record Call(Communicator communicator, NcclException failure) {}
        List<Call> calls = new ArrayList<>();
        FailurePolicy policy = (communicator, failure) -> {
            synchronized (calls) {
                calls.add(new Call(communicator, failure));
            }
            throw new UnsupportedOperationException("of the policy");
        };
        whenRankOneIsKilled(builder(true).onFailure(policy), communicator -> {
            NcclRemoteException failure = allReduceUntilItFails(communicator);
            assertInstanceOf(UnsupportedOperationException.class, failure.getSuppressed()[0]);
            synchronized (calls) {
                List<Call> own = calls.stream()
                        .filter(call -> call.communicator() == communicator)
                        .toList();
                assertEquals(1, own.size());
                assertSame(failure, own.get(0).failure());
            }
            return null;
        });
    }

    /** The engine's text is the same as that of the last failure in this process, of another communicator. */
    @Test
    void quotesTheTextOfAnEqualFailureAgain() throws Exception {
        for (int i = 0; i < 2; i++) {
            RankThreads.run(2, communicator -> {
                if (communicator.rank() == 1) {
                    communicator.abort();
                    return;
                }
                NcclRemoteException lost = assertThrows(NcclRemoteException.class, () -> awaitFailure(communicator));
                assertTrue(lost.getMessage().contains("NCCL says: rank 1 aborted its communicator"), lost.getMessage());
            });
        }
    }

    /** A program that fails closes its communicator in try-with-resources: nothing is wrong with the calls of the others. */
    @Test
    void aRankThatClosesEarlyMayHaveFailed() throws Exception {
        RankThreads.run(2, communicator -> {
            if (communicator.rank() == 1) {
                communicator.close();
                return;
            }
            NcclRemoteException closed = assertThrows(NcclRemoteException.class, () -> awaitFailure(communicator));
            String own = "rank 1 (pid " + ProcessHandle.current().pid() + " on ";
            assertTrue(closed.getMessage().contains(own), closed.getMessage());
            assertTrue(
                    closed.getMessage().contains(") closed its communicator, but rank 0 called AllReduce")
                            && closed.getMessage().contains("; its program may have failed: see its log"),
                    closed.getMessage());
        });
    }

    @Test
    void aCommunicatorIsAbortedIfItsCodeThrows() throws Exception {
        RankThreads.run(2, communicator -> {
            if (communicator.rank() == 1) {
                IOException mine = new IOException("mine");
                IOException failure = assertThrows(
                        IOException.class,
                        () -> communicator.run(own -> {
                            assertSame(communicator, own);
                            throw mine;
                        }));
                assertSame(mine, failure);
                assertEquals(State.ABORTED, communicator.state());
            } else {
                NcclRemoteException lost =
                        assertThrows(NcclRemoteException.class, () -> communicator.run(own -> awaitFailure(own)));
                assertTrue(lost.getMessage().contains("rank 1 aborted its communicator"), lost.getMessage());
                assertEquals(State.ABORTED, communicator.state());
            }
        });
    }

    @Test
    void aCommunicatorIsClosedAfterItsCode() throws Exception {
        RankThreads.run(2, communicator -> {
            assertThrows(NullPointerException.class, () -> communicator.run(null));
            communicator.run(own -> assertEquals(State.OPEN, own.state()));
            assertEquals(State.CLOSED, communicator.state());
        });
    }

    private static void awaitFailure(Communicator communicator) throws InterruptedException {
        try (CudaStream stream = CudaStream.nonBlocking(Device.host());
                DeviceBuffer<Int32> buffer = Device.host().allocate(ElementType.INT32, 10)) {
            communicator.allReduce(buffer, ReduceOp.SUM, stream);
            communicator.work(stream).await(LIMIT);
        }
    }

    @Test
    void idleRankLearnsOfFailureWhenItPolls() throws Exception {
        whenRankOneIsKilled(builder(true), communicator -> {
            Waiting.until("an error", () -> !communicator.asyncError().equals(Result.SUCCESS));
            assertEquals(Result.REMOTE_ERROR, communicator.asyncError());
            assertTrue(communicator.lastError().contains("rank 1"), communicator.lastError());
            communicator.close();
            assertEquals(State.CLOSED, communicator.state());
            return null;
        });
    }

    @Test
    void policyIsNotCalledForDifferingArguments() throws Exception {
        FailurePolicy policy = (communicator, failure) -> {
            throw new AssertionError(failure);
        };
        inThreads(builder(true).onFailure(policy), 2, communicator -> {
            try (DeviceBuffer<Int32> numbers =
                    communicator.device().allocate(ElementType.INT32, 10 + communicator.rank())) {
                NcclUsageException failure = assertThrows(
                        NcclUsageException.class, () -> communicator.allReduce(numbers, ReduceOp.SUM, STREAM));
                assertTrue(failure.getMessage().contains("10"), failure.getMessage());
                assertTrue(failure.getMessage().contains("11"), failure.getMessage());
                assertEquals(0, failure.getSuppressed().length);
            }
            return null;
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void creationEndsAtDeadlineIfARankDoesNotJoin(boolean blocking) throws Exception {
        UniqueId id = UniqueId.create();
        NcclTimeoutException failure = assertThrows(
                NcclTimeoutException.class,
                () -> builder(blocking).deadline(Duration.ofMillis(300)).create(id, 0, 2));
        assertTrue(failure.getMessage().contains("0.3 s"), failure.getMessage());
        assertTrue(failure.getMessage().contains("ncclCommInitRankConfig"), failure.getMessage());
        assertEquals(0, failure.rank());
        // The aborted communicator does not affect the next one.
        inThreads(builder(blocking), 2, communicator -> {
            allReduce(communicator);
            return null;
        });
    }

    /** The failure of any of them is thrown, and no communicator is handed out. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void creationOfSeveralEndsAtDeadlineIfARankDoesNotJoin(boolean blocking) {
        UniqueId id = UniqueId.create();
        CommunicatorBuilder builder = builder(blocking).deadline(Duration.ofMillis(300));
        List<Device> devices = List.of(Device.host(), Device.host());
        NcclTimeoutException failure =
                assertThrows(NcclTimeoutException.class, () -> builder.createAll(id, 0, 3, devices));
        assertTrue(failure.getMessage().contains("0.3 s"), failure.getMessage());
        assertEquals(0, failure.rank());
    }

    /** Waits until a communicator is in a call of another thread. */
    private static void awaitCall(Communicator communicator) throws InterruptedException {
        Waiting.until("a call of another thread", () -> {
            try {
                communicator.work(STREAM);
                return false;
            } catch (IllegalStateException e) {
                assertTrue(e.getMessage().contains("in use by thread"), e.getMessage());
                return true;
            }
        });
    }

    /** As {@link #allReduce}, while {@link #awaitCall} of another thread looks, which is in a call itself for a moment. */
    private static void allReduceWatched(Communicator communicator) {
        for (; ; ) {
            try {
                allReduce(communicator);
                return;
            } catch (IllegalStateException e) {
                if (!e.getMessage().contains("in use by thread")) {
                    throw e;
                }
            }
        }
    }

    /** What ends a call. */
    private interface Ending {
        void end(Communicator communicator);
    }

    /** Rank 0 waits for rank 1 in an all-reduce until something else ends that, in another thread; then both go on. */
    private static void whenACallIsEnded(boolean blocking, Ending ending, Body<Void> after) throws Exception {
        CountDownLatch created = new CountDownLatch(2);
        CountDownLatch ended = new CountDownLatch(1);
        inThreads(builder(blocking), 2, communicator -> {
            created.countDown();
            if (communicator.rank() == 1) {
                ended.await();
                return after.run(communicator);
            }
            // A rank that is still creating its communicator would report the abort as its own failure.
            created.await();
            Threads.together(
                    List.of(() -> assertThrows(RuntimeException.class, () -> allReduceWatched(communicator)), () -> {
                        awaitCall(communicator);
                        ending.end(communicator);
                        return null;
                    }),
                    LIMIT);
            ended.countDown();
            return after.run(communicator);
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void abortEndsTheCallOfAnotherThread(boolean blocking) throws Exception {
        whenACallIsEnded(blocking, Communicator::abort, communicator -> {
            if (communicator.rank() == 0) {
                assertEquals(State.ABORTED, communicator.state());
            } else {
                assertThrows(NcclRemoteException.class, () -> allReduce(communicator));
            }
            return null;
        });
    }

    /** At any moment of a group: while it is opened, filled, handed to NCCL and ended. */
    @Test
    void abortEndsTheGroupsOfAnotherThread() throws Exception {
        for (int round = 0; round < 200; round++) {
            Communicator communicator = builder(true).create(UniqueId.create(), 0, 1);
            CountDownLatch launched = new CountDownLatch(1);
            long later = 100L * round;
            Threads.together(
                    List.of(
                            () -> {
                                RuntimeException end = assertThrows(RuntimeException.class, () -> {
                                    for (; ; ) {
                                        Group.run(() -> allReduceInGroup(communicator));
                                        launched.countDown();
                                    }
                                });
                                boolean refused = end instanceof IllegalStateException
                                        && end.getMessage().contains("was aborted");
                                assertTrue(refused || end instanceof NcclException, end::toString);
                                return null;
                            },
                            () -> {
                                launched.await();
                                long start = System.nanoTime();
                                while (System.nanoTime() - start < later) {
                                    Thread.onSpinWait();
                                }
                                communicator.abort();
                                return null;
                            }),
                    LIMIT);
            assertEquals(State.ABORTED, communicator.state());
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void revokeEndsTheCallOfAnotherThreadAndTheRanksMakeANewCommunicator(boolean blocking) throws Exception {
        whenACallIsEnded(blocking, communicator -> communicator.revoke(RevokeFlag.DEFAULT), communicator -> {
            if (communicator.rank() == 1) {
                communicator.revoke(RevokeFlag.DEFAULT);
            }
            assertEquals(State.REVOKED, communicator.state());
            assertThrows(IllegalStateException.class, () -> allReduce(communicator));
            try (Communicator next = communicator.split(0, -communicator.rank())) {
                assertEquals(1 - communicator.rank(), next.rank());
                allReduce(next);
            }
            communicator.close();
            return null;
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aSplitThatARankDoesNotJoinEndsAtTheDeadline(boolean blocking) throws Exception {
        CountDownLatch over = new CountDownLatch(1);
        inThreads(builder(blocking).deadline(Duration.ofMillis(300)), 2, communicator -> {
            if (communicator.rank() == 1) {
                over.await();
                return null;
            }
            NcclTimeoutException failure = assertThrows(NcclTimeoutException.class, () -> communicator.split(0, 0));
            assertEquals("ncclCommSplit", failure.operation());
            assertTrue(failure.getMessage().contains("0.3 s"), failure.getMessage());
            over.countDown();
            communicator.close();
            assertEquals(State.CLOSED, communicator.state());
            return null;
        });
    }

    @Test
    void aCommunicatorInACallIsInUse() throws Exception {
        CountDownLatch seen = new CountDownLatch(1);
        inThreads(builder(true), 2, communicator -> {
            if (communicator.rank() == 1) {
                seen.await();
                allReduce(communicator);
                allReduce(communicator);
                return null;
            }
            Threads.together(
                    List.of(
                            () -> {
                                allReduceWatched(communicator);
                                return null;
                            },
                            () -> {
                                awaitCall(communicator);
                                for (Executable use : List.<Executable>of(
                                        () -> allReduce(communicator),
                                        communicator::close,
                                        communicator::finish,
                                        () -> communicator.split(0, 0),
                                        () -> Group.run(() -> allReduceInGroup(communicator)))) {
                                    IllegalStateException refused = assertThrows(IllegalStateException.class, use);
                                    assertTrue(refused.getMessage().contains("in use by"), refused.getMessage());
                                }
                                // These calls are allowed at any time.
                                assertEquals(Result.SUCCESS, communicator.asyncError());
                                assertEquals(State.OPEN, communicator.state());
                                seen.countDown();
                                return null;
                            }),
                    LIMIT);
            allReduce(communicator);
            return null;
        });
    }
}
