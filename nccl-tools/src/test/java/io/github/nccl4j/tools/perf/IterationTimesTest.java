package io.github.nccl4j.tools.perf;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class IterationTimesTest {
    @Test
    void slowestProcessDeterminesEachIteration() {
        IterationTimes times = IterationTimes.of(List.of(new double[] {9, 2, 3}, new double[] {1, 4, 2}), 0);
        assertArrayEquals(new double[] {9, 4, 3}, times.slowest());
        assertArrayEquals(new double[] {1, 4, 2}, times.byProcess().get(1));
    }

    @Test
    void summaryExcludesFirstIterations() {
        IterationTimes times = IterationTimes.of(List.of(new double[] {900, 800, 6, 2, 4}), 2);
        assertEquals(5, times.slowest().length);
        IterationTimes.Summary summary = times.summary();
        assertEquals(2, summary.min());
        assertEquals(6, summary.max());
        assertEquals(4, summary.average());
        assertEquals(Math.sqrt(8.0 / 3), summary.deviation(), 1e-12);
        assertEquals(100 * Math.sqrt(8.0 / 3) / 4, summary.cv(), 1e-12);
    }

    /** Percentiles of 1, 2, ..., {@code count}, as nccl-tests computes them. */
    @ParameterizedTest
    @CsvSource({"1, 1, 1, 1", "2, 2, 2, 2", "5, 3, 5, 5", "20, 11, 19, 20", "100, 51, 95, 99", "200, 101, 190, 198"})
    void percentilesUseTheNearestRank(int count, double p50, double p95, double p99) {
        double[] backwards =
                IntStream.range(0, count).mapToDouble(i -> count - i).toArray();
        IterationTimes.Summary summary =
                IterationTimes.of(List.of(backwards), 0).summary();
        assertEquals(p50, summary.percentiles().p50());
        assertEquals(p95, summary.percentiles().p95());
        assertEquals(p99, summary.percentiles().p99());
    }

    @Test
    void zeroTimesHaveNoVariation() {
        assertEquals(
                0, IterationTimes.of(List.of(new double[] {0, 0}), 0).summary().cv());
    }
}
