package io.github.nccl4j.tools.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.awt.geom.Rectangle2D;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
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

    /** A line for each program, in the order of the table. */
    @Test
    void readsTheProgramsOfTheHostBenchmark() throws IOException {
        Path file = results("all_reduce.json", """
                {"start_time": "2026-11-28 18:30:00", "collective": "all_reduce", "ranks": 4, "programs": ["C", "Open MPI"],
                  "results": [
                    {"program": "Open MPI", "size": 8, "time": 0.5, "bus_bw": 0.024},
                    {"program": "C", "size": 8, "time": 0.25, "bus_bw": 0.048},
                    {"program": "C", "size": 512, "time": 1.5, "bus_bw": 0.512}]}
                """);
        assertEquals(
                List.of(
                        new ResultFile(
                                "all_reduce, 4 ranks, C", Map.of(8L, 0.25, 512L, 1.5), Map.of(8L, 0.048, 512L, 0.512)),
                        new ResultFile("all_reduce, 4 ranks, Open MPI", Map.of(8L, 0.5), Map.of(8L, 0.024))),
                ResultFile.readAll(file, false));
        assertEquals("all_reduce, 4 ranks, 2026-11-28", PlotCommand.title(List.of(file)));
        Path other = results("other.json", """
                {"collective": "all_reduce", "ranks": 4, "programs": ["C"],
                  "results": [{"program": "Gloo", "size": 8, "time": 1, "bus_bw": 1}]}
                """);
        assertThrows(IOException.class, () -> ResultFile.readAll(other, false));
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
            assertTrue(at >= 0 && at <= 750, numbers.group());
        }
    }

    /** Two files of one collective and number of ranks are one line, in which the last file counts. */
    @Test
    void ratiosAreThoseOfMedians() throws Exception {
        String format = """
                {"collective": "all_reduce", "ranks": %d, "theirs": "mpirun", "results": [
                  {"size": 8, "in_place": false, "theirs_us": [1, 2, 9], "ours_us": [%s, 1, 9]},
                  {"size": %d, "in_place": false, "theirs_us": [10], "ours_us": [11]}]}
                """;
        Path one = results("one.json", String.format(Locale.ROOT, format, 2, "8", 64));
        Path two = results("two.json", String.format(Locale.ROOT, format, 2, "3", 1024));
        Path four = results("four.json", String.format(Locale.ROOT, format, 4, "2", 1024));
        assertEquals(
                new ResultFile.Ratios("all_reduce, 2 ranks", Map.of(8L, 4.0, 64L, 1.1)),
                ResultFile.readRatios(one, false));
        Path svg = folder.resolve("ratio.svg");
        assertEquals("0", withoutDesktop(svg, one, two, four));
        String text = Files.readString(svg);
        // From 1 to 1.5 in 5 steps; 1.5 is at the top and 1.1 a fifth above the bottom.
        assertTrue(text.contains("polyline points=\"80.0,78.0 "), text);
        assertTrue(text.contains(",254.0\" fill="), text);
        assertEquals(1, text.split("time / time of nccl-tests", -1).length - 1);
        assertEquals(2, text.split("<polyline", -1).length - 1);
        Path other =
                results("other.json", "{\"results\": [{\"size\": 8, \"out_of_place\": {\"time\": 5, \"bus_bw\": 1}}]}");
        assertEquals(
                "1 nccl4j: " + other + " is not a file of results of nccl4j perf --against",
                withoutDesktop(svg, other));
    }

    /** The Java of the bundle lacks java.desktop. */
    @Test
    void svgNeedsNoDesktopModule() throws Exception {
        Path file = results(
                "one.json", "{\"results\": [{\"size\": 8, \"out_of_place\": {\"time\": 5.5, \"bus_bw\": 0.25}}]}");
        Path svg = folder.resolve("one.svg");
        assertEquals("0", withoutDesktop(svg, file));
        assertTrue(Files.readString(svg).contains("<polyline"), Files.readString(svg));
    }

    /** Runs the command plot, with --ratio for a picture of this name. */
    private static String withoutDesktop(Path picture, Path... files) throws Exception {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--limit-modules",
                "java.base,java.sql",
                "-cp",
                "target/nccl4j-tools.jar",
                "io.github.nccl4j.tools.Main",
                "plot",
                "-o",
                picture.toString()));
        if (picture.endsWith("ratio.svg")) {
            command.add("--ratio");
        }
        Stream.of(files).map(Path::toString).forEach(command::add);
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return (process.waitFor() + " " + output).strip();
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
        // 8 bytes to 1 MiB are 17 powers of 2 on 520 points; 0 to 3 GB/s, and 1 to 10000 us, are 220 points.
        for (String element : List.of(
                "viewBox=\"0 0 640 736\" width=\"640\" height=\"736\"",
                line("80.0,224.7 294.1,151.3 600.0,78.0", "#0072b2"),
                line("80.0,597.4 294.1,532.8 600.0,415.9", "#0072b2"),
                line("80.0,224.7", "#d55e00"),
                line("80.0,597.4", "#d55e00"),
                "circle cx=\"294.1\" cy=\"532.8\" r=\"4\" fill=\"#0072b2\"",
                "line class=\"grid\" x1=\"232.9\" y1=\"78\" x2=\"232.9\" y2=\"298\"",
                "text x=\"232.9\" y=\"322.0\" text-anchor=\"middle\" class=\"\">256 B<",
                "line class=\"grid\" x1=\"80\" y1=\"261.3\" x2=\"600\" y2=\"261.3\"",
                "text x=\"72.0\" y=\"267.3\" text-anchor=\"end\" class=\"\">0.5<",
                "line class=\"grid\" x1=\"80\" y1=\"559.0\" x2=\"600\" y2=\"559.0\"",
                "text x=\"72.0\" y=\"565.0\" text-anchor=\"end\" class=\"\">10<",
                "rect class=\"frame\" x=\"80\" y=\"78\" width=\"520\" height=\"220\"",
                "rect class=\"frame\" x=\"80\" y=\"394\" width=\"520\" height=\"220\"",
                "text x=\"340.0\" y=\"344.0\" text-anchor=\"middle\" class=\"\">size<",
                "text x=\"340.0\" y=\"660.0\" text-anchor=\"middle\" class=\"\">size<",
                "text x=\"80.0\" y=\"66.0\" text-anchor=\"start\" class=\"\">bus bandwidth (GB/s)<",
                "text x=\"80.0\" y=\"382.0\" text-anchor=\"start\" class=\"\">time (us)<",
                "line x1=\"80\" y1=\"688.0\" x2=\"110\" y2=\"688.0\" stroke=\"#0072b2\"",
                "text x=\"120.0\" y=\"694.0\" text-anchor=\"start\" class=\"\">one<",
                "line x1=\"80\" y1=\"714.0\" x2=\"110\" y2=\"714.0\" stroke=\"#d55e00\"",
                "text x=\"120.0\" y=\"720.0\" text-anchor=\"start\" class=\"\">two<")) {
            assertTrue(svg.contains("<" + element) || svg.contains(element), element + " in " + svg);
        }
    }

    /** Where the labels of an axis are: bandwidths, times, or the sizes below them. */
    private static final String BANDWIDTHS = "72\\.0\" y=\"(?:[12]?[0-9]?[0-9]|30[0-9])\\.[0-9]\" text-anchor=\"end\"";

    private static final String TIMES = "72\\.0\" y=\"(?:39[0-9]|[4-6][0-9][0-9])\\.[0-9]\" text-anchor=\"end\"";
    private static final String SIZES = "[0-9.]+\" y=\"(?:322|638)\\.0\" text-anchor=\"middle\"";

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
        assertEquals(List.of(expected.split(" ")), labels(BANDWIDTHS, bus, bus));
    }

    @Test
    void axisIncludesNegativeValues() {
        Map<Long, Double> bus = new TreeMap<>(Map.of(8L, -5.0, 16L, 9.0));
        assertEquals(
                List.of("-6", "-4", "-2", "0", "2", "4", "6", "8", "10"), labels(BANDWIDTHS, Map.of(8L, 1.0), bus));
    }

    @Test
    void logarithmicAxesHavePowersAsLabels() {
        Map<Long, Double> one = Map.of(8L, 10.0);
        assertEquals(List.of("10", "100"), labels(TIMES, one, one));
        assertEquals(List.of("8 B", "16 B", "8 B", "16 B"), labels(SIZES, one, one));
        Map<Long, Double> wide = new TreeMap<>(Map.of(8L, 0.05, 9L, 2e8));
        assertEquals(List.of("0.01", "1", "100", "10000", "1e6", "1e8"), labels(TIMES, wide, wide));
        // Values that can't be shown have no label.
        Map<Long, Double> none = Map.of(8L, 0.0);
        assertEquals(List.of("1", "10"), labels(TIMES, none, none));
    }

    @Test
    void labelsOfNumbersAreShort() {
        assertEquals(
                List.of("0", "0.1", "100000", "1e6", "2.5e6", "0.0001", "1e-5", "-6"),
                Stream.of(0.0, 0.1, 1e5, 1e6, 2.5e6, 1e-4, 1e-5, -6.0)
                        .map(SvgPlot::number)
                        .toList());
    }

    @Test
    void longTextsAreBroken() {
        assertEquals(List.of("short"), SvgPlot.lines("short", 5));
        assertEquals(List.of("two", "words"), SvgPlot.lines("two words", 5));
        assertEquals(List.of("three", "words", "now"), SvgPlot.lines("three words now", 8));
        assertEquals(List.of("unbre", "akabl", "e"), SvgPlot.lines("unbreakable", 5));
        assertEquals(List.of(""), SvgPlot.lines("", 5));
    }

    /* Legibility in a picture that is shown 400 pixels wide */

    /** Height in pixels. */
    private static final double LEGIBLE = 10;

    private static final double SHOWN = 400.0 / SvgPlot.WIDTH;

    /** The width of an average character in a wide font, in em. */
    private static final double WIDE = 0.65;

    @ParameterizedTest
    @CsvSource({"8, 1073741824, 1, 350", "1, 128, 0.00002, 0.0001", "1, 1152921504606846976, 0.01, 3e8"})
    void svgIsLegibleWhenShownSmall(long smallest, long largest, double least, double most) throws Exception {
        Map<Long, Double> values = new TreeMap<>(Map.of(smallest, least, largest, most));
        String title = "all_reduce_with_a_long_name, 1024 ranks, NVIDIA H200, NCCL 2.28.3, 2026-11-21";
        String name = "a-file-whose-name-is-so-long-that-it-needs-two-lines-of-the-legend-2026-11-21";
        String svg =
                SvgPlot.of(title, List.of(new ResultFile(name, values, values), new ResultFile("b", values, values)));
        Element root = DocumentBuilderFactory.newInstance()
                .newDocumentBuilder()
                .parse(new ByteArrayInputStream(svg.getBytes(StandardCharsets.UTF_8)))
                .getDocumentElement();
        assertEquals(SvgPlot.WIDTH + "", root.getAttribute("width"));
        Matcher sizes = Pattern.compile("font(?:-size)?: ([0-9.]+)px").matcher(svg);
        int found = 0;
        for (; sizes.find(); found++) {
            double height = Double.parseDouble(sizes.group(1)) * SHOWN;
            assertTrue(height >= LEGIBLE, () -> sizes.group() + " is " + height + " pixels, at least " + LEGIBLE);
        }
        assertEquals(2, found);
        List<Rectangle2D> boxes = new ArrayList<>();
        NodeList texts = root.getElementsByTagName("text");
        for (int i = 0; i < texts.getLength(); i++) {
            Element text = (Element) texts.item(i);
            double size = text.getAttribute("class").equals("title") ? SvgPlot.TITLE : SvgPlot.TEXT;
            double width = text.getTextContent().length() * size * WIDE;
            double x = Double.parseDouble(text.getAttribute("x"));
            double left =
                    switch (text.getAttribute("text-anchor")) {
                        case "start" -> x;
                        case "middle" -> x - width / 2;
                        default -> x - width;
                    };
            double y = Double.parseDouble(text.getAttribute("y"));
            Rectangle2D box = new Rectangle2D.Double(left, y - 0.8 * size, width, size);
            assertTrue(
                    left >= 0
                            && left + width <= SvgPlot.WIDTH
                            && box.getMaxY() <= Double.parseDouble(root.getAttribute("height")),
                    () -> "'" + text.getTextContent() + "' leaves the picture: " + box);
            assertTrue(
                    boxes.stream().noneMatch(box::intersects),
                    () -> "'" + text.getTextContent() + "' touches another text: " + box);
            boxes.add(box);
        }
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
