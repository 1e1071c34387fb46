package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.internal.recovery.MemberAgreement;
import io.github.nccl4j.internal.recovery.MemberAgreement.Decision;
import io.github.nccl4j.internal.recovery.MemberAgreement.Means;
import io.github.nccl4j.internal.recovery.MemberAgreement.Member;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.launch.Store;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tests.launch.WatchedStore;
import io.github.nccl4j.tools.support.Threads;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What the members of a recovery decide, of whom each one in turn decides alone, at a store in this process. */
@Timeout(60)
class MemberAgreementTest {
    private static final Duration LONG = Duration.ofSeconds(20);
    private static final int SIZE = 4;

    private final MemoryStore store = new MemoryStore(SIZE);

    private MemberAgreement of(int rank, int attempt) {
        return new MemberAgreement(store.of(rank, attempt), "r");
    }

    private static Member member(int rank) {
        return new Member(rank, 0);
    }

    private static List<Member> members(int... ranks) {
        return Arrays.stream(ranks).mapToObj(MemberAgreementTest::member).toList();
    }

    /** A rank says what it can, as it does before it looks for the others. */
    private void says(int round, String who, Means able) {
        store.of(0, 0).set("r-" + round + "-alive-" + who, new byte[] {(byte) able.ordinal()});
    }

    private void waits(String who, Means able) {
        store.of(0, 0).set("r-waits-" + who, new byte[] {(byte) able.ordinal()});
    }

    private Decision decide(int round, List<Member> members, Means able, boolean admit) {
        return of(0, 0).agree(round, members, able, admit, LONG, 0);
    }

    private static Decision decision(Means means, List<Member> survivors, Member... admitted) {
        return new Decision(means, survivors, List.of(admitted));
    }

    @Test
    void originalMembersAreTheFirstProcesses() {
        assertEquals(members(0, 1, 2, 3), of(3, 2).original());
        assertEquals(new Member(3, 2), of(3, 2).self());
    }

    @Test
    void scopeNamesRanksAndAttempts() {
        MemoryStore.Scope scope =
                (MemoryStore.Scope) of(2, 1).scope(5, "made", List.of(member(0), new Member(2, 1), member(1)));
        assertEquals("r-5-made", scope.name());
        assertEquals(List.of(0, 2, 1), scope.ranks());
        assertEquals(List.of(0, 1, 0), scope.attempts());
        assertEquals(1, scope.rank());
    }

    @ParameterizedTest
    @CsvSource({"GROW, GROW", "CREATE, SHRINK"})
    void nobodyLostAndNobodyWaitingMeansNewCommunicator(Means own, Means other) {
        says(1, "1", other);
        assertEquals(decision(Means.CREATE, members(0, 1)), decide(1, members(0, 1), own, true));
        assertEquals(Map.of("r-members", "0,1"), store.keys("r-members"));
    }

    @ParameterizedTest
    @CsvSource({
        "GROW, GROW, SHRINK",
        "SHRINK, SHRINK, SHRINK",
        "SHRINK, GROW, SHRINK",
        "SHRINK, CREATE, CREATE",
        "CREATE, SHRINK, CREATE"
    })
    void lossMeansShrinkWhereAllCan(Means own, Means other, Means decided) {
        says(1, "1", other);
        says(1, "3", Means.GROW);
        store.connect(2, -1);
        assertEquals(decision(decided, members(0, 1, 3)), decide(1, members(0, 1, 2, 3), own, true));
    }

    /** It has said that it is alive. */
    @Test
    void memberThatEndedAfterItsWordIsLost() {
        says(1, "1", Means.SHRINK);
        store.connect(1, -1);
        assertEquals(decision(Means.SHRINK, members(0)), decide(1, members(0, 1), Means.SHRINK, true));
    }

    @Test
    void memberThatSaysNothingIsLostAfterThePatience() {
        long patience = Duration.ofMillis(300).toNanos();
        long begin = System.nanoTime();
        Decision decision = of(0, 0).agree(1, members(0, 1), Means.SHRINK, true, LONG, patience);
        assertTrue(System.nanoTime() - begin >= patience);
        assertEquals(decision(Means.SHRINK, members(0)), decision);
    }

    @Test
    void memberThatIsLateIsWaitedFor() {
        CompletableFuture<Decision> patient = CompletableFuture.supplyAsync(
                () -> of(0, 0).agree(1, members(0, 1), Means.SHRINK, true, LONG, Long.MAX_VALUE));
        Waiting.until("a word of rank 0", () -> !store.keys("r-1-alive-0").isEmpty());
        says(1, "1", Means.SHRINK);
        assertEquals(decision(Means.CREATE, members(0, 1)), patient.join());
    }

    @Test
    void memberThatEndedIsNotWaitedFor() {
        store.connect(1, -1);
        assertEquals(
                decision(Means.SHRINK, members(0)),
                of(0, 0).agree(1, members(0, 1), Means.SHRINK, true, LONG, Long.MAX_VALUE));
    }

    /** Also while another one's patience is long. */
    @Test
    void decisionOfAnotherEndsTheWait() {
        CompletableFuture<Decision> patient = CompletableFuture.supplyAsync(
                () -> of(1, 0).agree(1, members(0, 1, 2), Means.SHRINK, true, LONG, Long.MAX_VALUE));
        Waiting.until("a word of rank 1", () -> !store.keys("r-1-alive-1").isEmpty());
        Decision decision = decide(1, members(0, 1, 2), Means.SHRINK, true);
        assertEquals(decision(Means.SHRINK, members(0, 1)), decision);
        assertEquals(decision, patient.join());
    }

    @Test
    void firstDecisionStands() {
        says(1, "1", Means.SHRINK);
        Decision first = decide(1, members(0, 1, 2), Means.SHRINK, true);
        assertEquals(decision(Means.SHRINK, members(0, 1)), first);
        // The late rank learns that it was left out.
        assertEquals(first, of(2, 0).agree(1, members(0, 1, 2), Means.SHRINK, true, LONG, 0));
        assertEquals(first, of(2, 0).decision(1, LONG));
        assertEquals(Map.of("r-members", "0,1"), store.keys("r-members"));
    }

    @ParameterizedTest
    @CsvSource({
        "GROW, GROW, GROW",
        "GROW, CREATE, CREATE",
        "GROW, SHRINK, CREATE",
        "SHRINK, GROW, CREATE",
        "CREATE, GROW, CREATE"
    })
    void processThatWaitsIsAdmittedByGrowingWhereAllCan(Means own, Means waiting, Means decided) {
        says(1, "1", Means.GROW);
        says(1, "3", Means.GROW);
        store.connect(2, 1);
        waits("2-1", waiting);
        Decision decision = decide(1, members(0, 1, 3), own, true);
        assertEquals(decision(decided, members(0, 1, 3), new Member(2, 1)), decision);
        assertEquals(List.of(member(0), member(1), member(3), new Member(2, 1)), decision.members());
        assertEquals(Map.of("r-admitted-2-1", "1"), store.keys("r-admitted"));
        assertEquals(Map.of(), store.keys("r-waits"));
        assertEquals(Map.of("r-members", "0,1,3,2-1"), store.keys("r-members"));
        assertEquals(decision, of(2, 1).decision(1, LONG));
    }

    @Test
    void lossAndAdmissionInOneRoundMeanNewCommunicator() {
        says(1, "1", Means.GROW);
        store.connect(3, 2);
        waits("3-2", Means.GROW);
        assertEquals(
                decision(Means.CREATE, members(0, 1), new Member(3, 2)), decide(1, members(0, 1, 3), Means.GROW, true));
    }

    @Test
    void nobodyIsAdmittedUnlessAsked() {
        says(1, "1", Means.GROW);
        store.connect(2, 1);
        waits("2-1", Means.GROW);
        assertEquals(decision(Means.CREATE, members(0, 1)), decide(1, members(0, 1), Means.GROW, false));
        assertEquals(Map.of(), store.keys("r-admitted"));
        assertTrue(of(0, 0).isAnyWaiting(members(0, 1)));
    }

    /** Connected but not waiting; waiting but lost; waiting in the place of a member; and a first process, which never waits. */
    @Test
    void othersAreNotAdmitted() {
        says(1, "1-1", Means.GROW);
        store.connect(1, 1).connect(2, 2).connect(3, 1);
        waits("1-1", Means.GROW);
        waits("2-1", Means.GROW);
        List<Member> members = List.of(member(0), new Member(1, 1));
        assertFalse(of(0, 0).isAnyWaiting(members));
        assertEquals(decision(Means.CREATE, members), decide(1, members, Means.GROW, true));
        store.connect(3, 0);
        waits("3", Means.GROW);
        assertFalse(of(0, 0).isAnyWaiting(members));
        waits("2-2", Means.GROW);
        assertTrue(of(0, 0).isAnyWaiting(members));
    }

    @Test
    void wordOfTheRoundBeforeIsDeletedAndItsDecisionStays() {
        says(1, "1", Means.SHRINK);
        decide(1, members(0, 1), Means.SHRINK, true);
        says(2, "1", Means.SHRINK);
        decide(2, members(0, 1), Means.SHRINK, true);
        assertEquals(Set.of("r-1-alive-1"), store.keys("r-1-alive").keySet());
        assertEquals(
                Set.of("r-2-alive-0", "r-2-alive-1"), store.keys("r-2-alive").keySet());
        assertEquals(Map.of("r-1-proposal-0", "CREATE 0,1 -"), store.keys("r-1-proposal"));
    }

    /** What a process that has ended throws. */
    private static final class Ended extends Error {
        private static final long serialVersionUID = 1;
    }

    /** The store of a rank, which runs an action before its n-th call from 0. */
    private Store failingAt(int rank, int n, Runnable action) {
        AtomicInteger left = new AtomicInteger(n);
        return WatchedStore.of(store.of(rank, 0), call -> {
            if (left.getAndDecrement() == 0) {
                action.run();
            }
        });
    }

    private CompletableFuture<Decision> agrees(Store from, Duration limit) {
        return CompletableFuture.supplyAsync(
                () -> new MemberAgreement(from, "r")
                        .agree(1, members(0, 1, 2, 3), Means.SHRINK, true, LONG, limit.toNanos()),
                Threads.EACH);
    }

    /** Ranks 1 and 2 agree at once, wherever rank 0 or rank 3 ends. */
    @ParameterizedTest
    @ValueSource(ints = {0, 3})
    void memberThatEndsAtAnyCallIsNotWaitedFor(int victim) {
        int calls = 0;
        boolean ended = true;
        for (; ended; calls++) {
            store.clear();
            store.connect(victim, 0).connect(3 - victim, -1);
            CompletableFuture<Decision> last = agrees(
                    failingAt(victim, calls, () -> {
                        store.connect(victim, -1);
                        throw new Ended();
                    }),
                    LONG);
            CompletableFuture<Decision> first = agrees(store.of(1, 0), LONG);
            Decision decision = agrees(store.of(2, 0), LONG).join();
            assertEquals(decision, first.join(), "at call " + calls);
            assertTrue(decision.survivors().containsAll(members(1, 2)), decision::toString);
            ended = last.handle((result, failure) -> failure != null).join();
            if (!ended) {
                assertEquals(decision, last.join());
            }
        }
        assertTrue(calls > 6, "calls of a member: " + calls);
    }

    /** Ranks 1 and 2 agree after their patience, wherever rank 0 is stopped; it learns their decision when it continues. */
    @Test
    void memberThatIsStoppedAtAnyCallIsNotWaitedFor() {
        Duration patience = Duration.ofMillis(150);
        boolean stopped = true;
        for (int call = 0; stopped; call++) {
            store.clear();
            CountDownLatch isStopped = new CountDownLatch(1);
            CompletableFuture<Void> continues = new CompletableFuture<>();
            store.connect(3, -1);
            CompletableFuture<Decision> late = agrees(
                    failingAt(0, call, () -> {
                        isStopped.countDown();
                        continues.join();
                    }),
                    patience);
            CompletableFuture<Decision> first = agrees(store.of(1, 0), patience);
            Decision decision = agrees(store.of(2, 0), patience).join();
            assertEquals(decision, first.join(), "at call " + call);
            assertTrue(decision.survivors().containsAll(members(1, 2)), decision::toString);
            continues.complete(null);
            assertEquals(decision, late.join());
            stopped = isStopped.getCount() == 0;
        }
    }

    /** A thousand members keep one decision, not a thousand proposals of a thousand members. */
    @Test
    void proposalsThatAreNoDecisionAreDeleted() {
        says(1, "0", Means.SHRINK);
        says(1, "1", Means.SHRINK);
        Store first = WatchedStore.of(store.of(0, 0), call -> {
            if (call.equals("set r-1-proposal-0")) {
                Waiting.until("a decision", () -> !store.keys("r-1-decider").isEmpty());
            }
        });
        store.connect(2, -1).connect(3, -1);
        CompletableFuture<Decision> late = agrees(first, LONG);
        Decision decision = agrees(store.of(1, 0), LONG).join();
        assertEquals(decision, late.join());
        assertEquals(Set.of("r-1-proposal-1"), store.keys("r-1-proposal").keySet());
    }

    @Test
    void admittedProcessLearnsItsRound() {
        store.connect(2, 1);
        CompletableFuture<Integer> admitted =
                CompletableFuture.supplyAsync(() -> of(2, 1).awaitAdmission(Means.GROW, LONG, LONG.toNanos()));
        Waiting.until("a process that waits", () -> of(0, 0).isAnyWaiting(members(0, 1)));
        says(7, "1", Means.GROW);
        assertEquals(decision(Means.GROW, members(0, 1), new Member(2, 1)), decide(7, members(0, 1), Means.GROW, true));
        assertEquals(7, admitted.join());
    }

    @Test
    void processThatIsNotAdmittedInTimeWithdraws() {
        store.connect(2, 1);
        RendezvousTimeoutException late = assertThrows(RendezvousTimeoutException.class, () -> of(2, 1).awaitAdmission(
                        Means.GROW, Duration.ofMillis(500), 500_000_000));
        assertEquals(
                "rank 2, attempt 1, was not admitted to 'r' within 0.5 s: its ranks must call Recovery.admit between two"
                        + " steps",
                late.getMessage());
        assertFalse(of(0, 0).isAnyWaiting(members(0, 1)));
        assertEquals(Map.of(), store.keys("r-waits"));
    }

    /** Before the first change the members are the first processes; later those of the last decision. */
    @Test
    void processWithoutLivingMembersEnds() {
        store.connect(0, -1).connect(1, -1).connect(2, 1).connect(3, -1);
        assertEquals(
                "rank 2, attempt 1, can't be admitted to 'r': all its members have ended, ranks 0, 1, 2, 3",
                assertThrows(RendezvousException.class, () -> of(2, 1).awaitAdmission(Means.GROW, LONG, LONG.toNanos()))
                        .getMessage());
        store.connect(0, 0).connect(1, 0);
        says(1, "1", Means.GROW);
        decide(1, members(0, 1), Means.GROW, true);
        store.connect(0, -1).connect(1, 1).connect(3, 0);
        assertEquals(
                "rank 2, attempt 1, can't be admitted to 'r': all its members have ended, ranks 0, 1",
                assertThrows(RendezvousException.class, () -> of(2, 1).awaitAdmission(Means.GROW, LONG, LONG.toNanos()))
                        .getMessage());
        assertEquals(Map.of(), store.keys("r-waits"));
    }

    @Test
    void endOfAMemberIsNoticed() throws Exception {
        MemberAgreement agreement = of(0, 0);
        assertFalse(agreement.isAnyLost(members(0, 1), Duration.ofMillis(50)));
        store.connect(2, 1);
        assertTrue(agreement.isAnyLost(members(0, 2), Duration.ZERO));
        assertFalse(agreement.isAnyLost(List.of(member(0), new Member(2, 1)), Duration.ZERO));
        CompletableFuture<Boolean> noticed =
                CompletableFuture.supplyAsync(() -> agreement.isAnyLost(members(0, 1), LONG));
        Thread.sleep(50);
        store.connect(1, -1);
        assertTrue(noticed.join());
    }

    @Test
    void interruptEndsTheWaitForTheEndOfAMember() {
        Thread.currentThread().interrupt();
        assertFalse(of(0, 0).isAnyLost(members(0, 1), LONG));
        assertTrue(Thread.interrupted());
    }
}
