package io.github.nccl4j.tests.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.launch.wire.Wire;
import io.github.nccl4j.tests.ChildJvm;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests that ranks which are missing, late, duplicate, failed or killed cause an exception on all ranks that names the rank. */
@Timeout(600)
class StoreFailuresTest {
    /** A timeout that no test reaches: it equals the limit of the tests. */
    private static final Duration NEVER = Duration.ofMinutes(10);

    private final Job job = new Job();

    @AfterEach
    void end() {
        job.close();
    }

    /** A rank in its own process. */
    public static final class OneRank {
        private OneRank() {}

        /** Joins, passes a barrier, and waits to be killed. */
        public static void main(String[] args) throws Exception {
            RankInfo self = new RankInfo(
                    Integer.parseInt(args[0]),
                    Integer.parseInt(args[1]),
                    0,
                    1,
                    "127.0.0.1",
                    Integer.parseInt(args[2]),
                    "job",
                    0,
                    RankInfo.Source.PROPERTIES);
            TcpStore store = Job.settings().open(self);
            store.barrier("started", Job.LONG);
            Thread.sleep(NEVER.toMillis());
        }
    }

    private ChildJvm.Running startOneRank(int rank, int world) {
        return new ChildJvm().start(OneRank.class, "" + rank, "" + world, "" + job.port());
    }

    private static String message(CompletableFuture<?> rank) {
        return Job.failure(rank).getMessage();
    }

    @Test
    void timeoutNamesMissingRanksToAllRanks() {
        List<CompletableFuture<Object>> ranks = new ArrayList<>();
        for (int rank : new int[] {0, 1, 3}) {
            RankInfo self = job.rank(rank, 5);
            ranks.add(job.start(() -> {
                TcpStore store = job.open(self, Job.settings());
                return store.gather("id", new byte[1], rank == 1 ? Duration.ofSeconds(3) : NEVER);
            }));
        }
        String expected = "Ranks 2, 4 of 5 never connected to 127.0.0.1:" + job.port() + " (3 s). Were they started?";
        for (CompletableFuture<Object> rank : ranks) {
            RendezvousException failure = Job.failure(rank);
            assertEquals(expected, failure.getMessage());
            assertEquals(
                    List.of(2, 4),
                    assertInstanceOf(RendezvousTimeoutException.class, failure).missing());
        }
        // A late rank fails at once with the same message.
        TcpStore late = job.open(job.rank(2, 5), Job.settings());
        assertEquals(
                expected,
                assertThrows(RendezvousTimeoutException.class, () -> late.gather("id", new byte[1], NEVER))
                        .getMessage());
    }

    @Test
    void timeoutNamesMissingRoot() {
        List<TcpStore> stores = job.openAll(2);
        assertEquals(
                "rank 1 did not arrive at 'id' within 0.7 s",
                assertThrows(RendezvousTimeoutException.class, () -> stores.get(0)
                                .broadcast("id", 1, () -> null, Job.SHORT))
                        .getMessage());
    }

    /** The order of the ranks in the scope differs from that in the job. */
    @Test
    void timeoutInSubsetNamesRankOfJob() {
        TcpStore one = job.openAll(4).get(1);
        Rendezvous some = one.among("some", List.of(3, 1));
        RendezvousTimeoutException failure =
                assertThrows(RendezvousTimeoutException.class, () -> some.gather("id", new byte[1], Job.SHORT));
        assertEquals(List.of(3), failure.missing());
        assertTrue(failure.getMessage().endsWith("missing: rank 3"), failure.getMessage());
        failure =
                assertThrows(RendezvousTimeoutException.class, () -> some.broadcast("root", 0, () -> null, Job.SHORT));
        assertEquals(List.of(3), failure.missing());
        assertTrue(failure.getMessage().startsWith("rank 3 did not arrive at "), failure.getMessage());
    }

    @Test
    void lostRankInSubsetIsNamedByRankOfJob() {
        List<TcpStore> stores = job.openAll(4);
        CompletableFuture<Object> one =
                job.start(() -> stores.get(1).among("some", List.of(3, 1)).gather("id", new byte[1], Job.LONG));
        stores.get(3).close();
        String message = message(one);
        assertTrue(message.contains("rank 3"), message);
        assertFalse(message.contains("rank 0"), message);
    }

    @Test
    void openTimeoutNamesAddressOfRankZero() {
        RendezvousTimeoutException failure = assertThrows(
                RendezvousTimeoutException.class,
                () -> Job.settings().timeout(Job.SHORT).open(job.rank(1, 2)));
        // The cause follows, in the language of the system.
        String expected = "rank 1 could not reach rank 0 at 127.0.0.1:" + job.port() + " within 0.7 s: ";
        assertTrue(failure.getMessage().startsWith(expected), failure.getMessage());
        assertEquals(List.of(0), failure.missing());
    }

    @Test
    void openTimeoutNamesUnknownHost() {
        RankInfo self = new RankInfo(1, 2, 0, 1, "nobody.invalid", job.port(), "", 0, RankInfo.Source.PROPERTIES);
        String message = assertThrows(
                        RendezvousTimeoutException.class,
                        () -> Job.settings().timeout(Job.SHORT).open(self))
                .getMessage();
        assertTrue(message.endsWith(": the host name nobody.invalid can't be resolved"), message);
    }

    @Test
    void rejectsMasterAddressOfOtherHost() {
        RankInfo self = new RankInfo(0, 2, 0, 1, "192.0.2.77", job.port(), "", 0, RankInfo.Source.PROPERTIES);
        String message = assertThrows(
                        RendezvousException.class, () -> Job.settings().open(self))
                .getMessage();
        assertTrue(message.contains("MASTER_ADDR must be an address of the host of rank 0: 192.0.2.77;"), message);
        assertTrue(message.contains("NCCL4J_STORE_BIND"), message);
    }

    @Test
    void usedPortNamesVariables() throws Exception {
        try (ServerSocket taken = new ServerSocket(job.port(), 1, InetAddress.getByName("127.0.0.1"))) {
            String message = assertThrows(
                            RendezvousException.class, () -> Job.settings().open(job.rank(0, 2)))
                    .getMessage();
            assertTrue(
                    message.startsWith("rank 0 can't listen at 127.0.0.1:" + taken.getLocalPort()
                            + ", the address of the store (MASTER_ADDR, MASTER_PORT): "),
                    message);
        }
    }

    @Test
    void duplicateRankFailsAllRanks() {
        CompletableFuture<Object> root = startGather(0, 3);
        CompletableFuture<Object> one = startGather(1, 3);
        CompletableFuture<Object> other = startGather(1, 3);
        String expected = "two processes claim to be rank 1 of 3: 127\\.0\\.0\\.1, process \\d+ and 127\\.0\\.0\\.1,"
                + " process \\d+";
        for (CompletableFuture<Object> rank : List.of(root, one, other)) {
            String message = message(rank);
            assertTrue(
                    message.replaceFirst("^rank 1 can't join the store at 127.0.0.1:\\d+: ", "")
                            .matches(expected),
                    message);
        }
    }

    @Test
    void differentWorldSizeFailsAllRanks() {
        CompletableFuture<Object> root = startGather(0, 3);
        CompletableFuture<Object> other = startGather(1, 4);
        assertTrue(message(root).matches("rank 1 \\(.*\\) expects 4 ranks, rank 0 expects 3"), message(root));
        assertTrue(
                message(other).matches("rank 1 can't join the store at .* expects 4 ranks, rank 0 expects 3"),
                message(other));
    }

    /** A rank of another release, and one of another job: the ranks that wait for them get the reasons. */
    @Test
    void refusedRanksAreNamedWithTheirReasons() throws Exception {
        TcpStore root = job.open(job.rank(0, 3), Job.settings());
        try (Socket old = new Socket("127.0.0.1", job.port())) {
            byte[] introduction = new Wire.Frame()
                    .number64(Wire.MAGIC)
                    .number8(4)
                    .number32(1)
                    .text("0.0.9")
                    .toBytes();
            old.getOutputStream().write(new Wire.Frame().bytes(introduction).toBytes());
            // The greeting, then the end: the store has refused.
            old.getInputStream().readAllBytes();
        }
        assertThrows(
                RendezvousException.class,
                () -> Job.settings().timeout(Job.SHORT).open(job.rank(2, 3, "other", 0)));
        String message = assertThrows(RendezvousTimeoutException.class, () -> root.barrier("b", Job.SHORT))
                .getMessage();
        String ago = " was refused \\d+(\\.\\d+)? s ago \\(127.0.0.1\\): ";
        assertTrue(
                message.matches(
                        "Ranks 1, 2 of 3 never connected to 127.0.0.1:" + job.port() + " \\(0.7 s\\)\\. Rank 1" + ago
                                + "protocol 4 \\(nccl4j 0.0.9\\), this store speaks " + Wire.VERSION
                                + " \\(nccl4j .*\\)\\. Rank 2"
                                + ago + "it is in job 'other', attempt 0"),
                message);
    }

    /** Without a name of the job, another job of the machine may use the same port. */
    @Test
    void strangerDoesNotFailAJobWithoutAName() {
        TcpStore root = job.open(job.rank(0, 3, "", 0), Job.settings());
        TcpStore one = job.open(job.rank(1, 3, "", 0), Job.settings());
        for (RankInfo stranger : List.of(job.rank(1, 2, "", 0), job.rank(1, 3, "", 0))) {
            assertThrows(RendezvousException.class, () -> Job.settings().open(stranger));
        }
        TcpStore two = job.open(job.rank(2, 3, "", 0), Job.settings());
        List<CompletableFuture<List<byte[]>>> gathers = Stream.of(root, one, two)
                .map(rank -> job.start(() -> rank.gather("all", new byte[1], Job.LONG)))
                .toList();
        gathers.forEach(gather -> assertEquals(3, gather.join().size()));
    }

    private CompletableFuture<Object> startGather(int rank, int world) {
        RankInfo self = job.rank(rank, world);
        return job.start(() -> job.open(self, Job.settings()).gather("id", new byte[1], NEVER));
    }

    @Test
    void waitsForStoreOfOwnJobAndAttempt() {
        TcpStore old = Job.settings().open(job.rank(0, 2, "job", 0));
        CompletableFuture<byte[]> restarted = job.start(
                () -> job.open(job.rank(1, 2, "job", 1), Job.settings()).broadcast("id", 0, () -> null, Job.LONG));
        String message = assertThrows(
                        RendezvousTimeoutException.class,
                        () -> Job.settings().timeout(Job.SHORT).open(job.rank(1, 2, "other", 0)))
                .getMessage();
        assertTrue(
                message.endsWith(
                        "within 0.7 s: rank 0 is in job 'job', attempt 0; this rank is in job 'other'," + " attempt 0"),
                message);
        assertFalse(restarted.isDone());
        old.set("id", new byte[] {1});
        old.close();
        job.open(job.rank(0, 2, "job", 1), Job.settings()).broadcast("id", 0, () -> new byte[] {2}, Job.LONG);
        assertEquals(2, restarted.join()[0]);
    }

    @Test
    void failureOfRootReachesOtherRanks() {
        List<TcpStore> stores = job.openAll(3);
        List<CompletableFuture<byte[]>> others = new ArrayList<>();
        for (TcpStore store : stores.subList(1, 3)) {
            others.add(job.start(() -> store.broadcast("id", 0, () -> null, NEVER)));
        }
        IllegalStateException own = assertThrows(IllegalStateException.class, () -> stores.get(0)
                .broadcast(
                        "id",
                        0,
                        () -> {
                            throw new IllegalStateException("no network interface");
                        },
                        NEVER));
        assertEquals("no network interface", own.getMessage());
        for (CompletableFuture<byte[]> other : others) {
            assertEquals("rank 0 failed: no network interface", message(other));
        }
    }

    @Test
    void abortFailsCallsInScope() {
        List<TcpStore> stores = job.openAll(3);
        CompletableFuture<List<byte[]>> inScope =
                job.start(() -> stores.get(1).scope("a").gather("x", new byte[1], NEVER));
        CompletableFuture<List<byte[]>> beside =
                job.start(() -> stores.get(1).scope("b").gather("x", new byte[1], NEVER));
        CompletableFuture<byte[]> key = job.start(() -> stores.get(0).get("x", NEVER));
        stores.get(2).scope("a").abort("no device");
        assertEquals("rank 2 has aborted: no device", message(inScope));
        assertEquals(
                "rank 2 has aborted: no device",
                assertThrows(
                                RendezvousException.class,
                                () -> stores.get(0).scope("a").barrier("later", NEVER))
                        .getMessage());
        assertFalse(beside.isDone());
        assertFalse(key.isDone());
        stores.get(2).abort("no memory");
        assertEquals("rank 2 has aborted: no memory", message(beside));
        assertEquals("rank 2 has aborted: no memory", message(key));
    }

    @Test
    void lateRankGetsAbortReasonOfClosingStore() {
        TcpStore root = job.open(job.rank(0, 2), Job.settings());
        root.abort("no memory");
        CompletableFuture<Object> closing = job.start(() -> {
            root.close();
            return null;
        });
        TcpStore late = job.open(job.rank(1, 2), Job.settings());
        String message = assertThrows(RendezvousException.class, () -> late.barrier("x", NEVER))
                .getMessage();
        assertTrue(message.endsWith("rank 0 has aborted: no memory"), message);
        closing.join();
    }

    @Test
    void killedRankFailsCallsThatNeedIt() {
        ChildJvm.Running victim = startOneRank(2, 3);
        CompletableFuture<TcpStore> opening = job.openAsync(job.rank(0, 3), Job.settings());
        TcpStore other = job.open(job.rank(1, 3), Job.settings());
        TcpStore root = opening.join();
        CompletableFuture<Object> started = job.start(() -> {
            root.barrier("started", Job.LONG);
            return null;
        });
        other.barrier("started", Job.LONG);
        started.join();
        CompletableFuture<Object> waits = job.start(() -> root.gather("next", new byte[1], NEVER));
        victim.process().destroyForcibly();
        String expected =
                "'next': rank 2 \\(127\\.0\\.0\\.1, process " + victim.process().pid() + "\\) is lost";
        assertTrue(message(waits).matches(expected), message(waits));
        String later = assertThrows(RendezvousException.class, () -> other.gather("next", new byte[1], NEVER))
                .getMessage();
        assertTrue(later.matches(expected), later);
        assertEquals(List.of(2), other.gone());
        // The remaining ranks can use the store.
        CompletableFuture<Object> left =
                job.start(() -> root.among("left", List.of(0, 1)).gather("next", new byte[1], Job.LONG));
        other.among("left", List.of(0, 1)).gather("next", new byte[1], Job.LONG);
        left.join();
        // Another process takes the place; what needs the first one fails at once.
        TcpStore second = job.open(job.rank(2, 3), Job.settings());
        assertEquals(List.of(0, 0, 1), other.attempts());
        assertEquals(1, second.attempt());
        assertEquals(List.of(), other.gone());
        String early = assertThrows(RendezvousException.class, () -> second.barrier("all", NEVER))
                .getMessage();
        assertTrue(early.contains("'all': rank 2 has taken the place of a process that was lost, as attempt 1"), early);
        String late = assertThrows(RendezvousException.class, () -> other.barrier("all", NEVER))
                .getMessage();
        assertTrue(late.matches("'all': rank 2 was lost, and 127\\.0\\.0\\.1, process \\d+ has taken its place"), late);
        CompletableFuture<Object> met = job.start(() -> {
            second.among("met", List.of(1, 2), List.of(0, 1)).barrier("met", Job.LONG);
            return null;
        });
        other.among("met", List.of(1, 2), List.of(0, 1)).barrier("met", Job.LONG);
        met.join();
        String twice = assertThrows(
                        RendezvousException.class, () -> Job.settings().open(job.rank(2, 3)))
                .getMessage();
        assertTrue(twice.contains("two processes claim to be rank 2 of 3"), twice);
    }

    @Test
    void killedRankZeroFailsAllCalls() {
        ChildJvm.Running victim = startOneRank(0, 3);
        List<CompletableFuture<Object>> waits = new ArrayList<>();
        CompletableFuture<TcpStore> opening = job.openAsync(job.rank(1, 3), Job.settings());
        TcpStore second = job.open(job.rank(2, 3), Job.settings());
        List<CompletableFuture<Object>> started = new ArrayList<>();
        for (TcpStore store : List.of(opening.join(), second)) {
            started.add(job.start(() -> {
                store.barrier("started", Job.LONG);
                return null;
            }));
            waits.add(job.start(() -> store.get("never", NEVER)));
        }
        started.forEach(CompletableFuture::join);
        victim.process().destroyForcibly();
        for (CompletableFuture<Object> one : waits) {
            String message = message(one);
            assertTrue(
                    message.matches("rank [12] has lost its connection to the store of rank 0 at 127.0.0.1:"
                            + job.port() + ": .+"),
                    message);
        }
        assertThrows(RendezvousException.class, () -> second.set("x", new byte[1]));
    }

    @Test
    void closedRankIsNamed() {
        List<TcpStore> stores = job.openAll(3);
        CompletableFuture<Object> waits = job.start(() -> stores.get(0).gather("x", new byte[1], NEVER));
        stores.get(2).close();
        assertTrue(
                message(waits).matches("'x': rank 2 \\(127\\.0\\.0\\.1, process \\d+\\) has closed its store"),
                message(waits));
        CompletableFuture<Object> other = job.start(() -> stores.get(1).get("x", NEVER));
        stores.get(0).close();
        assertTrue(message(other).endsWith(":" + job.port() + ": rank 0 has closed its store"), message(other));
    }

    /** The lost rank is neither the root nor the rank that waits. */
    @Test
    void lostReceiverEndsTheWaitForTheRoot() {
        List<TcpStore> stores = job.openAll(3);
        CompletableFuture<Object> waits = job.start(() -> stores.get(1).broadcast("x", 0, () -> null, NEVER));
        stores.get(2).close();
        assertTrue(
                message(waits).matches("'x': rank 2 \\(127\\.0\\.0\\.1, process \\d+\\) has closed its store"),
                message(waits));
    }

    @Test
    void interruptEndsWait() throws Exception {
        List<TcpStore> stores = job.openAll(2);
        CompletableFuture<String> outcome = new CompletableFuture<>();
        Thread waits = new Thread(() -> {
            try {
                stores.get(1).gather("x", new byte[1], NEVER);
            } catch (RendezvousException failure) {
                outcome.complete(failure.getMessage() + Thread.currentThread().isInterrupted());
            }
        });
        waits.start();
        waits.interrupt();
        assertEquals("rank 1 was interrupted while it waited for 'x'true", outcome.join());
        // The interrupt has not closed the connection.
        stores.get(1).set("y", new byte[1]);
        waits.join();
    }
}
