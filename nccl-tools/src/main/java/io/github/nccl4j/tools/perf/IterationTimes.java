package io.github.nccl4j.tools.perf;

import com.google.gson.stream.JsonWriter;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;

/**
 * The times of the iterations of a measurement (-I), in microseconds per call.
 *
 * @param slowest by iteration, the maximum over all processes
 * @param byProcess by process and iteration, the maximum over the ranks of the process
 * @param skipped the number of first iterations that the summary excludes (-K)
 */
record IterationTimes(double[] slowest, List<double[]> byProcess, int skipped) {
    static IterationTimes of(List<double[]> byProcess, int skipped) {
        double[] slowest = byProcess.get(0).clone();
        for (double[] row : byProcess) {
            for (int i = 0; i < slowest.length; i++) {
                slowest[i] = Math.max(slowest[i], row[i]);
            }
        }
        return new IterationTimes(slowest, byProcess, skipped);
    }

    /** Statistics of the iterations, in microseconds, except {@code cv} in percent; named as in nccl-tests. */
    record Summary(double min, double max, double average, Percentiles percentiles, double deviation, double cv) {}

    record Percentiles(double p50, double p95, double p99) {}

    Summary summary() {
        double[] sorted = Arrays.copyOfRange(slowest, skipped, slowest.length);
        Arrays.sort(sorted);
        double average = Arrays.stream(sorted).average().orElseThrow();
        double variance = Arrays.stream(sorted)
                .map(micros -> (micros - average) * (micros - average))
                .average()
                .orElseThrow();
        double deviation = Math.sqrt(variance);
        return new Summary(
                sorted[0],
                sorted[sorted.length - 1],
                average,
                // As in nccl-tests: of an even number of values, the upper of the two in the middle.
                new Percentiles(sorted[sorted.length / 2], percentile(sorted, 95), percentile(sorted, 99)),
                deviation,
                average > 0 ? 100 * deviation / average : 0);
    }

    /** The percentile by the nearest-rank method. */
    private static double percentile(double[] sorted, int percent) {
        return sorted[(sorted.length * percent + 99) / 100 - 1];
    }

    void write(JsonWriter json) throws IOException {
        Summary summary = summary();
        json.beginObject();
        json.name("skipped_iterations").value(skipped);
        json.name("min_us").value(summary.min);
        json.name("max_us").value(summary.max);
        json.name("avg_us").value(summary.average);
        json.name("p50_us").value(summary.percentiles.p50);
        json.name("p95_us").value(summary.percentiles.p95);
        json.name("p99_us").value(summary.percentiles.p99);
        json.name("stdev_us").value(summary.deviation);
        json.name("cv_pct").value(summary.cv);
        json.name("times_us");
        write(json, slowest);
        if (byProcess.size() > 1) {
            json.name("per_process_max_times_us").beginArray();
            for (double[] row : byProcess) {
                write(json, row);
            }
            json.endArray();
        }
        json.endObject();
    }

    private static void write(JsonWriter json, double[] row) throws IOException {
        json.beginArray();
        for (double micros : row) {
            json.value(micros);
        }
        json.endArray();
    }
}
