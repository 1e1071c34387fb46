package io.github.nccl4j.tests.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.nccl.ncclComm;
import io.github.nccl4j.nccl.ncclConfig_t;
import io.github.nccl4j.nccl.ncclUniqueId;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tests.ChildJvm;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.LongPointer;
import org.bytedeco.javacpp.PointerPointer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Communicators made from others: by shrinking, after a revoke, and by growing. */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HostEngineRegroupTest {

    static Rank shrink(Rank self, int flags, int... excluded) {
        try (IntPointer list = new IntPointer(excluded);
                LongPointer cell = new LongPointer(1)) {
            Rank.check(
                    nccl.ncclCommShrink(self.comm(), list.address(), excluded.length, cell.address(), 0L, flags),
                    "ncclCommShrink");
            return rankOf(cell.get());
        }
    }

    private static Rank rankOf(long comm) {
        int[] rank = new int[1];
        int[] count = new int[1];
        Rank.check(nccl.ncclCommUserRank(comm, rank), "ncclCommUserRank");
        Rank.check(nccl.ncclCommCount(comm, count), "ncclCommCount");
        return new Rank(rank[0], count[0], comm);
    }

    static float sum(Rank self, float value) {
        try (FloatPointer data = new FloatPointer(value)) {
            Rank.check(allReduce(self, data), "ncclAllReduce");
            return data.get();
        }
    }

    private static int allReduce(Rank self, FloatPointer data) {
        return nccl.ncclAllReduce(data.address(), data.address(), 1, nccl.ncclFloat, nccl.ncclSum, self.comm(), 0);
    }

    private static String errorOf(int result) {
        return result + " " + nccl.ncclGetLastError(0L);
    }

    private static void invalid(int result, String... words) {
        String text = nccl.ncclGetLastError(0L);
        assertEquals(nccl.ncclInvalidArgument, result, text);
        for (String word : words) {
            assertTrue(text.contains(word), () -> "'" + word + "' is not in: " + text);
        }
    }

    @Test
    void excludedRanksHaveNoPartInAShrinkAndKeepTheirCommunicator() throws Exception {
        List<String> texts = HostEngineTest.inThreads(5, self -> {
            String text = "excluded";
            if (self.rank() != 1 && self.rank() != 3) {
                Rank rest = shrink(self, nccl.NCCL_SHRINK_DEFAULT, 3, 1);
                text = rest.rank() + " of " + rest.count() + ": " + sum(rest, self.rank());
                rest.destroy();
            }
            text += ", " + sum(self, self.rank());
            self.destroy();
            return text;
        });
        assertEquals(
                List.of(
                        "0 of 3: 6.0, 10.0",
                        "excluded, 10.0",
                        "1 of 3: 6.0, 10.0",
                        "excluded, 10.0",
                        "2 of 3: 6.0, 10.0"),
                texts);
    }

    /** Several children of one parent, in one group: all ranks make them in one order, also the ranks that are left out. */
    @Test
    void aNonBlockingCommunicatorIsSplitTwiceInAGroup() throws Exception {
        List<String> texts = HostEngineTest.inThreads(3, self -> {
            try (LongPointer cells = new LongPointer(2);
                    ncclConfig_t config = new ncclConfig_t()) {
                config.blocking(0);
                int only = nccl.NCCL_SPLIT_NOCOLOR;
                Rank.check(nccl.ncclGroupStart(), "ncclGroupStart");
                for (int i = 0; i < 2; i++) {
                    int color = self.rank() == i ? only : 7;
                    int result = nccl.ncclCommSplit(self.comm(), color, 0, cells.address() + 8L * i, config.address());
                    assertEquals(nccl.ncclInProgress, result);
                }
                assertEquals(nccl.ncclInProgress, nccl.ncclGroupEnd());
                assertEquals(nccl.ncclSuccess, polled(self.comm()));
                String text = "";
                for (int i = 0; i < 2; i++) {
                    if (cells.get(i) == 0) {
                        text += "none ";
                        continue;
                    }
                    assertEquals(nccl.ncclSuccess, polled(cells.get(i)));
                    Rank child = rankOf(cells.get(i));
                    text += child.rank() + " of " + child.count() + " ";
                    child.destroy();
                }
                self.destroy();
                return text;
            }
        });
        assertEquals(List.of("none 0 of 2 ", "0 of 2 none ", "1 of 2 1 of 2 "), texts);
    }

    /** The state of a communicator that does not block, when it is no longer in progress. */
    private static int polled(long comm) {
        int[] state = {nccl.ncclInProgress};
        Waiting.until("end of the progress", () -> {
            Rank.check(nccl.ncclCommGetAsyncError(comm, state), "ncclCommGetAsyncError");
            return state[0] != nccl.ncclInProgress;
        });
        return state[0];
    }

    @Test
    void aNonBlockingShrinkIsPolled() throws Exception {
        List<Float> sums = HostEngineTest.inThreads(3, self -> {
            if (self.rank() == 1) {
                sum(self, 0);
                self.destroy();
                return 0f;
            }
            try (IntPointer list = new IntPointer(1).put(1);
                    LongPointer cell = new LongPointer(1);
                    ncclConfig_t config = new ncclConfig_t()) {
                config.blocking(0);
                int result = nccl.ncclCommShrink(
                        self.comm(), list.address(), 1, cell.address(), config.address(), nccl.NCCL_SHRINK_DEFAULT);
                assertTrue(result == nccl.ncclSuccess || result == nccl.ncclInProgress, "" + result);
                assertEquals(nccl.ncclSuccess, polled(cell.get()));
                Rank rest = rankOf(cell.get());
                try (FloatPointer data = new FloatPointer((float) self.rank())) {
                    assertEquals(nccl.ncclInProgress, allReduce(rest, data));
                    assertEquals(nccl.ncclSuccess, polled(rest.comm()));
                    rest.destroy();
                    sum(self, 0);
                    self.destroy();
                    return data.get();
                }
            }
        });
        assertEquals(List.of(2f, 0f, 2f), sums);
    }

    @Test
    void shrinkAndGrowCheckTheirArguments() throws Exception {
        HostEngineTest.inThreads(2, self -> {
            long comm = self.comm();
            try (IntPointer me = new IntPointer(1).put(self.rank());
                    IntPointer two = new IntPointer(2).put(0, 2).put(1, 2);
                    IntPointer other = new IntPointer(2).put(0, 1 - self.rank()).put(1, 1 - self.rank());
                    LongPointer cell = new LongPointer(1);
                    ncclUniqueId id = new ncclUniqueId()) {
                invalid(nccl.ncclCommShrink(comm, me.address(), 1, cell.address(), 0L, 0), "rank " + self.rank());
                invalid(nccl.ncclCommShrink(comm, two.address(), 1, cell.address(), 0L, 0), "0..1");
                invalid(nccl.ncclCommShrink(comm, other.address(), 2, cell.address(), 0L, 0), "more than once");
                invalid(nccl.ncclCommShrink(comm, other.address(), 0, cell.address(), 0L, 0), "excludeRanksCount 0");
                invalid(nccl.ncclCommShrink(comm, 0L, 1, cell.address(), 0L, 0), "excludeRanksList");
                invalid(nccl.ncclCommShrink(comm, other.address(), 1, 0L, 0L, 0), "newcomm");
                invalid(nccl.ncclCommGrow(comm, 2, 0L, -1, cell.address(), 0L), "nRanks 2");
                invalid(nccl.ncclCommGrow(comm, 0, 0L, -1, cell.address(), 0L), "nRanks 0");
                invalid(nccl.ncclCommGrow(comm, 3, 0L, 1, cell.address(), 0L), "-1");
                invalid(nccl.ncclCommGrow(comm, 3, id.address(), -1, cell.address(), 0L), "commId");
                invalid(nccl.ncclCommGrow(0L, 3, 0L, 2, cell.address(), 0L), "uniqueId");
                invalid(nccl.ncclCommGrow(0L, 3, id.address(), 3, cell.address(), 0L), "rank 3");
                invalid(nccl.ncclCommGrow(0L, 3, id.address(), -1, cell.address(), 0L), "rank -1");
                invalid(nccl.ncclCommGetUniqueId(comm, 0L), "uniqueId");
                invalid(nccl.ncclCommRevoke(comm, 1), "revokeFlags 1");
                Rank.check(nccl.ncclCommRevoke(0L, 0), "ncclCommRevoke(null)");
            }
            assertEquals(1f, sum(self, self.rank()), "none of it touched the communicator");
            self.destroy();
            return null;
        });
    }

    @Test
    void listsThatDifferAreReported() throws Exception {
        CountDownLatch reported = new CountDownLatch(2);
        List<String> texts = HostEngineTest.inThreads(4, self -> {
            String text = "";
            if (self.rank() < 2) {
                try (IntPointer list = new IntPointer(1).put(2 + self.rank());
                        LongPointer cell = new LongPointer(1)) {
                    text = errorOf(nccl.ncclCommShrink(self.comm(), list.address(), 1, cell.address(), 0L, 0));
                }
                reported.countDown();
            } else {
                reported.await();
            }
            nccl.ncclCommAbort(self.comm());
            return text;
        });
        for (int rank = 0; rank < 2; rank++) {
            assertTrue(texts.get(rank).startsWith(nccl.ncclInvalidUsage + " "), texts.toString());
            assertTrue(texts.get(rank).contains("another list of ranks"), texts.toString());
        }
    }

    /** As an elastic program does: all survivors of a rank's death go on without it. */
    @Test
    void survivorsOfADeadRankShrinkAndGoOn() throws Exception {
        String id = Rank.newId();
        int count = 4;
        List<ChildJvm.Running> ranks = new ArrayList<>();
        for (int rank = 0; rank < count; rank++) {
            ranks.add(new ChildJvm()
                    .property("nccl4j.engine", "host")
                    .environment("NCCL4J_HOST_INIT_TIMEOUT", "20")
                    .start(HostEngineScenarios.class, "survive", id, "" + rank, "" + count));
        }
        for (ChildJvm.Running rank : ranks) {
            rank.awaitText("ready");
        }
        ranks.get(1).process().destroyForcibly();
        for (int rank : new int[] {0, 2, 3}) {
            ChildJvm.Outcome outcome = ranks.get(rank).await();
            assertEquals("ready\n6 5 5.0\n", outcome.output(), "rank " + rank);
        }
    }

    @Test
    void shrinkWithAbortEndsTheOperationOfAnotherThread() throws Exception {
        // The end of the operation at one rank ends it at the other.
        CyclicBarrier bothWait = new CyclicBarrier(2);
        CountDownLatch shrunk = new CountDownLatch(2);
        List<Float> sums = HostEngineTest.inThreads(3, self -> {
            if (self.rank() == 2) {
                shrunk.await();
                nccl.ncclCommAbort(self.comm());
                return 0f;
            }
            // This thread is in the operation, another one shrinks.
            CompletableFuture<Rank> shrink = NativeWait.ofThisThread().whenInside("ncclAllReduce", () -> {
                try {
                    bothWait.await();
                    return shrink(self, nccl.NCCL_SHRINK_ABORT, 2);
                } finally {
                    shrunk.countDown();
                }
            });
            try (FloatPointer data = new FloatPointer(1f)) {
                assertNotEquals(nccl.ncclSuccess, allReduce(self, data));
            }
            Rank rest = shrink.get();
            float result = sum(rest, 1 + self.rank());
            rest.destroy();
            self.destroy();
            return result;
        });
        assertEquals(List.of(3f, 3f, 0f), sums);
    }

    @Test
    void aRevokeEndsTheCallThatWaitsAndLeavesACommunicatorToSplitAndShrink() throws Exception {
        CyclicBarrier all = new CyclicBarrier(3);
        CountDownLatch revoked = new CountDownLatch(1);
        List<String> texts = HostEngineTest.inThreads(3, self -> {
            String text = "";
            if (self.rank() == 0) {
                CompletableFuture<Integer> revoke = NativeWait.ofThisThread().whenInside("ncclAllReduce", () -> {
                    int result = nccl.ncclCommRevoke(self.comm(), nccl.NCCL_REVOKE_DEFAULT);
                    revoked.countDown();
                    return result;
                });
                try (FloatPointer data = new FloatPointer(1f)) {
                    text = errorOf(allReduce(self, data));
                }
                Rank.check(revoke.get(), "ncclCommRevoke");
            } else if (self.rank() == 1) {
                // Waits in an operation that rank 0 has left: it learns of it, and may revoke in its turn.
                revoked.await();
                try (FloatPointer data = new FloatPointer(1f)) {
                    text = errorOf(allReduce(self, data));
                }
            } else {
                revoked.await();
            }
            if (self.rank() > 0) {
                Rank.check(nccl.ncclCommRevoke(self.comm(), nccl.NCCL_REVOKE_DEFAULT), "ncclCommRevoke");
            }
            int[] state = {-1};
            Rank.check(nccl.ncclCommGetAsyncError(self.comm(), state), "ncclCommGetAsyncError");
            assertEquals(nccl.ncclSuccess, state[0]);
            invalid(nccl.ncclCommRevoke(self.comm(), nccl.NCCL_REVOKE_DEFAULT), "revoked");
            invalid(nccl.ncclCommFinalize(self.comm()), "revoked");
            try (FloatPointer data = new FloatPointer(1f)) {
                assertEquals(nccl.ncclInvalidUsage, allReduce(self, data));
                assertTrue(nccl.ncclGetLastError(0L).contains("revoked"), nccl.ncclGetLastError(0L));
            }
            all.await();
            try (LongPointer cell = new LongPointer(1)) {
                Rank.check(
                        nccl.ncclCommSplit(self.comm(), self.rank() / 2, -self.rank(), cell.address(), 0L),
                        "ncclCommSplit");
                Rank part = rankOf(cell.get());
                text += "; " + part.rank() + " of " + part.count() + ": " + sum(part, self.rank());
                part.destroy();
            }
            if (self.rank() != 1) {
                Rank rest = shrink(self, nccl.NCCL_SHRINK_DEFAULT, 1);
                text += "; " + sum(rest, self.rank());
                rest.destroy();
            }
            self.destroy();
            return text;
        });
        assertTrue(texts.get(0).startsWith(nccl.ncclInvalidUsage + " "), texts.toString());
        assertTrue(texts.get(0).contains("ncclCommRevoke"), texts.toString());
        assertTrue(texts.get(0).endsWith("; 1 of 2: 1.0; 2.0"), texts.toString());
        assertTrue(texts.get(1).startsWith(nccl.ncclRemoteError + " "), texts.toString());
        assertTrue(texts.get(1).contains("rank 0"), texts.toString());
        assertTrue(texts.get(1).endsWith("; 0 of 2: 1.0"), texts.toString());
        assertEquals("; 0 of 1: 2.0; 2.0", texts.get(2));
    }

    /** Rank 2, alone in its part, begins the next split while the others are still in this one. */
    @Test
    void aRankMayBeginTheNextSplitBeforeTheOthersAreDone() throws Exception {
        HostEngineTest.inThreads(3, self -> {
            Rank.check(nccl.ncclCommRevoke(self.comm(), nccl.NCCL_REVOKE_DEFAULT), "ncclCommRevoke");
            try (LongPointer cell = new LongPointer(1)) {
                for (int i = 0; i < 200; i++) {
                    int color = self.rank() / 2;
                    Rank.check(nccl.ncclCommSplit(self.comm(), color, 0, cell.address(), 0L), "ncclCommSplit");
                    Rank part = rankOf(cell.get());
                    assertEquals(color == 0 ? 2 : 1, part.count());
                    part.destroy();
                }
            }
            self.destroy();
            return "";
        });
    }

    private static Rank grow(long comm, int count, String id, int rank) {
        try (ncclUniqueId uniqueId = id == null ? null : Rank.uniqueId(id);
                LongPointer cell = new LongPointer(1)) {
            long address = uniqueId == null ? 0L : uniqueId.address();
            Rank.check(nccl.ncclCommGrow(comm, count, address, rank, cell.address(), 0L), "ncclCommGrow");
            return rankOf(cell.get());
        }
    }

    private static String growId(Rank self) {
        try (ncclUniqueId id = new ncclUniqueId()) {
            Rank.check(nccl.ncclCommGetUniqueId(self.comm(), id.address()), "ncclCommGetUniqueId");
            assertEquals(nccl.ncclInvalidUsage, nccl.ncclCommGetUniqueId(self.comm(), id.address()));
            assertTrue(nccl.ncclGetLastError(0L).contains("not been used"), nccl.ncclGetLastError(0L));
            return Rank.text(id);
        }
    }

    @Test
    void newRanksJoinACommunicatorThatGrowsTwice() throws Exception {
        String first = Rank.newId();
        List<CompletableFuture<String>> ids = List.of(new CompletableFuture<>(), new CompletableFuture<>());
        List<Callable<String>> ranks = new ArrayList<>();
        for (int rank = 0; rank < 2; rank++) {
            int r = rank;
            ranks.add(() -> {
                Rank self = Rank.join(first, r, 2);
                if (r == 1) {
                    ids.get(0).complete(growId(self));
                }
                Rank three = grow(self.comm(), 3, r == 1 ? ids.get(0).get() : null, -1);
                // The old one lives on, and grows once more.
                String text = three.rank() + " of 3: " + sum(three, r + 1) + ", " + sum(self, r + 1);
                if (r == 0) {
                    ids.get(1).complete(growId(self));
                }
                Rank four = grow(self.comm(), 4, null, -1);
                self.destroy();
                text += ", " + sum(four, r + 1);
                three.destroy();
                four.destroy();
                return text;
            });
        }
        ranks.add(() -> {
            Rank three = grow(0L, 3, ids.get(0).get(), 2);
            String text = three.rank() + " of 3: " + sum(three, 3);
            Rank four = grow(0L, 4, ids.get(1).get(), 2);
            text += ", " + sum(four, 10);
            three.destroy();
            four.destroy();
            return text;
        });
        ranks.add(() -> {
            Rank four = grow(0L, 4, ids.get(1).get(), 3);
            String text = "" + sum(four, 20);
            four.destroy();
            return text;
        });
        assertEquals(
                List.of("0 of 3: 6.0, 3.0, 33.0", "1 of 3: 6.0, 3.0, 33.0", "2 of 3: 6.0, 33.0", "33.0"),
                HostEngineTest.together(ranks));
    }

    @Test
    void oneThreadShrinksAndGrowsInGroups() {
        int n = 3;
        try (PointerPointer<ncclComm> cells = new PointerPointer<>(n);
                IntPointer list = new IntPointer(1).put(1);
                LongPointer children = new LongPointer(4);
                FloatPointer data = new FloatPointer(4);
                ncclUniqueId id = new ncclUniqueId()) {
            Rank.check(nccl.ncclCommInitAll(cells, n, (int[]) null), "ncclCommInitAll");
            long[] comms = new long[n];
            for (int r = 0; r < n; r++) {
                comms[r] = cells.get(ncclComm.class, r).address();
            }
            Rank.check(nccl.ncclGroupStart(), "ncclGroupStart");
            for (int r : new int[] {0, 2}) {
                Rank.check(
                        nccl.ncclCommShrink(comms[r], list.address(), 1, children.address() + 8L * r, 0L, 0),
                        "ncclCommShrink");
            }
            Rank.check(nccl.ncclGroupEnd(), "ncclGroupEnd");
            assertEquals(
                    "0 of 2",
                    rankOf(children.get(0)).rank() + " of "
                            + rankOf(children.get(0)).count());
            assertEquals(
                    "1 of 2",
                    rankOf(children.get(2)).rank() + " of "
                            + rankOf(children.get(2)).count());
            Rank.check(nccl.ncclCommDestroy(children.get(0)), "ncclCommDestroy");
            Rank.check(nccl.ncclCommDestroy(children.get(2)), "ncclCommDestroy");

            Rank.check(nccl.ncclCommGetUniqueId(comms[1], id.address()), "ncclCommGetUniqueId");
            Rank.check(nccl.ncclGroupStart(), "ncclGroupStart");
            for (int r = 0; r <= n; r++) {
                long cell = children.address() + 8L * r;
                long comm = r < n ? comms[r] : 0L;
                long from = r == 1 || r == n ? id.address() : 0L;
                Rank.check(nccl.ncclCommGrow(comm, n + 1, from, r < n ? -1 : r, cell, 0L), "ncclCommGrow");
            }
            Rank.check(nccl.ncclGroupEnd(), "ncclGroupEnd");
            Rank.check(nccl.ncclGroupStart(), "ncclGroupStart");
            for (int r = 0; r <= n; r++) {
                data.put(r, r);
                long element = data.address() + 4L * r;
                Rank.check(
                        nccl.ncclAllReduce(element, element, 1, nccl.ncclFloat, nccl.ncclSum, children.get(r), 0),
                        "ncclAllReduce");
            }
            Rank.check(nccl.ncclGroupEnd(), "ncclGroupEnd");
            for (int r = 0; r <= n; r++) {
                assertEquals(6f, data.get(r));
                Rank.check(nccl.ncclCommDestroy(children.get(r)), "ncclCommDestroy");
            }
            for (long comm : comms) {
                Rank.check(nccl.ncclCommDestroy(comm), "ncclCommDestroy");
            }
        }
    }
}
