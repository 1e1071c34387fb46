package io.github.nccl4j.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The centers of the sample are those of Spark; measures if a property gives the number of rounds. */
@Timeout(600)
class KMeansComparisonTest {
    private static final int ROUNDS = Integer.getInteger("nccl4j.test.kmeans.rounds", 1);

    private static String compare(int tasks, int count, int dimensions, int clusters) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        KMeansComparison.run(
                tasks, count, dimensions, clusters, 20, ROUNDS, new PrintStream(bytes, true, StandardCharsets.UTF_8));
        String line = bytes.toString(StandardCharsets.UTF_8).strip();
        System.out.println(line);
        return line;
    }

    @Test
    void centersEqualThoseOfSpark() throws Exception {
        assertTrue(compare(2, 2_000, 4, 5).startsWith("2 tasks, 2000 points of 4 dimensions, 5 clusters"));
        if (ROUNDS > 1) {
            compare(2, 20_000, 16, 8);
            compare(2, 100_000, 32, 16);
        }
        compare(4, 2_000, 4, 5);
    }

    @Test
    void aDifferenceIsFound() {
        double[][] centers = {{1, 2}, {3, 4}};
        KMeansComparison.requireEqual(centers, new double[][] {{1, 2 + 1e-12}, {3, 4}});
        IllegalStateException failure = assertThrows(
                IllegalStateException.class,
                () -> KMeansComparison.requireEqual(centers, new double[][] {{1, 2}, {3, 4 + 1e-8}}));
        assertEquals("center 1 must be [3.0, 4.0]: [3.0, 4.00000001]", failure.getMessage());
    }
}
