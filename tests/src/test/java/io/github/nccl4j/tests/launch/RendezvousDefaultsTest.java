package io.github.nccl4j.tests.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.tools.support.Threads;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Phaser;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests of the default methods of {@link Rendezvous} in an implementation that has only {@code gather}. */
@Timeout(600)
class RendezvousDefaultsTest {
    private static final Duration TIMEOUT = Duration.ofSeconds(20);
    private static final int SIZE = 3;

    /** Ranks as threads, which gather in shared memory. */
    private record InMemory(int rank, Map<String, byte[][]> values, Phaser phaser) implements Rendezvous {
        @Override
        public int size() {
            return SIZE;
        }

        @Override
        public List<byte[]> gather(String key, byte[] value, Duration timeout) {
            byte[][] all = values.computeIfAbsent(key, name -> new byte[SIZE][]);
            all[rank] = value;
            phaser.arriveAndAwaitAdvance();
            return Arrays.asList(all);
        }

        @Override
        public void close() {}
    }

    private static List<String> run(Function<Rendezvous, String> task) throws Exception {
        Map<String, byte[][]> values = new ConcurrentHashMap<>();
        Phaser phaser = new Phaser(SIZE);
        List<Callable<String>> ranks = IntStream.range(0, SIZE)
                .mapToObj(rank -> (Callable<String>) () -> task.apply(new InMemory(rank, values, phaser)))
                .toList();
        return Threads.together(ranks, TIMEOUT);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    @Test
    void broadcastReturnsValueOfRoot() throws Exception {
        List<String> got = run(rendezvous -> new String(
                rendezvous.broadcast("id", 1, () -> bytes("of " + rendezvous.rank()), TIMEOUT),
                StandardCharsets.UTF_8));
        assertEquals(List.of("of 1", "of 1", "of 1"), got);
    }

    @Test
    void failureOfRootReachesOtherRanks() throws Exception {
        List<String> got = run(rendezvous -> assertThrows(
                        RuntimeException.class,
                        () -> rendezvous.broadcast(
                                "id",
                                1,
                                () -> {
                                    throw new IllegalStateException("no library");
                                },
                                TIMEOUT))
                .getMessage());
        assertEquals(List.of("rank 1 failed: no library", "no library", "rank 1 failed: no library"), got);
    }

    @Test
    void rejectsDifferentRoots() throws Exception {
        List<String> got = run(rendezvous -> {
            int root = rendezvous.rank() == 2 ? 1 : 2;
            return assertThrows(
                            RendezvousException.class,
                            () -> rendezvous.broadcast("id", root, () -> bytes("x"), TIMEOUT))
                    .getMessage();
        });
        assertEquals("all ranks must name the same root: rank 2 does not name itself", got.get(0));
        assertEquals("all ranks must name the same root: rank 1 does not name itself", got.get(2));
    }

    @Test
    void scopesSeparateKeys() throws Exception {
        List<String> got = run(rendezvous -> {
            Rendezvous inner = rendezvous.scope("a").scope("b");
            rendezvous.gather("x", bytes("outer"), TIMEOUT);
            String own = "inner" + inner.rank() + inner.size();
            List<byte[]> all = inner.gather("x", bytes(own), TIMEOUT);
            inner.barrier("end", TIMEOUT);
            inner.abort("nothing happens");
            inner.close();
            return new String(all.get(2), StandardCharsets.UTF_8)
                    + new String(rendezvous.gather("y", bytes("y"), TIMEOUT).get(0), StandardCharsets.UTF_8);
        });
        assertEquals(List.of("inner23y", "inner23y", "inner23y"), got);
    }
}
