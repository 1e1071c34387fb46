package io.github.nccl4j.tests.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.tests.Threads;
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

/** What an implementation that can only gather has without doing anything for it. */
@Timeout(600)
class RendezvousDefaultsTest {
    private static final Duration TIMEOUT = Duration.ofSeconds(20);
    private static final int SIZE = 3;

    /** One of some threads, which gather in shared memory. */
    private record OfThreads(int rank, Map<String, byte[][]> values, Phaser together) implements Rendezvous {
        @Override
        public int size() {
            return SIZE;
        }

        @Override
        public List<byte[]> gather(String key, byte[] value, Duration timeout) {
            byte[][] all = values.computeIfAbsent(key, name -> new byte[SIZE][]);
            all[rank] = value;
            together.arriveAndAwaitAdvance();
            return Arrays.asList(all);
        }

        @Override
        public void close() {}
    }

    private static List<String> run(Function<Rendezvous, String> task) throws Exception {
        Map<String, byte[][]> values = new ConcurrentHashMap<>();
        Phaser together = new Phaser(SIZE);
        List<Callable<String>> ranks = IntStream.range(0, SIZE)
                .mapToObj(rank -> (Callable<String>) () -> task.apply(new OfThreads(rank, values, together)))
                .toList();
        return Threads.together(ranks, TIMEOUT);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    @Test
    void aBroadcastGivesTheRootsValue() throws Exception {
        List<String> got = run(rendezvous -> new String(
                rendezvous.broadcast("id", 1, () -> bytes("of " + rendezvous.rank()), TIMEOUT),
                StandardCharsets.UTF_8));
        assertEquals(List.of("of 1", "of 1", "of 1"), got);
    }

    @Test
    void aRootThatFailsIsHeard() throws Exception {
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
    void ranksThatDifferAboutTheRootAreTold() throws Exception {
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
    void scopesHaveKeysOfTheirOwn() throws Exception {
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
