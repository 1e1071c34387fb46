package io.github.nccl4j.tests.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.tests.ChildJvm;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests of {@link io.github.nccl4j.launch.Rendezvous#locate}, in processes and in threads. */
@Timeout(600)
class LocateTest {
    private static final int UNKNOWN = RankInfo.UNKNOWN;

    private final Job job = new Job();

    @AfterEach
    void end() {
        job.close();
    }

    /** Prints its located rank; then creates the communicator of the job and prints the sum of all ranks plus 1. */
    public static final class Rank {
        public static void main(String[] args) {
            Duration limit = Duration.ofSeconds(30);
            RankInfo self = RankInfo.fromEnvironment();
            TcpStore store = TcpStore.ofProcess(self, limit);
            RankInfo located = store.locate(self, limit);
            assertSame(store, TcpStore.ofProcess(located, limit));
            System.out.println(located);
            try (Communicator communicator =
                            Communicator.builder().deadline(limit).fromEnvironment();
                    CudaStream stream = CudaStream.nonBlocking(Device.host());
                    DeviceBuffer<Int32> sum = Device.host().allocate(ElementType.INT32, 1)) {
                sum.copyFrom(new int[] {1 + communicator.rank()});
                communicator.allReduce(sum, ReduceOp.SUM, stream);
                communicator.work(stream).await();
                int[] got = new int[1];
                sum.copyTo(got);
                System.out.println("sum " + got[0]);
            }
        }
    }

    private ChildJvm child(int rank, int world) {
        return new ChildJvm()
                .property("nccl4j.engine", "host")
                .environment("RANK", "" + rank)
                .environment("WORLD_SIZE", "" + world)
                .environment("MASTER_ADDR", "127.0.0.1")
                .environment("MASTER_PORT", "" + job.port());
    }

    @Test
    void findsLocalRanksOnTwoHosts() {
        int world = 5;
        List<ChildJvm.Running> ranks = new ArrayList<>();
        for (int rank = 0; rank < world; rank++) {
            ranks.add(child(rank, world)
                    .environment("NCCL_HOSTID", rank % 2 == 0 ? "a" : "b")
                    .start(Rank.class));
        }
        for (int rank = 0; rank < world; rank++) {
            ChildJvm.Outcome outcome = ranks.get(rank).await();
            String expected = "rank " + rank + " of 5 (" + rank / 2 + " of " + (rank % 2 == 0 ? 3 : 2)
                    + " on its host), meeting at 127.0.0.1:" + job.port() + ", by torchrun";
            assertTrue(outcome.output().contains(expected), outcome::output);
            assertTrue(outcome.output().contains("sum 15"), outcome::output);
            assertEquals(0, outcome.exitCode(), outcome::output);
        }
    }

    @Test
    void findsLocalRanksOnThisHost() {
        ChildJvm.Running other = child(1, 2).start(Rank.class);
        ChildJvm.Outcome root = child(0, 2).run(Rank.class);
        assertTrue(root.output().contains("rank 0 of 2 (0 of 2 on its host)"), root::output);
        ChildJvm.Outcome second = other.await();
        assertTrue(second.output().contains("rank 1 of 2 (1 of 2 on its host)"), second::output);
        assertTrue(second.output().contains("sum 3"), second::output);
    }

    /** Creates the communicator of the job. */
    public static final class Plain {
        public static void main(String[] args) {
            Communicator.builder().deadline(Duration.ofSeconds(40)).fromEnvironment();
        }
    }

    @Test
    void missingLibraryOfOneRankFailsOthers() {
        ChildJvm.Running root = child(0, 2).start(Plain.class);
        ChildJvm.Outcome other =
                child(1, 2).property("nccl4j.library", "/nowhere/libnccl.so").run(Plain.class);
        assertTrue(other.output().contains("/nowhere/libnccl.so"), other::output);
        long start = System.nanoTime();
        ChildJvm.Outcome first = root.await();
        assertTrue(System.nanoTime() - start < 15e9, "rank 0 must fail within 15 s");
        assertTrue(first.output().contains("rank 1 has aborted: "), first::output);
        assertTrue(first.output().contains("/nowhere/libnccl.so"), first::output);
    }

    /* Ranks as threads on this host. */

    private RankInfo rank(int rank, int world, int localRank, int localWorldSize) {
        return new RankInfo(
                rank, world, localRank, localWorldSize, "127.0.0.1", job.port(), "job", 0, RankInfo.Source.TORCHRUN);
    }

    /** Locates ranks with the given local rank and local world size. */
    private List<CompletableFuture<RankInfo>> locate(int[]... local) {
        List<CompletableFuture<RankInfo>> ranks = new ArrayList<>();
        for (int r = 0; r < local.length; r++) {
            RankInfo self = rank(r, local.length, local[r][0], local[r][1]);
            ranks.add(job.start(() -> job.open(self, Job.settings()).locate(self, Job.LONG)));
        }
        return ranks;
    }

    private static String failure(List<CompletableFuture<RankInfo>> ranks) {
        List<String> messages = ranks.stream()
                .map(rank -> Job.failure(rank).getMessage())
                .distinct()
                .toList();
        assertEquals(1, messages.size(), messages::toString);
        return messages.get(0);
    }

    @Test
    void keepsLocalRanksOfLauncher() {
        List<RankInfo> ranks = locate(
                        new int[] {UNKNOWN, UNKNOWN}, new int[] {0, UNKNOWN}, new int[] {UNKNOWN, 4}, new int[] {
                            1, UNKNOWN
                        })
                .stream()
                .map(CompletableFuture::join)
                .toList();
        assertEquals(
                List.of(2, 0, 3, 1), ranks.stream().map(RankInfo::localRank).toList());
        assertTrue(ranks.stream().allMatch(rank -> rank.localWorldSize() == 4 && rank.isOnOneHost()), ranks::toString);
        assertEquals(rank(3, 4, 1, 4), ranks.get(3));
    }

    @Test
    void returnsKnownLocalRankAtOnce() {
        RankInfo self = rank(0, 2, 0, 1);
        assertSame(self, job.open(self, Job.settings()).locate(self, Job.SHORT));
    }

    @Test
    void rejectsEqualLocalRanks() {
        String message = failure(locate(new int[] {0, UNKNOWN}, new int[] {UNKNOWN, UNKNOWN}, new int[] {0, UNKNOWN}));
        assertTrue(
                message.matches(
                        "local ranks on a host must be distinct: torchrun set local rank 0 for ranks 0 and 2; host .+ has"
                                + " ranks 0, 1, 2"),
                message);
    }

    @Test
    void rejectsWrongLocalWorldSize() {
        String message =
                failure(locate(new int[] {UNKNOWN, UNKNOWN}, new int[] {UNKNOWN, UNKNOWN}, new int[] {UNKNOWN, 2}));
        assertTrue(
                message.matches("the local world size of rank 2 must be 3: torchrun set 2; host .+ has ranks 0, 1, 2"),
                message);
    }

    @Test
    void rejectsMixOfKnownAndUnknownLocalRanks() {
        List<CompletableFuture<RankInfo>> ranks = locate(new int[] {0, 2}, new int[] {UNKNOWN, UNKNOWN});
        RendezvousException failure = Job.failure(ranks.get(1));
        assertTrue(
                failure.getMessage()
                        .matches(
                                "rank 1 can't join the store at \\S+: all ranks must know their local rank, or none: rank 1 \\(127.0.0.1, process"
                                        + " \\d+\\): local rank not known yet; rank 0: 0 of 2 on its host; set LOCAL_RANK and"
                                        + " LOCAL_WORLD_SIZE for all ranks or for none"),
                failure::getMessage);
    }

    @Test
    void timeoutNamesMissingRanks() {
        RankInfo self = rank(0, 3, UNKNOWN, UNKNOWN);
        TcpStore store = job.open(self, Job.settings());
        RendezvousTimeoutException failure =
                assertThrows(RendezvousTimeoutException.class, () -> store.locate(self, Job.SHORT));
        assertEquals(List.of(1, 2), failure.missing());
        assertInstanceOf(
                IllegalArgumentException.class,
                assertThrows(RuntimeException.class, () -> store.locate(rank(1, 3, UNKNOWN, UNKNOWN), Job.SHORT)));
    }
}
