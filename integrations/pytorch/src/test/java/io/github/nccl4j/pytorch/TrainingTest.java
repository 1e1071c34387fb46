package io.github.nccl4j.pytorch;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tools.launch.JavaCommand;
import io.github.nccl4j.tools.launch.Launcher;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.bytedeco.pytorch.global.torch.ScalarType;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Training on ranks that are processes, on the host engine. */
@Timeout(600)
class TrainingTest {
    @TempDir
    Path folder;

    private String output;

    private void train(int ranks, ScalarType type, int killed) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        PrintStream out = new PrintStream(bytes, true, StandardCharsets.UTF_8);
        List<String> command = JavaCommand.of(
                List.of("-Dnccl4j.engine=host", "-Dnccl4j.leaks=true", "-XX:TieredStopAtLevel=1"),
                TrainingRank.class.getName(),
                List.of(folder.toString(), type.name(), Integer.toString(killed)));
        int code = new Launcher(command, ranks, Map.of(), Duration.ofMinutes(5), out, out)
                .expendable(rank -> rank == killed)
                .run();
        output = bytes.toString(StandardCharsets.UTF_8);
        assertEquals(0, code, output);
        assertFalse(output.contains("without being closed"), output);
    }

    /** Returns the mean of three losses; those of single batches go up and down. */
    private static double mean(List<Double> losses, int from) {
        return losses.subList(from, from + 3).stream()
                .mapToDouble(Double::doubleValue)
                .average()
                .getAsDouble();
    }

    private double[] weights(int rank) throws Exception {
        return TrainingRank.read(folder.resolve("weights-" + rank));
    }

    /**
     * In double, adding the gradients of the parts in the order of the ranks gives the same bits. The joined batch adds its
     * images in another order, inside of PyTorch's kernels: the same within rounding.
     */
    @ParameterizedTest
    @CsvSource({"1, Double, 0", "2, Double, 1e-12", "4, Double, 1e-12", "2, Float, 1e-4", "4, Float, 1e-4"})
    void ranksLearnAsOneRankDoesWithTheJoinedBatch(int ranks, ScalarType type, double bound) throws Exception {
        train(ranks, type, -1);
        double[] joined = TrainingRank.joined(type);
        double[] parts = TrainingRank.reference(type, ranks);
        double difference = TrainingRank.largestDifference(joined, weights(0));
        System.out.println(ranks + " ranks, " + type + ": " + difference + " from the joined batch, "
                + TrainingRank.largestDifference(parts, weights(0)) + " from the parts in order");
        assertTrue(difference <= bound, () -> difference + " > " + bound);
        assertArrayEquals(parts, weights(0));
        for (int rank = 1; rank < ranks; rank++) {
            assertArrayEquals(weights(0), weights(rank), "rank " + rank);
        }
        assertEquals(
                ranks,
                Pattern.compile("pointers left: 0\\R").matcher(output).results().count(),
                output);
    }

    /** Rank 0, too: the launcher keeps the store. */
    @ParameterizedTest
    @ValueSource(ints = {0, 2})
    void theOthersGoOnWithoutAKilledRank(int killed) throws Exception {
        train(4, ScalarType.Float, killed);
        for (int rank = 0; rank < 4; rank++) {
            if (rank != killed) {
                assertTrue(output.contains("[" + rank + "] lost in step"), output);
                List<Double> losses = Pattern.compile("\\[" + rank + "] step \\d+ loss (\\S+)")
                        .matcher(output)
                        .results()
                        .map(found -> Double.valueOf(found.group(1)))
                        .toList();
                assertTrue(losses.stream().allMatch(Double::isFinite), output);
                double first = mean(losses, 0);
                double middle = mean(losses, TrainingRank.STEPS / 2 - 3);
                double last = mean(losses, losses.size() - 3);
                assertTrue(last < middle && middle < first, () -> first + ", " + middle + ", " + last);
                assertArrayEquals(weights(killed == 0 ? 1 : 0), weights(rank), "rank " + rank);
            }
        }
    }
}
