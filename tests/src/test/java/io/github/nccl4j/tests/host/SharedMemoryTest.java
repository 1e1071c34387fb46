package io.github.nccl4j.tests.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tests.ChildJvm;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Which connections go through shared memory, and that the others give the same elements. */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class SharedMemoryTest {
    private static final int RANKS = 3;

    private static ChildJvm jvm(String shared) {
        return new ChildJvm().property("nccl4j.engine", "host").environment("NCCL4J_HOST_SHARED_MEMORY", shared);
    }

    /** What each rank printed. */
    private static List<String> told(String scenario, IntFunction<ChildJvm> jvms) {
        String id = Rank.newId();
        List<ChildJvm.Running> ranks = new ArrayList<>();
        for (int rank = 0; rank < RANKS; rank++) {
            ranks.add(jvms.apply(rank).start(HostEngineScenarios.class, scenario, id, "" + rank, "" + RANKS));
        }
        List<String> told = new ArrayList<>();
        for (ChildJvm.Running rank : ranks) {
            ChildJvm.Outcome outcome = rank.await();
            assertEquals(0, outcome.exitCode(), outcome.output());
            told.add(outcome.output().strip());
        }
        return told;
    }

    @Test
    void eachConnectionHasMemoryUntilItIsClosed() {
        String all = "2 connections, 2 MiB, then 0";
        assertEquals(List.of(all, all, all), told("shared-memory", rank -> jvm("1")));
    }

    @Test
    void itCanBeTurnedOff() {
        String none = "0 connections, 0 MiB, then 0";
        assertEquals(List.of(none, none, none), told("shared-memory", rank -> jvm("0")));
    }

    @Test
    void whereTheSystemGivesNoneTheSocketIsUsed() {
        // Rank 1 makes its connection to rank 0 and may have no large files, which memory counts as.
        assertEquals(
                List.of("1 connections, 1 MiB, then 0", "1 connections, 1 MiB, then 0", "2 connections, 2 MiB, then 0"),
                told("shared-memory", rank -> rank == 1 ? jvm("1").by("prlimit", "--fsize=65536") : jvm("1")));
    }

    @Test
    void everyCollectiveWithoutIt() {
        assertTrue(told("suite", rank -> jvm("0")).get(0).matches("\\d{4} cases"));
    }

    @Test
    void everyCollectiveWhereSomeConnectionsHaveIt() {
        assertTrue(told("suite", rank -> jvm(rank == 1 ? "0" : "1")).get(0).matches("\\d{4} cases"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"1", "0"})
    void everyCollectiveWithCopiesBetweenProcessesAndWhereOneRankForbidsThem(String ofRank1) {
        assertTrue(told("suite", rank -> jvm("1").environment("NCCL4J_HOST_SINGLE_COPY", rank == 1 ? ofRank1 : "1"))
                .get(0)
                .matches("\\d{4} cases"));
    }

    @Test
    void anotherValueIsRefused() {
        ChildJvm.Outcome outcome = jvm("2").run(HostEngineScenarios.class, "join", Rank.newId(), "0", "1");
        assertTrue(outcome.output().contains("NCCL4J_HOST_SHARED_MEMORY must be 0 or 1: '2'"), outcome.output());
    }
}
