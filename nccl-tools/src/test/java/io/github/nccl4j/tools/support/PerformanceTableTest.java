package io.github.nccl4j.tools.support;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The table of nccl-tests, column by column, and its averages. */
class PerformanceTableTest {
    @Test
    void headingEqualsThatOfNcclTests() {
        List<String> lines = new PerformanceTable(false).header().lines().toList();
        assertEquals(
                List.of(
                        "#",
                        "#                                                              out-of-place                       in-place          ",
                        "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong",
                        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)        "),
                lines);
        assertTrue(new PerformanceTable(true).header().contains("    root  cputime   algbw"));
    }

    @Test
    void rowHasTheColumnsOfNcclTests() {
        PerformanceTable table = new PerformanceTable(false);
        assertEquals(
                "        1024           256     float     sum      -1",
                PerformanceTable.columns(1024, 256, "float", "sum", -1));
        assertEquals("     9.87    1.20    2.40       0", table.cell(9.87, 1.2, 2.4, 0L));
        assertEquals("     9.87    1.20    2.40     N/A", table.cell(9.87, 1.2, 2.4, null));
        assertEquals(0, table.wrongResults());
        assertEquals("     9.87    1.20    2.40       3", table.cell(9.87, 1.2, 2.4, 3L));
        assertEquals(1, table.wrongResults());
    }

    /** Columns of width 7 and 6. */
    @ParameterizedTest
    @CsvSource({
        "9999.99, 999.99,  9999.99, 999.99",
        "10000.04, 1000.04, 10000.0, 1000.0",
        "100000.4, 10000.4, 100000, 10000",
        "9999999, 999999, 9999999, 999999",
        "10000000, 1000000, 1.0e+07, 1e+06"
    })
    void numbersHaveAsManyDigitsAsFit(double micros, double bandwidth, String time, String text) {
        String cell = new PerformanceTable(false).cell(micros, bandwidth, 1, 0L);
        assertEquals(List.of(time, text, "1.00", "0"), List.of(cell.strip().split(" +")));
    }

    @Test
    void iterationsHaveColumnsOfTheirOwn() {
        assertEquals(
                List.of("1.25", "10000.0", "9.90", "3.00"),
                List.of(PerformanceTable.iterations(1.25, 10000.04, 9.9, 3)
                        .strip()
                        .split(" +")));
    }

    @Test
    void averagesAllCells() {
        PerformanceTable table = new PerformanceTable(false);
        assertEquals(0, table.averageBus());
        assertEquals(
                List.of("# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 0.00000 "),
                table.footer().lines().toList());
        table.cell(1, 1, 3, 0L);
        table.cell(1, 1, 6, 1L);
        assertEquals(4.5, table.averageBus());
        assertEquals(
                List.of("# Out of bounds values : 1 FAILED", "# Avg bus bandwidth    : 4.50000 "),
                table.footer().lines().toList());
    }

    @Test
    void rejectsSizesAboveLongMaxValue() {
        assertEquals(Long.MAX_VALUE >> 30 << 30, ByteSize.parse((Long.MAX_VALUE >> 30) + "G"));
        String larger = (Long.MAX_VALUE >> 30) + 1 + "G";
        assertEquals(
                "size too large: '" + larger + "'",
                assertThrows(IllegalArgumentException.class, () -> ByteSize.parse(larger))
                        .getMessage());
    }
}
