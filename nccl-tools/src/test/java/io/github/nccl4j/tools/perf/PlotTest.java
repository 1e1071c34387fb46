package io.github.nccl4j.tools.perf;

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
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
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
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

class PlotTest {
    @TempDir
    Path folder;

    private Path results(String name, String text) throws IOException {
        return Files.writeString(folder.resolve(name), text);
    }

    /** A file of nccl-tests with a size of 0, missing results, and the field for CPU times. */
    @Test
    void readsResultFiles() throws IOException {
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
    void readsBothProgramsOfAComparison() throws IOException {
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

    /** A title has what all files have in common, from files of all three formats. */
    @Test
    void titleComesFromTheFiles() throws IOException {
        Path both = results("both.json", """
                {"time": "2026-11-21 20:28:23", "collective": "all_reduce", "ranks": 2,
                  "nccl_tests": ["# nccl-tests version 2.19.6", "NCCL version 2.28.3+cuda13.0"], "results": []}
                """);
        assertEquals("all_reduce, 2 ranks, NCCL 2.28.3, 2026-11-21", PlotCommand.title(List.of(both)));
        String format = """
                {"version": 3, "start_time": "%s 20:28:23", "args": [%s], "nccl_version": 22803,
                  "config": {"devices": [{"name": "NVIDIA H200"}, {"name": "NVIDIA H200"}]}, "results": []}
                """;
        Path ours = results("ours.json", String.format(Locale.ROOT, format, "2026-11-21", "\"perf\", \"all_reduce\""));
        Path theirs =
                results("theirs.json", String.format(Locale.ROOT, format, "2026-11-22", "\"build/all_reduce_perf\""));
        assertEquals("all_reduce, 2 ranks, NVIDIA H200, NCCL 2.28.3, 2026-11-21", PlotCommand.title(List.of(ours)));
        assertEquals("all_reduce, 2 ranks, NVIDIA H200, NCCL 2.28.3", PlotCommand.title(List.of(ours, theirs)));
        assertEquals("all_reduce, 2 ranks, NCCL 2.28.3", PlotCommand.title(List.of(theirs, both)));
        assertEquals("", PlotCommand.title(List.of(both, results("none.json", "{\"results\": []}"))));
    }

    @Test
    void rejectsOtherFiles() throws IOException {
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
    void svgHasALinePerFile() throws Exception {
        Map<Long, Double> values = new TreeMap<>(Map.of(8L, 1.0, 1024L, 2.0, 1L << 20, 3.0));
        Map<Long, Double> odd = new TreeMap<>(Map.of(8L, 0.0, 64L, Double.NaN, 1L << 30, 5000.0));
        String svg = SvgPlot.of(
                "a <title> & more", List.of(new ResultFile("one", values, values), new ResultFile("two", odd, odd)));
        Element root = DocumentBuilderFactory.newInstance()
                .newDocumentBuilder()
                .parse(new ByteArrayInputStream(svg.getBytes(StandardCharsets.UTF_8)))
                .getDocumentElement();
        assertEquals(4, root.getElementsByTagName("polyline").getLength());
        // The picture omits 0 on a logarithmic axis, and values that are not finite.
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

    /** The Java of the bundle lacks java.desktop. */
    @Test
    void svgNeedsNoDesktopModule() throws Exception {
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
                        "target/nccl4j-tools.jar",
                        "io.github.nccl4j.tools.Main",
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
    void pngHasALinePerFile() throws IOException {
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

    /* Points and axes of the SVG */

    private static String line(String first, String second) {
        return "polyline points=\"" + first + "\" fill=\"none\" stroke=\"" + second + "\"";
    }

    @Test
    void pointsHaveTheCoordinatesOfTheirValues() {
        Map<Long, Double> bus = new TreeMap<>(Map.of(8L, 1.0, 1024L, 2.0, 1L << 20, 3.0));
        Map<Long, Double> micros = new TreeMap<>(Map.of(8L, 2.0, 1024L, 30.0, 1L << 20, 4000.0));
        String svg = SvgPlot.of(
                "t",
                List.of(new ResultFile("one", micros, bus), new ResultFile("two", Map.of(8L, 2.0), Map.of(8L, 1.0))));
        // 8 bytes to 1 MiB are 17 powers of 2 on 550 points; 0 to 3 GB/s, and 1 to 10000 us, are 320 points.
        for (String element : List.of(
                "viewBox=\"0 0 1280 484\" width=\"1280\" height=\"484\"",
                line("70.0,273.3 296.5,166.7 620.0,60.0", "#0072b2"),
                line("710.0,355.9 936.5,261.8 1260.0,91.8", "#0072b2"),
                line("70.0,273.3", "#d55e00"),
                line("710.0,355.9", "#d55e00"),
                "circle cx=\"936.5\" cy=\"261.8\" r=\"3\" fill=\"#0072b2\"",
                "line class=\"grid\" x1=\"231.8\" y1=\"60\" x2=\"231.8\" y2=\"380\"",
                "text x=\"231.8\" y=\"400.0\" text-anchor=\"middle\" class=\"\">256 B<",
                "line class=\"grid\" x1=\"70\" y1=\"326.7\" x2=\"620\" y2=\"326.7\"",
                "text x=\"62.0\" y=\"331.7\" text-anchor=\"end\" class=\"\">0.5<",
                "line class=\"grid\" x1=\"710\" y1=\"300.0\" x2=\"1260\" y2=\"300.0\"",
                "text x=\"702.0\" y=\"305.0\" text-anchor=\"end\" class=\"\">10<",
                "rect class=\"frame\" x=\"70\" y=\"60\" width=\"550\" height=\"320\"",
                "rect class=\"frame\" x=\"710\" y=\"60\" width=\"550\" height=\"320\"",
                "text x=\"345.0\" y=\"422.0\" text-anchor=\"middle\" class=\"\">size<",
                "text x=\"985.0\" y=\"422.0\" text-anchor=\"middle\" class=\"\">size<",
                "text x=\"70.0\" y=\"50.0\" text-anchor=\"start\" class=\"\">bus bandwidth (GB/s)<",
                "text x=\"710.0\" y=\"50.0\" text-anchor=\"start\" class=\"\">time (us)<",
                "line x1=\"70\" y1=\"435.0\" x2=\"100\" y2=\"435.0\" stroke=\"#0072b2\"",
                "text x=\"110.0\" y=\"440.0\" text-anchor=\"start\" class=\"\">one<",
                "line x1=\"70\" y1=\"457.0\" x2=\"100\" y2=\"457.0\" stroke=\"#d55e00\"",
                "text x=\"110.0\" y=\"462.0\" text-anchor=\"start\" class=\"\">two<")) {
            assertTrue(svg.contains("<" + element) || svg.contains(element), element + " in " + svg);
        }
    }

    /** The labels of the axis of sizes, bandwidths or times. */
    private static List<String> labels(String place, Map<Long, Double> micros, Map<Long, Double> bus) {
        String svg = SvgPlot.of("t", List.of(new ResultFile("one", micros, bus)));
        Matcher labels = Pattern.compile("<text x=\"" + place + " class=\"\">([^<]*)</text>")
                .matcher(svg);
        List<String> found = new ArrayList<>();
        while (labels.find()) {
            found.add(labels.group(1));
        }
        return found;
    }

    @ParameterizedTest
    @CsvSource({
        "0,0 0.2 0.4 0.6 0.8 1",
        "0.8,0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8",
        "8,0 1 2 3 4 5 6 7 8",
        "9,0 2 4 6 8 10",
        "16,0 2 4 6 8 10 12 14 16",
        "17,0 5 10 15 20",
        "40,0 5 10 15 20 25 30 35 40",
        "41,0 10 20 30 40 50",
        "4100,0 1000 2000 3000 4000 5000"
    })
    void bandwidthAxisHasRoundLabelsFromZero(double most, String expected) {
        Map<Long, Double> bus = new TreeMap<>(Map.of(8L, most / 2, 16L, most));
        assertEquals(List.of(expected.split(" ")), labels("62\\.0\" y=\"[0-9.]+\" text-anchor=\"end\"", bus, bus));
    }

    @Test
    void axisIncludesNegativeValues() {
        Map<Long, Double> bus = new TreeMap<>(Map.of(8L, -5.0, 16L, 9.0));
        assertEquals(
                List.of("-6", "-4", "-2", "0", "2", "4", "6", "8", "10"),
                labels("62\\.0\" y=\"[0-9.]+\" text-anchor=\"end\"", Map.of(8L, 1.0), bus));
    }

    @Test
    void logarithmicAxesHavePowersAsLabels() {
        String times = "702\\.0\" y=\"[0-9.]+\" text-anchor=\"end\"";
        String sizes = "[0-9.]+\" y=\"400\\.0\" text-anchor=\"middle\"";
        Map<Long, Double> one = Map.of(8L, 10.0);
        assertEquals(List.of("10", "100"), labels(times, one, one));
        assertEquals(List.of("8 B", "16 B", "8 B", "16 B"), labels(sizes, one, one));
        Map<Long, Double> wide = new TreeMap<>(Map.of(8L, 0.05, 9L, 2e8));
        assertEquals(List.of("0.01", "1", "100", "10000", "1000000", "100000000"), labels(times, wide, wide));
        // Values that can't be shown have no label.
        Map<Long, Double> none = Map.of(8L, 0.0);
        assertEquals(List.of("1", "10"), labels(times, none, none));
    }

    @Test
    void sizeLabelsBeginAtOneByte() {
        assertEquals(
                List.of("1 B", "512 B", "512 TiB", "", "", "1 KiB", ""),
                List.of(
                        SvgPlot.size(0),
                        SvgPlot.size(9),
                        SvgPlot.size(49),
                        SvgPlot.size(50),
                        SvgPlot.size(-1),
                        SvgPlot.size(10.009),
                        SvgPlot.size(10.011)));
    }

    @Test
    void colorsRepeatForManyFiles() {
        Map<Long, Double> values = Map.of(8L, 1.0);
        String svg = SvgPlot.of("t", Collections.nCopies(8, new ResultFile("one", values, values)));
        assertEquals(2 * 2 + 2, svg.split("stroke=\"#0072b2\"", -1).length - 1);
    }

    /** A hypercube moves all data except a rank's own share. */
    @Test
    void readsComparisonOfAHypercube() throws IOException {
        Path file = results("cube.json", """
                {"collective": "hypercube", "ranks": 4, "theirs": "mpirun", "results": [
                  {"size": 4000, "in_place": false, "theirs_us": [2], "ours_us": [3]}]}
                """);
        assertEquals(
                List.of(Map.of(4000L, 1.5), Map.of(4000L, 1.0)),
                ResultFile.readAll(file, false).stream().map(ResultFile::bus).toList());
        Path one = results("one.json", """
                {"results": [{"size": 8, "out_of_place": {"time": 5.5, "bus_bw": 0.25}, "in_place": null}]}
                """);
        assertEquals(List.of(new ResultFile("one", Map.of(8L, 5.5), Map.of(8L, 0.25))), ResultFile.readAll(one, false));
    }
}
