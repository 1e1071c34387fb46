package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator.State;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tools.support.Threads;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The calls of NCCL by which a communicator is replaced, and what is left if one fails: on the host engine, at a store in this
 * process whose failures the test chooses. RecoveryTest and ReturningRanksTest lose real connections.
 */
@Timeout(120)
class RecoveryCallsTest {
    private static final Duration LIMIT = Duration.ofSeconds(20);
    private static final CudaStream STREAM = CudaStream.defaultOf(Device.host());
    private static final Set<String> LIFECYCLE = Set.of(
            "ncclGetUniqueId",
            "ncclCommInitRank",
            "ncclCommGetUniqueId",
            "ncclCommGrow",
            "ncclCommShrink",
            "ncclCommRevoke",
            "ncclCommAbort",
            "ncclCommDestroy");
    private static final List<String> SHRUNK = List.of("ncclCommRevoke", "ncclCommShrink", "ncclCommAbort");
    private static final List<String> CREATED =
            List.of("ncclCommRevoke", "ncclCommAbort", "ncclGetUniqueId", "ncclCommInitRank");

    /** Calls that begin or end a communicator. A call can be held: of the source of a state, or of no rank yet. */
    private static final class Calls implements CallInterceptor {
        private final List<String> made = new CopyOnWriteArrayList<>();
        private volatile String held = "";
        private final CountDownLatch released = new CountDownLatch(1);

        @Override
        public void before(Call call) {
            if (LIFECYCLE.contains(call.function())) {
                made.add(call.function());
            }
            if (call.function().equals(held) && call.rank() < 1) {
                held = "";
                try {
                    released.await(LIMIT.toSeconds(), TimeUnit.SECONDS);
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                }
            }
        }
    }

    private final Calls calls = new Calls();
    private final CallInterceptor.Installed installed = NcclLibrary.intercept(calls);
    private final List<RiggedStore> stores = new ArrayList<>();
    private final List<Recovery> ranks = new CopyOnWriteArrayList<>();
    private CommunicatorBuilder builder;
    private MemoryStore memory;

    @BeforeEach
    void settings() {
        builder = builder(LIMIT);
    }

    private static CommunicatorBuilder builder(Duration deadline) {
        return Communicator.builder().device(Device.host()).deadline(deadline);
    }

    @AfterEach
    void end() {
        calls.released.countDown();
        installed.close();
        ranks.forEach(rank -> rank.communicator().abort());
    }

    /** Begins a recovery on each rank of a new store. */
    private void begin(int size) throws Exception {
        memory = new MemoryStore(size);
        List<Callable<Recovery>> all = new ArrayList<>();
        for (int rank = 0; rank < size; rank++) {
            RiggedStore store = new RiggedStore(memory.of(rank, 0));
            stores.add(store);
            all.add(() -> Recovery.begin(store, "r", builder(builder.deadline())));
        }
        ranks.addAll(together(all));
        calls.made.clear();
    }

    private static <T> List<T> together(List<Callable<T>> tasks) throws Exception {
        return Threads.together(tasks, LIMIT.multipliedBy(2));
    }

    /** Ends the process of a rank. */
    private void lose(int rank) {
        ranks.get(rank).communicator().abort();
        memory.connect(rank, -1);
        calls.made.clear();
    }

    private Communicator recover(int rank) {
        return ranks.get(rank).recover(LIMIT);
    }

    private void recoverTogether(int... which) throws Exception {
        together(Arrays.stream(which)
                .<Callable<Communicator>>mapToObj(rank -> () -> recover(rank))
                .toList());
    }

    /** Starts the next process of a rank, which waits to be admitted. */
    private CompletableFuture<Recovery> comeBack(RiggedStore store) {
        memory.connect(store.rank(), store.attempt());
        CommunicatorBuilder own = builder(builder.deadline());
        CompletableFuture<Recovery> back =
                CompletableFuture.supplyAsync(() -> Recovery.begin(store, "r", own), Threads.EACH);
        Waiting.until("a process that waits", () -> !memory.keys("r-waits").isEmpty() || back.isDone());
        return back;
    }

    private Recovery ready(CompletableFuture<Recovery> back) {
        Recovery recovery = back.join();
        ranks.add(recovery);
        return recovery;
    }

    private static int sum(Communicator communicator, int mine) {
        try (DeviceBuffer<Int32> number = Device.host().allocate(ElementType.INT32, 1)) {
            number.fill(mine);
            communicator.allReduce(number, ReduceOp.SUM, STREAM);
            return numbers(number)[0];
        }
    }

    private static int[] numbers(DeviceBuffer<Int32> buffer) {
        int[] numbers = new int[(int) buffer.length()];
        buffer.copyTo(numbers);
        return numbers;
    }

    private static RendezvousTimeoutException late() {
        return new RendezvousTimeoutException("late", List.of());
    }

    private static int count(List<String> calls, String function) {
        return (int) calls.stream().filter(function::equals).count();
    }

    // --- recover ---

    @Test
    void survivorsShrinkTheCommunicator() throws Exception {
        begin(4);
        lose(1);
        List<Communicator> before = ranks.stream().map(Recovery::communicator).toList();
        recoverTogether(0, 2, 3);
        for (int rank : new int[] {0, 2, 3}) {
            Recovery recovery = ranks.get(rank);
            assertEquals(List.of(0, 2, 3), recovery.members());
            assertEquals(3, recovery.communicator().size());
            assertEquals(
                    recovery.members().indexOf(rank), recovery.communicator().rank());
            assertEquals(State.ABORTED, before.get(rank).state());
            assertEquals(State.OPEN, recovery.communicator().state());
            // A timeout names the ranks that do not answer.
            assertNotNull(recovery.communicator().core().ranks().statusQuery());
        }
        assertEquals(Set.of("ncclCommRevoke", "ncclCommShrink", "ncclCommAbort"), new TreeSet<>(calls.made));
        for (String function : SHRUNK) {
            assertEquals(3, count(calls.made, function), calls.made::toString);
        }
    }

    @Test
    void oldCommunicatorIsRevokedThenShrunkThenAborted() throws Exception {
        begin(2);
        lose(0);
        Communicator before = ranks.get(1).communicator();
        Communicator made = recover(1);
        assertEquals(SHRUNK, calls.made);
        assertSame(made, ranks.get(1).communicator());
        assertEquals(State.ABORTED, before.state());
        assertEquals(7, sum(made, 7));
    }

    @Test
    void communicatorThatTheProgramRevokedIsShrunk() throws Exception {
        begin(2);
        lose(1);
        ranks.get(0).communicator().revoke(RevokeFlag.DEFAULT);
        recover(0);
        assertEquals(SHRUNK, calls.made);
    }

    @Test
    void withoutALossANewOneIsCreated() throws Exception {
        begin(1);
        Communicator before = ranks.get(0).communicator();
        assertEquals(3, sum(recover(0), 3));
        assertEquals(CREATED, calls.made);
        assertEquals(State.ABORTED, before.state());
        assertNotSame(before, ranks.get(0).communicator());
    }

    /** Without a call for a communicator that has ended. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void communicatorThatHasEndedIsNotShrunk(boolean closed) throws Exception {
        begin(2);
        lose(1);
        Communicator before = ranks.get(0).communicator();
        if (closed) {
            before.close();
        } else {
            before.abort();
        }
        calls.made.clear();
        assertEquals(3, sum(recover(0), 3));
        assertEquals(List.of("ncclGetUniqueId", "ncclCommInitRank"), calls.made);
        // The others are told that this rank can create only.
        assertEquals(Map.of("r-1-alive-0", "\0"), memory.keys("r-1-alive"));
    }

    /** Such as by a policy that aborts, in another thread. */
    @Test
    void communicatorThatEndsDuringRecoveryIsReplaced() throws Exception {
        begin(2);
        lose(1);
        stores.get(0).before("r-1-shrunk", ranks.get(0).communicator()::abort);
        assertEquals(3, sum(recover(0), 3));
        assertEquals(CREATED, calls.made);
    }

    /** The result of a shrink that another rank lacks is of no use. */
    @Test
    void shrunkCommunicatorIsAbortedIfAnotherRankHasNone() throws Exception {
        begin(2);
        lose(1);
        stores.get(0).rig("r-1-shrunk/made", answers -> List.of(new byte[] {0}));
        assertEquals(3, sum(recover(0), 3));
        assertEquals(
                List.of(
                        "ncclCommRevoke",
                        "ncclCommShrink",
                        "ncclCommAbort",
                        "ncclCommAbort",
                        "ncclGetUniqueId",
                        "ncclCommInitRank"),
                calls.made);
        assertEquals(List.of(0), ranks.get(0).members());
    }

    /** One answer of two is enough. */
    @Test
    void allRanksMustHaveShrunk() throws Exception {
        begin(3);
        lose(2);
        for (int rank = 0; rank < 2; rank++) {
            stores.get(rank).rig("r-1-shrunk/made", answers -> {
                assertEquals(1, answers.get(0)[0]);
                assertEquals(1, answers.get(1)[0]);
                return List.of(new byte[] {1}, new byte[] {0});
            });
        }
        recoverTogether(0, 1);
        assertEquals(2, count(calls.made, "ncclCommInitRank"), calls.made::toString);
    }

    @Test
    void shrinkThatFailsIsReported() throws Exception {
        builder = builder(Duration.ofSeconds(2));
        begin(2);
        lose(1);
        Communicator before = ranks.get(0).communicator();
        calls.held = "ncclCommShrink";
        stores.get(0).rig("r-1-shrunk/made", answers -> {
            assertEquals(0, answers.get(0)[0]);
            throw new RendezvousException("the store is lost");
        });
        RendezvousException failure = assertThrows(RendezvousException.class, () -> recover(0));
        assertEquals("the store is lost", failure.getMessage());
        assertEquals(1, failure.getSuppressed().length);
        assertTrue(failure.getSuppressed()[0] instanceof NcclTimeoutException, failure::toString);
        assertEquals(State.ABORTED, before.state());
        // The ranks may call it again.
        assertEquals(3, sum(recover(0), 3));
    }

    @Test
    void roundIsRepeatedWithANewCommunicatorIfARankIsLate() throws Exception {
        begin(3);
        lose(2);
        for (int rank = 0; rank < 2; rank++) {
            int other = 1 - rank;
            stores.get(rank).rig("r-1-shrunk/made", answers -> {
                if (other == 1) {
                    // The next round has a loss again, but the communicators have ended.
                    memory.connect(1, -1);
                }
                throw late();
            });
        }
        assertEquals(3, sum(recoverFirstOfTwo(), 3));
        assertEquals(List.of(0), ranks.get(0).members());
        assertTrue(stores.get(0).scopes.contains("r-2-create"), stores.get(0).scopes::toString);
        assertEquals("[0]", Arrays.toString(memory.of(0, 0).get("r-2-alive-0", Duration.ZERO)));
    }

    /** Rank 1 takes part in the first round only. */
    private Communicator recoverFirstOfTwo() throws Exception {
        CompletableFuture<Communicator> second = CompletableFuture.supplyAsync(() -> recover(1), Threads.EACH);
        Communicator made = recover(0);
        assertThrows(CompletionException.class, second::join);
        return made;
    }

    @Test
    void tenRoundsAreTried() throws Exception {
        begin(1);
        for (int round = 1; round < 20; round++) {
            stores.get(0).fail("r-" + round + "-create/card", RecoveryCallsTest::late);
        }
        Communicator before = ranks.get(0).communicator();
        assertEquals(
                "late",
                assertThrows(RendezvousTimeoutException.class, () -> recover(0)).getMessage());
        assertEquals(
                10,
                stores.get(0).scopes.stream()
                        .filter(one -> one.endsWith("-create"))
                        .count());
        assertEquals(State.ABORTED, before.state());
        assertEquals(List.of("ncclCommRevoke", "ncclCommAbort"), calls.made);
    }

    @Test
    void failureWithoutALossIsThrown() throws Exception {
        begin(1);
        stores.get(0).fail("r-1-create/card", () -> new RendezvousException("refused"));
        Communicator before = ranks.get(0).communicator();
        assertEquals(
                "refused",
                assertThrows(RendezvousException.class, () -> recover(0)).getMessage());
        assertFalse(stores.get(0).scopes.contains("r-2-create"), stores.get(0).scopes::toString);
        assertEquals(State.ABORTED, before.state());
        assertEquals(State.ABORTED, ranks.get(0).communicator().state());
        assertEquals(3, sum(recover(0), 3));
    }

    @Test
    void failureByALossBeginsAnotherRound() throws Exception {
        begin(3);
        lose(2);
        for (int rank = 0; rank < 2; rank++) {
            stores.get(rank).rig("r-1-shrunk/made", answers -> {
                memory.connect(1, -1);
                throw new RendezvousException("rank 1 is lost");
            });
        }
        assertEquals(3, sum(recoverFirstOfTwo(), 3));
        assertEquals(List.of(0), ranks.get(0).members());
    }

    /** A rank is late for the creation itself. */
    @Test
    void timeoutOfNcclBeginsAnotherRound() throws Exception {
        builder = builder(Duration.ofSeconds(2));
        begin(1);
        calls.held = "ncclCommInitRank";
        assertEquals(3, sum(recover(0), 3));
        assertEquals(2, count(calls.made, "ncclCommInitRank"), calls.made::toString);
    }

    @Test
    void rankThatWasLeftOutIsTold() throws Exception {
        begin(2);
        ranks.get(1).recover(Duration.ZERO);
        for (int call = 0; call < 2; call++) {
            RendezvousException told = assertThrows(RendezvousException.class, () -> recover(0));
            assertEquals(
                    "rank 0 was declared lost by the others, ranks [1]: it did not arrive within their patience",
                    told.getMessage());
        }
        // It must not decide the next round of the others.
        assertEquals(Map.of(), memory.keys("r-2-"));
    }

    @Test
    void closeClosesTheCommunicator() throws Exception {
        begin(1);
        ranks.get(0).close();
        assertEquals(State.CLOSED, ranks.get(0).communicator().state());
    }

    @Test
    void negativePatienceIsRefused() throws Exception {
        begin(1);
        Duration negative = Duration.ofSeconds(-1);
        Recovery recovery = ranks.get(0);
        for (Callable<?> call :
                List.<Callable<?>>of(() -> recovery.recover(negative), () -> recovery.admit(negative))) {
            IllegalArgumentException refused = assertThrows(IllegalArgumentException.class, call::call);
            assertTrue(refused.getMessage().contains("-1 s"), refused::getMessage);
        }
        assertEquals(List.of(), calls.made);
        assertEquals(State.OPEN, recovery.communicator().state());
    }

    @Test
    void rendezvousIsThatOfTheMembers() throws Exception {
        begin(3);
        lose(0);
        recoverTogether(1, 2);
        List<byte[]> given = together(List.<Callable<List<byte[]>>>of(
                        () -> ranks.get(1).rendezvous("x").gather("k", new byte[] {5}, LIMIT),
                        () -> ranks.get(2).rendezvous("x").gather("k", new byte[] {6}, LIMIT)))
                .get(0);
        assertEquals(2, given.size());
        assertArrayEquals(new byte[] {5}, given.get(0));
        assertArrayEquals(new byte[] {6}, given.get(1));
        assertTrue(
                memory.keys("r-1-program/x/").containsKey("r-1-program/x/k/0"), memory.keys("r-1-program")::toString);
    }

    // --- admit ---

    /** Rank 1 does not call it. */
    @Test
    void nobodyIsAskedWhileNoRankIsMissing() throws Exception {
        begin(2);
        assertFalse(ranks.get(0).admit(LIMIT));
        assertEquals(List.of(), stores.get(0).scopes);
    }

    @Test
    void changeIsToldOnce() throws Exception {
        begin(2);
        lose(1);
        recover(0);
        assertTrue(ranks.get(0).admit(LIMIT));
        assertFalse(ranks.get(0).admit(LIMIT));
        assertFalse(ranks.get(0).admit(LIMIT));
        assertEquals(SHRUNK, calls.made);
        assertEquals(2, memory.keys("r-1-boundary").size());
    }

    @Test
    void processThatComesBackIsAdmittedByGrowing() throws Exception {
        begin(2);
        lose(1);
        Communicator before = recover(0);
        ranks.get(0).admit(LIMIT);
        calls.made.clear();
        CompletableFuture<Recovery> waiting = comeBack(new RiggedStore(memory.of(1, 1)));
        assertTrue(ranks.get(0).admit(LIMIT));
        Recovery back = ready(waiting);
        assertEquals(State.ABORTED, before.state());
        assertEquals(
                List.of("ncclCommAbort", "ncclCommGetUniqueId", "ncclCommGrow", "ncclCommGrow"),
                calls.made.stream().sorted().toList());
        assertEquals("ncclCommAbort", calls.made.get(3));
        for (Recovery each : List.of(ranks.get(0), back)) {
            assertEquals(List.of(0, 1), each.members());
            assertEquals(2, each.communicator().size());
        }
        assertTrue(back.admit(LIMIT));
        assertFalse(back.admit(LIMIT));
        assertFalse(ranks.get(0).admit(LIMIT));
        assertEquals(
                List.of(7, 7),
                together(List.of(() -> sum(ranks.get(0).communicator(), 3), () -> sum(back.communicator(), 4))));
    }

    /** The members have asked before, the process that was admitted has not. */
    @Test
    void admittedProcessAsksWithTheOthers() throws Exception {
        begin(3);
        lose(1);
        lose(2);
        recover(0);
        ranks.get(0).admit(LIMIT);
        assertFalse(ranks.get(0).admit(LIMIT));
        CompletableFuture<Recovery> waiting = comeBack(new RiggedStore(memory.of(1, 1)));
        assertTrue(ranks.get(0).admit(LIMIT));
        Recovery back = ready(waiting);
        assertTrue(back.admit(LIMIT));
        assertEquals(
                List.of(false, false), together(List.of(() -> ranks.get(0).admit(LIMIT), () -> back.admit(LIMIT))));
        CompletableFuture<Recovery> third = comeBack(new RiggedStore(memory.of(2, 1)));
        assertEquals(List.of(true, true), together(List.of(() -> ranks.get(0).admit(LIMIT), () -> back.admit(LIMIT))));
        assertEquals(List.of(0, 1, 2), ready(third).members());
    }

    @Test
    void recoverAdmitsToo() throws Exception {
        begin(2);
        lose(1);
        CompletableFuture<Recovery> waiting = comeBack(new RiggedStore(memory.of(1, 1)));
        calls.made.clear();
        recover(0);
        Recovery back = ready(waiting);
        assertEquals(List.of(0, 1), back.members());
        assertEquals(2, count(calls.made, "ncclCommInitRank"), calls.made::toString);
        assertFalse(calls.made.contains("ncclCommGrow"), calls.made::toString);
        assertTrue(ranks.get(0).admit(LIMIT));
        assertTrue(back.admit(LIMIT));
    }

    /** A communicator that was revoked, or has ended, cannot grow. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void onlyAnOpenCommunicatorGrows(boolean revoked) throws Exception {
        begin(2);
        lose(1);
        Communicator before = recover(0);
        ranks.get(0).admit(LIMIT);
        CompletableFuture<Recovery> waiting = comeBack(new RiggedStore(memory.of(1, 1)));
        if (revoked) {
            before.revoke(RevokeFlag.DEFAULT);
        } else {
            before.abort();
        }
        calls.made.clear();
        assertTrue(ranks.get(0).admit(LIMIT));
        ready(waiting);
        assertFalse(calls.made.contains("ncclCommGrow"), calls.made::toString);
        assertEquals(2, count(calls.made, "ncclCommInitRank"), calls.made::toString);
        assertEquals(revoked ? 1 : 0, count(calls.made, "ncclCommAbort"), calls.made::toString);
    }

    /** Both get another round, which creates their communicator. */
    @Test
    void growthThatIsLateBeginsAnotherRound() throws Exception {
        begin(2);
        lose(1);
        recover(0);
        ranks.get(0).admit(LIMIT);
        calls.made.clear();
        stores.get(0).fail("r-2-grown/made", RecoveryCallsTest::late);
        CompletableFuture<Recovery> waiting =
                comeBack(new RiggedStore(memory.of(1, 1)).fail("r-2-grown/made", RecoveryCallsTest::late));
        assertTrue(ranks.get(0).admit(LIMIT));
        Recovery back = ready(waiting);
        assertEquals(List.of(0, 1), back.members());
        assertEquals(2, count(calls.made, "ncclCommInitRank"), calls.made::toString);
        // The two that have grown, and the one that has not.
        assertEquals(3, count(calls.made, "ncclCommAbort"), calls.made::toString);
        assertEquals(
                List.of(7, 7),
                together(List.of(() -> sum(ranks.get(0).communicator(), 3), () -> sum(back.communicator(), 4))));
    }

    @Test
    void processThatIsAdmittedThrowsWhatIsNoLoss() throws Exception {
        begin(2);
        lose(1);
        stores.get(0).fail("r-1-create/card", () -> new RendezvousException("refused"));
        CompletableFuture<Recovery> waiting = comeBack(
                new RiggedStore(memory.of(1, 1)).fail("r-1-create/card", () -> new RendezvousException("refused")));
        assertThrows(RendezvousException.class, () -> recover(0));
        CompletionException failed = assertThrows(CompletionException.class, waiting::join);
        assertEquals("refused", failed.getCause().getMessage());
        assertEquals(Set.of(), memory.keys("r-2-").keySet());
    }

    // --- failures at the store ---

    @Test
    void lossOfARankAtTheStoreIsThatOfAnOperation() throws Exception {
        begin(2);
        RendezvousException cause = new RendezvousException("rank 1 is lost");
        stores.get(0).fail("r-0-state/state", () -> {
            memory.connect(1, -1);
            Threads.EACH.execute(() -> {
                sleep(200);
                stores.get(0).lose(1);
            });
            return cause;
        });
        NcclRemoteException lost = assertThrows(NcclRemoteException.class, this::broadcastStateAtBoth);
        assertSame(cause, lost.getCause());
        assertTrue(lost.getMessage().contains("Recovery.broadcastState"), lost::getMessage);
        assertEquals(List.of(1), lost.lostRanks());
    }

    private static void sleep(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /** Throws what rank 0 throws. */
    private long broadcastStateAtBoth() throws Exception {
        CompletableFuture<Void> other = CompletableFuture.runAsync(
                () -> memory.of(1, 0)
                        .among("r-0-state", List.of(0, 1), List.of(0, 0))
                        .gather("state", new byte[0], LIMIT),
                Threads.EACH);
        try {
            return ranks.get(0).broadcastState(1, STREAM);
        } finally {
            other.join();
        }
    }

    @Test
    void lateRankAtTheStoreIsATimeout() throws Exception {
        begin(2);
        RendezvousTimeoutException cause = late();
        stores.get(0).fail("r-0-state/state", () -> cause);
        NcclTimeoutException failure = assertThrows(NcclTimeoutException.class, this::broadcastStateAtBoth);
        assertSame(cause, failure.getCause());
        assertTrue(failure.getMessage().contains("Recovery.broadcastState"), failure::getMessage);
        assertTrue(failure.getMessage().contains("20 s"), failure::getMessage);
        assertTrue(failure.getMessage().contains("No answer from rank 1"), failure::getMessage);
    }

    @Test
    void otherFailuresOfTheStoreAreThrown() throws Exception {
        begin(2);
        RendezvousException cause = new RendezvousException("the store is lost");
        stores.get(0).fail("r-0-state/state", () -> cause);
        assertSame(cause, assertThrows(RendezvousException.class, this::broadcastStateAtBoth));
    }

    @Test
    void admitIsGuardedToo() throws Exception {
        begin(2);
        lose(1);
        recover(0);
        ranks.get(0).admit(LIMIT);
        stores.get(0).fail("r-1-boundary/1", RecoveryCallsTest::late);
        NcclTimeoutException failure =
                assertThrows(NcclTimeoutException.class, () -> ranks.get(0).admit(LIMIT));
        assertTrue(failure.getMessage().contains("Recovery.admit"), failure::getMessage);
    }

    // --- broadcastState ---

    /** The state of a rank: three numbers on a stream of its own. */
    private final class Rank implements AutoCloseable {
        private final Recovery recovery;
        private final CudaStream stream = CudaStream.nonBlocking(Device.host());
        private final DeviceBuffer<Int32> buffer = Device.host().allocate(ElementType.INT32, 3);

        Rank(Recovery recovery, int value) {
            this.recovery = recovery;
            buffer.fill(value);
        }

        long broadcast(long step) {
            return recovery.broadcastState(step, stream, buffer);
        }

        int[] state() {
            return numbers(buffer);
        }

        @Override
        public void close() {
            buffer.close();
            stream.close();
        }
    }

    /** Both ranks, the second of which waits for the first one, rank 0, which sends late. */
    private List<Long> broadcastLate(Rank first, long firstStep, Rank second, long secondStep) throws Exception {
        calls.held = "ncclBroadcast";
        CompletableFuture<Long> sent = CompletableFuture.supplyAsync(() -> first.broadcast(firstStep), Threads.EACH);
        CompletableFuture<Long> received =
                CompletableFuture.supplyAsync(() -> second.broadcast(secondStep), Threads.EACH);
        Waiting.until("the call that is held", () -> calls.held.isEmpty());
        sleep(100);
        assertFalse(received.isDone(), "the state has not arrived");
        calls.released.countDown();
        return List.of(sent.join(), received.join());
    }

    @ParameterizedTest
    @ValueSource(longs = {7, 8})
    void stateArrivesBeforeTheCallReturns(long step) throws Exception {
        begin(2);
        try (Rank first = new Rank(ranks.get(0), 5);
                Rank second = new Rank(ranks.get(1), 6)) {
            assertEquals(List.of(8L, 8L), broadcastLate(first, 8, second, step));
            assertArrayEquals(new int[] {5, 5, 5}, first.state());
            assertArrayEquals(new int[] {5, 5, 5}, second.state());
        }
    }

    /** The source is lost between its two buffers. */
    @Test
    void stateIsKeptIfTheSourceIsLost() throws Exception {
        begin(2);
        Communicator source = ranks.get(0).communicator();
        stores.get(0).fail("r-0-state/state", () -> new IllegalStateException("lost"));
        try (Rank first = new Rank(ranks.get(0), 5);
                Rank second = new Rank(ranks.get(1), 6);
                DeviceBuffer<Int32> more = Device.host().allocate(ElementType.INT32, 3)) {
            CompletableFuture<Void> lost = CompletableFuture.runAsync(
                    () -> {
                        assertThrows(IllegalStateException.class, () -> ranks.get(0)
                                .broadcastState(8, first.stream, first.buffer, more));
                        source.broadcast(first.buffer, 0, first.stream);
                        source.work(first.stream).await();
                        source.abort();
                    },
                    Threads.EACH);
            assertThrows(NcclException.class, () -> ranks.get(1).broadcastState(7, second.stream, second.buffer, more));
            lost.join();
            assertArrayEquals(new int[] {6, 6, 6}, second.state());
        }
    }

    /** A process that has come back has no state before, and has one afterwards. */
    @Test
    void admittedProcessGetsTheState() throws Exception {
        begin(2);
        lose(0);
        recover(1);
        ranks.get(1).admit(LIMIT);
        CompletableFuture<Recovery> waiting = comeBack(new RiggedStore(memory.of(0, 1)));
        ranks.get(1).admit(LIMIT);
        Recovery back = ready(waiting);
        assertEquals(List.of(1, 0), back.members());
        try (Rank first = new Rank(ranks.get(1), 5);
                Rank second = new Rank(back, 6)) {
            assertEquals(List.of(8L, 8L), broadcastLate(first, 8, second, 0));
            assertArrayEquals(new int[] {5, 5, 5}, second.state());
            lose(1);
            back.recover(LIMIT);
            assertEquals(9, second.broadcast(9));
            assertArrayEquals(new int[] {5, 5, 5}, second.state());
        }
    }

    @Test
    void withoutAStateACheckpointIsNeeded() throws Exception {
        begin(2);
        lose(1);
        CompletableFuture<Recovery> waiting = comeBack(new RiggedStore(memory.of(1, 1)));
        recover(0);
        Recovery back = ready(waiting);
        lose(0);
        back.recover(LIMIT);
        assertEquals(
                "none of the 1 remaining ranks has the state: the last rank with it was lost while it sent the state;"
                        + " restore a checkpoint",
                assertThrows(RendezvousException.class, () -> back.broadcastState(0, STREAM))
                        .getMessage());
    }

    /** The first rank with a state is the source, not the first rank. */
    @Test
    void sourceIsTheFirstRankWithAState() throws Exception {
        begin(2);
        for (RiggedStore store : stores) {
            store.rig("r-0-state/state", answers -> {
                byte[] none = answers.get(0).clone();
                none[0] = 0;
                return List.of(none, answers.get(1));
            });
        }
        try (Rank first = new Rank(ranks.get(0), 5);
                Rank second = new Rank(ranks.get(1), 6)) {
            assertEquals(List.of(7L, 7L), together(List.of(() -> first.broadcast(8), () -> second.broadcast(7))));
            assertArrayEquals(new int[] {6, 6, 6}, first.state());
            assertArrayEquals(new int[] {6, 6, 6}, second.state());
        }
    }

    @Test
    void invalidDescriptionOfAStateIsRefused() throws Exception {
        begin(1);
        stores.get(0).rig("r-0-state/state", answers -> List.of(new byte[] {1, 2}));
        assertEquals(
                "a rank sent an invalid description of its state",
                assertThrows(RendezvousException.class, () -> ranks.get(0).broadcastState(0, STREAM))
                        .getMessage());
    }

    /** Each of these is the state of rank 1; rank 0 has 3 int32 and 4 float32. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "3 | buffer 1 of the state must be the same on all ranks: rank 1 has 3 float32, rank 0 has 4 float32",
                "0 | the state must have the same buffers on all ranks: rank 1 has 1, rank 0 has 2",
                "-1 | buffer 0 of the state must be the same on all ranks: rank 1 has 4 float32, rank 0 has 3 int32",
            })
    void differentBuffersAreRefused(int length, String message) throws Exception {
        begin(2);
        try (DeviceBuffer<Int32> numbers = Device.host().allocate(ElementType.INT32, 3);
                DeviceBuffer<Float32> four = Device.host().allocate(ElementType.FLOAT32, 4);
                DeviceBuffer<Float32> other = Device.host().allocate(ElementType.FLOAT32, Math.max(1, length))) {
            DeviceBuffer<?>[] state = length > 0
                    ? new DeviceBuffer<?>[] {numbers, other}
                    : length == 0 ? new DeviceBuffer<?>[] {numbers} : new DeviceBuffer<?>[] {four, numbers};
            List<String> told = together(List.of(
                    () -> refusal(() -> ranks.get(0).broadcastState(0, STREAM, numbers, four)),
                    () -> refusal(() -> ranks.get(1).broadcastState(0, STREAM, state))));
            assertEquals(List.of(message, message), told);
        }
    }

    private static String refusal(Executable call) {
        return assertThrows(IllegalArgumentException.class, call).getMessage();
    }
}
