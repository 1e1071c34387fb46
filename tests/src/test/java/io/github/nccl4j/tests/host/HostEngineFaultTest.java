package io.github.nccl4j.tests.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.tests.ChildJvm;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code NCCL4J_HOST_FAULT}: each kind of fault happens where it is told to, and nowhere else. */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HostEngineFaultTest {

    private static ChildJvm faulty(String fault) {
        return new ChildJvm().property("nccl4j.engine", "host").environment("NCCL4J_HOST_FAULT", fault);
    }

    private static List<String> lines(ChildJvm jvm, String scenario) {
        ChildJvm.Outcome outcome = jvm.run(FaultScenarios.class, scenario);
        assertEquals(0, outcome.exitCode(), outcome.output());
        return outcome.output().lines().toList();
    }

    /** As {@link #lines}, of a scenario in which each of the three ranks has its line. */
    private static List<String> linesOfRanks(ChildJvm jvm, String scenario) {
        List<String> lines = lines(jvm, scenario);
        assertEquals(
                List.of("rank 0", "rank 1", "rank 2"),
                lines.stream().map(line -> line.split(":")[0]).toList());
        return lines;
    }

    private static long millis(String line) {
        return Long.parseLong(line.replaceAll(".* (\\d+) ms, .*", "$1"));
    }

    private static void assertLine(String line, int done, int code, String... words) {
        assertTrue(line.contains(done + " done, then " + code + ","), line);
        assertWords(line, words);
    }

    /** A rank other than the faulty one may learn of the fault when it begins an earlier call. */
    private static void assertOther(String line, int most, int code, String... words) {
        assertTrue(line.matches("rank \\d: [0-" + most + "] done, then " + code + ",.*"), line);
        assertWords(line, words);
    }

    private static void assertWords(String line, String... words) {
        for (String word : words) {
            assertTrue(line.contains(word), () -> "'" + word + "' is not in: " + line);
        }
    }

    @Test
    void aDroppedRankIsGoneForTheOthers() {
        List<String> lines = linesOfRanks(faulty("drop,rank=1,op=3"), "calls");
        assertLine(lines.get(1), 2, nccl.ncclSystemError, "AllReduce", "NCCL4J_HOST_FAULT");
        assertOther(lines.get(0), 2, nccl.ncclRemoteError, "rank 1", "went away");
        assertOther(lines.get(2), 2, nccl.ncclRemoteError, "rank 1", "went away");
    }

    @Test
    void aResultIsThatOfTheCall() {
        List<String> lines = linesOfRanks(faulty("result=3,rank=0,call=Broadcast,op=2"), "calls");
        assertLine(lines.get(0), 3, 3, "Broadcast", "NCCL4J_HOST_FAULT");
        assertOther(lines.get(1), 3, 3, "Broadcast", "NCCL4J_HOST_FAULT");
        assertOther(lines.get(2), 3, 3, "Broadcast", "NCCL4J_HOST_FAULT");
    }

    @Test
    void aDelayedCallSucceedsLater() {
        List<String> lines =
                linesOfRanks(faulty("delay=0.4,rank=2,op=4; delay=0.5,rank=0,call=AllReduce,op=all"), "calls");
        for (String line : lines) {
            assertLine(line, 4, nccl.ncclSuccess);
            // Less than the second of rank 0: its clock may have started earlier.
            assertTrue(millis(line) > 750, line);
        }
        // The last call is a broadcast, for which the other ranks do not wait.
        assertTrue(millis(lines.get(2)) > 1150, lines.get(2));
    }

    @Test
    void aCallThatHangsEndsAtTheDeadline() {
        List<String> lines =
                linesOfRanks(faulty("hang,rank=1,op=3").environment("NCCL4J_HOST_OP_TIMEOUT", "1"), "calls");
        for (String line : lines) {
            assertOther(line, 2, nccl.ncclTimeout, "rank 1", "AllReduce");
        }
    }

    @Test
    void aCallThatHangsIsEndedByAbort() {
        List<String> lines = linesOfRanks(faulty("hang"), "abort");
        for (String line : lines) {
            assertLine(line, 0, nccl.ncclInternalError, "abort");
        }
    }

    @Test
    void communicatorsMadeOfOthersHaveNoFaults() {
        List<String> lines = lines(faulty("result=5,rank=1,op=1; drop,rank=0,op=2"), "shrink");
        assertEquals(List.of("rank 0: 5, then 4.0", "rank 1: 5", "rank 2: 5, then 4.0"), lines);
    }

    /** Names of calls that make a communicator of another. */
    @ParameterizedTest
    @ValueSource(strings = {"CommSplit", "CommShrink", "CommGrow"})
    void aCallThatMakesACommunicatorHasFaultsByItsName(String call) {
        // The ranks other than 2 take part in all of them.
        List<String> failed = lines(faulty("result=5,rank=1,call=" + call + "; drop,op=9"), call);
        assertEquals("rank 1: 5 " + call + " was made to fail by NCCL4J_HOST_FAULT", failed.get(1));
        assertTrue(failed.get(0).startsWith("rank 0: 5 "), failed.toString());
        assertTrue(failed.get(0).endsWith(call + " was made to fail by NCCL4J_HOST_FAULT"), failed.toString());

        List<String> dropped = lines(faulty("drop,rank=1,call=" + call), call);
        assertTrue(dropped.get(1).startsWith("rank 1: " + nccl.ncclSystemError), dropped.toString());
        // Rank 0 sees the end of rank 1 itself, or is told by another rank that has seen it.
        assertTrue(
                dropped.get(0)
                        .matches("rank 0: " + nccl.ncclRemoteError + " (.*: )?rank 1 \\(pid \\d+\\) went away .*"),
                dropped.toString());

        List<String> late = lines(faulty("hang,rank=1,call=" + call).environment("NCCL4J_HOST_OP_TIMEOUT", "1"), call);
        assertTrue(
                late.get(1).matches("rank 1: 8 rank 1 waited 1\\.\\d s in " + call + " for the end of a fault"),
                late.toString());
        assertTrue(late.get(0).startsWith("rank 0: 8 "), late.toString());

        for (String line : lines(faulty("delay=0.1,rank=1,call=" + call), call)) {
            assertTrue(line.endsWith(": " + nccl.ncclSuccess), line);
        }
    }

    /** Else the number of an operation would depend on them. */
    @Test
    void aFaultOfAnyCallIsOneOfAnOperation() {
        assertEquals(
                List.of("rank 0: 0", "rank 1: 0", "rank 2: 0"), lines(faulty("result=5,rank=1,op=all"), "CommSplit"));
    }

    @Test
    void aSignalOfARankThatDiedSinceCounts() {
        for (int round = 0; round < 5; round++) {
            List<String> lines = lines(faulty("drop,rank=1,call=Signal"), "put");
            String line = lines.get(0);
            assertTrue(line.startsWith("rank 0: 0 then " + nccl.ncclRemoteError + " rank 1"), line);
            assertTrue(line.contains("went away"), line);
            assertEquals("rank 1: 0 then " + nccl.ncclSystemError, lines.get(1));
        }
    }

    @Test
    void aShrinkThatWasLateOnceSucceedsTheNextTime() {
        List<String> lines = lines(faulty("").environment("NCCL4J_HOST_INIT_TIMEOUT", "2"), "late");
        assertEquals("rank 0: 1 failures, then 4.0", lines.get(0));
        assertEquals("rank 2: 0 failures, then 4.0", lines.get(2));
    }

    @Test
    void theMakingOfACommunicatorMayFailToo() {
        assertTrue(lines(faulty("result=2,op=0"), "join").get(0).contains("gave 2: the init of rank 0"));
        assertTrue(lines(faulty("drop,op=0,rank=0"), "join").get(0).contains("dropped"));
        assertLine(lines(faulty("drop,op=0,rank=1"), "join").get(0), 4, nccl.ncclSuccess);
    }

    @Test
    void aKilledRankEndsItsProcess() {
        // By SIGKILL.
        assertEquals(
                128 + 9, faulty("kill,op=3").run(FaultScenarios.class, "join").exitCode());
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
                    sleep=1              | 'sleep=1' is not understood, expected delay=SECONDS
                    delay=soon           | 'delay=soon' is not understood, expected a number of seconds
                    result=7             | 'result=7' is not understood
                    result=99            | a number from 1 to 8
                    drop,rank=-1         | 'rank=-1' is not understood
                    hang,call=AllReduced | 'call=AllReduced' is not understood
                    hang,call=Send,op=0  | has op=0
                    kill,where=here      | 'where=here' is not understood
                    """)
    void whatIsNotUnderstoodIsAnError(String fault, String words) {
        String line = lines(faulty(fault), "join").get(0);
        assertTrue(line.contains("gave " + nccl.ncclInvalidArgument + ": NCCL4J_HOST_FAULT"), line);
        assertTrue(line.contains(words), line);
    }

    @Test
    void aTimeoutThatIsNoNumberIsAnError() {
        String line = lines(faulty("").environment("NCCL4J_HOST_OP_TIMEOUT", "soon"), "join")
                .get(0);
        assertTrue(line.contains("gave 4: NCCL4J_HOST_OP_TIMEOUT"), line);
        assertTrue(line.contains("'soon'"), line);
    }

    @Test
    void aTimeoutOfZeroIsNoneForOperationsOnly() {
        ChildJvm without = faulty("delay=1.5,rank=1,op=2").environment("NCCL4J_HOST_OP_TIMEOUT", "0");
        for (String line : linesOfRanks(without, "calls")) {
            assertLine(line, 4, nccl.ncclSuccess);
        }
        String negative = lines(faulty("").environment("NCCL4J_HOST_OP_TIMEOUT", "-1"), "join")
                .get(0);
        assertTrue(
                negative.contains("NCCL4J_HOST_OP_TIMEOUT must be a number of seconds, or 0 for no limit: '-1'"),
                negative);
        String init = lines(faulty("").environment("NCCL4J_HOST_INIT_TIMEOUT", "0"), "join")
                .get(0);
        assertTrue(init.contains("NCCL4J_HOST_INIT_TIMEOUT must be a number of seconds above 0: '0'"), init);
    }

    @Test
    void aDecimalCommaInTheLocaleChangesNothing(@TempDir Path folder) throws IOException {
        ChildJvm jvm = faulty("delay=4.5,rank=2,op=2").environment("NCCL4J_HOST_OP_TIMEOUT", "1.5");
        CommaLocale.in(folder).forEach(jvm::environment);
        for (String line : linesOfRanks(jvm, "calls")) {
            // The delayed call is a broadcast, for whose end its root does not wait.
            assertOther(line, 2, nccl.ncclTimeout, "rank 2");
            Matcher waited = Pattern.compile("waited (\\d+\\.\\d) s").matcher(line);
            assertTrue(waited.find(), line);
            assertTrue(Double.parseDouble(waited.group(1)) >= 1.5, line);
        }
    }
}
