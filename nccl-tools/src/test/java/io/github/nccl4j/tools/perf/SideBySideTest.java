package io.github.nccl4j.tools.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SideBySideTest {
    /** Rows of two releases of nccl-tests, and of a collective without a reduction. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "           8             2     float     sum      -1    9.87    0.00    0.00      0    10.02    0.00    0.00      0",
                "           8             2     float     sum      -1     9.87    0.00    0.00       0    10.02    0.00    0.00     N/A",
                "           8             2     float                -1     9.87    0.00    0.00       0    10.02    0.00    0.00     N/A",
            })
    void parsesBothTimesOfARow(String row) {
        assertEquals(
                List.of(9.87, 10.02),
                List.copyOf(SideBySide.times(row, SideBySide.COLUMNS).values()));
    }

    @Test
    void ignoresColumnsOfIterations() {
        String row = "8  2  float  sum  -1  9.87  0.00  0.00  0  8.10  11.2  11.2  7.00"
                + "  10.02  0.00  0.00  N/A  8.20  12.5  12.5  6.10";
        assertEquals(
                List.of(9.87, 10.02),
                List.copyOf(SideBySide.times(row, SideBySide.COLUMNS_WITH_ITERATIONS)
                        .values()));
    }

    @Test
    void ignoresOtherLines() {
        assertTrue(SideBySide.times("#  Rank  0 Group  0 Pid  6 on host device  0 [0000:1b:00] NVIDIA H200", 4)
                .isEmpty());
        assertTrue(SideBySide.times("", 4).isEmpty());
        assertTrue(SideBySide.times("NCCL version 2.28.3+cuda13.0", 4).isEmpty());
    }

    @Test
    void rejectsRowWithWrongElements() {
        String row = "8  2  float  sum  -1  9.87  0.00  0.00  3  10.02  0.00  0.00  0";
        assertTrue(assertThrows(PerfException.class, () -> SideBySide.times(row, SideBySide.COLUMNS))
                .getMessage()
                .contains(row));
    }

    @Test
    void medianOfAnEvenNumberIsTheMean() {
        assertEquals(2.5, SideBySide.median(List.of(4.0, 1.0, 3.0, 2.0)));
        assertEquals(3, SideBySide.median(List.of(4.0, 1.0, 3.0)));
    }

    @Test
    void readsAllCyclesOfARun() {
        String row = "8  2  float  sum  -1  %s  0.00  0.00  0  %s  0.00  0.00  0";
        String table = String.join(
                "\n",
                "# a heading",
                String.format(Locale.ROOT, row, "9.1", "1.1"),
                String.format(Locale.ROOT, row, "50", "1.3"),
                String.format(Locale.ROOT, row, "9.3", "1.2"));
        assertEquals(
                List.of(List.of(9.1, 50.0, 9.3), List.of(1.1, 1.3, 1.2)),
                List.copyOf(SideBySide.rows(table, SideBySide.COLUMNS).values()));
    }

    @Test
    void usesMedianOfARunAndFastestTenthOfAll() {
        SideBySide.Runs runs = new SideBySide.Runs();
        runs.cycles.add(List.of(9.0, 6.0, 8.0, 9.5, 7.0));
        assertEquals(6.0, runs.fast(), "of few the fastest");
        runs.cycles.add(List.of(6.3, 6.2, 6.1, 9.0, 6.4, 9.1));
        assertEquals(List.of(8.0, 6.35), runs.medians());
        assertEquals(6.1, runs.fast(), "the second of eleven");
        SideBySide.Runs ten = new SideBySide.Runs();
        ten.cycles.add(List.of(10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0));
        assertEquals(1.0, ten.fast(), "the first of ten");
    }

    /* Whole comparisons, of programs that print given times */

    @TempDir
    private Path folder;

    /** A program that prints the lines of the next round on each start. */
    private SideBySide.Program program(String name, String... rounds) throws IOException {
        for (int i = 0; i < rounds.length; i++) {
            Files.writeString(folder.resolve(name + (i + 1)), rounds[i] + "\n");
        }
        String script = "n=$(cat count 2>/dev/null || echo 0); n=$((n + 1)); echo $n >count; echo " + name
                + " >>\"$ORDER\"; cat ../" + name + "$n";
        Path own = Files.createDirectory(folder.resolve("in-" + name));
        return new SideBySide.Program(
                List.of("sh", "-c", "cd " + own + "; " + script),
                Map.of("ORDER", folder.resolve("order").toString()));
    }

    /** A row of a size with a time out of place, and half of it in place. */
    private static String row(int bytes, double micros) {
        return String.format(
                Locale.ROOT, "%d 2 float sum -1 %.2f 0.00 0.00 0 %.2f 0.00 0.00 0", bytes, micros, micros / 2);
    }

    private record Outcome(int code, List<String> lines) {}

    private Outcome compare(int rounds, SideBySide.Program theirs, SideBySide.Program ours) throws Exception {
        PrintStream before = System.out;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
        try {
            SideBySide comparison =
                    new SideBySide(Collective.ALL_REDUCE, Path.of("all_reduce_perf"), rounds, SideBySide.COLUMNS);
            int code = comparison.run(theirs, ours);
            return new Outcome(
                    code, printed.toString(StandardCharsets.UTF_8).lines().toList());
        } finally {
            System.setOut(before);
        }
    }

    @Test
    void reportsRatiosOfMediansAndSpread() throws Exception {
        Outcome outcome = compare(
                3,
                program(
                        "theirs",
                        "NCCL version 2.30.7\n" + row(0, 1) + "\n" + row(8, 10) + "\n" + row(1024, 100),
                        "NCCL version 2.30.7\n" + row(0, 1) + "\n" + row(8, 12) + "\n" + row(1024, 100),
                        "NCCL version 2.30.7\n" + row(0, 1) + "\n" + row(8, 8) + "\n" + row(1024, 100)),
                program(
                        "ours",
                        row(0, 9) + "\n" + row(8, 11) + "\n" + row(1024, 105.1),
                        row(0, 9) + "\n" + row(8, 11) + "\n" + row(1024, 105.1),
                        row(0, 9) + "\n" + row(8, 11) + "\n" + row(1024, 105.1)));
        assertEquals(
                List.of("theirs", "ours", "ours", "theirs", "theirs", "ours"),
                Files.readAllLines(folder.resolve("order")));
        assertEquals(
                1, outcome.lines.stream().filter("NCCL version 2.30.7"::equals).count());
        assertEquals(
                List.of("# round 1 of 3", "# round 2 of 3", "# round 3 of 3"),
                outcome.lines.stream()
                        .filter(line -> line.startsWith("# round"))
                        .toList());
        List<String> rows = outcome.lines.stream()
                .filter(line -> !line.startsWith("#") && line.contains("float"))
                .map(line -> line.replaceAll(" +", " "))
                .toList();
        assertEquals(
                List.of(
                        "0 2 float sum -1 1.00 9.00 9.000 1.000..1.000 9.000",
                        "0 2 float sum -1 in place 0.50 4.50 9.000 1.000..1.000 9.000",
                        "8 2 float sum -1 10.00 11.00 1.100 0.800..1.200 1.375",
                        "8 2 float sum -1 in place 5.00 5.50 1.100 0.800..1.200 1.375",
                        "1024 2 float sum -1 100.00 105.10 1.051 1.000..1.000 1.051 SLOWER",
                        "1024 2 float sum -1 in place 50.00 52.55 1.051 1.000..1.000 1.051 SLOWER"),
                rows);
        assertEquals(
                "# all_reduce, from 1 byte on: median ratio 1.076, largest 1.100; fast 1.213, largest 1.375; slower than"
                        + " theirs by more than 5 % and their spread: 2 of 4",
                outcome.lines.get(outcome.lines.size() - 1));
        assertEquals(1, outcome.code);
    }

    @Test
    void fivePercentIsNotSlower() throws Exception {
        Outcome outcome = compare(1, program("theirs", row(8, 100)), program("ours", row(8, 105)));
        assertEquals(0, outcome.code);
        assertTrue(outcome.lines.stream().noneMatch(line -> line.endsWith("SLOWER")), "" + outcome);
    }

    @Test
    void reportsIncomparableRuns() throws Exception {
        assertEquals(
                "nccl4j perf printed no results:\n# nothing\n",
                assertThrows(
                                PerfException.class,
                                () -> compare(1, program("theirs", row(8, 1)), program("ours", "# nothing")))
                        .getMessage());
        assertEquals(
                "all_reduce_perf printed no results:\n# nothing\n",
                assertThrows(
                                PerfException.class,
                                () -> compare(1, program("none", "# nothing"), program("ours2", row(8, 1))))
                        .getMessage());
        assertEquals(
                "every run must print the same rows: '16 2 float sum -1' was printed by 0 runs of nccl-tests and 1 runs of"
                        + " nccl4j, in 1 rounds",
                assertThrows(
                                PerfException.class,
                                () -> compare(
                                        1, program("eight", row(8, 1)), program("more", row(8, 1) + "\n" + row(16, 1))))
                        .getMessage());
        assertEquals(
                "nothing to compare: with these sizes, all_reduce has 0 bytes for each rank; choose larger sizes with"
                        + " -b and -e",
                assertThrows(
                                PerfException.class,
                                () -> compare(1, program("zero", row(0, 1)), program("zero2", row(0, 1))))
                        .getMessage());
        SideBySide.Program failing = new SideBySide.Program(List.of("sh", "-c", "echo broken; exit 3"), Map.of());
        assertEquals(
                "[sh, -c, echo broken; exit 3] exited with 3:\nbroken\n",
                assertThrows(PerfException.class, () -> compare(1, failing, failing))
                        .getMessage());
    }

    @Test
    void writesAllTimes() throws Exception {
        SideBySide comparison =
                new SideBySide(Collective.ALL_REDUCE, Path.of("all_reduce_perf"), 1, SideBySide.COLUMNS);
        PrintStream before = System.out;
        System.setOut(new PrintStream(OutputStream.nullOutputStream(), true, StandardCharsets.UTF_8));
        try {
            comparison.run(
                    program("theirs", "NCCL version 2.30.7\n" + row(8, 2) + "\n" + row(8, 4)),
                    program("ours", row(8, 3)));
        } finally {
            System.setOut(before);
        }
        Path file = folder.resolve("times.json");
        comparison.write(file, 2, "libnccl.so.2", List.of("mpirun", "all_reduce_perf"), List.of("perf", "all_reduce"));
        JsonObject json = JsonParser.parseString(Files.readString(file)).getAsJsonObject();
        assertEquals("all_reduce", json.get("collective").getAsString());
        assertEquals(2, json.get("ranks").getAsInt());
        assertEquals("[\"NCCL version 2.30.7\"]", json.get("nccl_tests").toString());
        assertEquals("mpirun all_reduce_perf", json.get("theirs").getAsString());
        assertEquals("nccl4j perf all_reduce", json.get("ours").getAsString());
        assertEquals("libnccl.so.2", json.get("library").getAsString());
        assertTrue(json.has("time"), json::toString);
        assertEquals(
                "[{\"size\":8,\"row\":\"8 2 float sum -1\",\"in_place\":false,\"theirs_us\":[3.0],\"ours_us\":[3.0],"
                        + "\"theirs_fast_us\":2.0,\"ours_fast_us\":3.0},"
                        + "{\"size\":8,\"row\":\"8 2 float sum -1\",\"in_place\":true,\"theirs_us\":[1.5],\"ours_us\":[1.5],"
                        + "\"theirs_fast_us\":1.0,\"ours_fast_us\":1.5}]",
                json.get("results").toString());
    }
}
