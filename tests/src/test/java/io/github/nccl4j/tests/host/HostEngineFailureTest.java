package io.github.nccl4j.tests.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tools.support.Leftovers;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.bytedeco.javacpp.FloatPointer;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Ranks that disagree, die, stop or never come: the others are told who and why, soon, and nothing is left behind. */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("alone")
class HostEngineFailureTest {

    /** A collective or transfer as one rank calls it. */
    private interface Call {
        int run(long data, Rank self);
    }

    /** The root, which waits for nobody, compares its broadcast in the next call. */
    private static int broadcast(long data, Rank self, int root) {
        int result = nccl.ncclBcast(data, 10, nccl.ncclFloat, root, self.comm(), 0);
        return result == nccl.ncclSuccess ? allReduce(data, self, 10, nccl.ncclFloat, nccl.ncclSum) : result;
    }

    /** What each of the ranks gets when rank 1 makes another call than the others: code and text. */
    private static List<String> whenRankOneDiffers(int count, Call others, Call rankOne) throws Exception {
        return HostEngineTest.inThreads(count, self -> {
            try (FloatPointer data = new FloatPointer(1000)) {
                int result = (self.rank() == 1 ? rankOne : others).run(data.address(), self);
                String text = result + " " + nccl.ncclGetLastError(self.comm());
                // Whatever comes next fails too, at once and with the same reason.
                int again = others.run(data.address(), self);
                assertTrue(again != nccl.ncclSuccess, "the communicator went on after: " + text);
                nccl.ncclCommAbort(self.comm());
                return text;
            }
        });
    }

    private static void assertBothSidesName(List<String> texts, String... words) {
        for (int rank = 0; rank < texts.size(); rank++) {
            String text = texts.get(rank);
            assertTrue(text.startsWith(nccl.ncclInvalidUsage + " "), "rank " + rank + ": " + texts);
            for (String word : words) {
                assertTrue(text.contains(word), "'" + word + "' is not in the text of rank " + rank + ": " + texts);
            }
        }
    }

    private static int allReduce(long data, Rank self, int count, int type, int op) {
        return nccl.ncclAllReduce(data, data, count, type, op, self.comm(), 0);
    }

    /** The elements were sent before the root left. */
    @Test
    void aBroadcastOfARankThatHasLeftArrives() throws Exception {
        CountDownLatch left = new CountDownLatch(1);
        List<String> texts = HostEngineTest.inThreads(2, self -> {
            try (FloatPointer data = new FloatPointer(10)) {
                data.put(9, self.rank() + 4);
                if (self.rank() == 0) {
                    left.await();
                }
                int result = nccl.ncclBcast(data.address(), 10, nccl.ncclFloat, 1, self.comm(), 0);
                String text = result + ", " + data.get(9);
                String next = "";
                if (self.rank() == 0) {
                    next = ", then " + allReduce(data.address(), self, 10, nccl.ncclFloat, nccl.ncclSum);
                }
                nccl.ncclCommAbort(self.comm());
                left.countDown();
                return text + next;
            }
        });
        assertEquals(List.of("0, 5.0, then " + nccl.ncclRemoteError, "0, 5.0"), texts);
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 3})
    void anotherCount(int count) throws Exception {
        assertBothSidesName(
                whenRankOneDiffers(
                        count,
                        (data, self) -> allReduce(data, self, 10, nccl.ncclFloat, nccl.ncclSum),
                        (data, self) -> allReduce(data, self, 11, nccl.ncclFloat, nccl.ncclSum)),
                "rank 1",
                "AllReduce",
                "10",
                "11");
    }

    @Test
    void anotherType() throws Exception {
        assertBothSidesName(
                whenRankOneDiffers(
                        3,
                        (data, self) -> allReduce(data, self, 10, nccl.ncclFloat, nccl.ncclSum),
                        (data, self) -> allReduce(data, self, 10, nccl.ncclInt32, nccl.ncclSum)),
                "rank 1",
                "ncclFloat32",
                "ncclInt32");
    }

    @Test
    void anotherOperator() throws Exception {
        assertBothSidesName(
                whenRankOneDiffers(
                        3,
                        (data, self) -> allReduce(data, self, 10, nccl.ncclFloat, nccl.ncclSum),
                        (data, self) -> allReduce(data, self, 10, nccl.ncclFloat, nccl.ncclMax)),
                "rank 1",
                "ncclSum",
                "ncclMax");
    }

    @Test
    void anotherRoot() throws Exception {
        assertBothSidesName(
                whenRankOneDiffers(
                        3, (data, self) -> broadcast(data, self, 0), (data, self) -> broadcast(data, self, 2)),
                "rank 1",
                "root 0",
                "root 2");
    }

    @Test
    void anotherCollective() throws Exception {
        assertBothSidesName(
                whenRankOneDiffers(
                        3,
                        (data, self) -> allReduce(data, self, 10, nccl.ncclFloat, nccl.ncclSum),
                        (data, self) -> nccl.ncclBcast(data, 10, nccl.ncclFloat, 0, self.comm(), 0)),
                "rank 1",
                "AllReduce",
                "Broadcast");
    }

    @Test
    void aReceiveOfAnotherCountThanTheSend() throws Exception {
        assertBothSidesName(
                whenRankOneDiffers(
                        2,
                        (data, self) -> nccl.ncclSend(data, 10, nccl.ncclFloat, 1, self.comm(), 0),
                        (data, self) -> nccl.ncclRecv(data, 12, nccl.ncclFloat, 0, self.comm(), 0)),
                "rank 0",
                "rank 1",
                "10",
                "12");
    }

    private static ChildJvm.Running rank(String scenario, String id, int rank, int count) {
        return rank(scenario, true, id, rank, count);
    }

    private static ChildJvm.Running rank(String scenario, boolean shared, String id, int rank, int count) {
        return new ChildJvm()
                .property("nccl4j.engine", "host")
                .environment("NCCL4J_HOST_INIT_TIMEOUT", "20")
                .environment("NCCL4J_HOST_SHARED_MEMORY", shared ? "1" : "0")
                .start(HostEngineScenarios.class, scenario, id, "" + rank, "" + count);
    }

    @ParameterizedTest
    @CsvSource({
        "all-reduce-for-ever, true",
        "all-reduce-for-ever, false",
        "all-to-all-for-ever, true",
        "idle, true",
        "put-for-ever, true",
        "wait-for-ever, true"
    })
    void aKilledRankIsNamedWithinASecondAndLeavesNothing(String scenario, boolean shared) throws Exception {
        Set<String> before = Leftovers.now();
        int count = 4;
        String id = Rank.newId();
        List<ChildJvm.Running> ranks = new ArrayList<>();
        for (int rank = 0; rank < count; rank++) {
            ranks.add(rank(scenario, shared, id, rank, count));
        }
        for (ChildJvm.Running rank : ranks) {
            rank.awaitText("ready");
        }
        long start = System.nanoTime();
        ranks.get(2).process().destroyForcibly();
        for (int rank : new int[] {0, 1, 3}) {
            ChildJvm.Outcome outcome = ranks.get(rank).await();
            String text = outcome.output();
            assertTrue(text.contains("ready\n" + nccl.ncclRemoteError + " "), "rank " + rank + ": " + text);
            assertTrue(text.contains("rank 2"), "rank " + rank + ": " + text);
        }
        // Their JVMs have ended as well by now, for which a busy machine is given another second.
        long millis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
        assertTrue(millis < 2000, millis + " ms");
        ranks.get(2).process().waitFor();
        assertEquals(Set.of(), Leftovers.since(before));
    }

    @Test
    void aRankThatNeverComesIsNamedAtTheDeadline() throws Exception {
        // The deadline of an id is that of the process that made it, so it is made in one.
        List<ChildJvm.Running> ranks = new ArrayList<>();
        String id = Rank.newId();
        for (int rank : new int[] {0, 1, 3}) {
            ranks.add(new ChildJvm()
                    .property("nccl4j.engine", "host")
                    .environment("NCCL4J_HOST_INIT_TIMEOUT", "3")
                    .start(HostEngineScenarios.class, "join", id, "" + rank, "5"));
        }
        for (ChildJvm.Running rank : ranks) {
            String text = rank.await().output();
            assertTrue(text.startsWith(nccl.ncclTimeout + " "), text);
            assertTrue(text.contains("2, 4"), text);
            assertTrue(text.endsWith(" true\n"), "the handle must stay null: " + text);
        }
    }

    @Test
    void twoOfOneRankAndAnotherCountAreRefused() throws Exception {
        String id = Rank.newId();
        for (List<String> pair : List.of(List.of("0 2", "0 2"), List.of("0 2", "1 3"))) {
            List<ChildJvm.Running> ranks = new ArrayList<>();
            for (String rankAndCount : pair) {
                String[] words = rankAndCount.split(" ");
                ranks.add(rank("join", id, Integer.parseInt(words[0]), Integer.parseInt(words[1])));
            }
            for (ChildJvm.Running rank : ranks) {
                String text = rank.await().output();
                assertTrue(text.startsWith(nccl.ncclInvalidUsage + " "), text);
                assertTrue(text.contains("rank 0") || text.contains("3"), text);
            }
            id = Rank.newId();
        }
    }

    @Test
    void abortEndsACallThatWaits() throws Exception {
        CompletableFuture<NativeWait> caller = new CompletableFuture<>();
        List<String> texts = HostEngineTest.inThreads(2, self -> {
            try (FloatPointer data = new FloatPointer(1000)) {
                if (self.rank() == 1) {
                    caller.get().await("ncclAllReduce");
                    nccl.ncclCommAbort(self.comm());
                    return "aborted";
                }
                caller.complete(NativeWait.ofThisThread());
                int result = allReduce(data.address(), self, 10, nccl.ncclFloat, nccl.ncclSum);
                String text = result + " " + nccl.ncclGetLastError(self.comm());
                nccl.ncclCommAbort(self.comm());
                return text;
            }
        });
        assertTrue(texts.get(0).startsWith(nccl.ncclRemoteError + " "), texts.toString());
        assertTrue(texts.get(0).contains("rank 1"), texts.toString());
    }

    @Test
    void abortByAnotherThreadEndsTheCallOfThisOne() throws Exception {
        CountDownLatch ended = new CountDownLatch(1);
        List<String> texts = HostEngineTest.inThreads(2, self -> {
            try (FloatPointer data = new FloatPointer(1000)) {
                if (self.rank() == 1) {
                    ended.await();
                    nccl.ncclCommAbort(self.comm());
                    return "";
                }
                CompletableFuture<Integer> abort =
                        NativeWait.ofThisThread().whenInside("ncclAllReduce", () -> nccl.ncclCommAbort(self.comm()));
                int result = allReduce(data.address(), self, 10, nccl.ncclFloat, nccl.ncclSum);
                ended.countDown();
                return result + " after " + abort.get();
            }
        });
        assertTrue(texts.get(0).matches("[1-9] after 0"), texts.toString());
    }

    @Test
    void anErrorInAGroupDropsTheGroup() throws Exception {
        HostEngineTest.inThreads(2, self -> {
            try (FloatPointer data = new FloatPointer(4)) {
                long p = data.address();
                data.put(0, 7);
                Rank.check(nccl.ncclGroupStart(), "ncclGroupStart");
                Rank.check(allReduce(p, self, 1, nccl.ncclFloat, nccl.ncclSum), "ncclAllReduce");
                assertEquals(nccl.ncclInvalidArgument, nccl.ncclSend(p, 4, nccl.ncclFloat, 9, self.comm(), 0));
                assertEquals(nccl.ncclInvalidArgument, nccl.ncclGroupEnd());
                assertEquals(7, data.get(0), "the group was launched");
                // The thread and the communicator are as good as new.
                data.put(0, 1);
                Rank.check(allReduce(p, self, 1, nccl.ncclFloat, nccl.ncclSum), "ncclAllReduce");
                assertEquals(2, data.get(0));
                self.destroy();
            }
            return null;
        });
    }
}
