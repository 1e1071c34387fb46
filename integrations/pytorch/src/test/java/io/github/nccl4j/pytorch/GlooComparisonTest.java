package io.github.nccl4j.pytorch;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The comparison runs; it measures with {@code -Dnccl4j.test.gloo.rounds=15}. */
@Timeout(1200)
class GlooComparisonTest {
    @Test
    void measures() throws Exception {
        int rounds = Integer.getInteger("nccl4j.test.gloo.rounds", 1);
        for (int width : rounds == 1 ? new int[] {16} : new int[] {256, 512, 1024}) {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            GlooComparison.run(2, width, rounds, new PrintStream(bytes, true, StandardCharsets.UTF_8));
            String output = bytes.toString(StandardCharsets.UTF_8);
            System.out.print(output);
            assertTrue(output.contains("nccl4j / Gloo "), output);
        }
    }
}
