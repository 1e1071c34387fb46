package io.github.nccl4j.samples.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.imageio.ImageIO;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

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
                List.of(SvgPlot.size(3), SvgPlot.size(10), SvgPlot.size(25), SvgPlot.size(2.5)));
    }

    @Test
    void aVectorPictureShowsALineForEachFile() throws Exception {
        Map<Long, Double> values = new TreeMap<>(Map.of(8L, 1.0, 1024L, 2.0, 1L << 20, 3.0));
        Map<Long, Double> odd = new TreeMap<>(Map.of(8L, 0.0, 64L, Double.NaN, 1L << 30, 5000.0));
        String svg = SvgPlot.of(
                "a <title> & more", List.of(new ResultFile("one", values, values), new ResultFile("two", odd, odd)));
        Element root = DocumentBuilderFactory.newInstance()
                .newDocumentBuilder()
                .parse(new ByteArrayInputStream(svg.getBytes(StandardCharsets.UTF_8)))
                .getDocumentElement();
        assertEquals(4, root.getElementsByTagName("polyline").getLength());
        // Zero has no place on a logarithmic axis, and what is not finite has none at all.
        assertEquals(3 + 2 + 3 + 1, root.getElementsByTagName("circle").getLength());
        List<String> texts = new ArrayList<>();
        NodeList nodes = root.getElementsByTagName("text");
        for (int i = 0; i < nodes.getLength(); i++) {
            texts.add(nodes.item(i).getTextContent());
        }
        assertTrue(
                texts.containsAll(List.of(
                        "a <title> & more", "one", "two", "size", "time (us)", "bus bandwidth (GB/s)", "8 B", "8 KiB")),
                texts.toString());
        assertTrue(texts.containsAll(List.of("1", "10", "100", "1000", "10000", "0", "5000")), texts.toString());
        assertFalse(svg.contains("NaN"), svg);
        Matcher numbers = Pattern.compile("[xyc]+[12]?=\"(-?[0-9.]+)\"").matcher(svg);
        while (numbers.find()) {
            double at = Double.parseDouble(numbers.group(1));
            assertTrue(at >= 0 && at <= 1280, numbers.group());
        }
    }

    /** As the bundle's Java, and the ranks of a headless machine. */
    @Test
    void aVectorPictureNeedsNoDesktop() throws Exception {
        Path file = results(
                "one.json", "{\"results\": [{\"size\": 8, \"out_of_place\": {\"time\": 5.5, \"bus_bw\": 0.25}}]}");
        Path svg = folder.resolve("one.svg");
        assertEquals("0", withoutDesktop(file, svg));
        assertTrue(Files.readString(svg).contains("<polyline"), Files.readString(svg));
        Path png = folder.resolve("one.png");
        assertEquals(
                "1 nccl4j: a PNG needs java.desktop, which this Java lacks: write an SVG instead of " + png,
                withoutDesktop(file, png));
    }

    private static String withoutDesktop(Path file, Path picture) throws Exception {
        Process process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "--limit-modules",
                        "java.base,java.sql",
                        "-cp",
                        "target/nccl4j-samples.jar",
                        "io.github.nccl4j.samples.Main",
                        "plot",
                        file.toString(),
                        "-o",
                        picture.toString())
                .redirectErrorStream(true)
                .start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return (process.waitFor() + " " + output).strip();
    }

    @Test
    void aPictureShowsALineForEachFile() throws IOException {
        Path picture = folder.resolve("picture.png");
        Map<Long, Double> values = Map.of(8L, 1.0, 1024L, 2.0, 1L << 20, 3.0);
        try {
            Plot.write(
                    "title",
                    List.of(
                            new ResultFile("a", values, values),
                            new ResultFile("b", Map.of(8L, 9.0, 64L, 5.0), values)),
                    picture);
        } catch (IOException noFonts) {
            assertTrue(noFonts.getMessage().startsWith(Plot.NO_FONTS), noFonts.getMessage());
            Assumptions.abort("needs fonts (Debian package fontconfig libharfbuzz0b)");
        }
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
