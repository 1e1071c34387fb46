package io.github.nccl4j.tools.survival;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.nccl4j.tools.survival.Survivor.Report;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** How the reports of the ranks are judged. */
class SurvivalCommandTest {
    private static final String NAMED = "rank 1 is lost";

    @TempDir
    private Path folder;

    private final SurvivalCommand.Slowest slowest = new SurvivalCommand.Slowest();

    private void report(int rank, boolean right, long millis, String exception) {
        new Report(right, millis, exception, "end").write(folder, rank);
    }

    /** The faults of three ranks, of which rank 1 is the victim. */
    private Set<String> faults(String... options) throws IOException {
        SurvivalCommand command = new SurvivalCommand();
        new CommandLine(command).parseArgs(options);
        return command.readReports(folder, 3, 1, slowest);
    }

    @Test
    void ranksThatNameTheKilledOneInTimeAreRight() throws IOException {
        report(0, true, 1000, NAMED);
        report(2, true, 20, NAMED);
        assertEquals(Set.of(), faults());
        assertEquals(1000, slowest.exception);
        assertEquals(0, slowest.call);
    }

    @Test
    void aRankThatIsLateOrNamesAnotherIsWrong() throws IOException {
        report(0, true, 1001, NAMED);
        report(2, true, 20, "rank 11 is lost");
        assertEquals(
                Set.of(
                        "rank 0 got its exception after 1001 ms, expected at most 1000",
                        "the exception of rank 2 does not name rank 1"),
                faults());
    }

    @Test
    void aRankThatDidNotRecoverHasThisFaultAlone() throws IOException {
        report(0, false, 5000, "rank 2 is lost");
        assertEquals(Set.of("rank 0 did not recover", "rank 2 did not recover"), faults());
    }

    @Test
    void aStoppedRankMustBeNamedAtTheDeadlineAndTheSlack() throws IOException {
        report(0, true, 5000, NAMED);
        report(2, true, 5001, NAMED);
        assertEquals(
                Set.of("rank 2 got its exception after 5001 ms, expected at most 5000"),
                faults("--stop", "-d", "3", "--slack", "2"));
        assertEquals(5001, slowest.exception);
    }

    @Test
    void aRankThatIsStartedAgainMustComeBack() throws IOException {
        report(0, true, 20, NAMED);
        report(1, true, 700, "");
        report(2, true, 30, NAMED);
        assertEquals(Set.of(), faults("--return"));
        assertEquals(700, slowest.comeBack);
        assertEquals(30, slowest.exception);
        report(1, false, 900, "");
        assertEquals(Set.of("rank 1 did not come back"), faults("--return"));
    }

    @Test
    void allRanksContinueAfterAPauseThatOneHasNoticed() throws IOException {
        report(0, true, 20, "");
        report(1, true, 1000, "");
        report(2, true, 30, "");
        assertEquals(Set.of(), faults("--pause", "stop"));
        assertEquals(1000, slowest.call);
        report(0, false, 20, "");
        report(1, true, 999, "");
        assertEquals(
                Set.of("rank 0 did not continue", "no rank noticed the pause: the longest call took 999 ms"),
                faults("--pause", "stop"));
        assertEquals(Set.of("rank 0 did not continue"), faults("--pause", "busy"));
    }
}
