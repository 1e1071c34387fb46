package io.github.nccl4j.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Runs each example as users do, on the host engine. Each fails if its result is not that of one rank. */
@Timeout(300)
class ExamplesTest {
    private String output;

    private int run(String arguments) throws Exception {
        List<String> words = new ArrayList<>(List.of("-J-XX:TieredStopAtLevel=1"));
        words.addAll(List.of(arguments.split(" ")));
        NcclRun run = NcclRun.of(words);
        output = run.output();
        return run.code();
    }

    private void succeeds(String arguments, int ranks, String unit) throws Exception {
        assertEquals(0, run(arguments + " -n " + ranks), () -> output);
        for (int rank = 0; rank < ranks; rank++) {
            assertMatches("\\[" + rank + "] rank " + rank + ": .*error \\S+, bound \\S+");
        }
        assertMatches("\\[0] \\d+ " + unit + "/s");
        assertMatches(
                "\\[0] \\d+\\.\\d+ ms a step of \\d+, first step \\d+\\.\\d+ s after the start, peak memory \\d+ MiB");
        assertTrue(!output.contains("without being closed"), output);
    }

    private void assertMatches(String line) {
        assertTrue(Pattern.compile("(?m)^" + line + "$").matcher(output).find(), () -> line + " in:\n" + output);
    }

    @ParameterizedTest
    @CsvSource({
        "ring-attention -s 256, tokens",
        "tensor-parallel -t 12, tokens",
        "experts -t 128, tokens",
        "data-parallel -q 1 -s 20, samples",
        "sharded-optimizer -s 20, samples"
    })
    void theResultIsThatOfOneRank(String arguments, String unit) throws Exception {
        for (int ranks : new int[] {1, 2, 4}) {
            succeeds(arguments, ranks, unit);
            assertMatches("\\[0] after \\d+ steps as before them: \\d+ pointers, \\d+ threads; .*");
        }
    }

    /** The last rank is killed, and trains again after it has come back. */
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 4})
    void dataParallel(int ranks) throws Exception {
        succeeds("data-parallel -s 30", ranks, "samples");
        if (ranks > 1) {
            assertTrue(output.contains("was killed by signal 9 (SIGKILL); starting it again"), output);
            assertMatches("\\[" + (ranks - 1) + "] rank \\d: came back, and trained 10 of 30 steps, .*");
        }
    }

    @Test
    void aSequenceThatCannotBeDividedIsRefused() throws Exception {
        assertEquals(2, run("ring-attention -n 2 -s 6"), () -> output);
        assertMatches("\\[0] ring-attention: -s must be a multiple of twice the number of ranks: 6, 2");
    }

    /** On this all examples rely. */
    @Test
    void anErrorAboveTheBoundIsAFailure() {
        Tensor one = torch.tensor(new double[] {1, 2});
        assertEquals("error 0.0e+00, bound 1e-03", Setup.requireClose("values", one, one, 1e-3));
        for (double wrong : new double[] {2.01, Double.NaN}) {
            Tensor other = torch.tensor(new double[] {1, wrong});
            assertThrows(IllegalStateException.class, () -> Setup.requireClose("values", other, one, 1e-3));
        }
    }
}
