package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.internal.communicator.CommunicatorState;
import io.github.nccl4j.internal.operation.Deferred;
import io.github.nccl4j.internal.submission.Batch;
import io.github.nccl4j.internal.threads.Gate;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tools.support.Threads;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.IntSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The native groups that a launch makes, with calls that only record what happens to them. */
@Timeout(value = 5, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class BatchLaunchTest {
    private static final Duration LIMIT = Duration.ofSeconds(50);
    private static final IntSupplier SUCCEEDS = () -> nccl.ncclSuccess;
    private static final IntSupplier FAILS = () -> nccl.ncclInvalidArgument;
    private static final CudaStream STREAM = CudaStream.defaultOf(Device.host());

    private final List<String> events = Collections.synchronizedList(new ArrayList<>());
    private Communicator one;
    private Communicator two;
    private CallInterceptor.Installed installed;

    private enum Place {
        TOGETHER,
        ALONE,
        UNGROUPED
    }

    /** A call that records what happens to it. */
    private final class Recorded implements Deferred {
        private final String name;
        private final Place place;
        private final IntSupplier prepared;
        private final IntSupplier called;
        private final boolean waits;

        Recorded(String name, Place place, IntSupplier prepared, IntSupplier called, boolean waits) {
            this.name = name;
            this.place = place;
            this.prepared = prepared;
            this.called = called;
            this.waits = waits;
        }

        @Override
        public boolean waitsForOtherRanks() {
            return waits;
        }

        @Override
        public boolean mustBeAlone() {
            return place == Place.ALONE;
        }

        @Override
        public boolean mustBeUngrouped() {
            return place == Place.UNGROUPED;
        }

        @Override
        public int prepare() {
            events.add("prepare " + name);
            return prepared.getAsInt();
        }

        @Override
        public void record(Gate.Pass pass, int group) {
            events.add("record " + name);
        }

        @Override
        public String function() {
            return "function of " + name;
        }

        @Override
        public int call() {
            events.add("call " + name);
            return called.getAsInt();
        }

        @Override
        public void completed() {
            events.add("completed " + name);
        }

        @Override
        public void discarded() {
            events.add("discarded " + name);
        }

        @Override
        public String toString() {
            return "text of " + name;
        }
    }

    private static Communicator alone(String name, boolean blocking) {
        CommunicatorConfig config =
                CommunicatorConfig.builder().commName(name).blocking(blocking).build();
        return Communicator.builder().config(config).create(UniqueId.create(), 0, 1);
    }

    @BeforeEach
    void create() {
        one = alone("one", true);
        two = alone("two", true);
        installed = NcclLibrary.intercept(new CallInterceptor() {
            @Override
            public void after(Call call, int result, long nanoseconds) {
                if (call.function().startsWith("ncclGroup")) {
                    events.add(call.function().equals("ncclGroupStart") ? "start" : "end");
                }
            }
        });
    }

    @AfterEach
    void close() {
        installed.close();
        one.close();
        two.close();
    }

    private void add(Communicator communicator, String name, Place place, IntSupplier prepared, IntSupplier called) {
        Batch.call(
                communicator.core(),
                new Recorded(name, place, prepared, called, false),
                EnumSet.of(CommunicatorState.OPEN));
    }

    private void addWaiting(Communicator communicator, String name, IntSupplier called) {
        Batch.call(
                communicator.core(),
                new Recorded(name, Place.TOGETHER, SUCCEEDS, called, true),
                EnumSet.of(CommunicatorState.OPEN));
    }

    @Test
    void eachCallIsMadeOnceAndAloneWhereItMustBe() {
        Group.run(() -> {
            add(one, "a", Place.TOGETHER, SUCCEEDS, SUCCEEDS);
            add(one, "b", Place.ALONE, SUCCEEDS, SUCCEEDS);
            add(two, "c", Place.ALONE, SUCCEEDS, SUCCEEDS);
            add(one, "d", Place.ALONE, SUCCEEDS, SUCCEEDS);
            add(two, "e", Place.TOGETHER, SUCCEEDS, SUCCEEDS);
        });
        assertEquals(
                List.of(
                        "record a, record b, record c, record d, record e",
                        "start, prepare a, prepare b, prepare c, prepare d, prepare e, end",
                        "start, call b, call c, end",
                        "start, call d, end",
                        "start, call a, call e, end",
                        "completed a, completed b, completed c, completed d, completed e"),
                lines());
    }

    /** The events, in a line for each native group and for what is between them. */
    private List<String> lines() {
        List<String> lines = new ArrayList<>();
        boolean begins = true;
        for (String event : events) {
            boolean completes = event.startsWith("completed") || event.startsWith("discarded");
            boolean follows =
                    !lines.isEmpty() && completes && lines.get(lines.size() - 1).startsWith(event.split(" ")[0]);
            if (begins || event.equals("start") || completes && !follows) {
                lines.add(event);
            } else {
                lines.set(lines.size() - 1, lines.get(lines.size() - 1) + ", " + event);
            }
            begins = event.equals("end");
        }
        return lines;
    }

    private NcclResultException refused(Runnable calls) {
        return assertThrows(NcclResultException.class, () -> Group.run(calls));
    }

    @Test
    void aPreparationThatFailsEndsTheLaunch() {
        NcclResultException refusal = refused(() -> {
            add(one, "a", Place.TOGETHER, SUCCEEDS, SUCCEEDS);
            add(two, "b", Place.ALONE, FAILS, SUCCEEDS);
            add(two, "c", Place.ALONE, SUCCEEDS, SUCCEEDS);
        });
        assertEquals("ncclGroupEnd", refusal.operation());
        assertTrue(refusal.getMessage().contains("ncclGroupEnd with text of a"), refusal.getMessage());
        assertEquals(
                List.of(
                        "record a, record b, record c",
                        "start, prepare a, prepare b, end",
                        "discarded a, discarded b, discarded c"),
                lines());
    }

    @Test
    void aCallAloneThatFailsEndsTheLaunch() {
        NcclResultException refusal = refused(() -> {
            add(one, "a", Place.TOGETHER, SUCCEEDS, SUCCEEDS);
            add(one, "b", Place.ALONE, SUCCEEDS, FAILS);
            add(one, "c", Place.ALONE, SUCCEEDS, SUCCEEDS);
        });
        assertTrue(refusal.getMessage().contains("ncclGroupEnd with text of b"), refusal.getMessage());
        assertEquals(
                List.of(
                        "record a, record b, record c",
                        "start, prepare a, prepare b, prepare c, end",
                        "start, call b, end",
                        "discarded a, discarded b, discarded c"),
                lines());
    }

    @Test
    void aCallThatFailsIsNamedWithItsCommunicator() {
        NcclResultException refusal = refused(() -> {
            add(one, "a", Place.TOGETHER, SUCCEEDS, SUCCEEDS);
            add(two, "b", Place.TOGETHER, SUCCEEDS, FAILS);
            add(one, "c", Place.TOGETHER, SUCCEEDS, SUCCEEDS);
        });
        assertEquals("two", refusal.communicatorName());
        assertEquals("function of b", refusal.operation());
        assertTrue(refusal.getMessage().contains("text of b in a group of 3 operations"), refusal.getMessage());
        assertEquals("start, call a, call b, end", lines().get(2));
    }

    @Test
    void aSingleCallMayBeMadeWithoutANativeGroup() {
        Group.run(() -> add(one, "a", Place.UNGROUPED, SUCCEEDS, SUCCEEDS));
        assertEquals(List.of("record a, call a", "completed a"), lines());
        NcclResultException refusal = refused(() -> add(one, "b", Place.UNGROUPED, SUCCEEDS, FAILS));
        assertEquals("function of b", refusal.operation());
        assertTrue(refusal.getMessage().contains("text of b"), refusal.getMessage());
    }

    /** Whether another thread has revoked another communicator of the group as well. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aFailureBelongsToTheCommunicatorThatAnotherThreadHasEnded(boolean revoked) {
        IllegalStateException ended = assertThrows(
                IllegalStateException.class,
                () -> Group.run(() -> {
                    add(one, "a", Place.TOGETHER, SUCCEEDS, () -> {
                        if (revoked) {
                            Threads.EACH.execute(() -> one.revoke(RevokeFlag.DEFAULT));
                            awaitState(one, Communicator.State.REVOKED);
                        }
                        Threads.EACH.execute(two::abort);
                        awaitState(two, Communicator.State.ABORTED);
                        return nccl.ncclInvalidArgument;
                    });
                    add(two, "b", Place.TOGETHER, SUCCEEDS, SUCCEEDS);
                }));
        assertEquals(two.core() + " was aborted", ended.getMessage());
        assertEquals(revoked ? Communicator.State.REVOKED : Communicator.State.OPEN, one.state());
    }

    private static void awaitState(Communicator communicator, Communicator.State state) {
        Waiting.until("state " + state, () -> communicator.state() == state);
    }

    @Test
    void anInterruptEndsEveryCommunicatorOfTheGroup() throws InterruptedException {
        CountDownLatch over = new CountDownLatch(1);
        Thread.currentThread().interrupt();
        NcclInterruptedException interrupted = assertThrows(
                NcclInterruptedException.class,
                () -> Group.run(() -> {
                    addWaiting(one, "a", () -> {
                        try {
                            over.await();
                        } catch (InterruptedException e) {
                            throw new IllegalStateException(e);
                        }
                        return nccl.ncclSuccess;
                    });
                    addWaiting(two, "b", SUCCEEDS);
                }));
        assertTrue(Thread.interrupted());
        over.countDown();
        assertTrue(interrupted.getMessage().contains("communicator 'one'"), interrupted.getMessage());
        assertEquals(Communicator.State.ABORTED, one.state());
        assertEquals(Communicator.State.ABORTED, two.state());
    }

    /** Two communicators of which the second has the longer deadline, and may not be created before the first's passes. */
    private static List<Communicator> withDeadlines(Duration first, Duration second) {
        while (true) {
            try {
                return List.of(
                        Communicator.builder().deadline(first).create(UniqueId.create(), 0, 1),
                        Communicator.builder().deadline(second).create(UniqueId.create(), 0, 1));
            } catch (NcclTimeoutException late) {
                // The machine is busy.
                Thread.onSpinWait();
            }
        }
    }

    @Test
    void theLongestDeadlineOfTheCommunicatorsCounts() {
        CountDownLatch over = new CountDownLatch(1);
        List<Communicator> both = withDeadlines(Duration.ofMillis(300), Duration.ofMillis(600));
        try {
            NcclTimeoutException late = assertThrows(
                    NcclTimeoutException.class,
                    () -> Group.run(() -> {
                        addWaiting(both.get(0), "a", () -> {
                            try {
                                over.await();
                            } catch (InterruptedException e) {
                                throw new IllegalStateException(e);
                            }
                            return nccl.ncclSuccess;
                        });
                        addWaiting(both.get(1), "b", SUCCEEDS);
                    }));
            assertTrue(late.getMessage().contains("Timed out after 0.6 s in ncclGroupEnd"), late.getMessage());
            // Neither may be destroyed while the call goes on.
            both.forEach(each -> assertEquals(Communicator.State.FAILED, each.state()));
        } finally {
            over.countDown();
            both.forEach(Communicator::abort);
        }
    }

    @Test
    void theEndOfAGroupIsNamedIfItFails() throws Exception {
        UniqueId id = UniqueId.create();
        List<Callable<Void>> ranks = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            int rank = i;
            ranks.add(() -> {
                Communicator c = Communicator.create(id, rank, 2);
                try (DeviceBuffer<Int32> buffer = Device.host().allocate(ElementType.INT32, 1 + rank)) {
                    NcclResultException mismatch = assertThrows(
                            NcclResultException.class,
                            () -> Group.run(() -> c.allReduce(buffer, ReduceOp.SUM, STREAM)));
                    assertEquals("ncclGroupEnd", mismatch.operation());
                    String text = mismatch.getMessage();
                    assertTrue(text.contains("ncclGroupEnd of 1 operations"), text);
                } finally {
                    c.abort();
                }
                return null;
            });
        }
        Threads.together(ranks, LIMIT);
    }

    /** Whether its operation is in the last native group, or in one of those before. */
    @ParameterizedTest
    @EnumSource(names = {"TOGETHER", "ALONE"})
    void everyNonBlockingCommunicatorIsWaitedFor(Place place) throws Exception {
        UniqueId id = UniqueId.create();
        CountDownLatch over = new CountDownLatch(1);
        CommunicatorConfig config =
                CommunicatorConfig.builder().commName("waits").blocking(false).build();
        List<Callable<Void>> ranks = List.of(
                () -> {
                    Communicator c = Communicator.builder()
                            .config(config)
                            .deadline(Duration.ofSeconds(1))
                            .create(id, 0, 2);
                    try (Communicator first = alone("first", false);
                            DeviceBuffer<Int32> buffer = Device.host().allocate(ElementType.INT32, 1)) {
                        NcclTimeoutException late = assertThrows(
                                NcclTimeoutException.class,
                                () -> Group.run(() -> {
                                    first.allReduce(buffer, ReduceOp.SUM, STREAM);
                                    add(c, "broadcast", place, SUCCEEDS, () -> broadcast(c, buffer));
                                }));
                        assertTrue(late.getMessage().contains("communicator 'waits'"), late.getMessage());
                        int call = events.indexOf("call broadcast");
                        assertEquals(
                                List.of("call broadcast", "end", "discarded broadcast"),
                                events.subList(call, events.size()));
                    } finally {
                        over.countDown();
                        c.abort();
                    }
                    return null;
                },
                () -> {
                    Communicator c = Communicator.builder().config(config).create(id, 1, 2);
                    over.await();
                    c.abort();
                    return null;
                });
        Threads.together(ranks, LIMIT);
    }

    /** Receives from rank 1. */
    private static int broadcast(Communicator c, DeviceBuffer<Int32> buffer) {
        long address = buffer.address();
        return nccl.ncclBroadcast(address, address, 1, DataType.INT32.code(), 1, c.nativeHandle(), 0);
    }
}
