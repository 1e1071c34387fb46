package io.github.nccl4j.tools.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.github.nccl4j.tools.launch.ChildProcesses;
import io.github.nccl4j.tools.support.ToolsJar;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Runs the command as users do, on the host engine. */
@Timeout(300)
class GradientsCommandTest {
    @TempDir
    Path folder;

    private static String run(int code, String arguments) throws IOException, InterruptedException {
        Process process = ChildProcesses.start(ToolsJar.command(List.of(arguments.split(" "))));
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(code, process.waitFor(), output);
        return output;
    }

    @ParameterizedTest
    @CsvSource({"1, 2", "2, 3", "3, 3"})
    void everyWayAveragesEveryElement(int ranks, int width) throws Exception {
        String output =
                run(0, "gradients -np " + ranks + " -w " + width + " -n 1 -b 4,200,1M --oversubscribe --engine host");
        List<String> rows = output.lines().filter(line -> line.startsWith("  ")).toList();
        assertEquals(2 + 3 * 3, rows.size(), output);
        rows.forEach(row -> assertTrue(row.endsWith(" 0"), row));
        assertTrue(output.contains("# Out of bounds values : 0 OK"), output);
    }

    @Test
    void resultsCanBeDrawn() throws Exception {
        Path file = folder.resolve("gradients.json");
        run(0, "gradients -np 2 -w 8 -n 1 -b 1K,1M --engine host -J " + file);
        JsonObject json = JsonParser.parseString(Files.readString(file)).getAsJsonObject();
        assertEquals(160, json.get("gradients").getAsInt());
        assertEquals(GradientLayout.ofWidth(8).total() * 4, json.get("bytes").getAsLong());
        JsonArray results = json.getAsJsonArray("results");
        assertEquals(8, results.size());
        JsonObject first = results.get(2).getAsJsonObject();
        assertEquals("bucket, copied", first.get("way").getAsString());
        assertEquals(1024, first.get("size").getAsLong());
        assertTrue(first.get("time").getAsDouble() > 0, first.toString());
        assertEquals(
                List.of("160 gradients of 0 MiB by size of buckets", "2 ranks", "host memory"),
                ResultFile.subject(file).subList(0, 3));
        List<ResultFile> lines = ResultFile.readAll(file, false);
        assertEquals(
                List.of(
                        "one by one",
                        "one by one, after a backward pass",
                        "one group",
                        "bucket, copied",
                        "bucket, copied, after a backward pass",
                        "group a bucket",
                        "group a bucket, after a backward pass"),
                lines.stream().map(ResultFile::name).toList());
        for (ResultFile line : lines) {
            assertEquals(List.of(1024L, 1L << 20), List.copyOf(line.micros().keySet()), line.name());
        }
        Path picture = folder.resolve("gradients.svg");
        run(0, "plot " + file + " -o " + picture);
        // A line for each in both panels.
        assertEquals(2 * 7, Files.readString(picture).split("<polyline", -1).length - 1);
    }
}
