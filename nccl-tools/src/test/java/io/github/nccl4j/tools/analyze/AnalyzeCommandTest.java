package io.github.nccl4j.tools.analyze;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.github.nccl4j.tools.launch.ChildProcesses;
import io.github.nccl4j.tools.support.Programs;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import picocli.CommandLine;

/** The analysis of made records, and of a dump of torch. */
@Timeout(600)
class AnalyzeCommandTest {
    private static final String SUM = "ncclAllReduce 64 int32 SUM";
    private static final Path TORCH = Path.of("src/test/resources/io/github/nccl4j/tools/analyze/torch");

    @TempDir
    Path folder;

    private final StringWriter out = new StringWriter();

    private int analyze(String... arguments) {
        out.getBuffer().setLength(0);
        CommandLine command = new CommandLine(new AnalyzeCommand()).setOut(new PrintWriter(out));
        command.setErr(new PrintWriter(out));
        return command.execute(arguments);
    }

    private List<String> lines(int code) {
        assertEquals(code, analyze(folder.toString()), out::toString);
        return out.toString().lines().toList();
    }

    private MadeRecord rank(int rank) {
        return new MadeRecord("w", rank, 3);
    }

    @Test
    void equalRecordsHaveNoFinding() throws IOException {
        for (int rank = 0; rank < 3; rank++) {
            rank(rank).done(SUM).done("ncclBroadcast 8 int32 - 1").write(folder);
        }
        assertEquals("Nothing was found: 6 operations of 3 ranks in 1 communicator agree.", lines(0).get(0));
    }

    /** Each rank sends rows of its own. */
    @Test
    void countsOfAlltoAllvMayDiffer() throws IOException {
        for (int rank = 0; rank < 3; rank++) {
            rank(rank).done(SUM).done("ncclAlltoAllv " + (8 + rank) + " int32").write(folder);
        }
        assertEquals("Nothing was found: 6 operations of 3 ranks in 1 communicator agree.", lines(0).get(0));
    }

    @Test
    void callThatWasLeftOutIsNamed() throws IOException {
        for (int rank = 0; rank < 3; rank++) {
            MadeRecord record = rank(rank).done(SUM);
            (rank == 1 ? record : record.done("ncclBroadcast 8 int32 - 0"))
                    .done("ncclReduce 4 int32 SUM 2")
                    .done("ncclAllGather 5 int8")
                    .write(folder);
        }
        assertEquals(
                "Rank 1 did not call ncclBroadcast of 8 int32 from rank 0 (operation 2) of communicator w, which ranks 0 and 2 "
                        + "called [NCCL4J-0202]",
                lines(1).get(0));
    }

    @Test
    void collectivesAreMatchedByTheirOwnNumber() throws IOException {
        // Only some ranks send, and the records have lost their beginnings.
        rank(0).done("ncclSend 4 int8 - 1")
                .done("ncclSend 4 int8 - 1")
                .done(SUM)
                .done("ncclAllGather 1 int8")
                .drop(2)
                .write(folder);
        rank(1).done("ncclRecv 4 int8 - 0")
                .done("ncclRecv 4 int8 - 0")
                .done(SUM)
                .done("ncclAllGather 1 int8")
                .drop(1)
                .write(folder);
        rank(2).done(SUM).done("ncclAllGather 1 int8").write(folder);
        lines(0);
    }

    @Test
    void consequencesAreNotCauses() throws IOException {
        rank(0).done(SUM).waits(SUM).write(folder);
        rank(1).done(SUM).write(folder);
        rank(2).done(SUM).write(folder);
        new MadeRecord("w.0.0", 0, 2).process(101).waits("ncclAllGather 1 int8").write(folder);
        new MadeRecord("w.0.0", 1, 2).process(102).write(folder);
        List<String> lines = lines(1);
        assertTrue(
                lines.get(0).startsWith("Rank 2 did not reach ncclAllGather of 1 int8 (operation 1)"), out::toString);
        assertTrue(lines.contains("1 other operations wait because of these."), out::toString);
    }

    /** The records of a rank in the communicators w and v, in one stream: its calls after their first one. */
    private void inOneStream(int rank, String first, long firstDelay, String second, long secondDelay)
            throws IOException {
        new MadeRecord("w", rank, 2)
                .stream("0x7")
                        .done(SUM)
                        .waits(first, firstDelay)
                        .failed("not done after 5 s")
                        .write(folder);
        new MadeRecord("v", rank, 2)
                .process(100 + rank).stream("0x7")
                        .done(SUM)
                        .waits(second, secondDelay)
                        .write(folder);
    }

    @Test
    void differentOrdersInOneStreamAreNamed() throws IOException {
        inOneStream(0, SUM, 0, "ncclAllGather 1 int8", 200);
        inOneStream(1, SUM, 200, "ncclAllGather 1 int8", 0);
        List<String> lines = lines(1);
        assertEquals(
                "Rank 0 waits in ncclAllReduce of 64 int32, SUM (operation 2) of communicator w before ncclAllGather of 1 int8"
                        + " (operation 2) of communicator v; rank 1 waits in ncclAllGather of 1 int8 (operation 2) of communicator"
                        + " v before ncclAllReduce of 64 int32, SUM (operation 2) of communicator w [NCCL4J-0207]",
                lines.get(0));
        assertEquals("", lines.get(3), "one finding");
    }

    @Test
    void equalOrdersInOneStreamAreNotTheCause() throws IOException {
        inOneStream(0, SUM, 0, "ncclAllGather 1 int8", 200);
        inOneStream(1, SUM, 0, "ncclAllGather 1 int8", 200);
        assertTrue(lines(1).get(0).startsWith("Ranks 0 and 1 did not finish ncclAllReduce"), out::toString);
    }

    @Test
    void callsInOneStreamWhoseOrderIsUnknownAreNamed() throws IOException {
        inOneStream(0, SUM, 0, "ncclAllGather 1 int8", 0);
        inOneStream(1, SUM, 0, "ncclAllGather 1 int8", 0);
        List<String> lines = lines(1);
        assertEquals(
                "Ranks 0 and 1 wait in ncclAllGather of 1 int8 (operation 2) of communicator v and in ncclAllReduce of 64 int32,"
                        + " SUM (operation 2) of communicator w, called in one stream [NCCL4J-0207]",
                lines.get(0));
        assertTrue(
                lines.get(1).startsWith("  Ranks that call them in different orders wait for each other."),
                out::toString);
    }

    @Test
    void callsInDifferentStreamsDoNotWaitForEachOther() throws IOException {
        for (int rank = 0; rank < 2; rank++) {
            new MadeRecord("w", rank, 2)
                    .stream("0x7")
                            .done(SUM)
                            .waits(SUM)
                            .failed("not done after 5 s")
                            .write(folder);
            new MadeRecord("v", rank, 2)
                    .process(100 + rank).stream("0x8").done(SUM).waits(SUM).write(folder);
        }
        assertTrue(lines(1).get(0).endsWith("[NCCL4J-0213]"), out::toString);
    }

    @Test
    void callsOfOneGroupDoNotWaitForEachOther() throws IOException {
        for (int rank = 0; rank < 2; rank++) {
            new MadeRecord("w", rank, 2)
                    .done(SUM)
                    .group(1)
                    .waits(SUM)
                    .failed("not done after 5 s")
                    .write(folder);
            new MadeRecord("v", rank, 2)
                    .process(100 + rank)
                    .done(SUM)
                    .group(1)
                    .waits(SUM)
                    .write(folder);
        }
        assertTrue(lines(1).get(0).endsWith("[NCCL4J-0213]"), out::toString);
    }

    @Test
    void ordersOfThreeCommunicatorsAreNamed() throws IOException {
        // Rank i calls the communicator of ranks i and i + 1, and then that of ranks i - 1 and i.
        for (int rank = 0; rank < 3; rank++) {
            int before = (rank + 2) % 3;
            new MadeRecord("w." + rank + ".0", 0, 2)
                    .process(100 + rank)
                    .waits(SUM, 0)
                    .write(folder);
            new MadeRecord("w." + before + ".0", 1, 2)
                    .process(100 + rank)
                    .waits(SUM, 200)
                    .write(folder);
        }
        String line = lines(1).get(0);
        assertTrue(line.startsWith("Rank 1 waits in ncclAllReduce"), out::toString);
        assertTrue(line.contains("; rank 2 waits in") && line.contains("; rank 0 waits in"), out::toString);
        assertTrue(line.endsWith("[NCCL4J-0207]"), out::toString);
    }

    /** Rank 0 waits in its first call and so has not made its second one, which rank 1 has enqueued first. */
    @Test
    void orderBeforeACallThatIsMissingIsNamed() throws IOException {
        new MadeRecord("w", 0, 2).waits(SUM).failed("not done after 5 s").write(folder);
        new MadeRecord("w", 1, 2).waits(SUM, 200).write(folder);
        new MadeRecord("v", 0, 2).write(folder);
        new MadeRecord("v", 1, 2).process(101).waits("ncclAllGather 1 int8").write(folder);
        List<String> lines = lines(1);
        assertTrue(
                lines.get(0).contains("rank 1 waits in ncclAllGather of 1 int8 (operation 1) of communicator v before"),
                out::toString);
        assertTrue(lines.get(0).endsWith("[NCCL4J-0207]"), out::toString);
        assertEquals("", lines.get(3), "one finding");
    }

    @Test
    void transfersAndCollectivesInDifferentOrdersAreNamed() throws IOException {
        inOneStream(0, "ncclSend 4 int8 - 1", 0, SUM, 200);
        inOneStream(1, "ncclRecv 4 int8 - 0", 200, SUM, 0);
        String line = lines(1).get(0);
        assertTrue(line.startsWith("Ranks 0 and 1 wait in ncclAllReduce"), out::toString);
        assertTrue(line.contains(" and in ncclSend of 4 int8 to rank 1 (operation 2)"), out::toString);
        assertTrue(line.endsWith("[NCCL4J-0207]"), out::toString);
    }

    @Test
    void sendsBeforeReceivesInOneStreamAreNamed() throws IOException {
        rank(0).done(SUM)
                .waits("ncclSend 4 int8 - 1")
                .waits("ncclRecv 4 int8 - 1")
                .failed("late")
                .write(folder);
        rank(1).done(SUM)
                .waits("ncclSend 4 int8 - 0")
                .waits("ncclRecv 4 int8 - 0")
                .failed("late")
                .write(folder);
        rank(2).done(SUM).write(folder);
        assertTrue(lines(1).get(0).endsWith("called in one stream [NCCL4J-0216]"), out::toString);
    }

    @Test
    void rankThatHasNotMadeACallIsNamed() throws IOException {
        rank(0).done(SUM).in("ncclCommSplit").write(folder);
        rank(1).done(SUM).in("ncclCommSplit").write(folder);
        rank(2).done(SUM).write(folder);
        List<String> lines = lines(1);
        assertEquals(
                "Rank 2 did not reach ncclCommSplit of communicator w, in which ranks 0 and 1 have waited since 12:00:02.000 "
                        + "[NCCL4J-0208]",
                lines.get(0));
        assertTrue(lines.get(1).startsWith("  Rank 2's last operation is ncclAllReduce"), out::toString);
    }

    @Test
    void rankInAnotherCallIsNamed() throws IOException {
        rank(0).done(SUM).in("ncclCommSplit").write(folder);
        rank(1).done(SUM).in("ncclCommWindowRegister").write(folder);
        List<String> lines = lines(1);
        assertTrue(lines.get(0).startsWith("Ranks 1 and 2 did not reach ncclCommSplit"), out::toString);
        assertEquals(
                "  Rank 2 has no record: the process was killed, is stopped, or its file is missing here. Rank 1 is in"
                        + " ncclCommWindowRegister.",
                lines.get(1));
    }

    /** A rank that waits in an operation is kept from the call by that. */
    @Test
    void callThatWaitsBehindAnOperationIsNotTheCause() throws IOException {
        new MadeRecord("w", 0, 2).done(SUM).in("ncclCommSplit").write(folder);
        new MadeRecord("w", 1, 2).done(SUM).waits(SUM).write(folder);
        assertTrue(lines(1).get(0).startsWith("Rank 0 did not reach ncclAllReduce"), out::toString);
        assertFalse(out.toString().contains("did not reach ncclCommSplit"), out::toString);
    }

    @Test
    void sendsThatWaitForEachOtherAreNamed() throws IOException {
        rank(0).waits("ncclSend 4 int8 - 1").write(folder);
        rank(1).waits("ncclSend 4 int8 - 0").write(folder);
        rank(2).write(folder);
        List<String> lines = lines(1);
        assertTrue(lines.get(0).startsWith("Rank 0 waits in ncclSend of 4 int8 to rank 1"), out::toString);
        assertTrue(lines.get(0).endsWith("[NCCL4J-0216]"), out::toString);
    }

    @Test
    void sendAndReceiveOfDifferentSizesAreNamed() throws IOException {
        rank(0).waits("ncclSend 4 int8 - 2").write(folder);
        rank(1).write(folder);
        rank(2).waits("ncclRecv 5 int8 - 0").write(folder);
        assertTrue(
                lines(1).get(0)
                        .startsWith(
                                "Rank 0 called ncclSend of 4 int8 to rank 2 (operation 1) and rank 2 ncclRecv of 5 int8"),
                out::toString);
    }

    @Test
    void operationThatAllCalledAlikeIsStuck() throws IOException {
        for (int rank = 0; rank < 3; rank++) {
            rank(rank).waits(SUM).failed("not done after PT5S").write(folder);
        }
        List<String> lines = lines(1);
        assertTrue(lines.get(0).startsWith("Ranks 0-2 did not finish ncclAllReduce"), out::toString);
        assertEquals("  The failure is: not done after PT5S.", lines.get(1));
    }

    @Test
    void anyCutRecordIsNamed() throws IOException {
        rank(0).done(SUM).done(SUM).write(folder);
        rank(1).done(SUM).done(SUM).write(folder);
        MadeRecord cut = rank(2).done(SUM).done(SUM);
        Path file = cut.write(folder);
        byte[] whole = Files.readAllBytes(file);
        for (int length = 0; length < whole.length; length++) {
            Files.write(file, java.util.Arrays.copyOf(whole, length));
            assertTrue(
                    lines(1).get(0).startsWith("Rank 2's record of communicator w is cut off after "), out::toString);
        }
    }

    @Test
    void rankThatCameAfterTheFailureIsLate() throws IOException {
        rank(0).done(SUM).waits(SUM).failed("not done after PT5S").write(folder);
        rank(1).done(SUM).waits(SUM).failed("not done after PT5S").write(folder);
        rank(2).done(SUM).late(SUM, 6000).write(folder);
        List<String> lines = lines(1);
        assertTrue(
                lines.get(0).startsWith("Rank 2 came 6.000 s after the other ranks to ncclAllReduce"), out::toString);
        assertTrue(lines.get(0).endsWith("[NCCL4J-0209]"), out::toString);
    }

    @Test
    void delayIsNotTheCauseIfARankIsMissing() throws IOException {
        rank(0).done(SUM)
                .late(SUM, 500)
                .waits(SUM)
                .failed("not done after PT5S")
                .write(folder);
        rank(1).done(SUM).done(SUM).waits(SUM).failed("not done after PT5S").write(folder);
        rank(2).done(SUM).done(SUM).write(folder);
        assertTrue(lines(1).get(0).startsWith("Rank 2 did not reach ncclAllReduce"), out::toString);
        assertFalse(out.toString().contains("[NCCL4J-0209]"), out::toString);
    }

    @Test
    void missingRecordIsNamed() throws IOException {
        rank(0).done(SUM).write(folder);
        rank(2).done(SUM).write(folder);
        assertTrue(lines(1).get(0).startsWith("Rank 1 has no record of communicator w"), out::toString);
    }

    @Test
    void earlierJobsAreLeftOut() throws IOException {
        new MadeRecord("old", 0, 2)
                .process(900)
                .host("node0", -100_000)
                .waits(SUM)
                .write(folder);
        for (int rank = 0; rank < 3; rank++) {
            rank(rank).done(SUM).write(folder);
        }
        assertTrue(lines(0).contains("Omitted: 1 records of earlier jobs in the folder."), out::toString);
    }

    @Test
    void clocksOfHostsAreCorrected() throws IOException {
        for (int rank = 0; rank < 3; rank++) {
            MadeRecord record = rank(rank).host("node" + rank, rank == 2 ? 5000 : 0);
            for (int i = 0; i < 10; i++) {
                record.late(SUM, rank == 1 ? 300 : 0);
            }
            record.write(folder);
        }
        List<String> lines = lines(1);
        assertTrue(lines.get(0).startsWith("Rank 1 came last to 10 of 10 collectives, 0.300 s after"), out::toString);
        assertTrue(out.toString().contains("that of node2 is 5.000 s ahead"), out::toString);
    }

    @Test
    void dumpsOfTorchAreRead() {
        assertEquals(1, analyze(TORCH.toString()), out::toString);
        List<String> lines = out.toString().lines().toList();
        assertTrue(
                lines.get(0)
                        .startsWith("Rank 2 did not reach all_reduce of 32 Double (operation 5) of communicator "
                                + "'the default group', in which ranks 0 and 1 have waited since "),
                out::toString);
        assertTrue(
                lines.get(1).startsWith("  Rank 2's last operation is broadcast of 1000 Float (operation 4)"),
                out::toString);
        assertTrue(
                lines.get(2).startsWith("  Next: look at the rank's last operation, and at its stacks"), lines.get(2));
    }

    @Test
    void folderWithoutRecordsIsRefused() throws IOException {
        Files.writeString(folder.resolve("other.json"), "{\"a\": 1}");
        assertEquals(2, analyze(folder.toString()));
        assertTrue(out.toString().contains(" has no records: set -Dnccl4j.recorder.dump"), out::toString);
        Files.write(folder.resolve("trace_0"), new byte[] {(byte) 0x80, 2, '}'});
        assertEquals(2, analyze(folder.toString()));
        assertTrue(
                out.toString()
                        .contains("trace_0 is a pickle, which can run code when it is read: let torch write JSON"),
                out::toString);
    }

    /** A file that can't be read is named, and the others are analyzed; alone it is no usable input. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "nccl4j-9-w-rank99999999999.json | {} | the rank in its name must be from 0 to 1048576: 99999999999",
                "nccl4j-9-w-rank99999999999999999999.json | {} | a value has another form than in a record",
                "nccl4j-9-w-rank0.json | {\"rank\": -2147483648} | rank must be from 0 to 1048576: -2147483648",
                "nccl4j-9-w-rank0.json | {\"size\": 2147483647} | size must be from 0 to 1048576: 2147483647",
                "nccl4j-9-w-rank7.json | {\"size\": 7} | rank must be < size: 7, size 7",
                "nccl4j-9-w-rank0.json | {\"world\": 9999999999} | world must be from 0 to 1048576: 9999999999",
                "nccl4j-9-w-rank0.json | {\"recorded\": 2, \"collectives\": 1000000000000} | collectives must be <= recorded",
                "nccl4j-9-w-rank0.json | {\"collectives\": 9223372036854775807} | collectives must be from 0 to 90071",
                "nccl4j-9-w-rank0.json | {\"operations\": [{\"sequence\": 9223372036854775807}]} | sequence must be from 0 to ",
                "dump_0.json | {\"pg_config\": 5} | not a whole dump of torch",
                "dump_0.json | {\"entries\": [1, 2]} | not a whole dump of torch",
                "dump_0.json | {\"entries\": [{\"process_group\": []}]} | not a whole dump of torch",
                "dump_0.json | {\"entries\": [{\"process_group\": [\"0\"], \"collective_seq_id\": {}}]} | not a whole dump",
                "dump_0.json | {\"entries\": [[[[[ | not a whole dump of torch",
                "node0-pid100.log | {\"nccl4j\": 5} | line 1 is not one that the profiler writes",
                "node0-pid100.log | {\"nccl4j\": {}, \"header\": 3} | line 1 is not one that the profiler writes"
            })
    void fileThatCannotBeReadDoesNotEndTheAnalysis(String name, String content, String reason) throws IOException {
        Files.writeString(folder.resolve(name), content);
        assertEquals(2, analyze(folder.toString()), out::toString);
        assertTrue(out.toString().contains(name + ": " + reason), out::toString);
        assertFalse(out.toString().contains("\tat "), out::toString);
        rank(0).done(SUM).write(folder);
        rank(1).done(SUM).write(folder);
        rank(2).done(SUM).write(folder);
        List<String> lines = lines(1);
        assertTrue(lines.get(0).startsWith("A record can't be read: "), out::toString);
        assertTrue(lines.get(0).contains(name + ": " + reason), out::toString);
        assertTrue(lines.contains("Read: 3 operations of 3 ranks in 1 communicator."), out::toString);
    }

    @Test
    void profileWithANumberThatIsNotFiniteIsNamed() throws IOException {
        rank(0).done(SUM).write(folder);
        Files.writeString(
                folder.resolve("node0-pid100.log"),
                kernel(0, "0x1", "unknown", "AllReduce", 1, 10_000)
                        .replaceFirst("busbw_gbs\": [0-9.]+", "busbw_gbs\": 1e999"));
        Path trace = folder.resolve("trace");
        assertEquals(1, analyze(folder.toString(), "--perfetto", trace.toString()), out::toString);
        assertTrue(out.toString().contains("node0-pid100.log: line 1 is not one"), out::toString);
    }

    @Test
    void filesOfOtherProgramsAreNoFinding() throws IOException {
        rank(0).done(SUM).write(folder);
        rank(1).done(SUM).write(folder);
        rank(2).done(SUM).write(folder);
        Files.write(folder.resolve("other.json"), new byte[] {'{', '"', (byte) 0xff, '"', ':', '1', '}'});
        Files.writeString(folder.resolve("more.json"), "{\"log\": {\"entries\": []}}");
        Files.writeString(folder.resolve("notes"), "{ this is no JSON");
        Files.write(folder.resolve("model.pkl"), new byte[] {(byte) 0x80, 4, '}'});
        assertTrue(lines(0).stream().anyMatch(line -> line.contains("model.pkl is a pickle")), out::toString);
        assertEquals(4, out.toString().lines().filter(line -> !line.isBlank()).count(), out::toString);
    }

    @Test
    void olderRecordOfARankIsNamed() throws IOException {
        rank(0).done(SUM).write(folder);
        rank(1).done(SUM).write(folder);
        rank(2).done(SUM).write(folder);
        rank(2).process(200).done(SUM).written(5).write(folder);
        assertTrue(
                lines(0).stream()
                        .anyMatch(line -> line.startsWith("Omitted: ")
                                && line.endsWith(
                                        "nccl4j-200-w-rank2.json: rank 2 of the communicator has a newer record in "
                                                + "another file.")),
                out::toString);
    }

    @Test
    void timesOutsideOfTheCalendarAreUnknown() throws IOException {
        for (int rank = 0; rank < 2; rank++) {
            Path file = new MadeRecord("w", rank, 2).done(SUM).write(folder);
            Files.writeString(
                    file,
                    Files.readString(file)
                            .replaceFirst(
                                    "\"enqueued\": \"2026", "\"enqueued\": \"" + (rank == 0 ? "+300000" : "-290000")));
        }
        Path page = folder.resolve("page.html");
        assertEquals(0, analyze(folder.toString(), "--html", page.toString()), out::toString);
        assertTrue(Files.readString(page).contains("\"calls\":[0,0,1,1,-1,"), "no time");
    }

    /** Texts of other machines must not command the terminal or the page. */
    @Test
    void controlCharactersOfRecordsAreNotPrinted() throws IOException {
        String evil = "\\u001b]0;x\\u0007\\u009b2J\\u202e\\u2066</script>";
        rank(0).name(evil).host("h" + evil, 0).done(SUM).write(folder);
        rank(1).name(evil).failed("boom " + evil).waits(SUM).write(folder);
        rank(2).name(evil).done(SUM).write(folder);
        Files.writeString(folder.resolve("nccl4j-9-\u001b[2J\u202e-rank0.json"), "{\"rank\": -1}");
        Path page = folder.resolve("page.html");
        for (String option : List.of("--late=200", "--json")) {
            assertEquals(1, analyze(folder.toString(), option, "--html", page.toString()), out::toString);
            String shown = Files.readString(page);
            assertFalse((out + shown).matches("(?s).*[\\p{Cc}\\p{Cf}&&[^\n]].*"), () -> out + shown);
            assertFalse(shown.contains("?</script>"), shown);
        }
    }

    @Test
    void jsonAndTraceHaveTheFindings() throws IOException {
        rank(0).done(SUM).waits(SUM).write(folder);
        rank(1).done(SUM).waits(SUM).write(folder);
        rank(2).done(SUM).write(folder);
        Path trace = folder.resolve("trace");
        assertEquals(1, analyze(folder.toString(), "--json", "--perfetto", trace.toString()), out::toString);
        assertEquals(1, out.toString().lines().count());
        JsonObject json = JsonParser.parseString(out.toString()).getAsJsonObject();
        assertEquals("finding", json.get("status").getAsString());
        JsonObject finding = json.getAsJsonArray("findings").get(0).getAsJsonObject();
        assertEquals("rank.missing", finding.get("id").getAsString());
        assertEquals("[2]", finding.get("ranks").toString());
        assertEquals(2, finding.get("operation").getAsInt());
        String events = Files.readString(trace);
        // 3 processes with 1 thread, 5 operations and the finding.
        assertEquals(
                12,
                JsonParser.parseString(events)
                        .getAsJsonObject()
                        .getAsJsonArray("traceEvents")
                        .size());
    }

    /** The culprit's process, and the command to run there. */
    @Test
    void nextStepIsNamedWithTheProcess() throws IOException {
        rank(0).done(SUM).waits(SUM).write(folder);
        rank(1).done(SUM).waits(SUM).write(folder);
        rank(2).host("node7", 0).done(SUM).write(folder);
        List<String> lines = lines(1);
        assertEquals(
                "  Rank 2 is process 102 of node7. Next: jstack 102 on node7 if it still runs, else its log.",
                lines.get(2));
        assertEquals("nccl4j explain 0208 says more.", lines.get(lines.size() - 1));
        assertEquals(1, analyze(folder.toString(), "--json"), out::toString);
        JsonObject finding = JsonParser.parseString(out.toString())
                .getAsJsonObject()
                .getAsJsonArray("findings")
                .get(0)
                .getAsJsonObject();
        assertEquals(
                "[{\"rank\":2,\"host\":\"node7\",\"process\":\"102\"}]",
                finding.get("places").toString());
        assertEquals(
                "jstack 102 on node7 if it still runs, else its log",
                finding.get("next").getAsString());
    }

    @Test
    void machinesOfAnOperationThatIsStuckAreNamed() throws IOException {
        for (int rank = 0; rank < 6; rank++) {
            new MadeRecord("w", rank, 6)
                    .host("node" + rank / 2 * 2, 0)
                    .waits(SUM)
                    .failed("late")
                    .write(folder);
        }
        assertEquals(
                "  Rank 0 is process 100 of node0, rank 1 process 101 of node0, rank 2 process 102 of node2, and 3 more. "
                        + "Next: nccl4j doctor on node0, node2, node4.",
                lines(1).get(2));
    }

    /** Rank 1 of a part has no record, so that it may be any rank of the job. */
    @Test
    void processOfAnotherRankIsNotNamed() throws IOException {
        new MadeRecord("w.0.0", 0, 2).process(100).waits(SUM).write(folder);
        for (int rank = 0; rank < 3; rank++) {
            rank(rank).done(SUM).write(folder);
        }
        for (String call : List.of("", "ncclCommSplit")) {
            if (!call.isEmpty()) {
                new MadeRecord("w.0.0", 0, 2).process(100).in(call).write(folder);
            }
            List<String> lines = lines(1);
            assertTrue(lines.get(0).startsWith("Rank 1 of w.0.0 did not reach ncc"), out::toString);
            assertEquals(
                    "  Next: look at the rank's log and exit code, then at its machine: killed for memory, stopped, or unreachable.",
                    lines.get(2));
            Analysis analysis = Analysis.of(RecordFolder.read(folder), 200_000);
            assertTrue(
                    Lanes.of(analysis).all().stream().noneMatch(Lanes.Lane::culprit), "the lane of a rank of the job");
        }
    }

    /** An id leads to the documentation, or to what the page itself has of it. */
    @Test
    void idsOfThePageLeadToTheirRemedies() throws IOException {
        rank(0).done(SUM).waits(SUM).write(folder);
        rank(1).done(SUM).waits(SUM).write(folder);
        rank(2).done(SUM).write(folder);
        Analysis analysis = Analysis.of(RecordFolder.read(folder), 200_000);
        String linked = HtmlPage.of(analysis, "https://example.org/nccl4j");
        String anchor = "/blob/main/docs/errors.md#nccl4j-0208-rankmissing";
        assertTrue(
                linked.contains(
                        "const help = {\"NCCL4J-0208\":{\"url\":\"https://example.org/nccl4j" + anchor + "\"}};"),
                linked);
        String alone = HtmlPage.of(analysis, "UNDECIDED");
        assertTrue(
                alone.contains(
                        "const help = {\"NCCL4J-0208\":{\"text\":\"A rank did not reach a collective, or a call such "
                                + "as split, in which other ranks wait.\\n1. With a record: look at the rank"),
                alone);
        assertTrue(alone.contains("Next: jstack 102 on node0 if it still runs, else its log."), alone);
    }

    /** The colours that the style declares are those of text and lines, and those that the legend explains. */
    @Test
    void legendExplainsEveryColour() throws IOException {
        rank(0).done(SUM).write(folder);
        String page = HtmlPage.of(Analysis.of(RecordFolder.read(folder), 200_000));
        Set<String> declared = found(page, "(--[a-z]+): #");
        Set<String> explained = found(page, "legend\\(.*?(--[a-z]+)\\)\"}\\);");
        explained.addAll(List.of("--back", "--text", "--dim", "--line", "--band"));
        assertEquals(declared, explained);
        assertTrue(page.contains("functions.forEach((name, i) => legend("), page);
    }

    private static Set<String> found(String page, String pattern) {
        return Pattern.compile(pattern)
                .matcher(page)
                .results()
                .map(match -> match.group(1))
                .collect(Collectors.toCollection(TreeSet::new));
    }

    /** A line as the profiler writes it. */
    private static String kernel(int rank, String id, String name, String function, int sequence, long nanoseconds) {
        return String.format(
                Locale.ROOT,
                "{\"header\": {\"id\": \"%s\", \"comm_name\": \"%s\", \"rank\": %d, \"n_ranks\": 2, \"nnodes\": 1}, \"metadata\": "
                        + "{\"hostname\": \"node0\", \"pid\": %d}, \"coll_perf\": {\"coll\": \"%s\", \"coll_sn\": 0, "
                        + "\"coll_msg_size_bytes\": 4096, \"coll_busbw_gbs\": %.4f}, \"nccl4j\": {\"sequence\": %d, "
                        + "\"launched_us\": %d, \"queued_ns\": 2500, \"kernel_ns\": %d, \"algorithm\": \"RING\", "
                        + "\"protocol\": \"LL\", \"channels\": 4, \"tag\": 7}}\n",
                id,
                name,
                rank,
                100 + rank,
                function,
                4096.0 / nanoseconds,
                sequence,
                MadeRecord.BEGIN.plusSeconds(sequence).toEpochMilli() * 1000,
                nanoseconds);
    }

    private List<JsonObject> kernelsOfTrace() throws IOException {
        Path trace = folder.resolve("trace");
        assertEquals(0, analyze(folder.toString(), "--perfetto", trace.toString()), out::toString);
        List<JsonObject> kernels = new ArrayList<>();
        for (JsonElement event : JsonParser.parseString(Files.readString(trace))
                .getAsJsonObject()
                .getAsJsonArray("traceEvents")) {
            JsonElement category = event.getAsJsonObject().get("cat");
            if (category != null && category.getAsString().equals("kernel")) {
                kernels.add(event.getAsJsonObject());
            }
        }
        return kernels;
    }

    @Test
    void profileIsShownBesideTheRecords() throws IOException {
        rank(0).done(SUM).done(SUM).write(folder);
        rank(1).done(SUM).done(SUM).write(folder);
        rank(2).done(SUM).done(SUM).write(folder);
        // A line of Inspector itself, one of another function, and one that a crash has cut.
        Files.writeString(
                folder.resolve("node0-pid100.log"),
                "{\"header\": {}, \"metadata\": {}, \"coll_perf\": {}}\n"
                        + kernel(0, "0x1", "unknown", "AllReduce", 1, 10_000)
                        + kernel(0, "0x1", "unknown", "Broadcast", 2, 99_000)
                        + "{\"header\": {\"id\"");
        Files.writeString(
                folder.resolve("node0-pid101.log"),
                kernel(1, "0x1", "unknown", "AllReduce", 1, 30_000)
                        + kernel(1, "0x1", "unknown", "AllReduce", 2, 20_000));
        List<JsonObject> kernels = kernelsOfTrace();
        String words = out.toString().replaceAll(" +", " ");
        assertTrue(words.contains("\n ncclAllReduce 4096 3 20.0 30.0 0.20\n"), words);
        assertTrue(words.contains("\n ncclBroadcast 4096 1 99.0 99.0 0.04\n"), words);
        assertEquals(3, kernels.size(), kernels::toString);
        JsonObject first = kernels.get(0);
        assertEquals(0, first.get("pid").getAsInt());
        assertEquals(2.5, first.get("ts").getAsDouble(), 1e-6);
        assertEquals(10, first.get("dur").getAsDouble(), 1e-6);
        assertEquals("RING LL", first.getAsJsonObject("args").get("algorithm").getAsString());
        assertEquals(1_000_002.5, kernels.get(2).get("ts").getAsDouble(), 1e-6);
        Path page = folder.resolve("page.html");
        assertEquals(0, analyze(folder.toString(), "--html", page.toString()), out::toString);
        String text = Files.readString(page);
        assertTrue(text.contains("\"kernel 10.0 us, queued 2.5 us, RING LL, 4 channels, 0.4 GB/s, tag 7\""), text);
        assertFalse(text.contains("kernel 99.0 us"), text);
    }

    @Test
    void profileOfTwoCommunicatorsWithoutNamesIsNotMixedUp() throws IOException {
        rank(0).done(SUM).write(folder);
        rank(1).done(SUM).write(folder);
        rank(2).done(SUM).write(folder);
        Files.writeString(
                folder.resolve("node0-pid100.log"),
                kernel(0, "0x1", "unknown", "AllReduce", 1, 10_000)
                        + kernel(0, "0x2", "unknown", "AllReduce", 1, 11_000));
        assertEquals(List.of(), kernelsOfTrace());
    }

    @Test
    void damagedProfileIsNamed() throws IOException {
        rank(0).done(SUM).write(folder);
        rank(1).done(SUM).write(folder);
        rank(2).done(SUM).write(folder);
        Files.writeString(folder.resolve("node0-pid100.log"), "Hello\n{}\n");
        assertEquals(1, analyze(folder.toString()), out::toString);
        assertTrue(
                out.toString().contains("node0-pid100.log: line 1 is not one that the profiler writes"), out::toString);
    }

    /** Opens the page in a browser and returns the document after its program has run. */
    private String open(Path page, String view) throws IOException, InterruptedException {
        Programs.require("chromium", "chromium");
        Process browser = ChildProcesses.start(new ProcessBuilder(
                        "chromium",
                        "--headless",
                        "--no-sandbox",
                        "--disable-gpu",
                        "--user-data-dir=" + folder.resolve("browser"),
                        "--window-size=1400,850",
                        "--virtual-time-budget=5000",
                        "--dump-dom",
                        page.toUri() + view)
                .redirectError(ProcessBuilder.Redirect.DISCARD));
        String document = new String(browser.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        browser.waitFor();
        return document;
    }

    @Test
    void pageDrawsAllRanks() throws Exception {
        int ranks = 1000;
        for (int rank = 0; rank < ranks; rank++) {
            MadeRecord record = new MadeRecord("w", rank, ranks);
            for (int i = 0; i < 99; i++) {
                record.done(SUM);
            }
            (rank == 617 ? record : record.waits("ncclBroadcast 1 int8 - 0")).write(folder);
        }
        Path page = folder.resolve("page.html");
        assertEquals(1, analyze(folder.toString(), "--html", page.toString()), out::toString);
        assertFalse(Files.readString(page).matches("(?s).*(src|href)=.*"), "the page must not load anything");
        for (String view : List.of("", "#view=0")) {
            String document = open(page, view);
            assertTrue(document.contains("data-drawn=\"1000\""), () -> document.substring(0, 3000));
            assertTrue(document.contains("Rank 617 did not reach ncclBroadcast of 1 int8 from rank 0"));
            assertTrue(document.contains(">NCCL4J-0208</a>"), () -> document.substring(0, 3000));
            assertTrue(document.contains("</i>rank of a finding</span>"), () -> document.substring(0, 5000));
        }
    }
}
