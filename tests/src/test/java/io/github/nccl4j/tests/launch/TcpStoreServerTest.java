package io.github.nccl4j.tests.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.LostRank;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.launch.TcpStoreServer;
import io.github.nccl4j.tests.ChildJvm;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests of a store that no rank keeps. */
@Timeout(60)
class TcpStoreServerTest {
    private final Job job = new Job();
    private TcpStoreServer server;

    @BeforeEach
    void start() {
        server = TcpStoreServer.start(InetAddress.getLoopbackAddress(), 0);
    }

    @AfterEach
    void end() {
        job.close();
        server.close();
    }

    private RankInfo rank(int rank, int world, String name) {
        return new RankInfo(rank, world, rank, world, "127.0.0.1", server.port(), name, 0, RankInfo.Source.PROPERTIES);
    }

    private List<TcpStore> open(int world, String name) {
        List<CompletableFuture<TcpStore>> opening = new ArrayList<>();
        for (int rank = 0; rank < world; rank++) {
            opening.add(job.openAsync(rank(rank, world, name), Job.settings().withoutServer()));
        }
        return opening.stream().map(CompletableFuture::join).toList();
    }

    @Test
    void outlivesRank0AndServesSeveralJobs() throws Exception {
        List<TcpStore> one = open(3, "one");
        List<TcpStore> other = open(2, "other");
        one.get(0).set("key", new byte[] {1});
        other.get(0).set("key", new byte[] {2});
        assertEquals(1, one.get(2).get("key", Job.LONG)[0]);
        assertEquals(2, other.get(1).get("key", Job.LONG)[0]);
        one.get(0).close();
        assertEquals(1, one.get(1).get("key", Job.LONG)[0]);
        one.get(2).close();
        one.get(1).close();
        // When its last rank has left, the job can start again, and finds nothing of the last time.
        List<TcpStore> again = new ArrayList<>();
        while (again.isEmpty()) {
            try {
                again = open(2, "one");
            } catch (RuntimeException notYet) {
                // The server has yet to notice the end of a connection.
            }
        }
        assertTrue(!again.get(0).delete("key"));
    }

    @Test
    void textNamesAddress() {
        assertEquals("127.0.0.1:" + server.port(), server.address());
        assertEquals("store at 127.0.0.1:" + server.port(), server.toString());
    }

    @Test
    void firstRankDefinesJob() {
        TcpStore first = job.open(rank(1, 3, "job"), Job.settings().withoutServer());
        RendezvousException refused = assertThrows(
                RendezvousException.class,
                () -> job.open(rank(0, 2, "job"), Job.settings().withoutServer()));
        assertTrue(
                refused.getMessage().contains("expects 2 ranks, rank 1, which came first, expects 3"),
                refused.getMessage());
        // All ranks get the reason.
        RendezvousException told = assertThrows(RendezvousException.class, () -> first.barrier("any", Job.LONG));
        assertTrue(told.getMessage().contains("expects 2 ranks"), told.getMessage());
    }

    @Test
    void endOfStoreIsNamedAndIsNoLoss() {
        List<TcpStore> stores = open(2, "job");
        BlockingQueue<LostRank> told = new LinkedBlockingQueue<>();
        stores.get(0).membership("group", 0, told::add);
        stores.get(1).membership("group", 1, told::add);
        stores.get(1).gone();
        server.close();
        RendezvousException ended =
                assertThrows(RendezvousException.class, () -> stores.get(1).set("key", new byte[0]));
        assertTrue(
                ended.getMessage().startsWith("rank 1 has lost its connection to the store at 127.0.0.1:"),
                ended.getMessage());
        assertTrue(ended.getMessage().endsWith(": the store has been closed"), ended.getMessage());
        assertTrue(told.isEmpty());
    }

    @Test
    void environmentNamesStore() {
        Map<String, String> variables =
                Map.of("RANK", "1", "WORLD_SIZE", "2", "MASTER_ADDR", "node0", "NCCL4J_STORE_ADDRESS", "[::1]:4711");
        RankInfo self = RankInfo.from(Map.of(), variables);
        assertEquals("::1", self.masterAddress());
        assertEquals(4711, self.masterPort());
        RankInfo standard =
                RankInfo.from(Map.of(), Map.of("RANK", "1", "WORLD_SIZE", "2", "NCCL4J_STORE_ADDRESS", "keeper"));
        assertEquals("keeper", standard.masterAddress());
        assertEquals(RankInfo.DEFAULT_PORT, standard.masterPort());
        // A program that sets its own address means a store of its own.
        RankInfo own = RankInfo.from(Map.of("nccl4j.masterAddress", "mine", "nccl4j.masterPort", "5"), variables);
        assertEquals("mine", own.masterAddress());
        assertThrows(
                IllegalArgumentException.class,
                () -> RankInfo.from(
                        Map.of(), Map.of("RANK", "1", "WORLD_SIZE", "2", "NCCL4J_STORE_ADDRESS", "keeper:x")));
    }

    /** The command, whose store ends on SIGTERM and tells that to the ranks. */
    @Test
    void commandKeepsStoreUntilSigterm() throws Exception {
        ChildJvm.Running command = new ChildJvm().start("io.github.nccl4j.tools.Main", "store", "--port", "0");
        command.awaitText("\n");
        String text = command.soFar().toString();
        int port = Integer.parseInt(text.strip().replaceFirst("listening at 127\\.0\\.0\\.1:", ""));
        RankInfo self = new RankInfo(0, 1, 0, 1, "127.0.0.1", port, "", 0, RankInfo.Source.PROPERTIES);
        TcpStore store = job.open(self, Job.settings().withoutServer());
        store.set("key", "value".getBytes(StandardCharsets.UTF_8));
        command.process().destroy();
        assertEquals(143, command.await().exitCode());
        RendezvousException ended = assertThrows(RendezvousException.class, () -> store.set("key", new byte[0]));
        assertTrue(ended.getMessage().contains("the store has been closed"), ended.getMessage());
    }
}
