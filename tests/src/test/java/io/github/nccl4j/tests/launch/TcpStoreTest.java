package io.github.nccl4j.tests.launch;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.TcpStore;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests of a store whose ranks are all connected: collective calls, scopes, limits. */
@Timeout(600)
class TcpStoreTest {
    private static final byte[] ID = new byte[128];

    static {
        for (int i = 0; i < ID.length; i++) {
            ID[i] = (byte) (i * 7);
        }
    }

    private final Job job = new Job();

    @AfterEach
    void end() {
        job.close();
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /* Collectives. */

    @Test
    void broadcastsSameValueToAllRanks() throws Exception {
        int world = 16;
        List<CompletableFuture<byte[]>> ranks = new ArrayList<>();
        for (int rank = world - 1; rank >= 0; rank--) {
            RankInfo self = job.rank(rank, world);
            ranks.add(job.start(() -> job.open(self, Job.settings()).broadcast("id", 0, ID::clone, Job.LONG)));
            if (rank == 1) {
                // Rank 0 may start last; the other ranks try again meanwhile.
                Thread.sleep(100);
            }
        }
        for (CompletableFuture<byte[]> rank : ranks) {
            assertArrayEquals(ID, rank.join());
        }
    }

    @Test
    void reusesKeysInManyRounds() {
        int world = 5;
        List<CompletableFuture<Void>> ranks = new ArrayList<>();
        for (TcpStore store : job.openAll(world)) {
            ranks.add(job.start(() -> {
                for (int round = 0; round < 200; round++) {
                    List<byte[]> values = store.gather("values", bytes(store.rank() + ":" + round), Job.LONG);
                    for (int rank = 0; rank < world; rank++) {
                        assertEquals(rank + ":" + round, text(values.get(rank)));
                    }
                    store.barrier("end", Job.LONG);
                    int root = round % world;
                    int now = round;
                    assertEquals("b" + now, text(store.broadcast("one", root, () -> bytes("b" + now), Job.LONG)));
                    store.barrier("end", Job.LONG);
                }
                return null;
            }));
        }
        ranks.forEach(CompletableFuture::join);
    }

    @Test
    void scopesSeparateKeys() {
        List<TcpStore> stores = job.openAll(2);
        TcpStore root = stores.get(0);
        TcpStore other = stores.get(1);
        root.broadcast("id", 0, () -> bytes("whole"), Job.LONG);
        root.scope("a").broadcast("id", 0, () -> bytes("in a"), Job.LONG);
        root.scope("a").scope("b").broadcast("id", 0, () -> bytes("in a/b"), Job.LONG);
        assertEquals("in a/b", text(other.scope("a").scope("b").broadcast("id", 0, () -> ID, Job.LONG)));
        assertEquals("in a", text(other.scope("a").broadcast("id", 0, () -> ID, Job.LONG)));
        assertEquals("whole", text(other.broadcast("id", 0, () -> ID, Job.LONG)));
    }

    @Test
    void subsetOfRanksHasItsOwnOrder() {
        List<TcpStore> stores = job.openAll(4);
        List<Integer> some = List.of(3, 1);
        List<CompletableFuture<String>> ranks = new ArrayList<>();
        for (int rank : some) {
            Rendezvous rendezvous = stores.get(rank).among("left", some);
            assertEquals(2, rendezvous.size());
            ranks.add(job.start(() -> {
                List<byte[]> values = rendezvous.gather("who", bytes("r" + rank), Job.LONG);
                return rendezvous.rank()
                        + text(values.get(0))
                        + text(values.get(1))
                        + text(rendezvous.broadcast("id", 1, () -> bytes("by " + rank), Job.LONG));
            }));
        }
        assertEquals("0r3r1by 1", ranks.get(0).join());
        assertEquals("1r3r1by 1", ranks.get(1).join());
        assertEquals(
                "ranks must include this rank: [3, 1], rank 0",
                assertThrows(IllegalArgumentException.class, () -> stores.get(0).among("left", some))
                        .getMessage());
        assertEquals(
                "ranks must be distinct: [3, 3]",
                assertThrows(IllegalArgumentException.class, () -> stores.get(3).among("left", List.of(3, 3)))
                        .getMessage());
        assertThrows(IllegalArgumentException.class, () -> stores.get(3).among("left", List.of(3, 4)));
    }

    @Test
    void rejectsDifferentCallsWithSameKey() {
        List<TcpStore> stores = job.openAll(3);
        stores.get(1).broadcast("x", 1, ID::clone, Job.LONG);
        assertEquals(
                "ranks must make the same call with key 'x': rank 2 calls gather with 3 ranks, others broadcast from rank 1"
                        + " with 3 ranks",
                assertThrows(RendezvousException.class, () -> stores.get(2).gather("x", ID, Job.LONG))
                        .getMessage());
        assertEquals(
                "rank 1 arrived at 'x' again before all ranks had arrived; a key can be used again when all ranks have returned"
                        + " from it",
                assertThrows(RendezvousException.class, () -> stores.get(1).broadcast("x", 1, ID::clone, Job.LONG))
                        .getMessage());
        assertArrayEquals(ID, stores.get(2).broadcast("x", 1, () -> null, Job.LONG));
        assertArrayEquals(ID, stores.get(0).broadcast("x", 1, () -> null, Job.LONG));
    }

    @Test
    void closeOfRankZeroWaitsForDelivery() {
        List<TcpStore> stores = job.openAll(3);
        stores.get(0).broadcast("id", 0, ID::clone, Job.LONG);
        CompletableFuture<Void> closing = job.start(() -> {
            stores.get(0).close();
            return null;
        });
        assertArrayEquals(ID, stores.get(1).broadcast("id", 0, () -> null, Job.LONG));
        assertFalse(closing.isDone(), "rank 2 has not fetched it");
        assertArrayEquals(ID, stores.get(2).broadcast("id", 0, () -> null, Job.LONG));
        closing.join();
    }

    @Test
    void singleRankNeedsNoPort() throws Exception {
        try (ServerSocket taken = new ServerSocket(job.port(), 1, InetAddress.getByName("127.0.0.1"))) {
            TcpStore store = job.open(job.rank(0, 1), Job.settings());
            assertArrayEquals(ID, store.broadcast("id", 0, ID::clone, Job.SHORT));
            assertEquals(1, store.gather("all", ID, Job.SHORT).size());
            store.barrier("end", Job.SHORT);
            assertTrue(taken.isBound());
        }
    }

    @Test
    void connectsByIpv6() throws Exception {
        Assumptions.assumeTrue(
                NetworkInterface.getByInetAddress(Inet6Address.getByName("::1")) != null, "this host has no IPv6");
        List<CompletableFuture<byte[]>> ranks = new ArrayList<>();
        for (int rank = 0; rank < 3; rank++) {
            RankInfo self = RankInfo.from(
                    Map.of(),
                    Map.of(
                            "RANK",
                            "" + rank,
                            "WORLD_SIZE",
                            "3",
                            "LOCAL_RANK",
                            "" + rank,
                            "LOCAL_WORLD_SIZE",
                            "3",
                            "MASTER_ADDR",
                            "[::1]",
                            "MASTER_PORT",
                            "" + job.port()));
            ranks.add(job.start(() -> {
                TcpStore store = job.open(self, Job.settings());
                assertEquals("[::1]:" + job.port(), store.address().replace("0:0:0:0:0:0:0:1", "::1"));
                return store.broadcast("id", 0, ID::clone, Job.LONG);
            }));
        }
        for (CompletableFuture<byte[]> rank : ranks) {
            assertArrayEquals(ID, rank.join());
        }
    }

    @Test
    void rankZeroListensAtBindAddress() throws Exception {
        CompletableFuture<TcpStore> root =
                job.openAsync(job.rank(0, 2), Job.settings().bind(InetAddress.getByName("0.0.0.0")));
        TcpStore other = job.open(job.rank(1, 2), Job.settings());
        root.join().broadcast("id", 0, ID::clone, Job.LONG);
        assertArrayEquals(ID, other.broadcast("id", 0, () -> null, Job.LONG));
    }

    /* Arguments and limits. The calls with keys are those of TcpStoreContractTest. */

    @ParameterizedTest
    @ValueSource(strings = {"", "a/b"})
    void rejectsInvalidKey(String key) {
        TcpStore store = job.openAll(1).get(0);
        assertThrows(IllegalArgumentException.class, () -> store.gather(key, ID, Job.SHORT));
        assertThrows(IllegalArgumentException.class, () -> store.broadcast(key, 0, () -> ID, Job.SHORT));
        assertThrows(IllegalArgumentException.class, () -> store.barrier(key, Job.SHORT));
        assertThrows(IllegalArgumentException.class, () -> store.scope(key));
    }

    @Test
    void rejectsTooLongArguments() {
        TcpStore store = job.openAll(1).get(0);
        byte[] value = new byte[Rendezvous.LONGEST_VALUE + 1];
        assertThrows(IllegalArgumentException.class, () -> store.gather("a", value, Job.SHORT));
        assertEquals(
                "a value must have < 65536 bytes: 65537",
                assertThrows(IllegalArgumentException.class, () -> store.broadcast("a", 0, () -> value, Job.SHORT))
                        .getMessage());
        assertEquals(
                "a key with its scopes must have <= 1024 bytes: 1025",
                assertThrows(IllegalArgumentException.class, () -> store.scope("s")
                                .barrier("a".repeat(1023), Job.SHORT))
                        .getMessage());
        assertEquals(
                "root must be >= 0 and < size: 1, size 1",
                assertThrows(IllegalArgumentException.class, () -> store.broadcast("b", 1, () -> ID, Job.SHORT))
                        .getMessage());
        assertThrows(IllegalArgumentException.class, () -> store.barrier("b", Duration.ofNanos(-1)));
    }

    @Test
    void limitsBytesOfStore() {
        TcpStore store = job.openAll(1).get(0);
        byte[] value = new byte[Rendezvous.LONGEST_VALUE];
        RendezvousException full = assertThrows(RendezvousException.class, () -> {
            for (int i = 0; i < 2000; i++) {
                store.set("k" + i, value);
            }
        });
        assertTrue(
                full.getMessage()
                        .matches(
                                "'k\\d+': the store must hold <= 67108864 bytes: \\d+ are in use, \\d+ are to be added"),
                full.getMessage());
        for (int i = 0; i < 10; i++) {
            store.delete("k" + i);
        }
        store.set("again", value);
        // The bytes of a completed gather are released.
        for (int i = 0; i < 2000; i++) {
            store.gather("g", value, Job.LONG);
        }
    }
}
