package io.github.nccl4j.samples.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.imageio.ImageIO;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PlotTest {
    @TempDir
    Path folder;

    private Path results(String name, String text) throws IOException {
        return Files.writeString(folder.resolve(name), text);
    }

    /** As nccl-tests writes it: a size of 0, results that are not there, and another name for the time of the calls. */
    @Test
    void filesOfResultsAreRead() throws IOException {
        Path file = results("one.json", """
                {"version": 3, "results": [
                  {"size": 0, "out_of_place": {"time": 5, "bus_bw": 0}, "in_place": null},
                  {"size": 8, "out_of_place": {"time": 5.5, "bus_bw": 0.25}, "in_place": null},
                  {"size": 1024, "out_of_place": {"cpu_time": 6, "bus_bw": 1}, "in_place": {"time": 7, "bus_bw": 2}}]}
                """);
        assertEquals(
                new ResultFile("one", Map.of(8L, 5.5, 1024L, 6.0), Map.of(8L, 0.25, 1024L, 1.0)),
                ResultFile.read(file, false));
        assertEquals(new ResultFile("one", Map.of(1024L, 7.0), Map.of(1024L, 2.0)), ResultFile.read(file, true));
    }

    @Test
    void bothSidesOfAComparisonAreRead() throws IOException {
        Path file = results("both.json", """
                {"collective": "all_reduce", "ranks": 4, "theirs": "mpirun", "results": [
                  {"size": 0, "in_place": false, "theirs_us": [1], "ours_us": [1]},
                  {"size": 1000, "in_place": true, "theirs_us": [1], "ours_us": [1]},
                  {"size": 1000, "in_place": false, "theirs_us": [3, 1, 2], "ours_us": [4, 9, 3]}]}
                """);
        assertEquals(
                List.of(
                        new ResultFile("all_reduce, 4 ranks, nccl-tests", Map.of(1000L, 2.0), Map.of(1000L, 0.75)),
                        new ResultFile("all_reduce, 4 ranks, nccl4j", Map.of(1000L, 4.0), Map.of(1000L, 0.375))),
                ResultFile.readAll(file, false));
    }

    @Test
    void whatIsNoFileOfResultsIsRefused() throws IOException {
        for (String text : List.of("", "[]", "{}", "{\"results\": [{\"size\": 8, \"out_of_place\": {}}]}")) {
            Path file = results("none.json", text);
            String message = assertThrows(IOException.class, () -> ResultFile.read(file, false), text)
                    .getMessage();
            assertTrue(message.startsWith(file.toString()), message);
        }
    }

    @Test
    void sizesHaveUnits() {
        assertEquals(
                List.of("8 B", "1 KiB", "32 MiB", ""),
                List.of(Plot.size(3), Plot.size(10), Plot.size(25), Plot.size(2.5)));
    }

    @Test
    void aPictureShowsALineForEachFile() throws IOException {
        Path picture = folder.resolve("picture.png");
        Map<Long, Double> values = Map.of(8L, 1.0, 1024L, 2.0, 1L << 20, 3.0);
        Plot.write(
                "title",
                List.of(new ResultFile("a", values, values), new ResultFile("b", Map.of(8L, 9.0, 64L, 5.0), values)),
                picture);
        var image = ImageIO.read(picture.toFile());
        Set<Integer> colors = new HashSet<>();
        for (int x = 0; x < image.getWidth(); x += 2) {
            for (int y = 0; y < image.getHeight(); y += 2) {
                colors.add(image.getRGB(x, y));
            }
        }
        assertTrue(image.getWidth() > 2 * image.getHeight() && colors.size() > 10, colors.size() + " colors");
    }
}
