package io.github.nccl4j.zookeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorBuilder;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int64;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclRemoteException;
import io.github.nccl4j.highlevel.Recovery;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tools.launch.ChildProcesses;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.apache.curator.test.InstanceSpec;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** {@link Recovery} with a store on an ensemble: ranks are lost and come back, and servers are killed. */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ZooKeeperRecoveryTest {
    private static final int RANKS = 3;

    /** Steps of a cycle: a rank is lost before the second, and is back before the last. */
    private static final int STEPS = 4;

    /** The others learn of a loss at once; on a machine that has no processor left, a while later. */
    private static final long MAX_LATE_MILLIS = 5000;

    /** Recoveries in the gate; 20 with -Dnccl4j.test.zookeeper.recoveries=20. */
    private static final int RECOVERIES = Integer.getInteger("nccl4j.test.zookeeper.recoveries", 4);

    /** Processes that are killed in the gate; 40 with -Dnccl4j.test.zookeeper.kills=40. */
    private static final int KILLS = Integer.getInteger("nccl4j.test.zookeeper.kills", 2);

    private static final long SEED = Long.getLong("nccl4j.test.zookeeper.seed", 1);

    /**
     * Each rank is lost in turn and comes back, over and over. In each cycle the leader is killed once: in half of the cycles while
     * the others recover, and in the other half while they admit the rank.
     */
    @Test
    void leaderIsKilledAmidRecoveries() throws Exception {
        int steps = RECOVERIES * STEPS;
        try (Ensemble ensemble = new Ensemble()) {
            Scene scene = new Scene(ensemble, ensemble.job(), steps, new Leaders(ensemble));
            List<Future<Long>> running = new ArrayList<>();
            for (int rank = 0; rank < RANKS; rank++) {
                int self = rank;
                running.add(ensemble.submit(() -> scene.live(self)));
            }
            for (Future<Long> rank : running) {
                assertEquals(SummingRank.expected(steps), Ensemble.result(rank));
            }
            assertEquals(RECOVERIES, scene.leaders.killed.get());
            // Each loss reaches two survivors.
            assertEquals(2 * RECOVERIES, scene.recoveries.get());
        }
    }

    /** Ranks of which one is lost in each cycle. */
    private record Scene(
            Ensemble ensemble,
            String job,
            int steps,
            Leaders leaders,
            AtomicInteger recoveries,
            Map<Integer, Set<Integer>> reached) {
        Scene(Ensemble ensemble, String job, int steps, Leaders leaders) {
            this(ensemble, job, steps, leaders, new AtomicInteger(), new ConcurrentHashMap<>());
        }

        /** All processes of a rank, one after another; returns the state of the last one. */
        Long live(int rank) throws Exception {
            for (int attempt = 0; ; attempt++) {
                int cycle = attempt * RANKS + rank;
                int lostAt = cycle * STEPS + 1;
                ZooKeeperStore store = ensemble.open(job, rank, RANKS);
                assertEquals(attempt, store.attempt());
                Long state = null;
                try {
                    state = SummingRank.run(
                            store,
                            steps,
                            (recovery, same, step) -> before(recovery, same, lostAt, step),
                            message -> recoveries.incrementAndGet());
                } finally {
                    if (state == null) {
                        // As at the end of a process.
                        store.session().close();
                    } else {
                        store.close();
                    }
                }
                if (state != null) {
                    return state;
                }
                if (cycle % 2 == 0) {
                    leaders.kill();
                }
                awaitOthers(lostAt + 1, rank);
            }
        }

        private boolean before(Recovery recovery, ZooKeeperStore store, int lostAt, int step) throws Exception {
            reached(step).add(store.rank());
            if (step == lostAt) {
                awaitOthers(step, store.rank());
                return false;
            }
            int cycle = step / STEPS;
            int victim = cycle % RANKS;
            if (step % STEPS == STEPS - 1 && store.rank() != victim) {
                assertEquals(RANKS - 1, recovery.members().size());
                store.await(List.of("sums-waits-" + victim + "-" + (cycle / RANKS + 1)), SummingRank.PATIENCE);
                if (cycle % 2 == 1 && store.rank() == (victim + 1) % RANKS) {
                    leaders.kill();
                }
            }
            return true;
        }

        private Set<Integer> reached(int step) {
            return reached.computeIfAbsent(step, one -> ConcurrentHashMap.newKeySet());
        }

        /** Waits until the other ranks have done all steps before a step. */
        private void awaitOthers(int step, int rank) throws InterruptedException {
            Waiting.until(
                    "step " + step,
                    () -> reached(step).stream().filter(one -> one != rank).count() == RANKS - 1);
        }
    }

    /** Kills leaders, and starts each again before the next one is killed: a majority is alive. */
    private static final class Leaders {
        private final Ensemble ensemble;
        private final AtomicInteger killed = new AtomicInteger();
        private InstanceSpec last;

        Leaders(Ensemble ensemble) {
            this.ensemble = ensemble;
        }

        synchronized void kill() throws Exception {
            if (last != null) {
                ensemble.servers.restartServer(last);
                InstanceSpec restarted = last;
                Waiting.until("server that was started again", () -> ensemble.isServing(restarted));
            }
            Waiting.until("a leader", () -> ensemble.leader() != null);
            last = ensemble.leader();
            ensemble.servers.killServer(last);
            killed.incrementAndGet();
        }
    }

    /** A rank waits in an operation for another one, whose session the ensemble ends: the store alone knows of that. */
    @Test
    void operationEndsWhenTheSessionOfAnotherRankEnds() throws Exception {
        try (Ensemble ensemble = new Ensemble()) {
            String job = ensemble.job();
            CountDownLatch created = new CountDownLatch(2);
            CountDownLatch ended = new CountDownLatch(1);
            Future<NcclRemoteException> waits = ensemble.submit(() -> {
                try (ZooKeeperStore store = ensemble.open(job, 0, 2);
                        Communicator communicator = settings().create(store);
                        CudaStream stream = CudaStream.nonBlocking(Device.host());
                        DeviceBuffer<Int64> buffer = Device.host().allocate(ElementType.INT64, 1)) {
                    created.countDown();
                    NcclRemoteException lost = assertThrows(NcclRemoteException.class, () -> {
                        communicator.allReduce(buffer, ReduceOp.SUM, stream);
                        communicator.work(stream).await();
                    });
                    ended.countDown();
                    return lost;
                }
            });
            ZooKeeperStore other = ensemble.open(job, 1, 2);
            try (Communicator communicator = settings().watchdog(false).create(other)) {
                created.countDown();
                created.await();
                ensemble.endSession(other);
                long start = System.nanoTime();
                assertTrue(ended.await(SummingRank.PATIENCE.toSeconds() / 2, TimeUnit.SECONDS));
                long late = (System.nanoTime() - start) / 1_000_000;
                assertTrue(late < MAX_LATE_MILLIS, late + " ms");
                Waiting.until("loss of the session", () -> other.session().isLost());
                assertIsLost(communicator);
                communicator.abort();
            } finally {
                other.close();
            }
            String message = Ensemble.result(waits).getMessage();
            String process = ", process " + ProcessHandle.current().pid();
            assertTrue(
                    message.contains("The store reports: rank 1 (")
                            && message.contains(process + ") is lost: its session at ZooKeeper has ended"),
                    message);
        }
    }

    /** The rank is told of its own loss, after which the other one does not wait for it. */
    private static void assertIsLost(Communicator communicator) throws InterruptedException {
        String text = "This rank is lost: rank 1 (this process) is lost: its session at ZooKeeper has ended";
        try (CudaStream stream = CudaStream.nonBlocking(Device.host());
                DeviceBuffer<Int64> buffer = Device.host().allocate(ElementType.INT64, 1)) {
            NcclRemoteException lost = assertThrows(NcclRemoteException.class, () -> {
                communicator.allReduce(buffer, ReduceOp.SUM, stream);
                communicator.work(stream).await();
            });
            assertTrue(lost.getMessage().contains(text), lost.getMessage());
            assertEquals(List.of(1), lost.lostRanks());
        }
    }

    private static CommunicatorBuilder settings() {
        return Communicator.builder().device(Device.host()).deadline(SummingRank.PATIENCE);
    }

    /**
     * Ranks are killed while the others wait for them, each in turn and then at random. The others recover when the session of the
     * killed one ends, and admit the next process.
     */
    @Test
    void killedProcessesAreNamedAndComeBack() throws Exception {
        Random random = new Random(SEED);
        int size = RANKS + 1;
        int steps = 1 + 2 * KILLS;
        // One line for each kill that a process survives.
        List<List<Kill>> survived = new ArrayList<>();
        try (Ensemble ensemble = new Ensemble();
                Ranks ranks = new Ranks(ensemble, size, steps);
                ZooKeeperStore test = ensemble.open(ensemble.job(), 0, 1)) {
            int[] attempts = new int[size];
            int[] current = new int[size];
            for (int rank = 0; rank < size; rank++) {
                current[rank] = ranks.start(rank);
                survived.add(new ArrayList<>());
            }
            for (int kill = 0; kill < KILLS; kill++) {
                int victim = kill < size ? kill : random.nextInt(size);
                int[] others =
                        IntStream.range(0, size).filter(rank -> rank != victim).toArray();
                int step = 2 * kill;
                ranks.awaitDone(step, attempts, IntStream.range(0, size).toArray());
                // These wait for the victim, or are about to.
                ranks.go(step + 1, others);
                Thread.sleep(random.nextInt(100));
                Process killed = ranks.processes.get(current[victim]);
                Kill one = new Kill(victim, killed.pid(), System.currentTimeMillis());
                killed.destroyForcibly().waitFor();
                ranks.awaitDone(step + 1, attempts, others);
                attempts[victim]++;
                current[victim] = ranks.start(victim);
                survived.add(new ArrayList<>());
                for (int other : others) {
                    survived.get(current[other]).add(one);
                }
                String waits = "sums-waits-" + victim + "-" + attempts[victim];
                Waiting.until(waits, () -> test.session().stat(ranks.key(waits)) != null);
                ranks.go(step + 2, others);
            }
            long slowest = 0;
            for (int process : current) {
                List<String> lines = ranks.output(process);
                List<Kill> kills = survived.get(process);
                assertEquals("state " + SummingRank.expected(steps), lines.get(lines.size() - 1));
                assertEquals(kills.size(), lines.size() - 1, () -> kills + ": " + lines);
                for (int i = 0; i < kills.size(); i++) {
                    String loss = lines.get(i);
                    // By the host engine, with the rank in the communicator, or by the store, whichever is first.
                    assertTrue(
                            loss.matches(".*rank \\d \\(.*(pid|process) " + kills.get(i).pid + "\\).*"),
                            kills.get(i) + ": " + loss);
                    slowest = Math.max(
                            slowest, Long.parseLong(loss.substring(0, loss.indexOf(' '))) - kills.get(i).millis);
                }
            }
            System.out.println("killed " + KILLS + " times on ZooKeeper, seed " + SEED + ", slowest exception after "
                    + slowest + " ms");
            assertTrue(slowest < MAX_LATE_MILLIS, slowest + " ms");
            Waiting.until("end of the job", () -> test.session().stat(ranks.job()) == null);
        }
    }

    /** The moment at which the process of a rank was killed. */
    private record Kill(int rank, long pid, long millis) {}

    /** Ranks as processes, which wait for the test before each step. */
    private static final class Ranks implements AutoCloseable {
        private static final String JOB = Job.BASE + "/" + Text.node("processes-0");

        private final Ensemble ensemble;
        private final int size;
        private final int steps;
        private final List<Process> processes = new ArrayList<>();
        private final List<Future<List<String>>> outputs = new ArrayList<>();
        private final ZooKeeperStore reader;

        Ranks(Ensemble ensemble, int size, int steps) {
            this.ensemble = ensemble;
            this.size = size;
            this.steps = steps;
            reader = ensemble.open("reader", 0, 1);
        }

        String job() {
            return JOB;
        }

        /** Starts a process of a rank; returns its index. */
        int start(int rank) throws IOException {
            List<String> command = List.of(
                    Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                    "-XX:TieredStopAtLevel=1",
                    "-XX:+UseSerialGC",
                    "-Dnccl4j.engine=host",
                    "-cp",
                    System.getProperty("java.class.path"),
                    SummingRank.class.getName(),
                    ensemble.addresses(),
                    "" + rank,
                    "" + size,
                    "" + steps);
            Process process = ChildProcesses.start(new ProcessBuilder(command).redirectError(new File("/dev/null")));
            processes.add(process);
            outputs.add(ensemble.submit(() -> {
                try (BufferedReader reader = process.inputReader()) {
                    return reader.lines().toList();
                }
            }));
            return processes.size() - 1;
        }

        String key(String key) {
            String tree = reader.session().children(JOB).stream()
                    .filter(node -> !node.equals("ranks"))
                    .findFirst()
                    .orElse("none");
            return JOB + "/" + tree + "/keys/" + Text.node(key);
        }

        /** Waits until the processes of some ranks have done a step. */
        void awaitDone(int step, int[] attempts, int... some) throws InterruptedException {
            for (int rank : some) {
                String key = "done-" + step + "-" + rank + "-" + attempts[rank];
                Waiting.until(key, () -> reader.session().stat(key(key)) != null);
            }
        }

        /** Lets some ranks do a step. */
        void go(int step, int... some) {
            for (int rank : some) {
                reader.session().createWithParents(key("go-" + step + "-" + rank), new byte[0]);
            }
        }

        List<String> output(int index) throws Exception {
            List<String> lines = Ensemble.result(outputs.get(index));
            assertFalse(processes.get(index).isAlive() && !processes.get(index).waitFor(10, TimeUnit.SECONDS));
            assertEquals(0, processes.get(index).exitValue(), () -> "" + lines);
            return lines;
        }

        @Override
        public void close() {
            reader.close();
            processes.forEach(ChildProcesses::kill);
        }
    }
}
