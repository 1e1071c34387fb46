package io.github.nccl4j.tools.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class MemoryReportTest {
    @ParameterizedTest
    @CsvSource({
        "0, 0.00 B",
        "1023, 1023 B",
        "1024, 1.00 KB",
        "-2097152, -2.00 MB",
        "10590617, 10.1 MB",
        "104857600, 100 MB",
        "2199023255552, 2048 GB",
    })
    void sizesHaveThreeDigitsAsInNcclTests(double bytes, String text) {
        assertEquals(text, MemoryReport.size(bytes));
    }
}
