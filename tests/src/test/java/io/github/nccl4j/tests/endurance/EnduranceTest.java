package io.github.nccl4j.tests.endurance;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tools.Main;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The commands do on the host engine what they are to do on GPUs. */
@Tag("alone")
class EnduranceTest {
    private static ChildJvm.Outcome run(Class<?> command, String... arguments) {
        return new ChildJvm().limit(Duration.ofSeconds(100)).run(command, arguments);
    }

    private static ChildJvm.Outcome survival(String... arguments) {
        List<String> command = new ArrayList<>(
                List.of("survival", "--engine", "host", "-n", "3", "--seed", "1", ChildJvm.QUICK_RANKS));
        command.addAll(List.of(arguments));
        return run(Main.class, command.toArray(String[]::new));
    }

    @Test
    void ranksSurviveTheDeathOfOne() {
        ChildJvm.Outcome outcome = survival("-r", "2", "--count", "1000");
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertTrue(outcome.output().contains("shrunk to ranks [0, "), outcome.output());
        assertTrue(outcome.output().contains("\n2 rounds, 0 failed, slowest exception after "), outcome.output());
    }

    @Test
    void ranksThatExchangeSurviveTheDeathOfOne() {
        ChildJvm.Outcome outcome =
                run(Main.class, "survival", "--engine", "host", "-n", "3", "-r", "1", "--count", "1000", "--exchange");
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertTrue(
                outcome.output().matches("(?s).* NcclRemoteException: nccl(Send|Recv) of 1000 int64 .*"),
                outcome.output());
        assertTrue(outcome.output().contains("\n1 rounds, 0 failed, slowest exception after "), outcome.output());
    }

    /** Rank 0 is the victim of the first round. */
    @Test
    void aSpareTakesThePlaceOfTheKilledRank() {
        ChildJvm.Outcome outcome = survival("-r", "2", "--count", "1000", "--victim", "in-turn", "--return", "--spare");
        assertEquals(0, outcome.exitCode(), outcome.output());
        for (int rank = 0; rank < 2; rank++) {
            assertTrue(
                    outcome.output()
                            .matches("(?s).*nccl4j: rank " + rank
                                    + " \\(pid \\d+\\) was killed by signal 9 \\(SIGKILL\\); spare 0 \\(pid \\d+\\)"
                                    + " takes its place, spares left: 0\nround " + (rank + 1) + ": rank " + rank
                                    + " killed .*"),
                    outcome.output());
        }
        assertTrue(outcome.output().contains("\n2 rounds, 0 failed, slowest exception after "), outcome.output());
    }

    /** The command itself fails if no call of a rank takes as long as a pause. */
    @ParameterizedTest
    @ValueSource(strings = {"stop", "gc", "busy"})
    void aPauseIsNoDeath(String pause) {
        ChildJvm.Outcome outcome = survival("-r", "1", "--pause", pause);
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertTrue(outcome.output().contains("\n1 rounds, 0 failed, longest call "), outcome.output());
        assertTrue(outcome.output().contains(" no exception; "), outcome.output());
    }

    /** Nothing but the communicator's deadline ends the others' waiting. */
    @Test
    void aRankThatIsStoppedIsNamedAtTheDeadline() {
        ChildJvm.Outcome outcome = survival("-r", "1", "-d", "2", "--slack", "60", "--stop");
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertTrue(
                outcome.output()
                        .matches(
                                "(?s).*NcclTimeoutException: Timed out after 2 s in ncclAllReduce of 1000000 int64 \\(operation"
                                        + " \\d+\\).* No answer from rank \\d\\b.*"),
                outcome.output());
    }

    /** No exception comes at the very deadline: before, the stopped rank is asked. */
    @Test
    void aRoundInWhichARankIsNamedTooLateFails() {
        ChildJvm.Outcome outcome = survival("-r", "1", "-d", "1", "--slack", "0", "--stop");
        assertEquals(1, outcome.exitCode(), outcome.output());
        assertTrue(outcome.output().contains(" ms, expected at most 1000"), outcome.output());
        assertTrue(outcome.output().contains("\n1 rounds, 1 failed, "), outcome.output());
    }

    /** The one process that has all ranks is ended. */
    @Test
    void cyclesEndAtTheTimeLimit() {
        ChildJvm.Outcome outcome =
                run(CyclesCommand.class, "--engine", "host", "-n", "2", "-c", "1000000", "--timeout", "1");
        assertEquals(124, outcome.exitCode(), outcome.output());
        assertTrue(outcome.output().contains("timed out after 1 s"), outcome.output());
    }

    @Test
    void cyclesLeaveNothing() {
        ChildJvm.Outcome outcome = run(CyclesCommand.class, "--engine", "host", "-n", "3", "-c", "50", "--seed", "1");
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertTrue(outcome.output().contains(" aborted, nothing left, "), outcome.output());
    }
}
