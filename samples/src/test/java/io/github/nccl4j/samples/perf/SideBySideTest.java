package io.github.nccl4j.samples.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SideBySideTest {
    /** Rows of two releases of nccl-tests, and of a collective without a name for its reduction. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "           8             2     float     sum      -1    9.87    0.00    0.00      0    10.02    0.00    0.00      0",
                "           8             2     float     sum      -1     9.87    0.00    0.00       0    10.02    0.00    0.00     N/A",
                "           8             2     float                -1     9.87    0.00    0.00       0    10.02    0.00    0.00     N/A",
            })
    void bothTimesOfARowAreRead(String row) {
        assertEquals(
                List.of(9.87, 10.02),
                List.copyOf(SideBySide.times(row, SideBySide.COLUMNS).values()));
    }

    @Test
    void theTimesOfIterationsAreLeftOut() {
        String row = "8  2  float  sum  -1  9.87  0.00  0.00  0  8.10  11.2  11.2  7.00"
                + "  10.02  0.00  0.00  N/A  8.20  12.5  12.5  6.10";
        assertEquals(
                List.of(9.87, 10.02),
                List.copyOf(SideBySide.times(row, SideBySide.COLUMNS_WITH_ITERATIONS)
                        .values()));
    }

    @Test
    void onlyRowsAreRead() {
        assertTrue(SideBySide.times("#  Rank  0 Group  0 Pid  6 on host device  0 [0000:1b:00] NVIDIA H200", 4)
                .isEmpty());
        assertTrue(SideBySide.times("", 4).isEmpty());
        assertTrue(SideBySide.times("NCCL version 2.28.3+cuda13.0", 4).isEmpty());
    }

    @Test
    void aRowWithWrongElementsIsRefused() {
        String row = "8  2  float  sum  -1  9.87  0.00  0.00  3  10.02  0.00  0.00  0";
        assertTrue(assertThrows(PerfException.class, () -> SideBySide.times(row, SideBySide.COLUMNS))
                .getMessage()
                .contains(row));
    }

    @Test
    void theMedianOfAnEvenNumberIsBetweenTwo() {
        assertEquals(2.5, SideBySide.median(List.of(4.0, 1.0, 3.0, 2.0)));
        assertEquals(3, SideBySide.median(List.of(4.0, 1.0, 3.0)));
    }

    @Test
    void allCyclesOfARunAreRead() {
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
    void ofARunTheMedianCountsAndOfAllTheFastestTenth() {
        SideBySide.Runs runs = new SideBySide.Runs();
        runs.cycles.add(List.of(9.0, 6.0, 8.0, 9.5, 7.0));
        assertEquals(6.0, runs.fast(), "of few the fastest");
        runs.cycles.add(List.of(6.3, 6.2, 6.1, 9.0, 6.4, 9.1));
        assertEquals(List.of(8.0, 6.35), runs.medians());
        assertEquals(6.1, runs.fast(), "the second of eleven");
    }
}
