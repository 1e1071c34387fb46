package io.github.nccl4j.tests.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tools.launch.Signals;
import io.github.nccl4j.tools.support.Leftovers;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Ranks, in processes of their own, that lose one of them in a loop of all-reduces. The property {@code survival.rounds}
 * says how often, {@code survival.seed} where the random moments begin.
 */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("alone")
class SurvivalTest {
    private static final int RANKS = 4;
    private static final int OTHER = 2;

    @TempDir
    Path folder;

    private List<ChildJvm.Running> start(int round, String operationTimeout) throws IOException {
        Path ready = Files.createDirectory(folder.resolve("round" + round));
        String id = Rank.newId();
        List<ChildJvm.Running> ranks = new ArrayList<>();
        for (int rank = 0; rank < RANKS; rank++) {
            ChildJvm jvm = new ChildJvm().property("nccl4j.engine", "host");
            if (operationTimeout != null) {
                jvm.environment("NCCL4J_HOST_OP_TIMEOUT", operationTimeout);
            }
            ranks.add(jvm.start(SurvivalScenarios.class, id, "" + rank, "" + RANKS, "" + OTHER, ready.toString()));
        }
        return ranks;
    }

    private void awaitLoop(int round) throws InterruptedException {
        for (int rank = 0; rank < RANKS; rank++) {
            Path file = folder.resolve("round" + round).resolve("" + rank);
            Waiting.until(file + ", of rank " + rank, () -> Files.exists(file));
        }
    }

    /** What the program printed, without what is logged. */
    private static List<String> toldBy(ChildJvm.Outcome outcome) {
        return outcome.output()
                .lines()
                .filter(line -> line.startsWith("> "))
                .map(line -> line.substring(2))
                .toList();
    }

    @Test
    void aKilledRankIsSurvived() throws Exception {
        int rounds = Integer.getInteger("survival.rounds", 3);
        long seed = Long.getLong("survival.seed", 20261121);
        Random random = new Random(seed);
        Set<String> before = Leftovers.now();
        long slowest = 0;
        for (int round = 0; round < rounds; round++) {
            List<ChildJvm.Running> ranks = start(round, null);
            awaitLoop(round);
            Thread.sleep(random.nextInt(300));
            ranks.get(OTHER).process().destroyForcibly();
            long killed = System.currentTimeMillis();
            for (int rank = 0; rank < RANKS; rank++) {
                if (rank == OTHER) {
                    continue;
                }
                ChildJvm.Outcome outcome = ranks.get(rank).await();
                String text = "seed " + seed + ", round " + round + ", rank " + rank + ": " + outcome.output();
                assertEquals(0, outcome.exitCode(), text);
                List<String> lines = toldBy(outcome);
                long millis = Long.parseLong(lines.get(0)) - killed;
                slowest = Math.max(slowest, millis);
                assertTrue(millis <= 2000, millis + " ms, " + text);
                assertTrue(lines.get(1).startsWith("NcclRemoteException: ncclAllReduce of 50000 int64"), text);
                assertTrue(lines.get(1).contains("rank " + OTHER), text);
                assertEquals("sum 4 of 3", lines.get(2), text);
            }
            ranks.get(OTHER).process().waitFor();
        }
        assertEquals(Set.of(), Leftovers.since(before));
        System.out.println(
                "killed " + rounds + " times, seed " + seed + ", slowest exception after " + slowest + " ms");
    }

    @Test
    void aStoppedRankIsNamedAtTheDeadline() throws Exception {
        List<ChildJvm.Running> ranks = start(0, "2");
        awaitLoop(0);
        Signals.send("STOP", ranks.get(OTHER).process().pid());
        try {
            for (int rank = 0; rank < RANKS; rank++) {
                if (rank == OTHER) {
                    continue;
                }
                ChildJvm.Outcome outcome = ranks.get(rank).await();
                List<String> lines = toldBy(outcome);
                assertEquals(0, outcome.exitCode(), outcome.output());
                assertTrue(lines.get(1).startsWith("NcclTimeoutException: ncclAllReduce"), outcome.output());
                // Ranks that wait for the stopped one in the operation before have not come either.
                String expected =
                        ".*waited 2\\.\\d s in AllReduce\\(ncclInt64, count 50000, ncclSum\\) for ranks? (\\d, )*"
                                + OTHER + "\\b.*";
                assertTrue(lines.get(1).matches(expected), outcome.output());
                assertEquals("sum 4 of 3", lines.get(2), outcome.output());
            }
        } finally {
            ranks.get(OTHER).process().destroyForcibly();
            ranks.get(OTHER).process().waitFor();
        }
    }
}
