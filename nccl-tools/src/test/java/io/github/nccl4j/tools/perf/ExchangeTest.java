package io.github.nccl4j.tools.perf;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.tools.launch.ChildProcesses;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import picocli.CommandLine;

/** Exchange between the threads of several processes, which are groups of threads here. */
@Timeout(60)
class ExchangeTest {
    private static final int PROCESSES = 2;
    private static final int THREADS = 3;
    private static final int ROUNDS = 200;

    private final CyclicBarrier turn = new CyclicBarrier(PROCESSES);
    private final byte[][] values = new byte[PROCESSES][];

    /** The store of a process; rejects repeated keys and long values. */
    private final class Store implements Rendezvous {
        private final int rank;
        private final Set<String> used = new HashSet<>();

        Store(int rank) {
            this.rank = rank;
        }

        @Override
        public int rank() {
            return rank;
        }

        @Override
        public int size() {
            return PROCESSES;
        }

        @Override
        public List<byte[]> gather(String key, byte[] value, Duration timeout) {
            assertTrue(used.add(key), key);
            assertTrue(value.length <= LONGEST_VALUE, () -> "" + value.length);
            try {
                turn.await();
                values[rank] = value;
                turn.await();
                List<byte[]> all = new ArrayList<>(Arrays.asList(values));
                turn.await();
                return all;
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }

        @Override
        public void close() {}
    }

    private Processes processes(int process) {
        return new Processes(new Store(process), Duration.ofSeconds(30));
    }

    @Test
    void gathersTheMaximumOfEachProcess() throws Exception {
        List<Callable<Integer>> parts = new ArrayList<>();
        for (int p = 0; p < PROCESSES; p++) {
            int process = p;
            Exchange exchange = new Exchange(process, THREADS, null, processes(process));
            for (int t = 0; t < THREADS; t++) {
                int thread = t;
                parts.add(() -> rounds(exchange, process, thread));
            }
        }
        int told = Threads.run(parts, () -> {}).stream()
                .mapToInt(Integer::intValue)
                .sum();
        assertEquals(PROCESSES * ROUNDS, told);
    }

    /** The number of times that this thread got the numbers of all processes. */
    private static int rounds(Exchange exchange, int process, int thread) {
        int told = 0;
        for (int round = 0; round < ROUNDS; round++) {
            // A different thread has the maximum at each index.
            double[] own = new double[THREADS];
            for (int i = 0; i < THREADS; i++) {
                own[i] = 1000.0 * round + 100 * process + (i == thread ? 10 : 0) + i;
            }
            List<double[]> all = exchange.byProcess(thread, own);
            if (thread != 0) {
                assertNull(all);
                continue;
            }
            for (int p = 0; p < PROCESSES; p++) {
                double least = 1000.0 * round + 100 * p + 10;
                assertArrayEquals(new double[] {least, least + 1, least + 2}, all.get(p));
            }
            told++;
        }
        return told;
    }

    @Test
    void gathersLongValuesInParts() throws Exception {
        int length = 2 * Rendezvous.LONGEST_VALUE / Double.BYTES + 3;
        List<Callable<List<double[]>>> parts = new ArrayList<>();
        for (int p = 0; p < PROCESSES; p++) {
            double process = p;
            Processes processes = processes(p);
            parts.add(() -> {
                double[] own = new double[length];
                Arrays.setAll(own, i -> process + i * 1e-6);
                return processes.gather(own);
            });
        }
        for (List<double[]> all : Threads.run(parts, () -> {})) {
            for (int p = 0; p < PROCESSES; p++) {
                assertEquals(length, all.get(p).length);
                assertEquals(p, all.get(p)[0]);
                assertEquals(p + (length - 1) * 1e-6, all.get(p)[length - 1]);
            }
        }
    }

    /** Without shared memory, the threads reduce their numbers by NCCL; each has several ranks, which count once. */
    @Test
    void reducesNumbersOverNccl() throws Exception {
        // In its own JVM, because a process chooses its library only once.
        Process process = ChildProcesses.start(new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "--enable-native-access=ALL-UNNAMED",
                        "-Dnccl4j.engine=host",
                        "-cp",
                        System.getProperty("java.class.path"),
                        OverNccl.class.getName())
                .redirectErrorStream(true));
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, process.waitFor(), output);
        assertEquals(
                List.of(
                        "[4.0, 1.0, 10.0]: RANK0 4.0, AVG 5.0, MIN 1.0, MAX 10.0, SUM 15.0",
                        "[-4.0, -1.0, -10.0]: RANK0 -4.0, AVG -5.0, MIN -10.0, MAX -1.0, SUM -15.0"),
                output.lines().toList());
    }

    /** Reduces a number of each of three threads with two ranks each, and prints what they all got. */
    static final class OverNccl {
        public static void main(String[] arguments) throws Exception {
            Settings settings =
                    CommandLine.populateCommand(new Settings(), "-t", "3", "-g", "2", "-b", "8", "-e", "1K");
            Members.World world = new Members.World(
                    UniqueId.create(), 6, CommunicatorConfig.builder().build(), Duration.ofSeconds(30));
            Exchange exchange = new Exchange(0, THREADS, null, null);
            try (Members members = new Members(settings, null)) {
                members.create(world, 0, Collections.nCopies(6, Device.host()));
                for (List<Double> numbers : List.of(List.of(4.0, 1.0, 10.0), List.of(-4.0, -1.0, -10.0))) {
                    List<Callable<String>> parts = new ArrayList<>();
                    for (int t = 0; t < THREADS; t++) {
                        int thread = t;
                        List<Member> own = members.all().subList(2 * t, 2 * t + 2);
                        parts.add(() -> Arrays.stream(Exchange.Mode.values())
                                .map(mode -> mode + " " + exchange.combine(thread, own, numbers.get(thread), mode))
                                .collect(Collectors.joining(", ")));
                    }
                    Set<String> results = new HashSet<>(Threads.run(parts, () -> {}));
                    System.out.println(numbers + ": " + String.join("; ", results));
                }
            }
        }
    }
}
