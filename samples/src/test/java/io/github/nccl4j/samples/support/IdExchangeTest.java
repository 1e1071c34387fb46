package io.github.nccl4j.samples.support;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class IdExchangeTest {

    private static final byte[] ID = new byte[128];
    private static final Duration LONG = Duration.ofSeconds(20);
    private static final Duration SHORT = Duration.ofMillis(700);

    static {
        for (int i = 0; i < ID.length; i++) {
            ID[i] = (byte) (i * 7);
        }
    }

    private final ExecutorService threads = Executors.newCachedThreadPool();
    private int port;

    @BeforeEach
    void choosePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            port = socket.getLocalPort();
        }
    }

    @AfterEach
    void endThreads() {
        threads.shutdownNow();
    }

    private CompletableFuture<byte[]> rank(int rank, int world, Duration timeout) {
        RankInfo self = new RankInfo(rank, world, 0, 1, "127.0.0.1", port);
        return CompletableFuture.supplyAsync(() -> new IdExchange(self, timeout).exchange(ID::clone), threads);
    }

    private static String failure(CompletableFuture<byte[]> rank) {
        CompletionException failure = assertThrows(CompletionException.class, rank::join);
        return assertInstanceOf(RendezvousException.class, failure.getCause()).getMessage();
    }

    @Test
    void everyRankGetsTheSameId() throws Exception {
        int world = 16;
        List<CompletableFuture<byte[]>> ranks = new ArrayList<>();
        for (int rank = world - 1; rank > 0; rank--) {
            ranks.add(rank(rank, world, LONG));
        }
        // Rank 0 may come last; the others keep knocking.
        Thread.sleep(100);
        ranks.add(rank(0, world, LONG));
        for (CompletableFuture<byte[]> rank : ranks) {
            assertArrayEquals(ID, rank.join());
        }
    }

    @Test
    void oneRankNeedsNobody() {
        assertArrayEquals(ID, rank(0, 1, SHORT).join());
    }

    @Test
    void missingRanksAreNamedToAll() {
        List<CompletableFuture<byte[]>> ranks = List.of(rank(0, 5, SHORT), rank(1, 5, LONG), rank(3, 5, LONG));
        String message = "3 of 5 ranks met at 127.0.0.1:" + port + " within 0.7 s; missing: rank 2, 4";
        for (CompletableFuture<byte[]> rank : ranks) {
            assertEquals(message, failure(rank));
        }
    }

    @Test
    void aRankWithoutRootSaysWhereItLooked() {
        String message = failure(rank(1, 2, SHORT));
        assertTrue(
                message.startsWith("rank 1 could not reach rank 0 at 127.0.0.1:" + port + " within 0.7 s: "), message);
    }

    @Test
    void twoProcessesOfOneRankAreAnError() {
        List<CompletableFuture<byte[]>> ranks = List.of(rank(0, 3, LONG), rank(1, 3, LONG), rank(1, 3, LONG));
        for (CompletableFuture<byte[]> rank : ranks) {
            assertEquals("two processes say that they are rank 1 of 3; the second came from 127.0.0.1", failure(rank));
        }
    }

    @Test
    void anotherNumberOfRanksIsAnError() {
        List<CompletableFuture<byte[]>> ranks = List.of(rank(0, 3, LONG), rank(1, 4, LONG));
        for (CompletableFuture<byte[]> rank : ranks) {
            assertEquals("rank 1 expects 4 ranks, rank 0 expects 3", failure(rank));
        }
    }

    @Test
    void strangersDoNotDisturb() throws Exception {
        CompletableFuture<byte[]> root = rank(0, 2, LONG);
        Socket silent = connect();
        try (silent;
                Socket loud = connect()) {
            loud.getOutputStream().write("GET / HTTP/1.0\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
            assertEquals(-1, loud.getInputStream().read());
            assertArrayEquals(ID, rank(1, 2, LONG).join());
            assertArrayEquals(ID, root.join());
        }
    }

    private Socket connect() throws Exception {
        while (true) {
            try {
                return new Socket(InetAddress.getLoopbackAddress(), port);
            } catch (IOException notYet) {
                Thread.sleep(10);
            }
        }
    }

    @Test
    void aTakenPortNamesTheVariables() throws IOException {
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            port = taken.getLocalPort();
            String message = failure(rank(0, 2, SHORT));
            assertTrue(
                    message.startsWith("rank 0 can't listen at 127.0.0.1:" + port + " (MASTER_ADDR, MASTER_PORT)"),
                    message);
        }
    }
}
