package io.github.nccl4j.tools.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.tools.launch.ChildProcesses;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(600)
class SharedBarrierTest {
    private static final int RANKS = 3;
    private static final int ROUNDS = 2000;
    private static final Duration PATIENCE = Duration.ofSeconds(30);

    private final CyclicBarrier turn = new CyclicBarrier(RANKS);
    private final byte[][] values = new byte[RANKS][];

    /** Ranks that are threads; one of them may get the path of a file that does not exist for it. */
    private final class Threads implements Rendezvous {
        private final int rank;
        private final boolean elsewhere;

        Threads(int rank, boolean elsewhere) {
            this.rank = rank;
            this.elsewhere = elsewhere;
        }

        @Override
        public int rank() {
            return rank;
        }

        @Override
        public int size() {
            return RANKS;
        }

        @Override
        public List<byte[]> gather(String key, byte[] value, Duration timeout) {
            try {
                turn.await();
                values[rank] = value;
                turn.await();
                List<byte[]> all = new ArrayList<>(Arrays.asList(values));
                if (elsewhere && key.equals("barrier")) {
                    byte[] other = all.get(0).clone();
                    other[other.length - 1] ^= 1;
                    all.set(0, other);
                }
                return all;
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }

        @Override
        public void close() {}
    }

    private List<SharedBarrier> run(boolean oneElsewhere, Callable<Void> round) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(RANKS);
        try {
            List<Future<SharedBarrier>> all = new ArrayList<>();
            for (int r = 0; r < RANKS; r++) {
                int rank = r;
                all.add(pool.submit(() -> rank(rank, oneElsewhere && rank == 2, round)));
            }
            List<SharedBarrier> made = new ArrayList<>();
            for (Future<SharedBarrier> one : all) {
                made.add(one.get());
            }
            return made;
        } finally {
            pool.shutdownNow();
        }
    }

    private SharedBarrier rank(int rank, boolean elsewhere, Callable<Void> round) throws Exception {
        SharedBarrier barrier = make(new Threads(rank, elsewhere));
        for (int i = 0; barrier != null && i < ROUNDS; i++) {
            round.call();
            barrier.await();
        }
        return barrier;
    }

    private static SharedBarrier make(Rendezvous ranks) throws IOException {
        return SharedBarrier.of(ranks, 1, PATIENCE);
    }

    @Test
    void waitsForAllThreads() throws Exception {
        AtomicInteger come = new AtomicInteger();
        AtomicInteger early = new AtomicInteger();
        ThreadLocal<Integer> rounds = ThreadLocal.withInitial(() -> 0);
        run(false, () -> {
                    int round = rounds.get();
                    // All threads have reached the barrier of the previous round.
                    if (come.incrementAndGet() < round * RANKS + 1) {
                        early.incrementAndGet();
                    }
                    rounds.set(round + 1);
                    return null;
                })
                .forEach(barrier -> assertNotNull(barrier));
        assertEquals(0, early.get());
        assertEquals(ROUNDS * RANKS, come.get());
    }

    @Test
    void isNullIfAProcessDoesNotShareTheMemory() throws Exception {
        run(true, () -> null).forEach(barrier -> assertNull(barrier));
    }

    @Test
    void gathersNumbersOfAllThreads() throws Exception {
        SharedBarrier barrier = SharedBarrier.ofThreads(RANKS);
        ExecutorService pool = Executors.newFixedThreadPool(RANKS);
        try {
            List<Future<Boolean>> all = new ArrayList<>();
            for (int p = 0; p < RANKS; p++) {
                int party = p;
                all.add(pool.submit(() -> {
                    boolean right = true;
                    for (int round = 0; round < ROUNDS; round++) {
                        double[] numbers = barrier.gather(party, 10 * round + party);
                        right &= Arrays.equals(numbers, new double[] {10 * round, 10 * round + 1, 10 * round + 2});
                    }
                    return right;
                }));
            }
            for (Future<Boolean> one : all) {
                assertEquals(true, one.get());
            }
        } finally {
            pool.shutdownNow();
        }
    }

    /** Where no file may have any content, as on a full file system. */
    @Test
    void aFileThatCannotBeWrittenIsNamedAndNotLeft(@TempDir Path folder) throws Exception {
        ProcessBuilder builder = new ProcessBuilder(
                        "sh",
                        "-c",
                        "ulimit -f 0; exec \"$@\"",
                        "sh",
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-XX:-UsePerfData",
                        "-cp",
                        System.getProperty("java.class.path"),
                        Creation.class.getName(),
                        folder.toString())
                .redirectErrorStream(true);
        Process process = ChildProcesses.start(builder);
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, process.waitFor(), output);
        assertTrue(output.matches("(?s)" + folder + "/nccl4j-perf\\d+\\.tmp can't be written: .+"), output);
        try (Stream<Path> left = Files.list(folder)) {
            assertEquals(List.of(), left.toList());
        }
    }

    /** Creates the file of a barrier and prints why it can't. */
    static final class Creation {
        public static void main(String[] arguments) {
            try {
                System.out.println(SharedBarrier.create(Path.of(arguments[0]), 4096));
            } catch (IOException e) {
                System.out.println(e.getMessage());
            }
        }
    }
}
