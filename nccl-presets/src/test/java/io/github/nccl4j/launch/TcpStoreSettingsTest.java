package io.github.nccl4j.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.RankInfo.Source;
import io.github.nccl4j.testing.Ports;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The settings of a store: where it listens, and what it tells of itself. */
@Timeout(60)
class TcpStoreSettingsTest {
    private static final Duration TIMEOUT = Duration.ofSeconds(20);
    private static final String BIND = "NCCL4J_STORE_BIND";

    private final int port = Ports.free();

    /** Rank 0 of two, which does not wait for the other: a store of one rank chooses its port itself. */
    private RankInfo self() {
        return of(2);
    }

    private RankInfo of(int size) {
        return new RankInfo(0, size, 0, size, "127.0.0.1", port, "job", 0, Source.PROPERTIES);
    }

    private static TcpStore.Builder builder(Map<String, String> environment) {
        return new TcpStore.Builder(environment).timeout(TIMEOUT);
    }

    /** True if another socket can listen at an address, so that the store does not. */
    private boolean isFree(String address) {
        try (ServerSocket socket = new ServerSocket(port, 1, InetAddress.getByName(address))) {
            return socket.isBound();
        } catch (IOException taken) {
            return false;
        }
    }

    @Test
    void tellsOfItself() {
        try (TcpStore store = builder(Map.of()).open(self())) {
            assertEquals("store at 127.0.0.1:" + port + ", rank 0 of 2", store.toString());
            assertEquals(TIMEOUT, store.timeout());
            assertEquals(0, store.rank());
            assertEquals(2, store.size());
        }
    }

    @Test
    void opensWithTheEnvironment() {
        try (TcpStore store = TcpStore.open(of(1))) {
            assertEquals(Rendezvous.DEFAULT_TIMEOUT, store.timeout());
            assertEquals(1, store.gather("key", new byte[0], TIMEOUT).size());
        }
    }

    private void listens(boolean everywhere, TcpStore.Builder builder) {
        try (TcpStore store = builder.open(self())) {
            assertFalse(isFree("127.0.0.1"), store::toString);
            assertEquals(!everywhere, isFree("127.0.0.2"), store::toString);
        }
    }

    /** The server listens at the address of the master, unless it is told another one. */
    @Test
    void listensWhereTheEnvironmentSays() {
        listens(false, builder(Map.of()));
        listens(false, builder(Map.of(BIND, " ")));
        listens(true, builder(Map.of(BIND, "0.0.0.0")));
        listens(true, builder(Map.of(BIND, " [0.0.0.0] ")));
    }

    @Test
    void aCallOfTheBuilderPrecedesTheEnvironment() throws IOException {
        listens(true, builder(Map.of(BIND, "no such host")).bind(InetAddress.getByName("0.0.0.0")));
    }

    @Test
    void timeoutMustBePositive() {
        for (Duration wrong : List.of(Duration.ZERO, Duration.ofSeconds(-20))) {
            assertEquals(
                    "timeout must be > 0: " + wrong.toSeconds() + " s",
                    assertThrows(IllegalArgumentException.class, () -> builder(Map.of())
                                    .timeout(wrong))
                            .getMessage());
        }
    }

    @Test
    void anAddressThatIsNoneIsRefused() {
        TcpStore.Builder builder = builder(Map.of(BIND, "no such host"));
        assertEquals(
                BIND + " must be an address of this host: no such host",
                assertThrows(IllegalArgumentException.class, () -> builder.open(self()))
                        .getMessage());
    }

    /** Rank 0 keeps the store unless the environment names a store at the same address. */
    @Test
    void storeOfTheEnvironmentIsNotStarted() {
        for (String other : List.of("", " ", "127.0.0.1:" + (port == 1 ? 2 : port - 1), "127.0.0.2:" + port)) {
            try (TcpStore store = builder(Map.of("NCCL4J_STORE_ADDRESS", other)).open(self())) {
                assertEquals(0, store.rank());
            }
        }
        try (TcpStoreServer server = TcpStoreServer.start(InetAddress.getLoopbackAddress(), port);
                TcpStore store = builder(Map.of("NCCL4J_STORE_ADDRESS", server.address()))
                        .open(self())) {
            store.set("key", new byte[] {1});
            assertEquals(1, store.get("key", TIMEOUT)[0]);
        }
    }

    @Test
    void ranksAreWatchedAndObserved() {
        try (TcpStore store = builder(Map.of()).open(self())) {
            assertTrue(store.membership("group", 0, lost -> {}).isPresent());
            assertTrue(store.status("topic", () -> "text").isPresent());
        }
    }
}
