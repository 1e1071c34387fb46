package io.github.nccl4j.tools.analyze;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tools.launch.JavaCommand;
import io.github.nccl4j.tools.launch.Launcher;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import picocli.CommandLine;

/** Four ranks on the host engine make all mistakes, and {@code analyze} names the rank and the reason in its first two lines. */
@Timeout(600)
class FaultyJobTest {
    @TempDir
    static Path folder;

    private static String output;

    @BeforeAll
    static void runJob() throws IOException, InterruptedException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        PrintStream print = new PrintStream(out, true, StandardCharsets.UTF_8);
        List<String> options = List.of("-Dnccl4j.engine=host", "-XX:TieredStopAtLevel=1");
        new Launcher(
                        JavaCommand.of(options, FaultyRank.class.getName(), List.of(folder.toString())),
                        4,
                        Map.of(),
                        Duration.ofMinutes(5),
                        print,
                        print)
                .expendable(rank -> rank == 2)
                .run();
        output = out.toString(StandardCharsets.UTF_8);
    }

    private record Outcome(int code, String text) {}

    private static Outcome analyze(String... arguments) {
        StringWriter out = new StringWriter();
        CommandLine command = new CommandLine(new AnalyzeCommand()).setOut(new PrintWriter(out));
        command.setErr(new PrintWriter(out));
        return new Outcome(command.execute(arguments), out.toString());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "missing-call | Rank 2 did not reach ncclAllReduce of 64 int32, SUM (operation 4)"
                        + "| Rank 2's last operation is ncclAllReduce of 64 int32, SUM (operation 3)",
                "other-function | Rank 2 called ncclBroadcast of 64 int32 from rank 0 (operation 4)"
                        + "| The functions differ: ncclBroadcast, not ncclAllReduce",
                "other-type | Rank 2 called ncclAllReduce of 64 float32 | The types of the elements differ: float32, not int32",
                "other-count | Rank 2 called ncclAllReduce of 32 int32 | The numbers of elements differ: 32, not 64",
                "other-root | Rank 2 called ncclBroadcast of 64 int32 from rank 1 | The roots differ: rank 1, not rank 0",
                "other-reduction | Rank 2 called ncclAllReduce of 64 int32, MAX | The reductions differ: MAX, not SUM",
                "communicator-order | Rank 2 waits in ncclAllReduce | the ranks use communicators in different orders",
                "stream-order | Rank | in different orders",
                "missing-split | Rank 2 did not reach ncclCommSplit of communicator | Rank 2's last operation is ncclAllReduce",
                "slow | Rank 2 came last to | The other ranks waited",
                "missing-receive | Rank 2 did not reach ncclSend of 64 int32 to rank 2 (operation 4)"
                        + "| Rank 2's last operation is ncclAllReduce",
                "crashed-dump | Rank 2's record of communicator | The process ended while it wrote nccl4j-",
                "stopped | Rank 2 did not reach ncclAllReduce of 64 int32, SUM (operation 4)"
                        + "| did not answer: the process is stopped, or its machine cannot be reached",
                "killed | Rank 2 did not reach ncclAllReduce of 64 int32, SUM (operation 4) | the process ended, as the others report",
            })
    void firstTwoLinesNameRankAndReason(String fault, String first, String second) {
        Outcome outcome = analyze(folder.resolve(fault).toString());
        List<String> lines = outcome.text().lines().toList();
        String all = fault + ":\n" + outcome.text() + output;
        assertEquals(1, outcome.code(), all);
        assertTrue(lines.get(0).startsWith(first), all);
        assertTrue(lines.get(1).contains(second), all);
        assertTrue(lines.get(0).matches(".* \\[NCCL4J-02\\d\\d]"), all);
    }

    @Test
    void everyFaultIsAnalyzed() {
        assertEquals(14, FaultyRank.FAULTS.size());
    }
}
