package io.github.nccl4j.tools.analyze;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/**
 * Whole reports of made records: the text, the JSON object, the trace and the data of the page, compared with files. With the
 * system property {@code reports.write} the files are written anew, to be read before they are committed.
 */
class WholeReportsTest {
    private static final Path REPORTS = Path.of("src/test/resources/io/github/nccl4j/tools/analyze/reports");
    private static final String SUM = "ncclAllReduce 64 int32 SUM";
    private static final String GATHER = "ncclAllGather 5 int8";

    @TempDir
    Path folder;

    private static String run(String... arguments) {
        StringWriter out = new StringWriter();
        CommandLine command = new CommandLine(new AnalyzeCommand()).setOut(new PrintWriter(out));
        command.setErr(new PrintWriter(out));
        int code = command.execute(arguments);
        return out + "exit code " + code + "\n";
    }

    /** The reports on the files of the folder must be those of a file. */
    private void assertReports(String name) throws IOException {
        Path trace = folder.resolve("trace.out");
        Path page = folder.resolve("page.out");
        String text = run(folder.toString());
        String json = run(folder.toString(), "--json", "--perfetto", trace.toString(), "--html", page.toString());
        String data = Files.readString(page)
                .lines()
                .filter(line -> line.contains("{\"begin\":"))
                .findFirst()
                .orElseThrow();
        String all = text + "\n" + broken(json) + "\n" + broken(Files.readString(trace)) + "\n\n" + broken(data) + "\n";
        Files.delete(trace);
        Files.delete(page);
        String found = all.replace(folder.toString(), "FOLDER");
        Path file = REPORTS.resolve(name + ".txt");
        if (System.getProperty("reports.write") != null) {
            Files.createDirectories(REPORTS);
            Files.writeString(file, found);
        }
        assertEquals(Files.readString(file), found);
    }

    /** JSON with a line for each of its objects. */
    private static String broken(String json) {
        return json.replace(",{", ",\n{").replace("],", "],\n");
    }

    private MadeRecord rank(int rank, int size) {
        return new MadeRecord("w", rank, size);
    }

    private MadeRecord half(int rank, int member) {
        return new MadeRecord("w.0.0", rank, 2).process(100 + member).name("half");
    }

    private static String kernel(int rank, String name, String function, int sequence, long nanoseconds, int tag) {
        boolean message = function.equals("Send");
        String kind = message ? "p2p" : "coll";
        return String.format(
                Locale.ROOT,
                "{\"header\": {\"id\": \"0x1\", \"comm_name\": \"%s\", \"rank\": %d}, \"metadata\": {\"hostname\": \"node0\", "
                        + "\"pid\": %d}, \"%s_perf\": {\"%s\": \"%s\", \"%s_msg_size_bytes\": 4096, \"%s_busbw_gbs\": %.4f}, "
                        + "\"nccl4j\": {\"sequence\": %s, \"launched_us\": %d, \"queued_ns\": 2500, \"kernel_ns\": %d, "
                        + "\"algorithm\": \"%s\", \"protocol\": \"%s\", \"channels\": 4, \"tag\": %d}}\n",
                name,
                rank,
                100 + rank,
                kind,
                kind,
                function,
                kind,
                kind,
                4096.0 / nanoseconds,
                sequence == 0 ? "null" : "" + sequence,
                MadeRecord.BEGIN.plusSeconds(sequence).toEpochMilli() * 1000,
                nanoseconds,
                message ? "" : "RING",
                message ? "" : "LL",
                tag);
    }

    /** A straggler, clocks that differ, a part that waits, a profile, a damaged file and an older job. */
    @Test
    void slowRank() throws IOException {
        for (int rank = 0; rank < 4; rank++) {
            MadeRecord record =
                    rank(rank, 4).name("model").host("node" + rank, rank == 2 ? 5000 : rank == 3 ? -700 : 0);
            for (int i = 0; i < 10; i++) {
                record.late(
                        SUM,
                        rank == 1 && i < 5 ? 300 + 100 * i : rank == 2 && i == 7 ? 250 : rank == 0 && i == 9 ? 200 : 0);
            }
            record.done("ncclSend 4 int8 - " + (rank + 1) % 4)
                    .done("ncclRecv 4 int8 - " + (rank + 3) % 4)
                    .write(folder);
        }
        new MadeRecord("old", 0, 2)
                .process(900)
                .host("node9", -100_000)
                .waits(SUM)
                .write(folder);
        Files.writeString(
                folder.resolve("node0-pid100.log"),
                kernel(0, "model", "AllReduce", 1, 10_000, 0)
                        + kernel(0, "model", "AllReduce", 2, 30_000, 7)
                        + kernel(0, "model", "AllReduce", 3, 20_000, 0)
                        + kernel(0, "model", "Send", 11, 90_000, 0)
                        + kernel(0, "model", "Send", 0, 91_000, 0)
                        + kernel(0, "model", "Reduce", 0, 1_000, 0));
        Files.writeString(folder.resolve("nccl4j-104.json"), "{\"format\": \"nccl4j flight recorder 1\"");
        assertReports("slow-rank");
    }

    /** Every argument that can differ, each at another number. */
    @Test
    void differentArguments() throws IOException {
        String[] usual = {SUM, GATHER, "ncclBroadcast 8 int32 - 1", SUM, "ncclReduce 4 int8 SUM 2", SUM, GATHER};
        String[][] others = {
            usual,
            {SUM, "ncclAllGather 6 int8", "ncclBroadcast 8 int32 - 1", SUM, "ncclReduce 4 int8 SUM 2", SUM, GATHER},
            {SUM, GATHER, "ncclBroadcast 8 float32 - 1", SUM, "ncclReduce 4 int8 SUM 2", SUM, GATHER},
            {
                SUM,
                GATHER,
                "ncclBroadcast 8 int32 - 1",
                "ncclAllReduce 64 int32 MAX",
                "ncclReduce 4 int8 SUM 2",
                SUM,
                GATHER
            },
            {SUM, GATHER, "ncclBroadcast 8 int32 - 1", SUM, "ncclReduce 4 int8 SUM 3", SUM, GATHER},
            {SUM, GATHER, "ncclBroadcast 8 int32 - 1", SUM, "ncclReduce 4 int8 SUM 2", GATHER, GATHER},
            {
                "ncclReduceConfig 1 int8 SUM 0",
                SUM,
                GATHER,
                "ncclBroadcast 8 int32 - 1",
                SUM,
                "ncclReduce 4 int8 SUM 2",
                SUM,
                GATHER
            },
            {GATHER, "ncclBroadcast 8 int32 - 1", SUM, "ncclReduce 4 int8 SUM 2", SUM, GATHER},
            {
                "ncclAllReduceConfig 64 int32 SUM",
                GATHER,
                "ncclBroadcast 8 int32 - 1",
                SUM,
                "ncclReduce 4 int8 SUM 2",
                SUM,
                GATHER
            },
        };
        for (int rank = 0; rank < others.length; rank++) {
            MadeRecord record = rank(rank, others.length);
            for (String call : others[rank]) {
                record.done(call);
            }
            record.write(folder);
        }
        assertReports("different-arguments");
    }

    /** Two ranks differ: the records do not show which of them is wrong. A call of several ranks differs. */
    @Test
    void twoRanksThatDiffer() throws IOException {
        for (int rank = 0; rank < 2; rank++) {
            rank(rank, 2).done(SUM).waits(rank == 0 ? SUM : GATHER).write(folder);
            half(rank, rank).done(SUM).waits(SUM).write(folder);
        }
        assertReports("two-ranks");
    }

    /** Sends and receives: pairs that differ, that wait for each other, and whose other end is missing. */
    @Test
    void transfers() throws IOException {
        rank(0, 6)
                .done("ncclSend 4 int8 - 1")
                .done("ncclSend 4 int8 - 1")
                .waits("ncclSend 4 int16 - 1")
                .write(folder);
        rank(1, 6)
                .done("ncclRecv 4 int8 - 0")
                .done("ncclRecv 4 int8 - 0")
                .waits("ncclRecv 4 int8 - 0")
                .write(folder);
        rank(2, 6).done("ncclSend 4 int8 - 3").waits("ncclRecv 7 int8 - 3").write(folder);
        rank(3, 6).done("ncclRecv 4 int8 - 2").waits("ncclRecv 8 int8 - 2").write(folder);
        rank(4, 6)
                .waits("ncclRecv 9 int8 - 5")
                .failed("ncclRemoteError: peer has closed\\nmore")
                .write(folder);
        assertReports("transfers");
    }

    /** Records that have lost their beginnings: only what was not observed as done is compared. */
    @Test
    void transfersOfShortRecords() throws IOException {
        rank(0, 3)
                .done("ncclSend 1 int8 - 1")
                .done("ncclSend 2 int8 - 1")
                .waits("ncclSend 4 int8 - 1")
                .drop(1)
                .write(folder);
        rank(1, 3)
                .done("ncclRecv 1 int8 - 0")
                .waits("ncclRecv 3 int8 - 0")
                .waits("ncclSend 2 int8 - 2")
                .write(folder);
        rank(2, 3).done("ncclSend 1 int8 - 1").write(folder);
        assertReports("short-transfers");
    }

    /** Ranks without a record, whose failure the others report; a part of the ranks; a closed communicator. */
    @Test
    void missingRanks() throws IOException {
        rank(0, 5)
                .done(SUM)
                .waits(SUM)
                .failed("ncclSystemError: no route\\nmore")
                .write(folder);
        rank(1, 5).done(SUM).waits(SUM).failed("").write(folder);
        rank(2, 5).done(SUM).state("CLOSED").write(folder);
        half(0, 1).waits(GATHER).write(folder);
        assertReports("missing-ranks");
    }

    @Test
    void rankThatDoesNotAnswer() throws IOException {
        rank(0, 3).done(SUM).waits(SUM).failed("no answer from rank 2").write(folder);
        rank(1, 3).done(SUM).write(folder);
        half(0, 0).write(folder);
        half(1, 1).untimed().waits(GATHER).write(folder);
        assertReports("no-answer");
    }

    /** Operations without times, of records that were written at once. */
    @Test
    void recordsWithoutTimes() throws IOException {
        rank(0, 3).untimed().done(SUM).waits(SUM).host("", 0).write(folder);
        rank(1, 3).untimed().done(SUM).waits(SUM).host("", 0).write(folder);
        rank(2, 3).untimed().done(SUM).host("", 0).write(folder);
        assertReports("no-times");
    }

    /** Ranks of a healthy job are at different operations, but not for long. */
    @Test
    void ranksAtDifferentOperations() throws IOException {
        rank(0, 2).done(SUM).waits(SUM).written(0).write(folder);
        rank(1, 2).done(SUM).written(1).write(folder);
        assertReports("healthy");
        rank(0, 2).done(SUM).waits(SUM).written(1).write(folder);
        assertReports("hanging");
    }

    /** An operation that some ranks finished and others did not, without a failure. */
    @Test
    void operationThatSomeRanksFinished() throws IOException {
        rank(0, 3).done(SUM).done(SUM).write(folder);
        rank(1, 3).done(SUM).waits(SUM).write(folder);
        rank(2, 3).done(SUM).waits(SUM).write(folder);
        assertReports("partly-done");
    }

    /** A rank that came late to the last common operation before a failure. */
    @Test
    void lateRankBeforeFailure() throws IOException {
        rank(0, 3).done(SUM).waits(SUM).failed("not done after PT5S\\nmore").write(folder);
        rank(1, 3).late(SUM, 199).waits(SUM).write(folder);
        rank(2, 3).done(SUM).late(SUM, 6000).write(folder);
        assertReports("late-rank");
    }

    /** Communicators that ranks use in different orders, and operations that wait because of that. */
    @Test
    void communicatorsInDifferentOrders() throws IOException {
        rank(0, 4).waits(SUM).write(folder);
        rank(1, 4).waits(SUM).write(folder);
        rank(2, 4).waits(SUM).write(folder);
        rank(3, 4).write(folder);
        half(0, 2).write(folder);
        half(1, 3).waits(GATHER).write(folder);
        MadeRecord third = new MadeRecord("w.0.1", 0, 2).process(103);
        third.write(folder);
        new MadeRecord("w.0.1", 1, 2).process(104).waits(GATHER).write(folder);
        assertReports("orders");
    }

    /** More findings, communicators and kernels than a report lists. */
    @Test
    void longLists() throws IOException {
        StringBuilder profile = new StringBuilder();
        for (int i = 0; i < 12; i++) {
            for (int rank = 0; rank < 2; rank++) {
                new MadeRecord("w.0." + i, rank, 2)
                        .process(100 + rank)
                        .name("part" + i)
                        .done(rank == 0 ? SUM : "ncclAllReduce " + i + " int32 SUM")
                        .write(folder);
            }
            profile.append(kernel(0, "part0", "F" + i, 0, 1000 * (i + 1), 0));
        }
        Files.writeString(folder.resolve("node0-pid100.log"), profile);
        assertReports("long-lists");
    }

    /** Groups, sends and shapes in dumps of torch. */
    @Test
    void dumpsOfTorch() throws IOException {
        String groups =
                "\"pg_config\": {\"0\": {\"ranks\": \"[0, 1]\"}, \"5\": {\"ranks\": \"[1]\"}, \"\": {\"ranks\": \"[]\"}}";
        String form = "{\"process_group\": [\"%s\", \"x\"], \"profiling_name\": \"nccl:%s\", \"is_p2p\": %s, "
                + "\"collective_seq_id\": %d, \"p2p_seq_id\": %d, \"input_sizes\": [[2, 3], [4]], \"output_sizes\": [[7]], "
                + "\"input_dtypes\": [\"Float\"], \"output_dtypes\": [\"Int\"], \"state\": \"%s\", "
                + "\"time_created_ns\": %d, \"time_discovered_completed_ns\": %s}";
        long second = 1_000_000_000;
        List<String> entries = List.of(
                String.format(Locale.ROOT, form, "0", "all_reduce", "false", 1, 0, "completed", second, "null"),
                String.format(
                        Locale.ROOT, form, "0", "scatter", "false", 2, 0, "completed", 2 * second, "" + 3 * second),
                String.format(Locale.ROOT, form, "0", "all_to_all", "false", 3, 0, "scheduled", 3 * second, "0"),
                String.format(Locale.ROOT, form, "0", "send 0->1", "true", 3, 4, "scheduled", 4 * second, "0"),
                String.format(Locale.ROOT, form, "0", "recv 0<-1", "true", 3, 5, "scheduled", 5 * second, "0"),
                String.format(Locale.ROOT, form, "7", "all_reduce", "false", 1, 0, "scheduled", 6 * second, "0"));
        Files.writeString(
                folder.resolve("dump_0"), "{" + groups + ", \"entries\": [" + String.join(", ", entries) + "]}");
        Files.writeString(folder.resolve("dump_1.json"), "{\"entries\": [" + entries.get(0) + "]}");
        assertReports("torch");
    }

    @Test
    void thresholdIsAtLeastOneMillisecond() throws IOException {
        rank(0, 2).done(SUM).write(folder);
        rank(1, 2).late(SUM, 1).write(folder);
        assertTrue(run(folder.toString(), "--late", "0").startsWith("--late must be at least 1: 0"));
        String report = run(folder.toString(), "--late", "1");
        assertTrue(report.contains("  rank 1          1 of 1        0.001 s"), report);
        assertTrue(!run(folder.toString(), "--late", "2").contains("Came last"));
    }
}
