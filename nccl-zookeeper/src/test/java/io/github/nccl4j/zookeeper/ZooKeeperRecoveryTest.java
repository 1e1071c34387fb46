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
import io.github.nccl4j.tools.launch.ChildProcesses;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
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
            Ensemble.await(
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
                Ensemble.await("server that was started again", () -> ensemble.isServing(restarted));
            }
            Ensemble.await("a leader", () -> ensemble.leader() != null);
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

    private static CommunicatorBuilder settings() {
        return Communicator.builder().device(Device.host()).deadline(SummingRank.PATIENCE);
    }

    /** Rank 0 is killed while the others wait for it; they recover when its session ends, and admit the next process. */
    @Test
    void killedProcessIsNamedAndComesBack() throws Exception {
        int steps = 8;
        try (Ensemble ensemble = new Ensemble();
                Ranks ranks = new Ranks(ensemble, steps);
                ZooKeeperStore test = ensemble.open(ensemble.job(), 0, 1)) {
            for (int rank = 0; rank < RANKS; rank++) {
                ranks.start(rank);
            }
            ranks.awaitDone(0, "0-0", "1-0", "2-0");
            ranks.go(1, 0, 1, 2);
            ranks.awaitDone(1, "0-0", "1-0", "2-0");
            // These wait for rank 0.
            ranks.go(2, 1, 2);
            Process killed = ranks.processes.get(0);
            killed.destroyForcibly().waitFor();
            ranks.awaitDone(2, "1-0", "2-0");
            ranks.start(0);
            Ensemble.await("candidate", () -> test.session().stat(ranks.key("sums-waits-0-1")) != null);
            ranks.go(3, 1, 2);
            for (int step = 4; step < steps; step++) {
                ranks.awaitDone(step - 1, "0-1", "1-0", "2-0");
                ranks.go(step, 0, 1, 2);
            }
            for (int rank = 1; rank < RANKS; rank++) {
                List<String> lines = ranks.output(rank);
                // By the host engine or by the store, whichever is first.
                String loss = lines.get(0);
                assertTrue(loss.matches(".*rank 0 \\(.*(pid|process) " + killed.pid() + "\\).*"), loss);
                assertEquals(List.of("state " + SummingRank.expected(steps)), lines.subList(1, lines.size()));
            }
            assertEquals(List.of("state " + SummingRank.expected(steps)), ranks.output(RANKS));
            Ensemble.await("end of the job", () -> test.session().stat(ranks.job()) == null);
        }
    }

    /** Ranks as processes, which wait for the test before each step. */
    private static final class Ranks implements AutoCloseable {
        private static final String JOB = Job.BASE + "/" + Text.node("processes-0");

        private final Ensemble ensemble;
        private final int steps;
        private final List<Process> processes = new ArrayList<>();
        private final List<Future<List<String>>> outputs = new ArrayList<>();
        private final ZooKeeperStore reader;

        Ranks(Ensemble ensemble, int steps) {
            this.ensemble = ensemble;
            this.steps = steps;
            reader = ensemble.open("reader", 0, 1);
        }

        String job() {
            return JOB;
        }

        Process start(int rank) throws IOException {
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
                    "" + RANKS,
                    "" + steps);
            Process process = ChildProcesses.start(new ProcessBuilder(command).redirectError(new File("/dev/null")));
            processes.add(process);
            outputs.add(ensemble.submit(() -> {
                try (BufferedReader reader = process.inputReader()) {
                    return reader.lines().toList();
                }
            }));
            return process;
        }

        String key(String key) {
            String tree = reader.session().children(JOB).stream()
                    .filter(node -> !node.equals("ranks"))
                    .findFirst()
                    .orElse("none");
            return JOB + "/" + tree + "/keys/" + Text.node(key);
        }

        /** Waits until some processes, RANK-ATTEMPT, have done a step. */
        void awaitDone(int step, String... done) throws InterruptedException {
            for (String process : done) {
                String key = "done-" + step + "-" + process;
                Ensemble.await(key, () -> reader.session().stat(key(key)) != null);
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
